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
    let answer =
        Resilient::new(model, [], quick()).ask(&ChatRequest::default(), &mut ignore_deltas).await.unwrap();
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
    let limits = RetryLimits { total: Duration::from_millis(30), ..quick() };
    let failed = Resilient::new(Arc::new(Never), [], limits)
        .ask(&ChatRequest::default(), &mut ignore_deltas)
        .await
        .unwrap_err();
    assert_eq!(failed.kind, ModelErrorKind::Timeout);
}
