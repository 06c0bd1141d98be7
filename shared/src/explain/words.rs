//! How events are put in words here: by the same rule as everywhere, cut so that no text of others fills the page.

use super::Told;
use crate::run::event::Words;
use crate::run::{Entry, RunEvent};
use crate::text::one_line;

/// Longest text of others that is told, in characters.
const LONGEST: usize = 600;

/// Longest name, in characters.
const LONGEST_NAME: usize = 60;

/// A text on one line, cut to what is told.
pub(super) fn brief(text: &str) -> String {
    one_line(text, LONGEST)
}

/// An event in words.
pub(super) fn event(event: &RunEvent) -> String {
    event.text(Words { brief: &brief, name: &|name| one_line(name, LONGEST_NAME) })
}

/// An event as it is told, with the entry that it stands in.
pub(super) fn told(entry: &Entry, of: &RunEvent) -> Told {
    Told { text: event(of), task: of.task(), at: Some(entry.at), entries: vec![entry.seq] }
}

/// Something about no task in particular, by the state alone.
pub(super) const fn plain(text: String) -> Told {
    Told { text, task: None, at: None, entries: Vec::new() }
}
