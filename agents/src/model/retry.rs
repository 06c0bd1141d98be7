//! Asking a failing model again, and another when it fails for good. What is done when is decided in [`decide_retry`].

mod decision;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use muster_shared::time::millis;
use muster_shared::wire::UNANSWERED;

use super::chat::{ChatAnswer, ChatModel, ChatRequest, Delta, ModelError, ModelErrorKind, Wasted};
use super::gate::{CallGate, Open};
use super::random::fraction;

pub use self::decision::{RetryDecision, RetryLimits, decide_retry};

/// A model that is silent for so long is told of, again and again.
const SILENCE: Duration = Duration::from_secs(5);

/// Where the fleet keeps away from providers that do not answer, an outage takes so many times the attempts until that
/// is known.
const MORE_ATTEMPTS: u32 = 4;

/// How often a question is put off by a provider's rate before that counts as a failed attempt.
const MOST_REFUSALS: u32 = 100;

/// A model that retries, and falls back to others when one fails for good.
pub struct Resilient {
    targets: Vec<Arc<dyn ChatModel>>,
    limits: RetryLimits,
}

impl Resilient {
    /// Wraps `primary`; `fallbacks` are asked in turn when the ones before gave up.
    #[must_use]
    pub fn new(
        primary: Arc<dyn ChatModel>,
        fallbacks: impl IntoIterator<Item = Arc<dyn ChatModel>>,
        limits: RetryLimits,
    ) -> Self {
        let mut targets = vec![primary];
        targets.extend(fallbacks);
        Self { targets, limits }
    }
}

#[async_trait]
impl ChatModel for Resilient {
    async fn ask(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError> {
        self.ask_with_leave(request, &mut Open, on_delta).await
    }

    async fn ask_with_leave(
        &self,
        request: &ChatRequest,
        gate: &mut dyn CallGate,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError> {
        let mut sequence = RetrySequence::begin(self.limits);
        let mut last = None;
        for (at, target) in (1..).zip(&self.targets) {
            let is_last = at == self.targets.len();
            // Who has another to ask does not wait for one that does not answer.
            if let Some(said) = gate.shut(&target.describe()).filter(|_| !is_last) {
                last = Some(ModelError::new(ModelErrorKind::Unreachable, target.describe(), said));
                continue;
            }
            let target = Target { model: target.as_ref(), is_last };
            match sequence.ask_target(target, request, gate, on_delta).await {
                Ok(answer) => return Ok(sequence.finish(answer)),
                Err(error) if !falls_back(&error) => return Err(sequence.fail(error)),
                Err(error) => last = Some(error),
            }
        }
        let error = last
            .unwrap_or_else(|| ModelError::new(ModelErrorKind::BadRequest, "none", "no model is configured"));
        Err(sequence.fail(error))
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.targets.iter().map(|target| target.describe()).collect();
        names.join(", then ")
    }
}

/// Whether another model may do better. What the asker did (cancel, a malformed question) it cannot mend.
fn falls_back(error: &ModelError) -> bool {
    !matches!(
        error.kind,
        ModelErrorKind::BadRequest
            | ModelErrorKind::Cancelled
            | ModelErrorKind::BudgetExhausted
            | ModelErrorKind::Superseded
    )
}

/// One of the models that may answer.
#[derive(Clone, Copy)]
struct Target<'a> {
    model: &'a dyn ChatModel,
    /// Whether there is no other to turn to.
    is_last: bool,
}

/// One question's way through attempts and targets.
struct RetrySequence {
    limits: RetryLimits,
    begun: Instant,
    /// Time spent waiting for leave.
    waited: Duration,
    /// How often a provider's rate was in the way.
    refusals: u32,
    wasted: Wasted,
}

impl RetrySequence {
    fn begin(limits: RetryLimits) -> Self {
        Self { limits, begun: Instant::now(), waited: Duration::ZERO, refusals: 0, wasted: Wasted::default() }
    }

    async fn ask_target(
        &mut self,
        target: Target<'_>,
        request: &ChatRequest,
        gate: &mut dyn CallGate,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError> {
        let Target { model, is_last } = target;
        let name = model.describe();
        let mut attempt = 1;
        loop {
            let begun = Instant::now();
            let most = gate.admit(&name, request).await?;
            // Waiting for leave is not the model's fault.
            self.waited += begun.elapsed();
            let answer = self.ask_once(model, &request.within(most), &mut *gate, &mut *on_delta).await;
            gate.settle(&name, answer.as_ref());
            let error = match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            self.wasted.calls = self.wasted.calls.saturating_add(error.calls);
            self.wasted.usage += error.usage;
            on_delta(Delta::Restart);
            match decide_retry(&error, attempt, self.elapsed(), &self.limits, fraction()) {
                // The whole fleet waits for it: that burns nobody's tries.
                RetryDecision::GiveUp if is_last && self.waits_on(&error) && gate.shut(&name).is_some() => {}
                // It may be about to.
                RetryDecision::GiveUp
                    if is_last
                        && self.waits_on(&error)
                        && gate.keeps_away()
                        && attempt < self.limits.attempts.saturating_mul(MORE_ATTEMPTS) =>
                {
                    tokio::time::sleep(self.limits.backoff().after(attempt).mul_f64(fraction())).await;
                }
                RetryDecision::GiveUp => return Err(error),
                RetryDecision::Retry { after } => {
                    let limited = matches!(error.kind, ModelErrorKind::RateLimited { .. });
                    if limited && gate.paces() && self.refusals < MOST_REFUSALS {
                        // All wait, and nobody is to blame: it does not count as an attempt.
                        self.refusals += 1;
                        continue;
                    }
                    gate.tell(&format!("{error}; asking again in {} s", after.as_secs().max(1)));
                    tracing::debug!(target = %error.target, kind = error.kind.name(), attempt, ?after, "asking the model again");
                    tokio::time::sleep(after).await;
                }
            }
            attempt += 1;
        }
    }

    /// Whether this failure is one that somebody waits out, and there is time left for it.
    fn waits_on(&self, error: &ModelError) -> bool {
        error.is_outage() && self.elapsed() < self.limits.total
    }

    /// One call, cut off when the total time is used up. While nothing comes, that is said.
    async fn ask_once(
        &self,
        target: &dyn ChatModel,
        request: &ChatRequest,
        gate: &mut dyn CallGate,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError> {
        let left = self.limits.total.saturating_sub(self.elapsed());
        let heard = AtomicBool::new(false);
        let mut hear = |delta| {
            heard.store(true, Ordering::Relaxed);
            on_delta(delta);
        };
        let mut asking = pin!(tokio::time::timeout(left, target.ask(request, &mut hear)));
        let mut silent_since = Instant::now();
        loop {
            tokio::select! {
                biased;
                answer = &mut asking => return answer.unwrap_or_else(|_| {
                    let message = format!("no answer within {:?} in all", self.limits.total);
                    Err(ModelError::new(ModelErrorKind::Timeout, target.describe(), message))
                }),
                () = tokio::time::sleep(SILENCE) => {
                    if heard.swap(false, Ordering::Relaxed) {
                        silent_since = Instant::now();
                    } else {
                        let seconds = silent_since.elapsed().as_secs();
                        gate.tell(&format!("{UNANSWERED}{} for {seconds} s", target.describe()));
                    }
                }
            }
        }
    }

    /// Time spent with the model, waits of our own making included.
    fn elapsed(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.waited)
    }

    fn finish(&self, mut answer: ChatAnswer) -> ChatAnswer {
        answer.wasted.calls = answer.wasted.calls.saturating_add(self.wasted.calls);
        answer.wasted.usage += self.wasted.usage;
        answer.millis = millis(self.begun.elapsed());
        answer
    }

    fn fail(&self, mut error: ModelError) -> ModelError {
        error.calls = self.wasted.calls.max(1);
        error.usage = self.wasted.usage;
        if error.calls > 1 {
            error.message = format!("{} (after {} calls)", error.message, error.calls);
        }
        error
    }
}

#[cfg(test)]
mod tests;
