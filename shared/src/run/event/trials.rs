//! Trials: a shadow was asked for, or a trial was withdrawn.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::ids::{Generation, RunId, TaskId};
use crate::run::apply::ApplyResult;
use crate::run::apply::task::executable;
use crate::run::state::RunState;
use crate::run::trials::Shadow;
use crate::time::Millis;

/// A task is to be done once more, by what a trial tries, in a run of its own. Nobody waits for that, and nothing of it
/// comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ShadowAsked {
    /// The trial.
    pub trial: String,
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// The run of the shadow.
    pub run: RunId,
}

impl Payload for ShadowAsked {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        let Self { trial, task, run, .. } = self;
        format!(
            "trial {}: {task} is done once more as a shadow, in run {}; nothing of it counts",
            words.name(trial),
            run.short()
        )
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        executable(run, &self.task)?;
        let shadow = Shadow { trial: self.trial.clone(), run: self.run };
        run.trials.shadows.insert(self.task.clone(), shadow);
        Ok(())
    }
}

/// Nothing more of this run goes to what a trial tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TrialWithdrawn {
    /// The trial.
    pub trial: String,
    /// Why.
    pub reason: String,
    /// Whether the run found it out by the trial's rule; else it was told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_rule: bool,
}

impl Payload for TrialWithdrawn {
    fn text(&self, words: Words<'_>) -> String {
        let Self { trial, reason, .. } = self;
        format!("trial {} is withdrawn: {}", words.name(trial), words.brief(reason))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        run.trials.withdrawn.insert(self.trial.clone(), self.reason.clone());
        Ok(())
    }
}
