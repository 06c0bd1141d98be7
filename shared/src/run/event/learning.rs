//! What is learnt on the way, and how the plan changes for it.

use std::collections::BTreeSet;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FailedPlan;
use super::payload::{Payload, Words, plural};
use super::planning::ask_again;
use crate::flow::{Plan, Reflection, RefusedOperation, Report};
use crate::ids::{TaskId, TaskIndex};
use crate::run::apply::phase::require;
use crate::run::apply::plan::{change_plan, failed_plan};
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::planning::{GivenUp, PlanStage, Replan};
use crate::run::state::{Phase, RunState};
use crate::time::Millis;

/// What was learnt from a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Reflected {
    /// The task.
    pub task: TaskIndex,
    /// What was learnt.
    pub reflection: Reflection,
}

impl Payload for Reflected {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Reflect(self.task.clone()))
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("reflection on {}: {}", self.task, words.brief(&self.reflection.summary))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let planned = run.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(&self.task));
        let found = run.planned_mut(&self.task).filter(|_| planned);
        let unknown = || ApplyError::UnknownTask { task: self.task.to_task_id() };
        found.ok_or_else(unknown)?.reflection = Some(Box::new(self.reflection.clone()));
        Ok(())
    }
}

/// Somebody asks for a change of plan. Wishes are collected until the refinement is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RefinementWanted {
    /// Which refinement of the run, from 1.
    pub number: u32,
    /// Who asks, and why.
    pub reason: String,
}

impl Payload for RefinementWanted {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Refine(self.number))
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("change of plan wanted: {}", words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        run.refining.wanted.entry(self.number).or_default().push(self.reason.clone());
        Ok(())
    }
}

/// The plan was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanRefined {
    /// Which refinement of the run, from 1.
    pub number: u32,
    /// What was changed, one line each.
    pub changes: Vec<String>,
    /// What was refused.
    pub refused: Vec<RefusedOperation>,
    /// The plan as it stands now.
    pub plan: Plan,
    /// The task whose reflection brought the change, where no refiner was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<TaskIndex>,
}

impl PlanRefined {
    /// Whether something was to be changed, and nothing was.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.changes.is_empty() && !self.refused.is_empty()
    }
}

impl Payload for PlanRefined {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Refine(self.number))
    }

    fn text(&self, words: Words<'_>) -> String {
        let refused: Vec<String> = self.refused.iter().map(|no| no.reason.clone()).collect();
        let what = if self.is_refused() { "change of plan refused" } else { "plan changed" };
        let by = self.by.as_ref().map(|task| format!(" by the reflection on {task}")).unwrap_or_default();
        format!("{what}{by}{}{}", words.lines("+ ", &self.changes), words.lines("refused: ", &refused))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        change_plan(run, &self.plan)?;
        run.take_approvals_back();
        if self.by.is_some() {
            run.refining.by_reflection.insert(self.number);
        }
        run.refining.done.push((self.changes.clone(), self.refused.clone()));
        Ok(())
    }
}

/// What is left is to be planned anew. Nothing new is begun until it is; more reasons may follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ReplanWanted {
    /// Which new plan of the run, from 1.
    pub number: u32,
    /// Why.
    pub reason: String,
}

impl ReplanWanted {
    /// Most reasons that are collected for one new plan.
    const MOST_REASONS: usize = 16;
}

impl Payload for ReplanWanted {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("new plan {} wanted for what is left: {}", self.number, words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        match &mut run.planning.stage {
            PlanStage::Replanning(reasons) => {
                if reasons.len() < Self::MOST_REASONS {
                    reasons.push(self.reason.clone());
                }
            }
            stage @ (PlanStage::Awaited | PlanStage::Adopted) => {
                *stage = PlanStage::Replanning(vec![self.reason.clone()]);
                ask_again(run);
            }
            PlanStage::Improving(_) => {
                return Err(ApplyError::WrongPhase { phase: run.phase });
            }
        }
        Ok(())
    }
}

/// What was left is planned anew. What has ended stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Replanned {
    /// Which new plan of the run, from 1.
    pub number: u32,
    /// What was changed, one line each.
    pub changes: Vec<String>,
    /// The plan as it stands now.
    pub plan: Plan,
}

impl Payload for Replanned {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("what is left has a new plan ({}){}", self.number, words.lines("+ ", &self.changes))
    }

    /// Wishes for changes of the old plan are of no interest any more.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        let (failed, ended) = (failed_plan(run), ended_leaves(run));
        let before = run.plan.iter().flat_map(Plan::leaves);
        let gone = before.filter(|(index, _)| !self.plan.tasks.contains_key(*index));
        let left_out = gone.map(|(index, task)| (index.clone(), task.name.clone())).collect();
        change_plan(run, &self.plan)?;
        drop_untouched_refinements(run);
        run.planning.failures_in_a_row = 0;
        run.planning.stage = PlanStage::Adopted;
        run.planning.replans.push(Replan { failed, changes: self.changes.clone(), ended, left_out });
        Ok(())
    }
}

fn ended_leaves(run: &RunState) -> BTreeSet<TaskIndex> {
    let leaves = run.plan.iter().flat_map(Plan::leaves).map(|(leaf, _)| leaf);
    let has_ended = |leaf: &&TaskIndex| run.planned(leaf).is_some_and(|task| task.status.is_ended());
    leaves.filter(has_ended).cloned().collect()
}

fn drop_untouched_refinements(run: &mut RunState) {
    let untouched =
        |number: &u32| run.tasks.get(&TaskId::Refine(*number)).is_none_or(|task| task.generation.0 == 0);
    let gone: Vec<u32> = run.refining.wanted.keys().copied().filter(untouched).collect();
    for number in gone {
        run.refining.wanted.remove(&number);
        run.tasks.remove(&TaskId::Refine(number));
    }
}

/// The plans of the run failed, and there will be no other. The run fails with the next event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunGivenUp {
    /// The plans that failed, in order.
    pub plans: Vec<FailedPlan>,
    /// What was learnt.
    pub lessons: Vec<String>,
    /// A simpler goal.
    pub simpler: String,
    /// What there was to report. Put together by rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<Report>>,
}

impl Payload for RunGivenUp {
    fn text(&self, words: Words<'_>) -> String {
        let plans = plural(self.plans.len(), "plan");
        format!("given up after {plans}; ask for less: {}", words.brief(&self.simpler))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Executing, Phase::Writing])?;
        run.report = self.report.as_deref().cloned();
        let (plans, lessons, simpler) = (self.plans.clone(), self.lessons.clone(), self.simpler.clone());
        run.planning.given_up = Some(GivenUp { plans, lessons, simpler });
        Ok(())
    }
}
