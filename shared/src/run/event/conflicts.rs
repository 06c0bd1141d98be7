//! Results that contradict each other.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::conflict::Side;
use crate::flow::{ConflictStep, Plan};
use crate::ids::{TaskId, TaskIndex};
use crate::run::apply::phase::require;
use crate::run::apply::plan::add_task;
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::conflicts::{ConflictEnd, ConflictState, Settling, SettlingFor};
use crate::run::state::{Phase, RunState};
use crate::run::task_state::TaskState;
use crate::time::Millis;

/// Results contradict each other, or another one takes part where they do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ConflictFound {
    /// Which conflict of the run, from 1; that of an open one when another result takes part in it.
    pub id: u32,
    /// What they are about.
    pub subject: String,
    /// Who claims what of it.
    pub sides: Vec<Side>,
    /// When the time to settle it is up.
    pub until: Millis,
}

impl Payload for ConflictFound {
    fn text(&self, words: Words<'_>) -> String {
        let sides: Vec<String> = self.sides.iter().map(Side::in_full).collect();
        let (subject, sides) = (words.brief(&self.subject), words.lines("", &sides));
        format!("conflict {}: results contradict each other on {subject}{sides}", self.id)
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        if run.conflicts.found.contains_key(&self.id) {
            let known = open(run, self.id)?;
            known.sides.clone_from(&self.sides);
            return Ok(());
        }
        let newest = run.conflicts.found.last_key_value().map_or(0, |(id, _)| *id);
        if self.id != newest.saturating_add(1) {
            return Err(ApplyError::NoSuchConflict { id: self.id });
        }
        run.conflicts.found.insert(self.id, self.begun(now));
        Ok(())
    }
}

impl ConflictFound {
    fn begun(&self, now: Millis) -> ConflictState {
        ConflictState {
            subject: self.subject.clone(),
            sides: self.sides.clone(),
            found_at: now,
            until: self.until,
            steps: BTreeSet::new(),
            verified_by: None,
            end: None,
            redone: Vec::new(),
        }
    }
}

/// Somebody is asked about a conflict: the sides for their methods, or a judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ConflictExamined {
    /// The conflict.
    pub id: u32,
    /// The step of the policy.
    pub step: ConflictStep,
    /// The small tasks that ask, by their number in the run; none when nobody can be asked.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::number_keys::read"
    )]
    pub tasks: BTreeMap<u32, Settling>,
}

impl Payload for ConflictExamined {
    fn text(&self, _: Words<'_>) -> String {
        let asked = self
            .tasks
            .iter()
            .map(|(number, task)| format!("\n  settle-{number}: {}", asked_for(&task.purpose)));
        let asked: String =
            if self.tasks.is_empty() { "\n  nobody can be asked".to_owned() } else { asked.collect() };
        format!("conflict {} is looked into: {}{asked}", self.id, self.step)
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        open(run, self.id)?.steps.insert(self.step);
        for (number, settling) in &self.tasks {
            if run.conflicts.settling.insert(*number, settling.clone()).is_some() {
                return Err(ApplyError::NoSuchConflict { id: self.id });
            }
            run.tasks.insert(TaskId::Settle(*number), TaskState::default());
        }
        Ok(())
    }
}

/// What a small task is to say.
fn asked_for(purpose: &SettlingFor) -> String {
    match purpose {
        SettlingFor::Method(task) => format!("how {task} came to its value"),
        SettlingFor::Arbiter => "which side is right".to_owned(),
    }
}

/// The plan has a task more, which finds out what holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct VerificationAdded {
    /// The conflict.
    pub id: u32,
    /// The task.
    pub task: TaskIndex,
    /// The plan as it stands now.
    pub plan: Plan,
}

impl Payload for VerificationAdded {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, _: Words<'_>) -> String {
        format!("conflict {}: {} is to find out what holds", self.id, self.task)
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        open(run, self.id)?;
        add_task(run, &self.task, &self.plan)?;
        let conflict = open(run, self.id)?;
        conflict.steps.insert(ConflictStep::Verify);
        conflict.verified_by = Some(self.task.clone());
        Ok(())
    }
}

/// A conflict ended: settled, or not, or it is none any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ConflictResolved {
    /// The conflict.
    pub id: u32,
    /// How.
    pub end: ConflictEnd,
    /// The tasks that are done again because they lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redone: Vec<TaskIndex>,
}

impl Payload for ConflictResolved {
    fn text(&self, words: Words<'_>) -> String {
        format!("conflict {}: {}", self.id, words.brief(&self.end.in_full(&self.redone)))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let conflict = open(run, self.id)?;
        conflict.end = Some(self.end.clone());
        conflict.redone.clone_from(&self.redone);
        Ok(())
    }
}

fn open(run: &mut RunState, id: u32) -> ApplyResult<&mut ConflictState> {
    let found = run.conflicts.found.get_mut(&id).filter(|conflict| conflict.is_open());
    found.ok_or(ApplyError::NoSuchConflict { id })
}
