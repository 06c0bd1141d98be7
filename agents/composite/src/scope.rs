//! What a step sees: the arguments of the call, what came of other steps, and what concerns the call alone.

use serde_json::Value;

use crate::course::Course;
use crate::template::{Root, Scope};

/// What a step sees.
#[derive(Clone, Copy)]
pub(crate) struct StepScope<'a> {
    pub(crate) course: &'a Course,
    pub(crate) item: Option<&'a Value>,
    pub(crate) index: Option<&'a Value>,
    pub(crate) result: Option<&'a Value>,
}

impl<'a> StepScope<'a> {
    /// What every step sees.
    pub(crate) const fn of(course: &'a Course) -> Self {
        Self { course, item: None, index: None, result: None }
    }
}

impl Scope for StepScope<'_> {
    fn root(&self, root: &Root) -> Option<&Value> {
        match root {
            Root::Args => Some(&self.course.args),
            Root::Step(name) => {
                let at = self.course.composite.steps.iter().position(|step| step.name == *name)?;
                Some(&self.course.steps[at].seen)
            }
            Root::Item => self.item,
            Root::Index => self.index,
            Root::Result => self.result,
        }
    }
}
