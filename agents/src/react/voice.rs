//! What is said live (W13): thought and answer as they arrive, in pieces worth a message, and a line per step.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use muster_bus::LiveFeed;
use muster_shared::flow::{Ending, TaskOffered, Usage};
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
    /// Where in them the thought stands that every call begins with.
    place: Place,
    /// The same of an answer in text, and what of it is not understood yet.
    in_text: (Place, String),
    /// How the task ended.
    end: Arc<OnceLock<(Ending, Usage)>>,
}

impl Voice {
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
            thought,
            answer,
            shown: 0,
            place: Place::Before,
            in_text: (Place::Before, String::new()),
            end: Arc::default(),
        }
    }

    /// Will hold how the task ended and what it used, once it has.
    #[must_use]
    pub fn end(&self) -> Arc<OnceLock<(Ending, Usage)>> {
        Arc::clone(&self.end)
    }

    /// Says that the task ends.
    pub fn ended(&self, ending: Ending, usage: Usage) {
        self.status(&format!("ended: {ending:?}"), usage);
        let _said_before = self.end.set((ending, usage));
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
            Delta::Text(text) => {
                let (place, held) = &mut self.in_text;
                held.push_str(&text);
                let understood = place.share_out(held, &mut self.thought, &mut self.answer);
                held.drain(..understood);
            }
            Delta::ToolCall { arguments, .. } => {
                // A shorter text is that of the next call.
                if arguments.len() < self.shown {
                    (self.shown, self.place) = (0, Place::Before);
                }
                let new = arguments.get(self.shown..).unwrap_or_default();
                self.shown += self.place.share_out(new, &mut self.thought, &mut self.answer);
            }
            Delta::Restart => self.restart(),
        }
        if self.said.elapsed() >= PAUSE || self.thought.len() + self.answer.len() >= PIECE {
            self.say(false);
        }
    }

    /// Says what is still held back: the answer is complete.
    pub fn finish(&mut self) {
        self.answer.push_str(&std::mem::take(&mut self.in_text.1));
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
        self.place = Place::Before;
        self.in_text = (Place::Before, String::new());
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

/// How far the arguments of a call have come in: they begin with the thought, then follows what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the thought.
    Before,
    /// Within it.
    Within,
    /// After it, or there is none.
    After,
}

impl Place {
    /// Gives each part of newly arrived arguments to whom it belongs, and says how many bytes were understood; what is
    /// left may be cut in the middle.
    fn share_out(&mut self, new: &str, thought: &mut String, answer: &mut String) -> usize {
        let mut done = 0;
        loop {
            let rest = &new[done..];
            match self {
                Self::Before => match opening(rest) {
                    Opening::Thought(after) => (*self, done) = (Self::Within, done + after),
                    Opening::Other => *self = Self::After,
                    Opening::Unclear => return done,
                },
                Self::Within => {
                    let (taken, ended) = take_text(rest, thought);
                    done += taken;
                    if !ended {
                        return done;
                    }
                    *self = Self::After;
                }
                Self::After => {
                    answer.push_str(rest);
                    return new.len();
                }
            }
        }
    }
}

enum Opening {
    /// The thought begins after so many bytes.
    Thought(usize),
    /// Something else comes first.
    Other,
    /// Too little is there to tell.
    Unclear,
}

fn opening(text: &str) -> Opening {
    let mut rest = text;
    for mark in ["{", "\"thought\"", ":", "\""] {
        rest = rest.trim_start();
        match rest.strip_prefix(mark) {
            Some(after) => rest = after,
            None if mark.starts_with(rest) => return Opening::Unclear,
            None => return Opening::Other,
        }
    }
    Opening::Thought(text.len() - rest.len())
}

/// Takes a JSON text up to its closing mark, or as far as it is there, and says whether it was closed.
fn take_text(text: &str, into: &mut String) -> (usize, bool) {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (at + 1, true),
            '\\' => match letters.next() {
                None => return (at, false),
                Some((_, 'n' | 'r' | 't')) => into.push(' '),
                Some((_, 'u')) => {
                    let Some(code) = text.get(at + 2..at + 6) else { return (at, false) };
                    let code = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
                    into.push(code.unwrap_or('\u{fffd}'));
                    letters.nth(3);
                }
                Some((_, escaped)) => into.push(escaped),
            },
            letter => into.push(letter),
        }
    }
    (text.len(), false)
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
    fn the_thought_of_a_call_is_told_from_its_answer_however_it_arrives() {
        let whole = r#"{ "thought": "say \"so\"\nand é", "query": "x"}"#;
        for size in 1..=whole.len() {
            let (mut place, mut shown) = (Place::Before, 0);
            let (mut thought, mut answer) = (String::new(), String::new());
            for end in (size..whole.len()).step_by(size).chain([whole.len()]) {
                let end = whole.floor_char_boundary(end);
                shown += place.share_out(&whole[shown..end], &mut thought, &mut answer);
            }
            assert_eq!(
                (thought.as_str(), answer.as_str()),
                ("say \"so\" and é", r#", "query": "x"}"#),
                "{size}"
            );
        }
        let (mut place, mut thought, mut answer) = (Place::Before, String::new(), String::new());
        let other = r#"{"query": "x"}"#;
        assert_eq!(place.share_out(other, &mut thought, &mut answer), other.len());
        assert_eq!((thought.as_str(), answer.as_str()), ("", other));
    }

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
