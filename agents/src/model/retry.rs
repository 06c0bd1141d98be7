//! When to ask a failing model again: a pure decision, and the wrapper that carries it out.

use std::hash::{BuildHasher, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use muster_shared::settings;
use muster_shared::wire::UNANSWERED;
use serde::{Deserialize, Serialize};

use super::chat::{ChatAnswer, ChatModel, ChatRequest, Delta, ModelError, ModelErrorKind, Wasted};
use super::gate::{CallGate, Open};

settings! {
    /// Limits of retrying.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct RetryLimits {
        /// Calls per target, the first one included.
        pub attempts: u32 = 5 => whole(1, 1000),
        /// Time for all calls and waits together, over all targets.
        #[serde(with = "muster_shared::span")]
        pub total: Duration = Duration::from_secs(300) => span(100, DAY),
        /// The first wait; it doubles with each attempt.
        #[serde(with = "muster_shared::span")]
        pub base: Duration = Duration::from_millis(500) => span(0, HOUR),
        /// The longest wait of our own making.
        #[serde(with = "muster_shared::span")]
        pub max_wait: Duration = Duration::from_secs(30) => span(0, DAY),
        /// The longest wait a provider may ask for; one that asks for more is given up.
        #[serde(with = "muster_shared::span")]
        pub max_retry_after: Duration = Duration::from_secs(120) => span(0, DAY),
    }
}

/// A model that is silent for so long is told of, again and again.
const SILENCE: Duration = Duration::from_secs(5);

/// Where the fleet keeps away from providers that do not answer, an outage takes so many times the attempts until that
/// is known.
const MORE_ATTEMPTS: u32 = 4;

/// How often a question is put off by a provider's rate before that counts as a failed attempt.
const MOST_REFUSALS: u32 = 100;

/// What to do after a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Ask again after this time.
    Retry {
        /// How long to wait.
        after: Duration,
    },
    /// Further calls cannot help, or a limit is reached.
    GiveUp,
}

/// Decides whether the `attempt`-th failed call (from 1) is followed by another.
///
/// `elapsed` is the time since the first call; `jitter` (0 to 1) spreads the waits so that many agents
/// do not come back at the same moment. A provider's Retry-After is a floor: jitter only adds to it.
#[must_use]
pub fn decide_retry(
    error: &ModelError,
    attempt: u32,
    elapsed: Duration,
    limits: &RetryLimits,
    jitter: f64,
) -> RetryDecision {
    if !error.is_transient() || attempt >= limits.attempts {
        return RetryDecision::GiveUp;
    }
    let jitter = jitter.clamp(0.0, 1.0);
    let after = match error.retry_after() {
        Some(asked) if asked > limits.max_retry_after => return RetryDecision::GiveUp,
        Some(asked) => asked + limits.base.mul_f64(jitter),
        None => backoff(attempt, limits).mul_f64(0.5 + jitter / 2.0),
    };
    if elapsed.saturating_add(after) >= limits.total {
        return RetryDecision::GiveUp;
    }
    RetryDecision::Retry { after }
}

/// The full wait after `attempt` failures, before jitter.
fn backoff(attempt: u32, limits: &RetryLimits) -> Duration {
    let factor = 2_u32.saturating_pow(attempt.saturating_sub(1).min(20));
    limits.base.saturating_mul(factor).min(limits.max_wait)
}

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
            match sequence.ask_target((target.as_ref(), is_last), request, gate, on_delta).await {
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
    match error.kind {
        ModelErrorKind::RateLimited { .. }
        | ModelErrorKind::Overloaded { .. }
        | ModelErrorKind::Timeout
        | ModelErrorKind::Unreachable
        | ModelErrorKind::Unauthorized
        | ModelErrorKind::ContextTooLong
        | ModelErrorKind::BadAnswer
        | ModelErrorKind::Refused => true,
        ModelErrorKind::BadRequest
        | ModelErrorKind::Cancelled
        | ModelErrorKind::BudgetExhausted
        | ModelErrorKind::Superseded => false,
    }
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
        (target, is_last): (&dyn ChatModel, bool),
        request: &ChatRequest,
        gate: &mut dyn CallGate,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError> {
        let name = target.describe();
        let mut attempt = 1;
        loop {
            let begun = Instant::now();
            let most = gate.admit(&name, request).await?;
            // Waiting for leave is not the model's fault.
            self.waited += begun.elapsed();
            let answer = self.ask_once(target, request, most, (&mut *gate, &mut *on_delta)).await;
            gate.settle(&name, answer.as_ref());
            let error = match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            self.wasted.calls = self.wasted.calls.saturating_add(error.calls);
            self.wasted.usage += error.usage;
            on_delta(Delta::Restart);
            match decide_retry(&error, attempt, self.elapsed(), &self.limits, random_fraction()) {
                // The whole fleet waits for it: that burns nobody's tries.
                RetryDecision::GiveUp if is_last && self.waits_on(&error) && gate.shut(&name).is_some() => {}
                // It may be about to.
                RetryDecision::GiveUp
                    if is_last
                        && self.waits_on(&error)
                        && gate.keeps_away()
                        && attempt < self.limits.attempts.saturating_mul(MORE_ATTEMPTS) =>
                {
                    tokio::time::sleep(backoff(attempt, &self.limits).mul_f64(random_fraction())).await;
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
        let is_outage = match error.kind {
            ModelErrorKind::RateLimited { .. }
            | ModelErrorKind::Overloaded { .. }
            | ModelErrorKind::Timeout
            | ModelErrorKind::Unreachable => true,
            ModelErrorKind::Unauthorized
            | ModelErrorKind::BadRequest
            | ModelErrorKind::ContextTooLong
            | ModelErrorKind::BadAnswer
            | ModelErrorKind::Refused
            | ModelErrorKind::Cancelled
            | ModelErrorKind::BudgetExhausted
            | ModelErrorKind::Superseded => false,
        };
        is_outage && self.elapsed() < self.limits.total
    }

    /// One call, cut off when the total time is used up. While nothing comes, that is said.
    async fn ask_once(
        &self,
        target: &dyn ChatModel,
        request: &ChatRequest,
        most: Option<u32>,
        (gate, on_delta): (&mut dyn CallGate, &mut (dyn FnMut(Delta) + Send)),
    ) -> Result<ChatAnswer, ModelError> {
        let left = self.limits.total.saturating_sub(self.elapsed());
        let request = request.within(most);
        let heard = AtomicBool::new(false);
        let mut hear = |delta| {
            heard.store(true, Ordering::Relaxed);
            on_delta(delta);
        };
        let mut asking = pin!(tokio::time::timeout(left, target.ask(&request, &mut hear)));
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
        answer.millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
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

/// A number in 0..1 from the standard library's per-instance hash keys; spreading waits needs no more.
fn random_fraction() -> f64 {
    let bits = std::hash::RandomState::new().build_hasher().finish() >> 11;
    // 53 bits fit a double exactly.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let fraction = bits as f64 / (1_u64 << 53) as f64;
    fraction
}

/// Asks `model` until `cancel` fires.
///
/// # Errors
/// [`ModelErrorKind::Cancelled`] when it fired first, else what the model says.
pub async fn ask_unless_cancelled(
    model: &dyn ChatModel,
    request: &ChatRequest,
    on_delta: &mut (dyn FnMut(Delta) + Send),
    cancel: &tokio_util::sync::CancellationToken,
) -> Result<ChatAnswer, ModelError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ModelError::new(
            ModelErrorKind::Cancelled,
            model.describe(),
            "the call was cancelled",
        )),
        answer = model.ask(request, on_delta) => answer,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;
    use crate::model::chat::{FinishReason, TokenUsage, ignore_deltas};

    fn error(kind: ModelErrorKind) -> ModelError {
        ModelError::new(kind, "openai/x", "failed")
    }

    fn limits() -> RetryLimits {
        RetryLimits {
            attempts: 4,
            total: Duration::from_secs(60),
            base: Duration::from_secs(1),
            max_wait: Duration::from_secs(3),
            max_retry_after: Duration::from_secs(20),
        }
    }

    #[test]
    fn decisions() {
        let limited =
            |seconds| error(ModelErrorKind::RateLimited { retry_after: Some(Duration::from_secs(seconds)) });
        let overloaded = error(ModelErrorKind::Overloaded { retry_after: None });
        let wait = |seconds: f64| RetryDecision::Retry { after: Duration::from_secs_f64(seconds) };
        let cases = [
            (overloaded.clone(), 1, 0, 1.0, wait(1.0)),
            (overloaded.clone(), 1, 0, 0.0, wait(0.5)),
            (overloaded.clone(), 2, 0, 1.0, wait(2.0)),
            (overloaded.clone(), 3, 0, 1.0, wait(3.0)),
            (overloaded.clone(), 4, 0, 1.0, RetryDecision::GiveUp),
            (overloaded, 1, 60, 1.0, RetryDecision::GiveUp),
            (limited(7), 1, 0, 0.0, wait(7.0)),
            (limited(7), 1, 0, 0.5, wait(7.5)),
            (limited(21), 1, 0, 0.0, RetryDecision::GiveUp),
            (limited(15), 1, 46, 0.0, RetryDecision::GiveUp),
            (error(ModelErrorKind::Unauthorized), 1, 0, 0.0, RetryDecision::GiveUp),
            (error(ModelErrorKind::Cancelled), 1, 0, 0.0, RetryDecision::GiveUp),
        ];
        for (error, attempt, elapsed, jitter, expected) in cases {
            let got = decide_retry(&error, attempt, Duration::from_secs(elapsed), &limits(), jitter);
            assert_eq!(got, expected, "{error:?} attempt {attempt} elapsed {elapsed}");
        }
    }

    proptest! {
        #[test]
        fn waits_stay_within_limits(attempt in 1_u32..100, elapsed in 0_u64..100, asked in proptest::option::of(0_u64..200), jitter in 0.0..=1.0_f64) {
            let limits = limits();
            let failed = error(ModelErrorKind::RateLimited { retry_after: asked.map(Duration::from_secs) });
            let elapsed = Duration::from_secs(elapsed);
            if let RetryDecision::Retry { after } = decide_retry(&failed, attempt, elapsed, &limits, jitter) {
                prop_assert!(attempt < limits.attempts);
                prop_assert!(elapsed + after < limits.total);
                match failed.retry_after() {
                    Some(asked) => prop_assert!(after >= asked),
                    None => prop_assert!(after <= limits.max_wait),
                }
            }
        }
    }

    /// Fails as told, then answers.
    struct Flaky {
        name: &'static str,
        failures: Mutex<Vec<ModelErrorKind>>,
    }

    impl Flaky {
        fn new(name: &'static str, failures: Vec<ModelErrorKind>) -> Arc<Self> {
            Arc::new(Self { name, failures: Mutex::new(failures) })
        }
    }

    #[async_trait]
    impl ChatModel for Flaky {
        async fn ask(
            &self,
            _request: &ChatRequest,
            _on_delta: &mut (dyn FnMut(Delta) + Send),
        ) -> Result<ChatAnswer, ModelError> {
            let next = self.failures.lock().unwrap().pop();
            match next {
                Some(kind) => {
                    let mut failed = ModelError::new(kind, self.name, "failed");
                    failed.usage.input = 10;
                    Err(failed)
                }
                None => Ok(ChatAnswer {
                    text: "ok".into(),
                    reasoning: None,
                    tool_calls: vec![],
                    usage: TokenUsage { input: 5, output: 2, cached: 0 },
                    wasted: Wasted::default(),
                    model: self.name.into(),
                    provider: "test".into(),
                    finish: FinishReason::Stop,
                    millis: 0,
                }),
            }
        }

        fn describe(&self) -> String {
            self.name.into()
        }
    }

    fn quick() -> RetryLimits {
        RetryLimits { attempts: 3, base: Duration::from_millis(1), ..limits() }
    }

    #[tokio::test]
    async fn wasted_calls_are_counted_apart() {
        let model = Flaky::new("a", vec![ModelErrorKind::BadAnswer, ModelErrorKind::Timeout]);
        let answer = Resilient::new(model, [], quick())
            .ask(&ChatRequest::default(), &mut ignore_deltas)
            .await
            .unwrap();
        assert_eq!(answer.usage.input, 5);
        assert_eq!((answer.wasted.calls, answer.wasted.usage.input), (2, 20));
    }

    #[tokio::test]
    async fn a_model_that_fails_for_good_gives_way_to_the_next() {
        let first = Flaky::new("a", vec![ModelErrorKind::Unauthorized; 9]);
        let second = Flaky::new("b", vec![]);
        let mut restarts = 0;
        let answer = Resilient::new(first.clone(), [second as Arc<dyn ChatModel>], quick())
            .ask(&ChatRequest::default(), &mut |delta| {
                restarts += usize::from(delta == Delta::Restart);
            })
            .await
            .unwrap();
        assert_eq!(answer.model, "b");
        assert_eq!((answer.wasted.calls, restarts), (1, 1));
        assert_eq!(first.failures.lock().unwrap().len(), 8, "asked once");
    }

    #[tokio::test]
    async fn a_bad_question_is_not_asked_elsewhere() {
        let first = Flaky::new("a", vec![ModelErrorKind::BadRequest]);
        let second = Flaky::new("b", vec![]);
        let failed = Resilient::new(first, [second as Arc<dyn ChatModel>], quick())
            .ask(&ChatRequest::default(), &mut ignore_deltas)
            .await
            .unwrap_err();
        assert_eq!(failed.kind, ModelErrorKind::BadRequest);
    }

    #[tokio::test]
    async fn giving_up_says_after_how_many_calls() {
        let model = Flaky::new("a", vec![ModelErrorKind::BadAnswer; 9]);
        let failed = Resilient::new(model, [], quick())
            .ask(&ChatRequest::default(), &mut ignore_deltas)
            .await
            .unwrap_err();
        assert_eq!(failed.calls, 3);
        assert!(failed.to_string().contains("after 3 calls"), "{failed}");
    }

    #[tokio::test]
    async fn cancelling_ends_the_call() {
        struct Never;
        #[async_trait]
        impl ChatModel for Never {
            async fn ask(
                &self,
                _: &ChatRequest,
                _: &mut (dyn FnMut(Delta) + Send),
            ) -> Result<ChatAnswer, ModelError> {
                std::future::pending().await
            }
            fn describe(&self) -> String {
                "never".into()
            }
        }
        let cancel = tokio_util::sync::CancellationToken::new();
        cancel.cancel();
        let failed = ask_unless_cancelled(&Never, &ChatRequest::default(), &mut ignore_deltas, &cancel)
            .await
            .unwrap_err();
        assert_eq!(failed.kind, ModelErrorKind::Cancelled);

        let limits = RetryLimits { total: Duration::from_millis(30), ..quick() };
        let failed = Resilient::new(Arc::new(Never), [], limits)
            .ask(&ChatRequest::default(), &mut ignore_deltas)
            .await
            .unwrap_err();
        assert_eq!(failed.kind, ModelErrorKind::Timeout);
    }
}
