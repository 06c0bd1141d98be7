//! The gate of one task: before every call its own budget, the fleet's budget and the provider's rate are looked at,
//! and every call is counted.

use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::flow::{Budget, Usage};

use super::budget::{Leave, Meter, Shortfall, USUAL_ANSWER};
use super::chat::{ChatAnswer, ChatRequest, ModelError, ModelErrorKind};
use super::gate::{Gate, Tenure};
use super::pacing::Pacer;
use super::pricing::Pricing;
use super::purse::{Purse, PurseError};

/// Tokens of an answer that a rate is charged with beforehand where nothing bounds it.
const EXPECTED_ANSWER: u64 = 500;

/// What all tasks of a process share with the whole fleet.
#[derive(Debug, Clone, Default)]
pub struct Common {
    /// The pace of calls.
    pub pacer: Option<Arc<Pacer>>,
    /// The part in the fleet's budget, where it has one.
    pub purse: Option<Arc<Purse>>,
}

/// The gate of one task.
#[derive(Default)]
pub struct Turnstile {
    meter: Meter,
    common: Common,
    /// Told when a call has to wait for its turn.
    waits: Option<Box<dyn Fn() + Send + Sync>>,
    /// Looked at last, right before a call is made.
    tenure: Option<Arc<dyn Tenure>>,
    /// The call that was admitted and has not ended.
    under_way: Option<UnderWay>,
    /// Most tokens of the answer of the last call, where something bounded it.
    answer_limit: Option<u32>,
    /// What calls used since it was last asked for.
    counted: Usage,
}

struct UnderWay {
    target: String,
    /// Length of the request.
    bytes: u64,
    /// Tokens of the request.
    input: u64,
    /// Tokens that the rate was charged with.
    expected: u64,
    /// What was set aside of the fleet's budget.
    set_aside: Usage,
    /// Whether its turn has come.
    sent: bool,
}

impl Turnstile {
    /// The gate of a task that may use `budget` and has used `used`.
    #[must_use]
    pub fn new(budget: Budget, pricing: Pricing, used: Usage, common: Common) -> Self {
        Self { meter: Meter::new(budget, pricing, used), common, ..Self::default() }
    }

    /// Has this called when a call has to wait for its turn.
    #[must_use]
    pub fn telling(self, waits: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { waits: Some(waits), ..self }
    }

    /// Makes no call any more once the task is in other hands.
    #[must_use]
    pub fn held_by(self, tenure: Arc<dyn Tenure>) -> Self {
        Self { tenure: Some(tenure), ..self }
    }

    /// Whether the next call will be the last that the budget allows.
    #[must_use]
    pub fn is_last(&self, target: &str, request: &ChatRequest) -> bool {
        self.meter.judge(target, request).is_ok_and(|leave| leave.is_last)
    }

    /// Most tokens of the answer of the last call, where something bounded it.
    #[must_use]
    pub const fn answer_limit(&self) -> Option<u32> {
        self.answer_limit
    }

    /// What calls used since this was last asked.
    pub fn take(&mut self) -> Usage {
        std::mem::take(&mut self.counted)
    }

    /// What calls used since [`Self::take`], with one that was cut off in the middle.
    pub fn close(&mut self) -> Usage {
        if let Some(cut) = self.under_way.take() {
            let error = ModelError::new(ModelErrorKind::Cancelled, cut.target.as_str(), "cut off");
            let used =
                if cut.sent { self.meter.failed(&cut.target, cut.input, &error) } else { Usage::default() };
            self.count(&cut, used);
        }
        self.take()
    }

    fn judge(&self, target: &str, request: &ChatRequest) -> Result<Leave, ModelError> {
        let mut leave = self.meter.judge(target, request).map_err(|short| refusal(target, &short))?;
        if self.common.purse.as_ref().is_some_and(|purse| purse.counts_tokens()) {
            leave.max_tokens = leave.max_tokens.or(request.max_tokens).or(Some(USUAL_ANSWER));
        }
        Ok(leave)
    }

    /// Sets aside what the call needs at most of the fleet's budget.
    async fn set_aside(&self, target: &str, leave: &Leave) -> Result<Usage, ModelError> {
        let Some(purse) = &self.common.purse else { return Ok(Usage::default()) };
        let priced = purse.limits_cost();
        let most = self.meter.most(target, leave, priced).map_err(|short| refusal(target, &short))?;
        purse.take(most).await.map_err(|error| {
            let kind = match error {
                PurseError::UsedUp(_) => ModelErrorKind::BudgetExhausted,
                PurseError::Bus(_) => ModelErrorKind::Unreachable,
            };
            ModelError::new(kind, target, error.to_string())
        })?;
        Ok(most)
    }

    async fn wait_for_turn(&self, target: &str, tokens: u64) -> Result<(), ModelError> {
        let Some(pacer) = &self.common.pacer else { return Ok(()) };
        let waits = || {
            if let Some(waits) = &self.waits {
                waits();
            }
        };
        let limited = ModelErrorKind::RateLimited { retry_after: None };
        let turn = pacer.turn(target, tokens, &waits).await;
        turn.map_err(|too_long| ModelError::new(limited, target, too_long.to_string()))
    }

    async fn still_holds(&self, target: &str) -> Result<(), ModelError> {
        let Some(tenure) = &self.tenure else { return Ok(()) };
        tenure.holds().await.map_err(|why| ModelError::new(ModelErrorKind::Superseded, target, why))
    }

    /// The turn of the call under way did not come: nothing was used.
    fn close_unsent(&mut self) {
        if let Some(call) = self.under_way.take() {
            self.count(&call, Usage::default());
        }
    }

    fn count(&mut self, call: &UnderWay, used: Usage) {
        self.counted += used;
        if let Some(purse) = &self.common.purse {
            tokio::spawn(Arc::clone(purse).settle(call.set_aside, used));
        }
        if let Some(pacer) = &self.common.pacer {
            pacer.took(&call.target, call.expected, used.tokens());
        }
    }
}

fn refusal(target: &str, short: &Shortfall) -> ModelError {
    let what = match short {
        Shortfall::Calls { .. } | Shortfall::Tokens { .. } | Shortfall::Cost { .. } => {
            format!("what the task may use is used up: {short}")
        }
        Shortfall::UnknownPrice { .. } => short.to_string(),
    };
    ModelError::new(ModelErrorKind::BudgetExhausted, target, what)
}

#[async_trait]
impl Gate for Turnstile {
    async fn admit(&mut self, target: &str, request: &ChatRequest) -> Result<Option<u32>, ModelError> {
        let leave = self.judge(target, request)?;
        let bytes = if self.meter.counts_tokens() { Meter::request_bytes(request) } else { 0 };
        let set_aside = self.set_aside(target, &leave).await?;
        let expected = leave.input.saturating_add(leave.max_tokens.map_or(EXPECTED_ANSWER, u64::from));
        let target = target.to_owned();
        let call = UnderWay { target, bytes, input: leave.input, expected, set_aside, sent: false };
        let call = self.under_way.insert(call).target.clone();
        let leave_to_send = match self.wait_for_turn(&call, expected).await {
            Ok(()) => self.still_holds(&call).await,
            too_long => too_long,
        };
        if let Err(refused) = leave_to_send {
            self.close_unsent();
            return Err(refused);
        }
        if let Some(call) = &mut self.under_way {
            call.sent = true;
        }
        self.answer_limit = leave.max_tokens;
        Ok(leave.max_tokens)
    }

    fn settle(&mut self, target: &str, ended: Result<&ChatAnswer, &ModelError>) {
        let Some(call) = self.under_way.take() else { return };
        let used = match ended {
            Ok(answer) => self.meter.answered(target, call.bytes, call.input, answer),
            Err(error) => {
                if let (ModelErrorKind::RateLimited { retry_after }, Some(pacer)) =
                    (&error.kind, &self.common.pacer)
                {
                    pacer.refused(target, *retry_after);
                }
                self.meter.failed(target, call.input, error)
            }
        };
        self.count(&call, used);
    }

    fn paces(&self) -> bool {
        self.common.pacer.is_some()
    }
}
