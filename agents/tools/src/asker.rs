//! Questions of a tool during its call.

use async_trait::async_trait;
use muster_shared::wire::tool_question::{CallAnswer, PersonQuestion};

/// Forwards questions of a tool to a person during a call.
#[async_trait]
pub trait Asker: Send + Sync + 'static {
    /// Waits for the answer, which may be a refusal.
    async fn ask(&self, question: PersonQuestion) -> CallAnswer;
}

/// Asks the model of a task about a picture during a call, within the limits of the task.
#[async_trait]
pub trait Viewer: Send + Sync + 'static {
    /// Waits for the answer of the model.
    ///
    /// # Errors
    /// The reason for a missing answer, as a sentence.
    async fn look(&self, question: PictureQuestion) -> Result<PictureAnswer, String>;
}

/// A question about a picture. The model sees nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureQuestion {
    /// The system prompt.
    pub system: &'static str,
    /// The text of the question.
    pub text: String,
    /// The media type of the picture.
    pub media_type: String,
    /// The bytes of the picture in base64.
    pub data: String,
    /// Maximum number of tokens of the answer.
    pub max_tokens: u32,
}

/// The answer of a model about a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureAnswer {
    /// The text.
    pub text: String,
    /// The name of the model.
    pub model: String,
    /// True if the answer was cut at its limit.
    pub cut: bool,
}
