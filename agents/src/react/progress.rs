//! What is said live (W13): thought and answer as they arrive, in pieces worth a message, and a line per step.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use muster_bus::LiveFeed;
use muster_shared::flow::{AgentState, Ending, TaskOffered, Usage};
use muster_shared::ids::{Role, TaskId};
use muster_shared::secret::Redactor;
use muster_shared::wire::{Live, LiveKind};

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
        let left = std::mem::take(&mut self.in_text.held);
        // Half a mark of JSON is nothing to read.
        if matches!(self.in_text.place, AnswerPart::Prose) || !left.trim_start().starts_with(['{', '[', '\\'])
        {
            self.answer.push_str(&left);
        }
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

/// A text that arrives piece by piece.
#[derive(Debug, Default)]
struct Arriving {
    place: AnswerPart,
    /// What of it is not understood yet.
    held: String,
}

impl Arriving {
    /// Takes the next piece: what it costs does not grow with what came before.
    fn take(&mut self, piece: &str, thought: &mut String, answer: &mut String) {
        self.held.push_str(piece);
        let understood = self.place.share_out(&self.held, thought, answer);
        self.held.drain(..understood);
    }
}

/// How far an answer has come in. Arguments of calls, and answers in JSON, begin with the thought; of what follows the
/// texts are shown: nobody wants to read its brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum AnswerPart {
    /// Before the thought.
    #[default]
    Before,
    /// Within it.
    Within,
    /// In JSON, after the thought or without one.
    Json(Texts),
    /// In words.
    Prose,
}

impl AnswerPart {
    /// Gives each part of newly arrived arguments to whom it belongs, and says how many bytes were understood; what is
    /// left may be cut in the middle.
    fn share_out(&mut self, new: &str, thought: &mut String, answer: &mut String) -> usize {
        let mut done = 0;
        loop {
            let rest = &new[done..];
            match self {
                Self::Before => match opening(rest) {
                    AnswerStart::Thought(after) => (*self, done) = (Self::Within, done + after),
                    AnswerStart::Other if rest.trim_start().starts_with(['{', '[']) => {
                        *self = Self::Json(Texts::default());
                    }
                    AnswerStart::Other => *self = Self::Prose,
                    AnswerStart::Unclear => return done,
                },
                Self::Within => {
                    let (taken, ended) = take_text(rest, thought);
                    done += taken;
                    if !ended {
                        return done;
                    }
                    *self = Self::Json(Texts::after_a_member());
                }
                Self::Json(texts) => return done + texts.take(rest, answer),
                Self::Prose => {
                    answer.push_str(rest);
                    return new.len();
                }
            }
        }
    }
}

/// Deepest nesting that is kept in mind.
const DEEPEST: usize = 64;

/// The texts in JSON that arrives: values, without names and marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Texts {
    /// For each bracket that is open, whether it is an object's.
    open: Vec<bool>,
    /// Whether the next text is a name.
    names: bool,
    /// Within a text; whether it is shown.
    within: Option<bool>,
}

impl Texts {
    fn after_a_member() -> Self {
        Self { open: vec![true], ..Self::default() }
    }

    fn take(&mut self, new: &str, shown: &mut String) -> usize {
        let mut done = 0;
        while let Some(letter) = new[done..].chars().next() {
            if let Some(is_shown) = self.within {
                let mut hidden = String::new();
                let (taken, ended) =
                    take_text(&new[done..], if is_shown { &mut *shown } else { &mut hidden });
                done += taken;
                if !ended {
                    return done;
                }
                self.within = None;
                if is_shown {
                    shown.push(' ');
                }
                continue;
            }
            match letter {
                '{' | '[' if self.open.len() < DEEPEST => {
                    self.open.push(letter == '{');
                    self.names = letter == '{';
                }
                '}' | ']' => {
                    self.open.pop();
                }
                ',' => self.names = self.open.last() == Some(&true),
                ':' => self.names = false,
                '"' => self.within = Some(!self.names),
                _ => {}
            }
            done += letter.len_utf8();
        }
        done
    }
}

enum AnswerStart {
    /// The thought begins after so many bytes.
    Thought(usize),
    /// Something else comes first.
    Other,
    /// Too little is there to tell.
    Unclear,
}

fn opening(text: &str) -> AnswerStart {
    let mut rest = text;
    for mark in ["{", "\"thought\"", ":", "\""] {
        rest = rest.trim_start();
        match rest.strip_prefix(mark) {
            Some(after) => rest = after,
            None if mark.starts_with(rest) => return AnswerStart::Unclear,
            None => return AnswerStart::Other,
        }
    }
    AnswerStart::Thought(text.len() - rest.len())
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
            let (mut place, mut shown) = (AnswerPart::Before, 0);
            let (mut thought, mut answer) = (String::new(), String::new());
            for end in (size..whole.len()).step_by(size).chain([whole.len()]) {
                let end = whole.floor_char_boundary(end);
                shown += place.share_out(&whole[shown..end], &mut thought, &mut answer);
            }
            assert_eq!((thought.as_str(), answer.as_str()), ("say \"so\" and é", "x "), "{size}");
        }
        let (mut place, mut thought, mut answer) = (AnswerPart::Before, String::new(), String::new());
        let other = r#"{"query": "x"}"#;
        assert_eq!(place.share_out(other, &mut thought, &mut answer), other.len());
        assert_eq!((thought.as_str(), answer.as_str()), ("", "x "));
        let (mut place, mut thought, mut answer) = (AnswerPart::Before, String::new(), String::new());
        let prose = "It is {so}, \"they\" say.";
        assert_eq!(place.share_out(prose, &mut thought, &mut answer), prose.len());
        assert_eq!((thought.as_str(), answer.as_str()), ("", prose));
    }

    #[test]
    fn what_was_understood_of_an_answer_is_not_looked_at_again() {
        let (mut arriving, mut thought, mut answer) = (Arriving::default(), String::new(), String::new());
        let whole = format!(r#"{{"thought": "t", "body": "{}"}}"#, "a\\nlong \\u00e0 text ".repeat(2_000));
        let mut most = 0;
        for piece in whole.as_bytes().chunks(7).map(|piece| std::str::from_utf8(piece).unwrap_or_default()) {
            arriving.take(piece, &mut thought, &mut answer);
            most = most.max(arriving.held.len());
        }
        assert_eq!((thought.as_str(), answer.len()), ("t", "a long à text ".len() * 2_000 + 1));
        assert!(most < 32, "{most} bytes are held");
    }

    #[test]
    fn nobody_is_shown_the_brackets_of_an_answer() {
        let whole = r#"{"thought": "t", "action": "submit", "arguments": {"conclusion": "Eggs \u00e0 la", "findings":
            [{"claim": "a \"b\"", "confidence": 90}, {"claim": "c"}], "done": true}}"#;
        for size in 1..=whole.len() {
            let (mut place, mut shown) = (AnswerPart::Before, 0);
            let (mut thought, mut answer) = (String::new(), String::new());
            for end in (size..whole.len()).step_by(size).chain([whole.len()]) {
                shown += place.share_out(&whole[shown..end], &mut thought, &mut answer);
            }
            assert_eq!((thought.as_str(), answer.as_str()), ("t", "submit Eggs à la a \"b\" c "), "{size}");
        }
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
