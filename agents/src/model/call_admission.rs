//! The gate of one task: before every call its own budget, the fleet's budget and the provider's rate are looked at,
//! and every call is counted.

use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::flow::{Budget, Usage};
use muster_shared::time::Millis;

use super::breaker::Breakers;
use super::budget::{Leave, Meter, Shortfall, USUAL_ANSWER};
use super::budget_lease::{BudgetLease, BudgetLeaseError};
use super::chat::{ChatAnswer, ChatRequest, ModelError, ModelErrorKind};
use super::gate::{CallGate, Ownership};
use super::pacing::Pacer;
use super::pricing::Pricing;

/// Tokens of an answer that a rate is charged with beforehand where nothing bounds it.
const EXPECTED_ANSWER: u64 = 500;

/// What all tasks of a process share with the whole fleet.
#[derive(Clone, Default)]
pub struct Common {
    /// Which providers do not answer.
    pub breakers: Option<Arc<Breakers>>,
    /// The pace of calls.
    pub pacer: Option<Arc<Pacer>>,
    /// The part in the fleet's budget, where it has one.
    pub budget_lease: Option<Arc<BudgetLease>>,
}

/// Told in a line what a call waits for.
pub type StatusSink = Box<dyn Fn(&str) + Send + Sync>;

/// What a task is shown to do while its call waits for its turn.
const WAITING: &str = "waiting for the rate limit";

/// The gate of one task.
#[derive(Default)]
pub struct CallAdmission {
    meter: Meter,
    common: Common,
    /// Told in a line what a call waits for.
    waits: Option<StatusSink>,
    /// When the task has to end.
    deadline: Option<Millis>,
    /// Looked at last, right before a call is made.
    ownership: Option<Arc<dyn Ownership>>,
    /// The call that was admitted and has not ended.
    under_way: Option<UnderWay>,
    /// Most tokens of the answer of the last call, where something bounded it.
    answer_limit: Option<u32>,
    /// What calls used since it was last asked for.
    counted: Usage,
    /// Calls that others had sent for the task when they died, and nobody has counted.
    owing: u32,
    /// What they used.
    owed: Usage,
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

impl CallAdmission {
    /// The gate of a task that may use `budget` and has used `used`.
    #[must_use]
    pub fn new(budget: Budget, pricing: Pricing, used: Usage, common: Common) -> Self {
        Self { meter: Meter::new(budget, pricing, used), common, ..Self::default() }
    }

    /// Has this told what a call waits for.
    #[must_use]
    pub fn telling(self, waits: StatusSink) -> Self {
        Self { waits: Some(waits), ..self }
    }

    /// Has calls wait for a provider no longer than makes sense for a task that has to end by then.
    #[must_use]
    pub fn until(self, deadline: Millis) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Makes no call any more once the task is in other hands.
    #[must_use]
    pub fn held_by(self, ownership: Arc<dyn Ownership>) -> Self {
        Self { ownership: Some(ownership), ..self }
    }

    /// Counts calls that others had sent for the task when they died: each as its question, which is the one that is asked
    /// first now.
    #[must_use]
    pub fn owing(self, calls: u32) -> Self {
        Self { owing: calls, ..self }
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
            self.tell_breakers(&cut.target, Some(&error));
            let used =
                if cut.sent { self.meter.failed(&cut.target, cut.input, &error) } else { Usage::default() };
            self.count(&cut, used);
        }
        // None was asked again: that they were made is all that is known.
        self.owed.wasted_calls += u64::from(std::mem::take(&mut self.owing));
        let mut used = self.take();
        used += std::mem::take(&mut self.owed);
        used
    }

    /// Counts what others had sent as this question.
    fn count_owed(&mut self, target: &str, request: &ChatRequest) {
        for _ in 0..std::mem::take(&mut self.owing) {
            let used = self.meter.unanswered(target, request);
            self.owed += used;
            if let Some(budget_lease) = &self.common.budget_lease {
                tokio::spawn(Arc::clone(budget_lease).settle(Usage::default(), used));
            }
        }
    }

    fn judge(&self, target: &str, request: &ChatRequest) -> Result<Leave, ModelError> {
        let mut leave = self.meter.judge(target, request).map_err(|short| refusal(target, &short))?;
        if self.common.budget_lease.as_ref().is_some_and(|budget_lease| budget_lease.counts_tokens()) {
            leave.max_tokens = leave.max_tokens.or(request.max_tokens).or(Some(USUAL_ANSWER));
        }
        Ok(leave)
    }

    /// Sets aside what the call needs at most of the fleet's budget.
    async fn set_aside(&self, target: &str, leave: &Leave) -> Result<Usage, ModelError> {
        let Some(budget_lease) = &self.common.budget_lease else { return Ok(Usage::default()) };
        let priced = budget_lease.limits_cost();
        let most = self.meter.most(target, leave, priced).map_err(|short| refusal(target, &short))?;
        budget_lease.take(most).await.map_err(|error| {
            let kind = match error {
                BudgetLeaseError::UsedUp(_) => ModelErrorKind::BudgetExhausted,
                BudgetLeaseError::Bus(_) => ModelErrorKind::Unreachable,
            };
            ModelError::new(kind, target, error.to_string())
        })?;
        Ok(most)
    }

    /// Waits until the provider is known to answer.
    async fn wait_for_provider(&self, target: &str) -> Result<(), ModelError> {
        let Some(breakers) = &self.common.breakers else { return Ok(()) };
        let admitted = breakers.admit(target, self.deadline, &|text| self.tell(text)).await;
        admitted.map_err(|down| ModelError::new(ModelErrorKind::Unreachable, target, down.to_string()))
    }

    async fn wait_for_turn(&self, target: &str, tokens: u64) -> Result<(), ModelError> {
        let Some(pacer) = &self.common.pacer else { return Ok(()) };
        let waits = || self.tell(WAITING);
        let limited = ModelErrorKind::RateLimited { retry_after: None };
        let turn = pacer.turn(target, tokens, &waits).await;
        turn.map_err(|too_long| ModelError::new(limited, target, too_long.to_string()))
    }

    async fn still_holds(&self, target: &str) -> Result<(), ModelError> {
        let Some(ownership) = &self.ownership else { return Ok(()) };
        ownership.holds().await.map_err(|why| ModelError::new(ModelErrorKind::Superseded, target, why))
    }

    /// The turn of the call under way did not come: nothing was used.
    fn close_unsent(&mut self) {
        if let Some(call) = self.under_way.take() {
            let error = ModelError::new(ModelErrorKind::Cancelled, call.target.as_str(), "not sent");
            self.tell_breakers(&call.target, Some(&error));
            self.count(&call, Usage::default());
        }
    }

    fn tell_breakers(&self, target: &str, failed: Option<&ModelError>) {
        if let Some(breakers) = &self.common.breakers {
            breakers.ended(target, failed);
        }
    }

    fn count(&mut self, call: &UnderWay, used: Usage) {
        self.counted += used;
        if let Some(budget_lease) = &self.common.budget_lease {
            tokio::spawn(Arc::clone(budget_lease).settle(call.set_aside, used));
        }
        if let Some(pacer) = &self.common.pacer {
            pacer.took(&call.target, call.expected, used.tokens());
        }
    }
}

fn refusal(target: &str, short: &Shortfall) -> ModelError {
    let what = match short {
        Shortfall::UnknownPrice { .. } => short.to_string(),
        _ => format!("what the task may use is used up: {short}"),
    };
    ModelError::new(ModelErrorKind::BudgetExhausted, target, what)
}

#[async_trait]
impl CallGate for CallAdmission {
    async fn admit(&mut self, target: &str, request: &ChatRequest) -> Result<Option<u32>, ModelError> {
        self.count_owed(target, request);
        let leave = self.judge(target, request)?;
        let bytes = if self.meter.counts_tokens() { request.bytes() } else { 0 };
        let set_aside = self.set_aside(target, &leave).await?;
        let expected = leave.input.saturating_add(leave.max_tokens.map_or(EXPECTED_ANSWER, u64::from));
        let target = target.to_owned();
        let call = UnderWay { target, bytes, input: leave.input, expected, set_aside, sent: false };
        let call = self.under_way.insert(call).target.clone();
        let leave_to_send = async {
            self.wait_for_turn(&call, expected).await?;
            self.wait_for_provider(&call).await?;
            self.still_holds(&call).await
        };
        let leave_to_send = leave_to_send.await;
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
        self.tell_breakers(target, ended.err());
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

    fn shut(&self, target: &str) -> Option<String> {
        self.common.breakers.as_ref()?.shut(target)
    }

    fn keeps_away(&self) -> bool {
        self.common.breakers.as_ref().is_some_and(|breakers| breakers.are_on())
    }

    fn tell(&self, text: &str) {
        if let Some(waits) = &self.waits {
            waits(text);
        }
    }

    fn paces(&self) -> bool {
        self.common.pacer.is_some()
    }
}
