//! Whom a tool asks in the middle of its call.

use async_trait::async_trait;
use muster_shared::wire::tool_question::{CallAnswer, PersonQuestion};

/// Has a person asked what a tool asks in the middle of its call.
#[async_trait]
pub trait Asker: Send + Sync + 'static {
    /// The answer. It may be a no; it comes as long as anybody waits for it.
    async fn ask(&self, question: PersonQuestion) -> CallAnswer;
}

/// Has the model of a task look at a picture in the middle of a call, within the limits of the task.
#[async_trait]
pub trait Viewer: Send + Sync + 'static {
    /// What it says.
    ///
    /// # Errors
    /// Why it says nothing, in a sentence.
    async fn look(&self, question: PictureQuestion) -> Result<PictureAnswer, String>;
}

/// A question about a picture. The model sees nothing but this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureQuestion {
    /// What the model is to be.
    pub system: &'static str,
    /// What is asked.
    pub text: String,
    /// The media type of the picture.
    pub media_type: String,
    /// Its bytes in base64.
    pub data: String,
    /// Most tokens of the answer.
    pub max_tokens: u32,
}

/// What a model says of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureAnswer {
    /// The text.
    pub text: String,
    /// Which model.
    pub model: String,
    /// Whether the answer was cut at its limit.
    pub cut: bool,
}
