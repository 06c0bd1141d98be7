//! Whom a tool asks in the middle of its call.

use async_trait::async_trait;
use muster_shared::wire::tool_question::{CallAnswer, CallQuestion, QuestionKind};

/// Answers what a tool asks in the middle of its call: the model of whoever called, within the limits of the task.
#[async_trait]
pub trait Asker: Send + Sync + 'static {
    /// Whom it can ask at all.
    fn may_ask(&self) -> Vec<QuestionKind>;

    /// The answer to what the tool of this full name asks. It may be a no; it comes as long as anybody waits for it.
    async fn ask(&self, tool: &str, question: CallQuestion) -> CallAnswer;
}
