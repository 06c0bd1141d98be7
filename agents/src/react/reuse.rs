//! Answers that serve again (L5): by setting, whoever of a role asks what one of them was answered already is given that
//! answer, and the model is not asked.

use std::time::Duration;

use bytes::Bytes;
use muster_bus::{Answers, Bus, KeptAnswer};
use muster_shared::flow::{TaskOffered, Usage, Work};
use muster_shared::ids::{Generation, Role};
use muster_shared::time::Millis;
use sha2::{Digest, Sha256};

use crate::model::chat::{ChatAnswer, ChatRequest, FinishReason};
use crate::model::pricing::Pricing;

/// What stands for the word that marks data in the prompts of a task: each task has one of its own.
const MARK: &str = "[MARK]";

/// The answers that may serve a task.
pub struct Reuse {
    answers: Answers,
    /// Older ones serve no more.
    oldest: Duration,
    nonce: String,
    pricing: Pricing,
    now: Millis,
}

/// An answer that was given to somebody else, and what it spares.
#[derive(Debug)]
pub struct Reused {
    /// The answer.
    pub answer: ChatAnswer,
    /// Counts it.
    pub usage: Usage,
}

/// What a question may take from others.
#[derive(Debug, Clone, Copy)]
pub struct ReuseRules<'a> {
    /// How old an answer may be; nothing is reused when zero.
    pub oldest: Duration,
    /// What it would have cost.
    pub pricing: &'a Pricing,
    /// The time, by the clock of this machine.
    pub now: Millis,
}

impl Reuse {
    /// The answers that may serve this task. Who does a task again wants another answer, and members of a group want
    /// several: for them there are none.
    #[must_use]
    pub fn of(bus: &Bus, role: &Role, offer: &TaskOffered, rules: ReuseRules<'_>) -> Option<Self> {
        let may = !rules.oldest.is_zero()
            && offer.generation <= Generation(1)
            && !matches!(offer.work, Work::Execute { member: Some(_), .. });
        may.then(|| Self {
            answers: bus.answers(role.clone()),
            oldest: rules.oldest,
            nonce: offer.nonce.clone(),
            pricing: rules.pricing.clone(),
            now: rules.now,
        })
    }

    /// The answer to this question, where an agent of the role had one. A bus that fails gives none.
    pub async fn find(&self, target: &str, request: &ChatRequest) -> Option<Reused> {
        let kept = self.answers.find(&self.hash(target, request)?).await;
        let kept = kept.unwrap_or_else(|error| {
            tracing::debug!(%error, "no earlier answers can be looked up; the model is asked");
            None
        });
        self.read(&kept?)
    }

    fn read(&self, KeptAnswer { bytes, at }: &KeptAnswer) -> Option<Reused> {
        if self.now.since(*at) > self.oldest {
            return None;
        }
        let text = std::str::from_utf8(bytes).ok()?;
        let answer: ChatAnswer = serde_json::from_str(&text.replace(MARK, &self.nonce)).ok()?;
        let saved = self.pricing.cost_micros(&answer.provider, &answer.model, &answer.usage);
        let usage = Usage { reused_calls: 1, reused_micros: saved.unwrap_or_default(), ..Usage::default() };
        Some(Reused { answer: ChatAnswer { millis: 0, ..answer }, usage })
    }

    /// Keeps an answer for others. One that was withheld, or cut off, is not kept.
    pub async fn keep(&self, target: &str, request: &ChatRequest, answer: &ChatAnswer) {
        if !matches!(answer.finish, FinishReason::Stop | FinishReason::ToolCalls) {
            return;
        }
        let Some(hash) = self.hash(target, request) else { return };
        let Ok(text) = serde_json::to_string(answer) else { return };
        let bytes = Bytes::from(self.unmarked(text));
        if let Err(error) = self.answers.keep(&hash, bytes).await {
            tracing::debug!(%error, "an answer is not kept for others");
        }
    }

    /// Names a question: the model, and all that it is sent.
    fn hash(&self, target: &str, request: &ChatRequest) -> Option<String> {
        let text = self.unmarked(serde_json::to_string(request).ok()?);
        let mut hash = Sha256::new();
        hash.update(target.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
        Some(hex::encode(hash.finalize()))
    }

    fn unmarked(&self, text: String) -> String {
        if self.nonce.is_empty() { text } else { text.replace(&self.nonce, MARK) }
    }
}

#[cfg(test)]
#[path = "reuse_tests.rs"]
mod tests;
