//! How a course ends that fails: what runs is waited for or let go of, and what was done is undone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Call, CallId, CallState, Course, Phase, StepState, filled};
use crate::file::OnFailure;
use crate::scope::StepScope;

impl Course {
    /// Begins nothing more. What runs is let go of: nobody knows what came of it.
    pub(crate) fn stop(&mut self, why: &str) {
        for step in &mut self.steps {
            for made in step.made.iter_mut().filter(|made| made.state == CallState::Running) {
                made.state = match self.phase {
                    Phase::Forward | Phase::Failing { .. } => CallState::Failed,
                    Phase::Undoing(_) | Phase::Over => CallState::NotCompensated(why.to_owned()),
                };
            }
        }
        match &mut self.phase {
            Phase::Forward => {
                self.fail(format!("{why}; whether what was being called took effect is not known"), true)
            }
            Phase::Undoing(left) => {
                let left = std::mem::take(left);
                for id in left {
                    self.steps[id.step].made[id.index].state = CallState::NotCompensated(why.to_owned());
                }
                self.phase = Phase::Over;
            }
            Phase::Failing { .. } | Phase::Over => {}
        }
    }

    /// A step fails: no further call of it is made, and the whole goes by what the step says.
    pub(super) fn fails(&mut self, at: usize, why: String) {
        let whole = format!("`{}` failed: {why}", self.composite.steps[at].name);
        if let StepState::Open { failing, .. } = &mut self.steps[at].state {
            failing.get_or_insert(why);
        }
        match self.composite.steps[at].on_failure {
            OnFailure::Skip => {}
            OnFailure::Fail => self.fail(whole, false),
            OnFailure::Compensate => self.fail(whole, true),
        }
        self.settle(at);
    }

    /// The whole fails. Of several reasons the first counts, and one that undoes.
    pub(super) fn fail(&mut self, why: String, undo: bool) {
        self.why.get_or_insert(why);
        match &mut self.phase {
            Phase::Forward => self.phase = Phase::Failing { undo },
            Phase::Failing { undo: before } => *before |= undo,
            Phase::Undoing(_) | Phase::Over => {}
        }
    }

    /// Ends what will not go on.
    pub(super) fn close(&mut self) {
        for at in 0..self.steps.len() {
            let begun = !self.steps[at].made.is_empty();
            match &self.steps[at].state {
                StepState::Open { failing, .. } => {
                    let why = failing
                        .clone()
                        .unwrap_or_else(|| "not all of it was done when the whole failed".to_owned());
                    let state = if begun {
                        StepState::Failed(why)
                    } else {
                        StepState::Skipped("the whole failed before".to_owned())
                    };
                    self.end(at, state);
                }
                StepState::Waiting => {
                    self.end(at, StepState::Skipped("the whole failed before".to_owned()));
                }
                StepState::Done | StepState::Failed(_) | StepState::Skipped(_) => {}
            }
        }
    }

    /// What is to be undone, the first that was done first.
    pub(super) fn undoable(&self) -> Vec<CallId> {
        let is_undoable = |id: &&CallId| self.composite.steps[id.step].compensate.is_some();
        self.done.iter().filter(is_undoable).map(|id| CallId { undo: true, ..*id }).collect()
    }

    pub(super) fn undo(&mut self, id: CallId) -> Option<Call> {
        let composite = Arc::clone(&self.composite);
        let compensation = composite.steps[id.step].compensate.as_ref()?;
        let index = json!(id.index);
        let made = &self.steps[id.step].made[id.index];
        let scope = StepScope {
            item: Some(&made.item),
            index: Some(&index),
            result: Some(&made.result),
            ..StepScope::of(self)
        };
        let filled = filled(&compensation.arguments, &scope);
        let made = &mut self.steps[id.step].made[id.index];
        match filled {
            Ok(arguments) => {
                made.state = CallState::Running;
                Some(Call { id, tool: compensation.tool.name.clone(), arguments, wait: Duration::ZERO })
            }
            Err(why) => {
                made.state = CallState::NotCompensated(why);
                None
            }
        }
    }
}
