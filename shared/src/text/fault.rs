//! What is wrong with a file that a person wrote, and where.

use std::fmt;

use super::quoted;

/// Most characters of what is wrong: a file may be all one name.
const MOST: usize = 1_000;

/// Something wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What to do about it; empty where that is plain.
    pub advice: String,
}

impl Fault {
    /// A fault at a line and column.
    #[must_use]
    pub fn new((line, column): (usize, usize), what: impl Into<String>, advice: impl Into<String>) -> Self {
        let cut = |text: String| quoted(&text, MOST);
        Self { line, column, what: cut(what.into()), advice: cut(advice.into()) }
    }

    /// A fault at a byte of a text.
    #[must_use]
    pub fn at(text: &str, byte: usize, what: impl Into<String>, advice: impl Into<String>) -> Self {
        let before = &text[..text.floor_char_boundary(byte)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let place = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
        Self::new(place, what, advice)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, " ({})", self.advice) }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_line_and_a_column_in_characters() {
        let text = "a = 1\nä = \"x\"\n";
        for (byte, place) in [(0, (1, 1)), (4, (1, 5)), (6, (2, 1)), (7, (2, 1)), (8, (2, 2)), (999, (3, 1))]
        {
            let fault = Fault::at(text, byte, "wrong", "");
            assert_eq!((fault.line, fault.column), place, "{byte}");
        }
    }

    #[test]
    fn it_is_told_with_what_to_do_steers_no_terminal_and_does_not_go_on_for_ever() {
        assert_eq!(Fault::new((2, 3), "bad", "mend it").to_string(), "line 2, column 3: bad (mend it)");
        assert_eq!(Fault::new((1, 1), "bad", "").to_string(), "line 1, column 1: bad");
        let long = Fault::new((1, 1), "\u{1b}[2J".repeat(10_000), "").to_string();
        assert!(long.len() < 10 * MOST && !long.contains('\u{1b}'), "{}", long.len());
    }
}
