//! The gate of one task: its budget is looked at before every call, and every call is counted.

use async_trait::async_trait;
use muster_shared::flow::{Budget, Usage};

use super::budget::{Leave, Meter, Shortfall};
use super::chat::{ChatAnswer, ChatRequest, ModelError, ModelErrorKind};
use super::gate::Gate;
use super::pricing::Pricing;

/// The gate of one task.
#[derive(Debug, Default)]
pub struct Turnstile {
    meter: Meter,
    /// The call that was admitted and has not ended: where it goes, its bytes and its tokens.
    under_way: Option<UnderWay>,
    /// Most tokens of the answer of the last call, where something bounded it.
    answer_limit: Option<u32>,
    /// What calls used since it was last asked for.
    counted: Usage,
}

#[derive(Debug)]
struct UnderWay {
    target: String,
    bytes: u64,
    input: u64,
}

impl Turnstile {
    /// The gate of a task that may use `budget` and has used `used`.
    #[must_use]
    pub fn new(budget: Budget, pricing: Pricing, used: Usage) -> Self {
        Self { meter: Meter::new(budget, pricing, used), ..Self::default() }
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
            self.counted += self.meter.failed(&cut.target, cut.input, &error);
        }
        self.take()
    }

    fn judge(&self, target: &str, request: &ChatRequest) -> Result<Leave, ModelError> {
        self.meter.judge(target, request).map_err(|short| {
            let what = match &short {
                Shortfall::Calls { .. } | Shortfall::Tokens { .. } | Shortfall::Cost { .. } => {
                    format!("what the task may use is used up: {short}")
                }
                Shortfall::UnknownPrice { .. } => short.to_string(),
            };
            ModelError::new(ModelErrorKind::BudgetExhausted, target, what)
        })
    }
}

#[async_trait]
impl Gate for Turnstile {
    async fn admit(&mut self, target: &str, request: &ChatRequest) -> Result<Option<u32>, ModelError> {
        let leave = self.judge(target, request)?;
        let bytes = if self.meter.counts_tokens() { Meter::request_bytes(request) } else { 0 };
        self.under_way = Some(UnderWay { target: target.to_owned(), bytes, input: leave.input });
        self.answer_limit = leave.max_tokens;
        Ok(leave.max_tokens)
    }

    fn settle(&mut self, target: &str, ended: Result<&ChatAnswer, &ModelError>) {
        let (bytes, input) = self.under_way.take().map_or((0, 0), |call| (call.bytes, call.input));
        self.counted += match ended {
            Ok(answer) => self.meter.answered(target, bytes, input, answer),
            Err(error) => self.meter.failed(target, input, error),
        };
    }
}
