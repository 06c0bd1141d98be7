//! What is said live (W13): thought and answer as they arrive, in pieces worth a message, and a line per step.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_bus::LiveFeed;
use muster_shared::flow::{TaskOffered, Usage};
use muster_shared::ids::Role;
use muster_shared::secret::Redactor;
use muster_shared::wire::{Live, LiveKind};

use crate::model::chat::Delta;

/// A piece is said after this time or at this length, whichever comes first.
const PAUSE: Duration = Duration::from_millis(80);
const PIECE: usize = 400;
/// A text without any space is said in pieces of at most this many bytes.
const MAX_HELD: usize = 4096;

/// What a task is shown to do while its call waits for its turn.
const WAITING: &str = "waiting for the rate limit";

/// Speaks for one task.
pub struct Voice {
    feed: LiveFeed,
    redactor: Arc<Redactor>,
    template: Live,
    said: Instant,
    thought: String,
    answer: String,
    /// How much of a tool call's arguments was shown.
    shown: usize,
}

impl Voice {
    /// Speaks for this task.
    #[must_use]
    pub fn new(feed: LiveFeed, redactor: Arc<Redactor>, role: Role, offer: &TaskOffered) -> Self {
        let kind = LiveKind::Answer { text: String::new() };
        let (run, task, generation) = (offer.run, offer.task.clone(), offer.generation);
        let template = Live { run, role, task, generation, step: 1, kind };
        let (thought, answer) = (String::new(), String::new());
        Self { feed, redactor, template, said: Instant::now(), thought, answer, shown: 0 }
    }

    /// Says that a call waits for its turn; for whoever keeps the pace.
    #[must_use]
    pub fn waiter(&self) -> Box<dyn Fn() + Send + Sync> {
        let (feed, template) = (self.feed.clone(), self.template.clone());
        Box::new(move || {
            let kind = LiveKind::Status { text: WAITING.to_owned(), usage: Usage::default() };
            feed.publish(&Live { kind, ..template.clone() });
        })
    }

    /// From now on it is this step that is spoken of.
    pub fn begin(&mut self, step: u32) {
        self.template.step = step;
        self.restart();
    }

    /// Takes a part of an answer that arrives.
    pub fn hear(&mut self, delta: Delta) {
        match delta {
            Delta::Thought(text) => self.thought.push_str(&text),
            Delta::Text(text) => self.answer.push_str(&text),
            Delta::ToolCall { arguments, .. } => {
                if let Some(new) = arguments.get(self.shown..) {
                    self.answer.push_str(new);
                }
                self.shown = arguments.len();
            }
            Delta::Restart => self.restart(),
        }
        if self.said.elapsed() >= PAUSE || self.thought.len() + self.answer.len() >= PIECE {
            self.say(false);
        }
    }

    /// Says what is still held back: the answer is complete.
    pub fn finish(&mut self) {
        self.say(true);
        self.restart();
    }

    /// Says in a line what is going on.
    pub fn status(&self, text: &str, usage: Usage) {
        let text = self.redactor.redact(text).into_owned();
        self.publish(LiveKind::Status { text, usage });
    }

    fn restart(&mut self) {
        self.thought.clear();
        self.answer.clear();
        self.shown = 0;
    }

    fn say(&mut self, all: bool) {
        if let Some(text) = ready(&mut self.thought, all) {
            let text = self.redactor.redact(&text).into_owned();
            self.publish(LiveKind::Thought { text });
        }
        if let Some(text) = ready(&mut self.answer, all) {
            let text = self.redactor.redact(&text).into_owned();
            self.publish(LiveKind::Answer { text });
        }
        self.said = Instant::now();
    }

    fn publish(&self, kind: LiveKind) {
        self.feed.publish(&Live { kind, ..self.template.clone() });
    }
}

/// The part of a text that may be said: up to its last space, so that no secret is cut in two and shown in
/// halves that nobody would recognise.
fn ready(held: &mut String, all: bool) -> Option<String> {
    let end = if all || held.len() > MAX_HELD {
        held.len()
    } else {
        held.rfind(char::is_whitespace)
            .map_or(0, |at| at + held[at..].chars().next().map_or(1, char::len_utf8))
    };
    if end == 0 {
        return None;
    }
    let rest = held.split_off(end);
    Some(std::mem::replace(held, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_never_said_in_halves() {
        let mut held = "the key is sk-abc".to_owned();
        assert_eq!(ready(&mut held, false).as_deref(), Some("the key is "));
        held.push_str("def");
        assert_eq!(ready(&mut held, false), None);
        assert_eq!(ready(&mut held, true).as_deref(), Some("sk-abcdef"));
        assert_eq!(ready(&mut held, true), None);
    }
}
