//! What tasks and runs came to, as it is compared.

use std::collections::BTreeMap;

use muster_shared::flow::{Arm, TaskStatus, TaskTrial, TrialSample};
use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::{
    AgentEvent, Entry, RecordEvent, RunState, RunStatus, TaskState, count, is_completed_in_part,
};

/// What one task, or one run, came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// What it shares with the same done by the other side; empty where it shares nothing.
    pub(crate) key: String,
    pub(crate) done: bool,
    pub(crate) cost_micros: f64,
    pub(crate) ms: f64,
}

/// Those of both sides that are the same, each once.
pub(crate) fn pairs<'a>(first: &'a [Sample], second: &'a [Sample]) -> Vec<(&'a Sample, &'a Sample)> {
    let keyed: BTreeMap<&str, &Sample> = second
        .iter()
        .filter(|sample| !sample.key.is_empty())
        .map(|sample| (sample.key.as_str(), sample))
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    let pair = |sample: &'a Sample| {
        let other = keyed.get(sample.key.as_str())?;
        seen.insert(sample.key.as_str()).then_some((sample, *other))
    };
    first.iter().filter_map(pair).collect()
}

/// What a trial came to in a run, by side. A shadow counts for the task that it is a shadow of, if that run asked for it.
pub(crate) fn of_trial(run: &RunState, trial: &str) -> Vec<(Arm, Sample)> {
    let taken = |(task, state): (&TaskId, &TaskState)| {
        let TaskTrial { mark, sample } = state.trial.as_deref()?;
        let sample = sample.filter(|_| mark.trial == trial)?;
        let key = match (&run.goal.shadow, mark.arm) {
            (Some(of), Arm::Shadow) => key(of.run, &of.task),
            (None, Arm::Control) if run.trials.shadows.contains_key(task) => key(run.id, task),
            _ => String::new(),
        };
        let TrialSample { done, cost_micros, ms, .. } = sample;
        Some((mark.arm, Sample { key, done, cost_micros: cost_micros as f64, ms: ms as f64 }))
    };
    run.tasks.iter().filter_map(taken).collect()
}

fn key(run: RunId, task: &TaskId) -> String {
    format!("{run}/{task}")
}

/// What the tasks of a run came to: the same tasks of another run have the same name and place.
pub(crate) fn of_tasks(run: &RunState, entries: &[Entry]) -> Vec<Sample> {
    let mut begun: BTreeMap<&TaskId, u64> = BTreeMap::new();
    let mut ended: BTreeMap<&TaskId, u64> = BTreeMap::new();
    for entry in entries {
        let RecordEvent::Agent(of, event) = &entry.event else { continue };
        match event {
            AgentEvent::Started(_) => {
                begun.entry(&of.task).or_insert(entry.at.0);
            }
            AgentEvent::Outcome(_) => {
                ended.insert(&of.task, entry.at.0);
            }
            _ => {}
        }
    }
    let sample = |(task, state): (&TaskId, &TaskState)| {
        let index = task.as_leaf()?;
        let planned = run.plan.as_ref()?.tasks.get(index)?;
        let ms = ended.get(task)?.saturating_sub(*begun.get(task)?);
        let cost = state.outcome.as_ref().map_or(0, |outcome| outcome.usage.cost_micros);
        let done = state.status == TaskStatus::Completed;
        Some(Sample {
            key: format!("{index} {}", planned.name),
            done,
            cost_micros: cost as f64,
            ms: ms as f64,
        })
    };
    run.tasks.iter().filter_map(sample).collect()
}

/// What a run came to as a whole; nothing while it goes on.
pub(crate) fn of_run(run: &RunState) -> Option<Sample> {
    let ended = run.ended_at?;
    let done = run.status == RunStatus::Completed
        && !is_completed_in_part(run)
        && count(run).is_none_or(|count| count.failed == 0);
    let ms = ended.since(run.created_at).as_millis() as f64;
    Some(Sample { key: String::new(), done, cost_micros: run.used().cost_micros as f64, ms })
}
