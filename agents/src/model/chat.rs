//! Provider-neutral questions to a model and its answers.
//!
//! These types are journaled with each step, so they are plain data: no client, no key, no clock.

use std::borrow::Cow;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::error::{ModelError, ModelErrorKind};
use super::gate::CallGate;
use super::kept::{Kept, Measured};
use super::picture::{self, ChatPicture};

/// A model that can be asked.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Asks once and waits for the whole answer; parts of it are handed to `on_delta` as they arrive.
    ///
    /// An implementation bounds its own time; dropping the future cancels the call. Deltas are for
    /// display only: after a failed attempt they may start again from the beginning
    /// ([`Delta::Restart`]), and only the returned answer counts.
    ///
    /// # Errors
    /// A [`ModelError`] whose kind says whether asking again can help.
    async fn ask(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError>;

    /// As [`ChatModel::ask`]; leave is asked of `gate` before every single call that this takes.
    ///
    /// # Errors
    /// As [`ChatModel::ask`], and what the gate says when it gives no leave.
    async fn ask_with_leave(
        &self,
        request: &ChatRequest,
        gate: &mut dyn CallGate,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError> {
        let target = self.describe();
        let most = gate.admit(&target, request).await?;
        let answer = self.ask(&request.within(most), on_delta).await;
        gate.settle(&target, answer.as_ref());
        answer
    }

    /// What is asked, for logs and records: `provider/model`, never a key.
    fn describe(&self) -> String;
}

/// One question to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The system prompt; empty for none.
    pub system: Kept<String>,
    /// The conversation so far, oldest first.
    pub messages: Vec<Kept<ChatMessage>>,
    /// Tools the model may call natively; empty for none.
    #[serde(default, skip_serializing_if = "no_tools")]
    pub tools: Kept<Vec<ToolDecl>>,
    /// The tool that is to be called, where only one will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// Whether an answer may call one tool only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_call: bool,
    /// JSON Schema of the wanted answer, when the answer is to be one JSON document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Sampling temperature; `None` leaves the provider's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much the model is to reason; `None` leaves it to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// Limit of answer tokens; `None` leaves the provider's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

fn no_tools(tools: &Kept<Vec<ToolDecl>>) -> bool {
    tools.is_empty()
}

impl ChatRequest {
    /// Bytes of a request: texts, tools and arguments. Each part was measured when it was made.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let messages: u64 = self.messages.iter().map(Kept::bytes).sum();
        self.system.bytes() + self.tools.bytes() + messages
    }

    /// Whether it says which tools an answer may call, and how many.
    #[must_use]
    pub fn chooses(&self) -> bool {
        !self.tools.is_empty() && (self.only.is_some() || self.one_call)
    }

    /// The request with an answer of at most this many tokens; as it is when nothing is said.
    #[must_use]
    pub fn within(&self, most: Option<u32>) -> Cow<'_, Self> {
        match most {
            Some(_) if most != self.max_tokens => Cow::Owned(Self { max_tokens: most, ..self.clone() }),
            _ => Cow::Borrowed(self),
        }
    }
}

/// How much a model is to reason before it answers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::EnumMessage, strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// Little: quick and cheap.
    Low,
    /// As most do by themselves.
    Medium,
    /// Much.
    High,
}

impl ReasoningEffort {
    /// The word by which providers know it.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Tokens to reason with, where a provider wants a number.
    #[must_use]
    pub const fn tokens(self) -> u32 {
        match self {
            Self::Low => 1_024,
            Self::Medium => 8_192,
            Self::High => 24_576,
        }
    }
}

/// Who speaks in a [`ChatMessage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatRole {
    /// Instructions.
    System,
    /// The asker.
    User,
    /// The model.
    Assistant,
    /// The result of a tool the model called.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: ChatRole,
    /// What is said; may be empty beside tool calls.
    pub content: String,
    /// Calls made by the model (assistant messages only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call this message answers (tool messages only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Pictures that are shown with it (user messages only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<ChatPicture>,
}

impl ChatMessage {
    /// A system message.
    pub fn system(content: impl Into<String>) -> Self {
        Self::plain(ChatRole::System, content)
    }

    /// A user message.
    pub fn user(content: impl Into<String>) -> Self {
        Self::plain(ChatRole::User, content)
    }

    /// The same with pictures.
    #[must_use]
    pub fn showing(self, pictures: Vec<ChatPicture>) -> Self {
        Self { pictures, ..self }
    }

    /// An assistant message without tool calls.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::plain(ChatRole::Assistant, content)
    }

    /// An assistant message that calls tools.
    pub fn calls(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self { tool_calls, ..Self::plain(ChatRole::Assistant, content) }
    }

    /// The result of the tool call `id`.
    pub fn tool_result(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(id.into()), ..Self::plain(ChatRole::Tool, content) }
    }

    fn plain(role: ChatRole, content: impl Into<String>) -> Self {
        let (tool_calls, pictures) = (Vec::new(), Vec::new());
        Self { role, content: content.into(), tool_calls, tool_call_id: None, pictures }
    }
}

impl Measured for ChatMessage {
    fn measure(&self) -> usize {
        let calls = self.tool_calls.iter().map(|call| call.name.len() + call.raw.len());
        self.content.len() + calls.sum::<usize>() + self.pictures.len() * picture::ESTIMATED
    }
}

/// A tool as it is declared to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDecl {
    /// The name the model calls.
    pub name: String,
    /// What the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments (an object).
    pub parameters: Value,
}

impl Measured for Vec<ToolDecl> {
    fn measure(&self) -> usize {
        let tools = self
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len());
        tools.sum()
    }
}

/// A native tool call in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call; our own when the provider gives none.
    pub id: String,
    /// The tool called.
    pub name: String,
    /// The arguments. When `raw` was not valid JSON, the raw text as a string, for the parser to repair.
    pub arguments: Value,
    /// The arguments exactly as the model wrote them, as far as the provider shows them.
    pub raw: String,
    /// Opaque marks of the provider (Gemini's thought signatures) that must go back with the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<String>,
    /// The model that made these marks, as `provider/model`, where that is known: no other takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

impl ToolCall {
    /// The marks that go back to this model with the call.
    pub(crate) fn signatures_for(&self, target: &str) -> &[String] {
        match &self.signer {
            Some(signer) if signer != target => &[],
            _ => &self.signatures,
        }
    }

    /// A call with `arguments` and their JSON text.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            raw: arguments.to_string(),
            arguments,
            signatures: Vec::new(),
            signer: None,
        }
    }
}

/// Tokens used by a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Of `input`, those served from the provider's prompt cache.
    #[serde(default)]
    pub cached: u64,
}

impl TokenUsage {
    /// Input and output together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It had said all.
    #[default]
    Stop,
    /// It wants tools to be run.
    ToolCalls,
    /// The token limit cut the answer off.
    Length,
    /// The provider withheld the answer.
    ContentFilter,
    /// The provider gave another reason, or none.
    Other(String),
}

impl FinishReason {
    /// Whether the answer may be only half there: a limit cut it off, or nothing says that it is whole.
    #[must_use]
    pub fn may_be_cut(&self) -> bool {
        match self {
            Self::Length => true,
            Self::Other(reason) => reason.is_empty(),
            _ => false,
        }
    }
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatAnswer {
    /// The text of the answer; may be empty beside tool calls.
    pub text: String,
    /// Reasoning that the provider shows apart from the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Native tool calls, in the order of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Tokens of the call that gave this answer. Zeros when the provider reports none.
    pub usage: TokenUsage,
    /// What failed attempts before this answer used.
    #[serde(default)]
    pub wasted: Wasted,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The provider that answered (`openai`, `anthropic`, `gemini`, `ollama`, `offline`).
    pub provider: String,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// Time from the question to the whole answer, failed attempts and waits included, in milliseconds.
    pub millis: u64,
}

/// Calls that were made and, as far as is known, paid for without giving an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wasted {
    /// Calls that failed.
    pub calls: u32,
    /// The tokens providers reported for them (often none).
    pub usage: TokenUsage,
}

/// A part of an answer that is still arriving.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// More reasoning.
    Thought(String),
    /// More text.
    Text(String),
    /// A tool call that has begun or grown.
    ToolCall {
        /// Which call of the answer it is, from 0.
        nth: usize,
        /// What is new of its arguments, unparsed.
        arguments: String,
    },
    /// What was shown so far belongs to a failed attempt; the answer starts anew.
    Restart,
}

/// A listener for callers who do not show parts of answers.
pub fn ignore_deltas(_: Delta) {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn request_and_answer_survive_json() {
        let call = ToolCall::new("c1", "search", json!({"query": "x"}));
        let request = ChatRequest {
            system: "be brief".into(),
            messages: vec![
                ChatMessage::user("find x").into(),
                ChatMessage::calls("", vec![call.clone()]).into(),
                ChatMessage::tool_result("c1", "found").into(),
            ],
            temperature: Some(0.2),
            ..ChatRequest::default()
        };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<ChatRequest>(&text).unwrap(), request);

        let answer = ChatAnswer {
            text: String::new(),
            reasoning: Some("hm".into()),
            tool_calls: vec![call],
            usage: TokenUsage { input: 3, output: 4, cached: 1 },
            wasted: Wasted::default(),
            model: "m".into(),
            provider: "openai".into(),
            finish: FinishReason::Other("x".into()),
            millis: 7,
        };
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<ChatAnswer>(&text).unwrap(), answer);
    }
}
