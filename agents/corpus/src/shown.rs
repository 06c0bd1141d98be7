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
        for (number, line) in self.numbered() {
            let _ = write!(out, "\n{number}| {line}");
        }
        out
    }
}

impl Lines {
    /// The lines under their place, with line numbers, and where to go on when there are more.
    #[must_use]
    pub fn shown(&self) -> String {
        let Self { path, from, total, unit, .. } = self;
        let mut out = format!("{path}:{from}-{} of {total} {}", self.to(), unit.many());
        for (number, line) in self.numbered() {
            let _ = write!(out, "\n{number}| {line}");
        }
        if self.cut && unit.is_cut() && self.from == self.to() {
            let _ = write!(
                out,
                "\n[cut: this {} is longer; `find` shows what stands around words of it]",
                unit.one()
            );
        } else if self.cut {
            let _ = write!(out, "\n[cut: go on from {} {}]", unit.one(), self.to() + 1);
        }
        out
    }
}
