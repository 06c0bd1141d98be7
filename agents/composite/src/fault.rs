//! What is wrong with a composite tool, and where.

use std::fmt;

/// Most characters of what is wrong: a file may be all one name.
const MOST: usize = 1_000;

/// Something wrong with a composite tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

impl Fault {
    /// A fault at a byte of a text.
    pub(crate) fn at(text: &str, byte: usize, what: impl Into<String>, advice: impl Into<String>) -> Self {
        let before = &text[..text.floor_char_boundary(byte)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let quoted = |text: String| muster_shared::text::quoted(&text, MOST);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what: quoted(what.into()),
            advice: quoted(advice.into()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, " ({})", self.advice) }
    }
}

impl std::error::Error for Fault {}
