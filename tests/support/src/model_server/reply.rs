//! What the server answers.

use std::time::Duration;

use serde_json::Value;

/// One scripted answer. Build it with a constructor, refine it with the `with_` methods.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(super) text: String,
    pub(super) reasoning: Option<String>,
    pub(super) calls: Vec<ScriptedCall>,
    pub(super) usage: Option<(u64, u64, u64)>,
    pub(super) finish: Option<String>,
    pub(super) delay: Option<Duration>,
    pub(super) pieces: usize,
    pub(super) fault: Option<Fault>,
    pub(super) refusal: Option<String>,
}

/// A tool call in a reply.
#[derive(Debug, Clone)]
pub struct ScriptedCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model writes them; need not be JSON (protocols that carry objects send them as text).
    pub arguments: String,
}

/// How the server misbehaves.
#[derive(Debug, Clone)]
pub enum Fault {
    /// An HTTP error.
    Status {
        /// The status.
        code: u16,
        /// Sent as `Retry-After`.
        retry_after: Option<String>,
        /// The body; a plausible one when `None`.
        body: Option<String>,
    },
    /// Bytes that mean nothing, with status 200.
    Garbage,
    /// An empty body, with status 200.
    Empty,
    /// Half of the answer, then the connection is cut.
    HalfBody,
    /// Half of the answer, then silence.
    Stall,
    /// Nothing at all, for ever.
    Hang,
    /// The answer, in pieces with a wait before each.
    Slow(Duration),
    /// An error event within the stream (when one was asked for).
    ErrorEvent {
        /// The error's type, such as `rate_limit_exceeded`.
        kind: String,
    },
    /// A stream that ends without its closing mark.
    NoEndMark,
    /// The first half of a stream, then its end: no reason, no closing mark, and no broken connection either.
    HalfThenEnd,
    /// The first half of a stream and its closing mark, without a reason.
    HalfThenMark,
    /// A whole answer although a stream was asked for.
    NotStreamed,
}

impl Reply {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), pieces: 3, ..Self::default() }
    }

    /// JSON written into the text.
    #[must_use]
    pub fn json(value: &Value) -> Self {
        Self::text(value.to_string())
    }

    /// A native tool call.
    #[must_use]
    pub fn call(name: &str, arguments: &Value) -> Self {
        Self::text("").and_call(name, arguments)
    }

    /// A native tool call whose arguments are written as given.
    #[must_use]
    pub fn raw_call(name: &str, arguments: &str) -> Self {
        Self::text("").and_raw_call(name, arguments)
    }

    /// Nothing but a fault.
    #[must_use]
    pub fn fault(fault: Fault) -> Self {
        Self::text("The answer is forty-two, and this sentence is long enough to be cut in two.")
            .with_fault(fault)
    }

    /// Status `code`, asking to come back after `retry_after` seconds.
    #[must_use]
    pub fn status(code: u16, retry_after: Option<&str>) -> Self {
        Self::fault(Fault::Status { code, retry_after: retry_after.map(str::to_owned), body: None })
    }

    /// Adds a native tool call.
    #[must_use]
    pub fn and_call(self, name: &str, arguments: &Value) -> Self {
        self.and_raw_call(name, &arguments.to_string())
    }

    /// Adds a native tool call whose arguments are written as given.
    #[must_use]
    pub fn and_raw_call(mut self, name: &str, arguments: &str) -> Self {
        self.calls.push(ScriptedCall {
            id: format!("call_{}", self.calls.len() + 1),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        });
        self
    }

    /// Adds reasoning that is shown apart from the text.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: &str) -> Self {
        self.reasoning = Some(reasoning.to_owned());
        self
    }

    /// Sets the tokens reported: read, written, and of those read from the cache. Made up from lengths otherwise.
    #[must_use]
    pub fn with_usage(mut self, input: u64, output: u64, cached: u64) -> Self {
        self.usage = Some((input, output, cached));
        self
    }

    /// Sets the finish reason in OpenAI's words (`stop`, `length`, `tool_calls`, `content_filter`).
    #[must_use]
    pub fn with_finish(mut self, finish: &str) -> Self {
        self.finish = Some(finish.to_owned());
        self
    }

    /// Waits before answering, instead of the script's delay.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Sets into how many pieces a streamed text is cut.
    #[must_use]
    pub fn with_pieces(mut self, pieces: usize) -> Self {
        self.pieces = pieces.max(1);
        self
    }

    /// The model declines in the field that the protocol has for it (OpenAI's `refusal`, Gemini's `blockReason`), where
    /// it has one.
    #[must_use]
    pub fn refusing(said: &str) -> Self {
        Self { refusal: Some(said.to_owned()), ..Self::text("").with_finish("stop") }
    }

    /// Makes the answer go wrong.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    pub(super) fn finish_reason(&self) -> &str {
        match &self.finish {
            Some(finish) => finish,
            None if self.calls.is_empty() => "stop",
            None => "tool_calls",
        }
    }

    /// The text in pieces, none of them empty.
    pub(super) fn text_pieces(&self) -> Vec<&str> {
        let pieces = self.pieces.max(1);
        let target = self.text.len().div_ceil(pieces).max(1);
        let mut rest = self.text.as_str();
        let mut parts = Vec::with_capacity(pieces);
        while !rest.is_empty() {
            let end = (target..=rest.len()).find(|&at| rest.is_char_boundary(at)).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            parts.push(part);
            rest = after;
        }
        parts
    }
}

impl ScriptedCall {
    /// The arguments as JSON; as a JSON string when they are none.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| Value::String(self.arguments.clone()))
    }
}
