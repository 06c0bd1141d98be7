//! Passages and lines as text, each line with its number: what models read, and what rules read back from a record.

use std::fmt::Write;

use super::{Hit, Lines};

impl Hit {
    /// The passage under its citation, with line numbers.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut out = format!("{}:{}", self.path, self.start_line);
        if self.end_line > self.start_line {
            let _ = write!(out, "-{}", self.end_line);
        }
        if !self.heading.is_empty() {
            let _ = write!(out, " ({})", self.heading);
        }
        for (number, line) in (self.start_line..).zip(self.text.lines()) {
            let _ = write!(out, "\n{number}| {line}");
        }
        out
    }
}

impl Lines {
    /// The lines under their place, with line numbers, and where to go on when there are more.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut out = format!("{}:{}-{} of {} lines", self.path, self.from, self.to(), self.total);
        for (number, line) in (self.from..).zip(&self.lines) {
            let _ = write!(out, "\n{number}| {line}");
        }
        if self.cut {
            let _ = write!(out, "\n[cut: go on from line {}]", self.to() + 1);
        }
        out
    }
}
