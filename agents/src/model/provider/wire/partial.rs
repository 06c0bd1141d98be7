//! What has arrived of a streamed answer, and what it is in the end. Pure.

use genai::chat::StopReason;
use serde_json::Value;

use super::super::convert;
use super::super::stream::Gathered;
use crate::model::chat::{ChatAnswer, Delta, ModelError, ModelErrorKind, TokenUsage, ToolCall, Wasted};
use crate::model::kept::WireForm;
use crate::model::target::ModelTarget;

/// Most bytes that are gathered of a refusal.
const MAX_REFUSAL: usize = 2_000;

/// The longest answer, in bytes: no model writes as much, but a server that never ends would fill the memory.
pub(crate) const ANSWER_BYTES: usize = 4 << 20;

/// Is shown what arrives.
pub(super) type OnDelta<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// Why an answer cannot be read on.
#[derive(Debug)]
pub(super) enum Broken {
    /// It is garbage, in words.
    Garbage(String),
    /// The provider reports an error.
    Reported(Value),
}

impl From<serde_json::Error> for Broken {
    fn from(error: serde_json::Error) -> Self {
        Self::Garbage(format!("the answer is garbage: {error}"))
    }
}

/// What has arrived.
#[derive(Debug, Default)]
pub(super) struct Partial {
    text: String,
    reasoning: String,
    calls: Vec<PartialCall>,
    marks: Vec<String>,
    /// Bytes of all these.
    bytes: usize,
    pub(super) usage: Option<TokenUsage>,
    /// Why the answer ended, in the provider's word.
    pub(super) finish: Option<String>,
    refusal: String,
    /// Why the provider answered nothing at all.
    pub(super) blocked: Option<String>,
    model: Option<String>,
    /// Whether it came to its end.
    pub(super) ended: bool,
}

/// A tool call that arrives.
#[derive(Debug, Default)]
pub(super) struct PartialCall {
    /// What tells it from the others of the answer.
    pub(super) key: u64,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) raw: String,
    /// Whether it is known to be whole.
    pub(super) closed: bool,
    pub(super) signatures: Vec<String>,
}

impl Partial {
    /// More text.
    pub(super) fn say(&mut self, text: &str, on_delta: OnDelta<'_>) {
        if !text.is_empty() {
            self.text.push_str(text);
            self.bytes += text.len();
            on_delta(Delta::Text(text.to_owned()));
        }
    }

    /// More reasoning.
    pub(super) fn think(&mut self, text: &str, on_delta: OnDelta<'_>) {
        if !text.is_empty() {
            self.reasoning.push_str(text);
            self.bytes += text.len();
            on_delta(Delta::Thought(text.to_owned()));
        }
    }

    /// More of why there is no answer.
    pub(super) fn refuse(&mut self, text: &str) {
        if self.refusal.len() < MAX_REFUSAL {
            self.refusal.push_str(text);
        }
    }

    /// The model's name, which is said with every piece.
    pub(super) fn name_model(&mut self, name: Option<&str>) {
        if self.model.is_none() {
            self.model = name.filter(|name| name.len() <= 200).map(str::to_owned);
        }
    }

    /// The call of that key.
    pub(super) fn call(&mut self, key: u64) -> Option<&mut PartialCall> {
        self.calls.iter_mut().find(|call| call.key == key)
    }

    /// The key of the call that began last.
    pub(super) fn last_key(&self) -> u64 {
        self.calls.last().map_or(0, |call| call.key)
    }

    /// A key that no call has yet.
    pub(super) fn next_key(&self) -> u64 {
        self.calls.iter().map(|call| call.key + 1).max().unwrap_or(0)
    }

    /// A call that begins.
    pub(super) fn begin_call(&mut self, call: PartialCall, on_delta: OnDelta<'_>) {
        self.bytes += call.raw.len();
        on_delta(Delta::ToolCall { nth: self.calls.len(), arguments: call.raw.clone() });
        self.calls.push(call);
    }

    /// More arguments of a call.
    pub(super) fn grow_call(&mut self, key: u64, arguments: &str, on_delta: OnDelta<'_>) {
        let Some(nth) = self.calls.iter().position(|call| call.key == key) else { return };
        self.calls[nth].raw.push_str(arguments);
        self.bytes += arguments.len();
        on_delta(Delta::ToolCall { nth, arguments: arguments.to_owned() });
    }

    /// Marks of the provider, of whatever part of the answer.
    pub(super) fn mark<'a>(&mut self, marks: impl Iterator<Item = &'a str>) {
        self.marks.extend(marks.map(str::to_owned));
    }

    /// Bytes that arrived.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The refusal in it, if it is one.
    pub(super) fn withheld(&self, target: &ModelTarget) -> Option<ModelError> {
        let said = match &self.blocked {
            Some(why) => convert::withheld(why),
            None if self.refusal.trim().is_empty() => return None,
            None => self.refusal.clone(),
        };
        Some(ModelError::new(ModelErrorKind::Refused, target.name(), target.redact(&said)))
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    /// What it is, now that nothing more comes. `is_stream`: whether anything looked like a part of a stream.
    pub(super) fn conclude(
        self,
        form: WireForm,
        is_stream: bool,
        target: &ModelTarget,
    ) -> Result<Gathered, ModelError> {
        if self.text.is_empty()
            && self.calls.is_empty()
            && let Some(withheld) = self.withheld(target)
        {
            return Err(withheld);
        }
        if !is_stream && !self.ended && self.is_empty() {
            return Ok(Gathered::NotStreaming);
        }
        let says_why = self.finish.is_some();
        let is_whole = match form {
            // Some servers never send the closing mark; a reason proves the answer whole. Others leave the reason out;
            // whoever reads the answer looks whether it is whole, and nothing at all is not.
            WireForm::OpenAi => says_why || self.ended && !self.is_empty(),
            WireForm::Anthropic | WireForm::Gemini | WireForm::Gemini3 => says_why && self.ended,
        };
        if is_whole {
            return Ok(Gathered::Answer(Box::new(self.into_answer(target))));
        }
        let cut_off = "the connection ended in the middle of the answer";
        Err(ModelError::new(ModelErrorKind::BadAnswer, target.name(), cut_off))
    }

    fn into_answer(mut self, target: &ModelTarget) -> ChatAnswer {
        // What marks the answer goes back with its first call, unless that has a mark of its own.
        if let Some(first) = self.calls.first_mut().filter(|first| first.signatures.is_empty()) {
            first.signatures = self.marks;
        }
        ChatAnswer {
            text: self.text,
            reasoning: (!self.reasoning.is_empty()).then_some(self.reasoning),
            tool_calls: self.calls.into_iter().map(PartialCall::into_call).collect(),
            usage: self.usage.unwrap_or_default(),
            wasted: Wasted::default(),
            model: self.model.unwrap_or_else(|| target.model.clone()),
            provider: target.provider.name().to_owned(),
            finish: convert::finish(self.finish.map(StopReason::from).as_ref()),
            millis: 0,
        }
    }
}

impl PartialCall {
    fn into_call(self) -> ToolCall {
        let arguments = match self.raw.is_empty() && self.closed {
            // Without arguments nothing is sent of them.
            true => Value::Object(serde_json::Map::new()),
            false => serde_json::from_str(&self.raw).unwrap_or_else(|_| Value::String(self.raw.clone())),
        };
        let Self { id, name, raw, signatures, .. } = self;
        ToolCall { id, name, arguments, raw, signatures, signer: None }
    }
}
