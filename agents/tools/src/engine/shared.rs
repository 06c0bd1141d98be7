//! Calls that are answered by what the same call was answered before, by whichever agent of the role.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_shared::flow::CachedAnswer;
use muster_shared::time::millis;

use super::ending::{Ending, Fault, json_size};
use super::{Admitted, ToolEngine};
use crate::sharing::{AnswerToShare, SharedAnswer, SharedAnswers, SharedKey};
use crate::spec::{ToolContext, ToolStatus};

/// Longest look-up: a bus that is slow holds no call up.
const LOOK_UP: Duration = Duration::from_millis(250);
/// Longest time that keeping an answer may take. Nobody waits for it.
const KEEPING: Duration = Duration::from_secs(10);
/// Room for what is said of an answer that serves again, in bytes, so that it is not cut for that.
const REMARK: usize = 160;

/// A call whose answer may be shared.
pub(super) struct SharedCall {
    answers: Arc<dyn SharedAnswers>,
    key: SharedKey,
    oldest: Duration,
    /// Longest observation that is kept, in bytes.
    most: usize,
    /// Largest answer that is kept, in bytes.
    largest: usize,
    begun: Instant,
}

impl ToolEngine {
    /// The same where answers of pure tools serve others.
    #[must_use]
    pub fn sharing(self, answers: Arc<dyn SharedAnswers>) -> Self {
        Self { shared: Some(answers), ..self }
    }

    /// The call, if its answer may be shared. One that a person has to approve is always made.
    pub(super) fn shared_call(&self, call: &Admitted, ctx: &ToolContext) -> Option<SharedCall> {
        let (answers, spec) = (self.shared.as_ref()?, call.spec());
        let oldest = self.rules.serves(spec)?;
        if self.approval_of(spec, ctx).is_some() {
            return None;
        }
        Some(SharedCall {
            answers: Arc::clone(answers),
            key: SharedKey::of(spec, &call.args, ctx)?,
            oldest,
            most: self.rules.limits.max_content.saturating_sub(REMARK),
            largest: self.rules.cache.max_bytes.min(self.rules.limits.max_data),
            begun: Instant::now(),
        })
    }
}

impl SharedCall {
    /// What the same call was answered before, else what comes of making it, which is kept for others.
    pub(super) async fn find_or(self, made: impl Future<Output = Ending>) -> Ending {
        if let Some(ending) = self.find().await {
            return ending;
        }
        let ending = made.await;
        self.keep(&ending);
        ending
    }

    /// What the same call was answered before, if that is new enough.
    async fn find(&self) -> Option<Ending> {
        let found = tokio::time::timeout(LOOK_UP, self.answers.find(&self.key)).await;
        let found = found.unwrap_or_else(|_| Err("the look-up took too long".to_owned()));
        let found = found.unwrap_or_else(|error| {
            tracing::debug!(error, "no earlier answers can be looked up; the tool is called");
            None
        });
        found.filter(|found| found.age <= self.oldest).map(Ending::of_shared)
    }

    /// Keeps a good and whole answer for others.
    fn keep(self, ending: &Ending) {
        let took = millis(self.begun.elapsed());
        let Some(answer) = self.to_keep(ending, took) else { return };
        tokio::spawn(async move {
            match tokio::time::timeout(KEEPING, self.answers.keep(&self.key, answer)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(error, "an answer of a tool is not kept for others"),
                Err(_) => tracing::debug!("an answer of a tool is not kept for others: it took too long"),
            }
        });
    }

    fn to_keep(&self, ending: &Ending, took_ms: u64) -> Option<AnswerToShare> {
        let is_good = ending.status == ToolStatus::Success && ending.fault == Fault::None;
        // Of another tool, or of an earlier time: it is no answer to this call.
        let is_own = ending.by.is_none() && ending.age.is_none() && ending.cached.is_none();
        let bytes = ending.content.len() + ending.data.as_ref().map_or(0, json_size);
        let is_whole = ending.wait.is_none() && ending.content.len() <= self.most && bytes <= self.largest;
        (is_good && is_own && is_whole).then(|| AnswerToShare {
            content: ending.content.clone(),
            data: ending.data.clone(),
            took_ms,
        })
    }
}

impl Ending {
    /// What the same call was answered before.
    fn of_shared(SharedAnswer { answer, age }: SharedAnswer) -> Self {
        let AnswerToShare { content, data, took_ms } = answer;
        let seconds = age.as_secs();
        let content = format!(
            "[From the cache of the fleet: this was answered {seconds} s ago to the same call, and may have changed since.]\n\
             {content}"
        );
        let age_ms = millis(age);
        let cached = Some(CachedAnswer { age_ms, saved_ms: took_ms });
        Self { data, cached, ..Self::of_status(ToolStatus::Success, content, Fault::None) }
    }
}
