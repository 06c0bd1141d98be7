//! What is said live (W13): thought and answer as they arrive, in pieces worth a message, and a line per step.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use muster_bus::LiveFeed;
use muster_shared::flow::{AgentState, Ending, TaskOffered, Usage};
use muster_shared::ids::{Role, TaskId};
use muster_shared::secret::Redactor;
use muster_shared::wire::{Live, LiveKind};

use super::arriving::Arriving;
use super::states::SlotState;
use crate::model::call_admission::StatusSink;
use crate::model::chat::Delta;

/// A piece is said after this time: thought and answer together are at most twenty messages a second.
const PAUSE: Duration = Duration::from_millis(100);
/// A text without any space is said in pieces of at most this many bytes.
const MAX_HELD: usize = 4096;

/// Speaks for one task.
pub struct ProgressStream {
    feed: LiveFeed,
    redactor: Arc<Redactor>,
    template: Live,
    said: Instant,
    /// Whether a part of this answer came while nobody listened: what follows is not understood without it.
    missed: bool,
    thought: String,
    answer: String,
    /// Which call of the answer arrives.
    call: usize,
    /// Its arguments, which begin with the thought.
    in_call: Arriving,
    /// An answer in text.
    in_text: Arriving,
    /// What the slot does that the task is in.
    slot: SlotState,
    /// How the task ended.
    end: Arc<OnceLock<(Ending, Usage)>>,
}

impl ProgressStream {
    /// Speaks for this task.
    #[must_use]
    pub fn new(feed: LiveFeed, redactor: Arc<Redactor>, role: Role, offer: &TaskOffered) -> Self {
        let kind = LiveKind::Answer { text: String::new() };
        let (run, task, generation) = (offer.run, offer.task.clone(), offer.generation);
        let template = Live { run, role, task, generation, step: 1, kind };
        let (thought, answer) = (String::new(), String::new());
        Self {
            feed,
            redactor,
            template,
            said: Instant::now(),
            missed: false,
            thought,
            answer,
            call: 0,
            in_call: Arriving::default(),
            in_text: Arriving::default(),
            slot: SlotState::default(),
            end: Arc::default(),
        }
    }

    /// Also says what this slot does.
    #[must_use]
    pub fn of_slot(self, slot: SlotState) -> Self {
        Self { slot, ..self }
    }

    /// From now on, this is done.
    pub fn is(&self, state: AgentState) {
        self.slot.is(state);
    }

    /// Will hold how the task ended and what it used, once it has.
    #[must_use]
    pub fn end(&self) -> Arc<OnceLock<(Ending, Usage)>> {
        Arc::clone(&self.end)
    }

    /// Says that the task ends.
    pub fn ended(&self, ending: Ending, usage: Usage) {
        self.is(if ending.is_success() { AgentState::Finished } else { AgentState::Error });
        self.status(&format!("ended: {ending:?}"), usage);
        let _said_before = self.end.set((ending, usage));
    }

    /// Says what a call waits for; for whoever keeps the pace.
    #[must_use]
    pub fn waiter(&self) -> StatusSink {
        let (feed, template, redactor) =
            (self.feed.clone(), self.template.clone(), Arc::clone(&self.redactor));
        Box::new(move |text: &str| {
            if feed.is_watched(template.run) {
                let text = redactor.redact(text).into_owned();
                let kind = LiveKind::Status { text, usage: Usage::default() };
                feed.publish(Live { kind, ..template.clone() });
            }
        })
    }

    /// From now on it is this step that is spoken of.
    pub fn begin(&mut self, step: u32) {
        self.is(match self.template.task {
            TaskId::Plan => AgentState::Planning,
            TaskId::Refine(_) => AgentState::Replanning,
            TaskId::Leaf(_)
            | TaskId::Reflect(_)
            | TaskId::Settle(_)
            | TaskId::Write
            | TaskId::DraftReview(_) => AgentState::Thinking,
        });
        self.template.step = step;
        self.restart();
    }

    /// Takes a part of an answer that arrives.
    pub fn hear(&mut self, delta: Delta) {
        if matches!(delta, Delta::Restart) {
            self.restart();
        }
        self.missed |= !self.is_watched();
        if self.missed {
            return;
        }
        match delta {
            Delta::Thought(text) => self.thought.push_str(&text),
            Delta::Text(text) => self.in_text.take(&text, &mut self.thought, &mut self.answer),
            Delta::ToolCall { nth, arguments } => {
                if nth > self.call {
                    (self.call, self.in_call) = (nth, Arriving::default());
                }
                // Where calls come side by side, the newest is shown.
                if nth == self.call {
                    self.in_call.take(&arguments, &mut self.thought, &mut self.answer);
                }
            }
            Delta::Restart => {}
        }
        if self.said.elapsed() >= PAUSE {
            self.say(false);
        }
    }

    /// Says what is still held back: the answer is complete.
    pub fn finish(&mut self) {
        self.in_text.end(&mut self.answer);
        self.say(true);
        self.restart();
    }

    /// Says in a line what is going on.
    pub fn status(&self, text: &str, usage: Usage) {
        if self.is_watched() {
            let text = self.redactor.redact(text).into_owned();
            self.publish(LiveKind::Status { text, usage });
        }
    }

    fn is_watched(&self) -> bool {
        self.feed.is_watched(self.template.run)
    }

    fn restart(&mut self) {
        self.thought.clear();
        self.answer.clear();
        self.missed = false;
        self.call = 0;
        self.in_call = Arriving::default();
        self.in_text = Arriving::default();
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
        self.feed.publish(Live { kind, ..self.template.clone() });
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
