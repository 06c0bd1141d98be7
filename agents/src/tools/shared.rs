//! Answers of pure tools that serve all agents of a role, in the whole fleet.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use muster_bus::Answers;
use muster_shared::secret::Redactor;
use muster_shared::time::Millis;
use muster_tools::{AnswerToShare, SharedAnswer, SharedAnswers, SharedKey};

/// Keeps answers where all agents of a role find them.
pub struct FleetAnswers {
    answers: Answers,
    redactor: Arc<Redactor>,
    now: fn() -> Millis,
}

impl FleetAnswers {
    /// Answers of one role, kept without secrets; `now` is the clock by which their age is told.
    #[must_use]
    pub const fn new(answers: Answers, redactor: Arc<Redactor>, now: fn() -> Millis) -> Self {
        Self { answers, redactor, now }
    }
}

/// Apart from the questions to models, which are named by their hashes alone.
fn name(key: &SharedKey) -> String {
    format!("tool-{}", key.as_str())
}

#[async_trait]
impl SharedAnswers for FleetAnswers {
    async fn find(&self, key: &SharedKey) -> Result<Option<SharedAnswer>, String> {
        let kept = self.answers.find(&name(key)).await.map_err(|error| error.to_string())?;
        let read = |kept: muster_bus::KeptAnswer| {
            // What another version wrote is as good as none.
            let answer = serde_json::from_slice(&kept.bytes).ok()?;
            Some(SharedAnswer { answer, age: (self.now)().since(kept.at) })
        };
        Ok(kept.and_then(read))
    }

    async fn keep(&self, key: &SharedKey, mut answer: AnswerToShare) -> Result<(), String> {
        answer.content = self.redactor.redact(&answer.content).into_owned();
        if let Some(data) = &mut answer.data {
            self.redactor.redact_value(data);
        }
        let bytes = serde_json::to_vec(&answer).map_err(|error| error.to_string())?;
        self.answers.keep(&name(key), Bytes::from(bytes)).await.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
