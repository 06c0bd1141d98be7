//! What of a document is cited: a line, or a page, a slide, a cell, where lines mean nothing.
//!
//! A text that has pages begins each of them but the first with a form feed. So the text alone says where they are: it has
//! the same id everywhere, and what takes secrets out of it cannot move them.

use serde::{Deserialize, Serialize};

/// Begins a page and the like.
pub(super) const BREAK: char = '\u{c}';

/// What the number in a citation counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Lines of the text.
    #[default]
    Line,
    /// Rows of a sheet: the lines of its text.
    Row,
    /// Pages.
    Page,
    /// Slides.
    Slide,
    /// Cells of a notebook.
    Cell,
}

impl Unit {
    /// Whether it is the line.
    #[must_use]
    pub const fn is_line(&self) -> bool {
        matches!(self, Self::Line)
    }

    /// Whether the text is cut by breaks, so that one of it has several lines.
    #[must_use]
    pub const fn is_cut(self) -> bool {
        !matches!(self, Self::Line | Self::Row)
    }

    /// Its name, for one of it.
    #[must_use]
    pub const fn one(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Row => "row",
            Self::Page => "page",
            Self::Slide => "slide",
            Self::Cell => "cell",
        }
    }

    /// Its name, for several.
    #[must_use]
    pub const fn many(self) -> &'static str {
        match self {
            Self::Line => "lines",
            Self::Row => "rows",
            Self::Page => "pages",
            Self::Slide => "slides",
            Self::Cell => "cells",
        }
    }

    /// Read back by its name.
    pub(super) fn named(name: &str) -> Self {
        let all = [Self::Row, Self::Page, Self::Slide, Self::Cell];
        all.into_iter().find(|unit| unit.one() == name).unwrap_or_default()
    }
}

/// The text of a document that is cited by pages and the like: these, in order.
#[must_use]
pub fn cut_into<T: AsRef<str>>(parts: &[T]) -> String {
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push('\n');
            text.push(BREAK);
        }
        let plain = part.as_ref().trim_end();
        text.extend(plain.chars().map(|c| if c == BREAK { ' ' } else { c }));
    }
    text
}

/// Where the pages of a text are, in lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cuts {
    /// The first line of each, from 1, in order.
    starts: Vec<u32>,
    /// How many lines there are.
    lines: u32,
}

impl Cuts {
    /// Those of a text.
    pub(super) fn of(text: &str) -> Self {
        let mut cuts = Self { starts: vec![1], lines: 0 };
        for (number, line) in (1u32..).zip(text.lines()) {
            if line.starts_with(BREAK) {
                cuts.starts.push(number);
            }
            cuts.lines = number;
        }
        cuts
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// Whether one begins with this line.
    pub(super) fn begins(&self, line: u32) -> bool {
        self.starts.binary_search(&line).is_ok()
    }

    /// The first line of each, in order.
    pub(super) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The number of the one that a line is of, from 1.
    pub(super) fn number_of(&self, line: u32) -> u32 {
        let before = self.starts.partition_point(|start| *start <= line);
        u32::try_from(before).unwrap_or(u32::MAX).max(1)
    }

    /// The first and the last line of one; none when there is no such.
    pub(super) fn lines_of(&self, number: u32) -> Option<(u32, u32)> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let first = *self.starts.get(at)?;
        let last = self.starts.get(at + 1).map_or(self.lines, |next| next - 1);
        Some((first, last.max(first)))
    }
}

/// A text without its breaks.
pub(super) fn without_breaks(text: &str) -> String {
    text.replace(BREAK, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_are_told_by_their_lines() {
        let text = cut_into(&["one\ntwo\n", "", "three\u{c}x\n\nfour"]);
        assert_eq!(text, "one\ntwo\n\u{c}\n\u{c}three x\n\nfour");
        let cuts = Cuts::of(&text);
        assert_eq!(cuts.count(), 3);
        let numbers: Vec<u32> = (1..=6).map(|line| cuts.number_of(line)).collect();
        assert_eq!(numbers, [1, 1, 2, 3, 3, 3]);
        let lines: Vec<_> = (0..=4).map(|number| cuts.lines_of(number)).collect();
        assert_eq!(lines, [None, Some((1, 2)), Some((3, 3)), Some((4, 6)), None]);
        assert_eq!(Unit::named(Unit::Slide.one()), Unit::Slide);
        assert_eq!(Unit::named("anything"), Unit::Line);
    }

    proptest! {
        #[test]
        fn every_line_is_of_the_page_that_holds_it(pages in prop::collection::vec("[a-z\n\u{c}]{0,12}", 1..8)) {
            let text = cut_into(&pages);
            let cuts = Cuts::of(&text);
            // A last page without text leaves no line behind its break.
            prop_assert_eq!(cuts.count() as usize, pages.len());
            for number in 1..=cuts.count() {
                let (first, last) = cuts.lines_of(number).unwrap();
                for line in first..=last {
                    prop_assert_eq!(cuts.number_of(line), number);
                }
            }
        }
    }
}
