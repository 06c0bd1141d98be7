//! Trials that a run takes part in: what they came to here, and which were withdrawn.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::state::RunState;
use super::task_state::TaskState;
use crate::flow::{
    Arm, Ending, Outcome, TaskOffered, TaskStatus, TaskTrial, TrialCounts, TrialRule, TrialSample,
};
use crate::ids::{RunId, TaskId};
use crate::time::{Millis, millis};

/// What trials came to in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Trials {
    /// What was counted here, by trial.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, TrialCounts>,
    /// Trials that were withdrawn, with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub withdrawn: BTreeMap<String, String>,
    /// Runs that do tasks of this one once more, by task.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shadows: BTreeMap<TaskId, Shadow>,
}

/// A run that does a task of another one once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Shadow {
    /// The trial.
    pub trial: String,
    /// The run.
    pub run: RunId,
}

impl Trials {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl RunState {
    /// The trial of this name, as long as it was not withdrawn.
    #[must_use]
    pub fn trial(&self, name: &str) -> Option<&TrialRule> {
        let rule = self.limits.trials.iter().find(|rule| rule.name == name)?;
        (!self.trials.withdrawn.contains_key(name)).then_some(rule)
    }

    /// What is known of a trial by now, that of earlier runs included.
    #[must_use]
    pub fn trial_counts(&self, rule: &TrialRule) -> TrialCounts {
        rule.before.and(self.trials.counts.get(&rule.name).copied().unwrap_or_default())
    }
}

/// Takes note of the trial that an offer takes part in. A task counts with its first try; what goes on from that one is
/// still the same.
pub(in crate::run) fn note_offer(task: &mut TaskState, offer: &TaskOffered) {
    let is_over = task.trial.as_ref().is_some_and(|trial| trial.sample.is_some());
    if is_over {
        return;
    }
    let mark = offer.trial.as_ref().map(|mark| (**mark).clone());
    task.trial = mark.map(|mark| Box::new(TaskTrial { mark, sample: None }));
}

/// Counts how the first try of a task ended.
pub(in crate::run) fn note_end(
    run: &mut RunState,
    task: &TaskId,
    (to, now): (TaskStatus, Millis),
    outcome: Option<&Outcome>,
) {
    let Some(state) = run.tasks.get_mut(task) else { return };
    let was_held = outcome.is_some() || state.agent.is_some();
    let offered_at = state.offered_at;
    let Some(trial) = state.trial.as_mut().filter(|trial| trial.sample.is_none()) else { return };
    // What nobody began, or was called off, says nothing of whoever was to do it.
    if !was_held || outcome.is_some_and(|outcome| outcome.ending == Ending::Cancelled) {
        state.trial = None;
        return;
    }
    let usage = outcome.map(|outcome| outcome.usage).unwrap_or_default();
    let time = offered_at.map(|at| now.since(at)).unwrap_or_default();
    let sample = TrialSample {
        done: to == TaskStatus::Completed,
        cost_micros: usage.cost_micros,
        tokens: usage.tokens(),
        ms: millis(time),
    };
    trial.sample = Some(sample);
    let counts = run.trials.counts.entry(trial.mark.trial.clone()).or_default();
    if matches!(trial.mark.arm, Arm::Control) {
        counts.control.add(&sample)
    } else {
        counts.variant.add(&sample)
    }
}
