//! What rules about language make of texts. Word lists, stems and thresholds change from version to version: what a rule said
//! stands in the decision that asked it, and a replay goes by that.

mod question;
mod reader;
mod rules;

use std::fmt::Debug;

use muster_shared::flow::{Reading, Said};

pub(super) use question::Counts;
pub use question::ReadingQuestion;
pub(super) use reader::{FoundContradiction, Reader};
pub use rules::ByRules;

/// Says what texts mean.
pub trait ReadText: Debug {
    /// What the rule says that the question is for; nothing where that is what it says of most texts. `nth` counts from 0 how
    /// often one decision has asked what cannot be told from this question: the run may have changed in between.
    fn read(&self, question: &ReadingQuestion<'_>, nth: u32) -> Option<Said>;
}

/// What a decision in the record was told.
#[derive(Debug, Clone, Copy)]
pub struct RecordedReadings<'a>(pub &'a [Reading]);

impl ReadText for RecordedReadings<'_> {
    fn read(&self, question: &ReadingQuestion<'_>, nth: u32) -> Option<Said> {
        let rule = question.rule();
        let mut of_rule = self.0.iter().filter(|reading| reading.rule == rule).peekable();
        of_rule.peek()?;
        let of = question.digest();
        // An answer stands until another one was given.
        let until_then = of_rule.filter(|reading| reading.of == of && reading.nth <= nth);
        let newest = until_then.max_by_key(|reading| reading.nth)?;
        (newest.says != Said::Nothing).then(|| newest.says.clone())
    }
}
