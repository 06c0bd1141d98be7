//! What every kind of event says of itself.

use crate::ids::TaskId;
use crate::run::apply::ApplyResult;
use crate::run::state::RunState;
use crate::time::Millis;

/// One kind of event: what it says, what it is about, and what it changes.
pub(crate) trait Payload {
    /// The task that it is about, if it is about one.
    fn task(&self) -> Option<TaskId> {
        None
    }

    /// It in words, for people.
    fn text(&self, words: Words<'_>) -> String;

    /// What it changes, for a decision that took `now` for the time.
    ///
    /// # Errors
    /// When it cannot follow what was folded so far. The state may then be half changed.
    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult;
}

/// How words of others are told: cut to what there is room for, and without what could steer a terminal.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    /// Tells a text.
    pub brief: &'a dyn Fn(&str) -> String,
    /// Tells what somebody is called.
    pub name: &'a dyn Fn(&str) -> String,
}

impl Words<'_> {
    /// A text.
    pub(super) fn brief(self, text: &str) -> String {
        (self.brief)(text)
    }

    /// What somebody is called.
    pub(super) fn name(self, name: &str) -> String {
        (self.name)(name)
    }

    /// Lines that follow a first one, each with a word before it.
    pub(super) fn lines(self, before: &str, lines: &[String]) -> String {
        lines.iter().map(|line| format!("\n  {before}{}", self.brief(line))).collect()
    }
}

/// `1 task`, `2 tasks`.
pub(super) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
