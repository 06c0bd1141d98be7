//! Texts of statements: one line, limited in length.

use super::ExplanationItem;
use crate::ids::TaskId;
use crate::run::event::Words;
use crate::run::{Entry, RunEvent};
use crate::text::one_line;

/// Longest text, in characters.
const MAX_TEXT: usize = 600;

/// Longest name, in characters.
const MAX_NAME: usize = 60;

pub(super) fn brief(text: &str) -> String {
    one_line(text, MAX_TEXT)
}

/// Statement of an event.
pub(super) fn item(entry: &Entry, event: &RunEvent) -> ExplanationItem {
    let text = event.text(Words { brief: &brief, name: &|name| one_line(name, MAX_NAME) });
    ExplanationItem { text, task: event.task(), at: Some(entry.at), entries: vec![entry.seq] }
}

/// Statement about a task.
pub(super) fn about(entry: &Entry, task: &TaskId, text: &str) -> ExplanationItem {
    let task = Some(task.clone());
    ExplanationItem { text: brief(text), task, at: Some(entry.at), entries: vec![entry.seq] }
}

/// Statement without task and entry.
pub(super) const fn plain(text: String) -> ExplanationItem {
    ExplanationItem { text, task: None, at: None, entries: Vec::new() }
}
