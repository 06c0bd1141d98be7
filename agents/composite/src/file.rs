//! What a file with a composite tool defines.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::condition::Condition;
use crate::template::Template;
use muster_shared::text::Fault;

/// A composite tool as its file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Composite {
    /// The name of the tool, with the namespace.
    pub name: String,
    /// What it does and when to use it, in words for a model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// Longest time that its steps may take together.
    pub time: Duration,
    /// Arguments of a call that does no harm.
    pub sample: Option<Value>,
    /// What is told when all is done; what the last step gave where nothing is said.
    pub(crate) result: Option<Template>,
    /// In the order of the file.
    pub(crate) steps: Vec<Step>,
}

/// A step: calls of one tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) tool: Named,
    pub(crate) arguments: Template,
    /// The steps that must be done before.
    pub(crate) needs: BTreeSet<usize>,
    /// The steps that must have ended before, whichever way: those that its condition is about.
    pub(crate) after: BTreeSet<usize>,
    /// It is skipped where this does not hold.
    pub(crate) when: Option<Condition>,
    pub(crate) calls: Calls,
    pub(crate) on_failure: OnFailure,
    pub(crate) compensate: Option<Compensation>,
}

/// A tool as a file names it, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// The byte of the file at which it stands.
    pub(crate) at: usize,
}

/// How often a step calls its tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Calls {
    /// Once.
    Once,
    /// Once for each element of a list, so many at the same time.
    Each { list: Template, at_once: usize },
    /// Until a condition holds, so often at the most, with a wait in between.
    Until { condition: Condition, most: usize, wait: Duration },
}

/// What follows when a step fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnFailure {
    /// The whole fails, and what was done stays done.
    Fail,
    /// What needs it is skipped, the rest goes on.
    Skip,
    /// The whole fails, and what was done is undone, the last first.
    #[default]
    Compensate,
}

/// How what a call did is undone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compensation {
    pub(crate) tool: Named,
    pub(crate) arguments: Template,
}

impl Composite {
    /// Reads a file; `stem` is its name, which is that of the tool.
    ///
    /// # Errors
    /// With what is wrong, and where.
    pub fn parse(text: &str, stem: &str) -> Result<Self, Fault> {
        crate::written::read(text, stem)
    }

    /// The names of the tools that it calls.
    #[must_use]
    pub fn tools(&self) -> BTreeSet<&str> {
        self.named().map(|named| named.name.as_str()).collect()
    }

    /// The tools that it calls, with where each is named.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Named> {
        self.steps.iter().flat_map(|step| {
            std::iter::once(&step.tool).chain(step.compensate.as_ref().map(|undo| &undo.tool))
        })
    }
}
