//! Writing the body of a request: a JSON object, field by field, straight into bytes.

use serde::Serialize;

use crate::model::chat::{ChatRequest, ChatRole};
use crate::model::json::write_json;

/// A body that is being written.
pub(super) struct Body {
    bytes: Vec<u8>,
}

impl Body {
    /// An empty one, with room for what the request will take.
    pub(super) fn of(request: &ChatRequest) -> Self {
        let texts = usize::try_from(request.bytes()).unwrap_or(0);
        // Line breaks and quotes are escaped, and every message has its frame.
        let room = texts + texts / 8 + 64 * (request.messages.len() + request.tools.len()) + 512;
        let mut bytes = Vec::with_capacity(room);
        bytes.push(b'{');
        Self { bytes }
    }

    fn name(&mut self, name: &str) {
        if self.bytes.len() > 1 {
            self.bytes.push(b',');
        }
        write_json(name, &mut self.bytes);
        self.bytes.push(b':');
    }

    /// A field.
    pub(super) fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.name(name);
        write_json(value, &mut self.bytes);
    }

    /// A field, if there is a value for it.
    pub(super) fn field_if<T: Serialize>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.field(name, &value);
        }
    }

    /// A field that was written before.
    pub(super) fn raw(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.bytes.extend_from_slice(value);
    }

    /// A field with a list, whose items are written by `write`.
    pub(super) fn list(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.name(name);
        self.bytes.push(b'[');
        write(&mut self.bytes);
        self.bytes.push(b']');
    }

    /// The whole.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(b'}');
        self.bytes
    }
}

/// The system prompt and the system messages, if there are any messages of the system.
pub(super) fn late_system(request: &ChatRequest) -> Option<Vec<&str>> {
    let own = Some(request.system.as_str()).filter(|system| !system.is_empty());
    let mut late = request.messages.iter().filter(|message| message.role == ChatRole::System).peekable();
    late.peek()?;
    Some(own.into_iter().chain(late.map(|message| message.content.as_str())).collect())
}

/// Writes the comma before the next item of a list, unless it is the first.
pub(super) fn next(into: &mut Vec<u8>) {
    if !matches!(into.last(), Some(b'[') | None) {
        into.push(b',');
    }
}
