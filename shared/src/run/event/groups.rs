//! Tasks that several members do.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::flow::{GroupVerdict, Outcome, Pattern, Product, TaskStatus, View};
use crate::ids::{Generation, TaskId, TaskIndex};
use crate::plan::check::list;
use crate::run::apply::phase::require;
use crate::run::apply::task::{at_generation, count_in_a_row, executable, illegal, move_to};
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::group::Group;
use crate::run::state::{Phase, RunState};
use crate::run::task_state::TaskState;
use crate::time::Millis;

/// Several members do a task, each as a task of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MembersBegun {
    /// The task.
    pub task: TaskIndex,
    /// Its generation.
    pub generation: Generation,
    /// How it is given out.
    pub pattern: Pattern,
    /// The members.
    pub members: Vec<TaskIndex>,
}

impl Payload for MembersBegun {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, _: Words<'_>) -> String {
        format!("{} is done by {} ({})", self.task, list(&self.members), self.pattern)
    }

    /// The task is in work, and each member a task of its own that is to be offered.
    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        let id = self.task.to_task_id();
        let found = executable(run, &id)?;
        if found.status != TaskStatus::Created {
            return Err(illegal(&id, found.status, TaskStatus::Processing));
        }
        let wanted = found.generation.next();
        if self.generation != wanted {
            return Err(ApplyError::WrongGeneration { task: id, wanted, found: self.generation });
        }
        found.begin_with_members(self.generation, now);
        for member in &self.members {
            admit(run, &self.task, member)?;
        }
        let (pattern, members) = (self.pattern, self.members.clone());
        let group = Group { pattern, members, round: 0, views: Vec::new(), verdict: None };
        run.groups.insert(self.task.clone(), group);
        Ok(())
    }
}

/// A member begins anew. Its generations go on: what is about earlier ones stays closed.
fn admit(run: &mut RunState, task: &TaskIndex, member: &TaskIndex) -> ApplyResult {
    let id = member.to_task_id();
    if !member.is_member() || !member.is_same_place(task) {
        return Err(ApplyError::UnknownTask { task: id });
    }
    let found = run.tasks.entry(id).or_default();
    let (generation, attempt) = (found.generation, found.attempt);
    *found = TaskState { generation, attempt, ..TaskState::default() };
    Ok(())
}

/// The group of a task that its members have in work, at this generation.
fn in_work<'a>(
    run: &'a mut RunState,
    task: &TaskIndex,
    generation: Generation,
) -> ApplyResult<&'a mut Group> {
    let id = task.to_task_id();
    let status = at_generation(run, &id, generation)?.status;
    let is_in_work = run.group_in_work(task).is_some();
    let group = run.groups.get_mut(task).filter(|_| is_in_work);
    group.ok_or_else(|| illegal(&id, status, TaskStatus::Completed))
}

/// The members of a task are to think again, knowing what the others found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MembersDiscuss {
    /// The task.
    pub task: TaskIndex,
    /// Its generation.
    pub generation: Generation,
    /// Which round, from 1.
    pub round: u8,
    /// What each of them found so far.
    pub views: Vec<View>,
}

impl Payload for MembersDiscuss {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{}: round {} of discussion{}", self.task, self.round, words.lines("", &told(&self.views)))
    }

    /// Members that gave a result are to think again, knowing what the others found.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        in_work(run, &self.task, self.generation)?;
        for view in &self.views {
            let id = view.member.to_task_id();
            let found = executable(run, &id)?;
            if found.status != TaskStatus::Completed {
                return Err(illegal(&id, found.status, TaskStatus::Created));
            }
            found.status = TaskStatus::Created;
            found.failures = 0;
        }
        let group = in_work(run, &self.task, self.generation)?;
        group.round = self.round;
        group.views.clone_from(&self.views);
        Ok(())
    }
}

fn told(views: &[View]) -> Vec<String> {
    views.iter().map(View::to_string).collect()
}

/// A task that members did ended with the result of one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MembersSettled {
    /// The task.
    pub task: TaskIndex,
    /// Its generation.
    pub generation: Generation,
    /// Which result counts, what decided, and who sees it differently.
    pub verdict: GroupVerdict,
}

impl Payload for MembersSettled {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, words: Words<'_>) -> String {
        let GroupVerdict { counts, by, dissent, .. } = &self.verdict;
        let dissent: Vec<String> = dissent.iter().map(ToString::to_string).collect();
        let others = words.lines("dissent: ", &dissent);
        format!("{} completed with the result of {counts} ({}){others}", self.task, by.in_words())
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        in_work(run, &self.task, self.generation)?;
        let counts = self.verdict.counts.to_task_id();
        let outcome = executable(run, &counts)?.outcome.clone();
        let outcome = outcome.ok_or(ApplyError::UnknownTask { task: counts })?;
        let id = self.task.to_task_id();
        let found = at_generation(run, &id, self.generation)?;
        move_to(found, &id, TaskStatus::Completed)?;
        found.outcome = Some(marked(&outcome, &self.verdict).into());
        count_in_a_row(run, &id, true);
        if let Some(group) = run.groups.get_mut(&self.task) {
            group.verdict = Some(self.verdict.clone());
        }
        Ok(())
    }
}

/// The outcome as that of the task. Whoever uses its result reads who sees it differently; what was used stands with
/// the members.
fn marked(outcome: &Outcome, verdict: &GroupVerdict) -> Outcome {
    let mut outcome = Outcome { last_step: None, ..outcome.clone() };
    if let (Some(Product::Result(result)), Some(dissent)) = (&mut outcome.product, verdict.dissent_in_words())
    {
        result.conclusion = format!("{} ({dissent})", result.conclusion.trim_end());
    }
    outcome
}
