//! How a run comes to its plan.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words, plural};
use crate::blueprint::StepOutcome;
use crate::flow::{Plan, PlanTask};
use crate::ids::{TaskId, TaskIndex};
use crate::plan::check::list;
use crate::run::apply::ApplyResult;
use crate::run::apply::phase::require;
use crate::run::apply::plan::{change_plan, grow_plan};
use crate::run::planning::{Iterated, PlanStage};
use crate::run::state::{Phase, RunState};
use crate::time::Millis;

/// The planner's plan was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanRefused {
    /// Why, one line each.
    pub reasons: Vec<String>,
}

impl Payload for PlanRefused {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("plan refused: {}", words.brief(&self.reasons.join("; ")))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        if !run.planning.is_replanning() {
            // What a blueprint gives, or a fork took over, is refused while it is carried out.
            require(run, &[Phase::Planning, Phase::Executing])?;
        }
        run.planning.refused.push(self.reasons.clone());
        Ok(())
    }
}

/// No planner is asked: the goal is small, the person brought a plan, or wants none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanningSkipped {
    /// Why.
    pub reason: String,
}

impl Payload for PlanningSkipped {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("no planner is asked: {}", words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Planning])?;
        run.planning.skipped = Some(self.reason.clone());
        Ok(())
    }
}

/// The planner's plan is in order, and is to be improved from lessons of earlier runs before it is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanDrafted {
    /// The plan.
    pub plan: Plan,
    /// What was repaired in the draft, one line each.
    pub repairs: Vec<String>,
}

impl Payload for PlanDrafted {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        format!(
            "plan of {} drafted, to be improved from earlier runs{}",
            plural(self.plan.tasks.len(), "task"),
            words.lines("repaired: ", &self.repairs)
        )
    }

    /// The draft is kept until it has been improved, and the planner is asked once more.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Planning])?;
        run.planning.stage = PlanStage::Improving(self.plan.clone());
        ask_again(run);
        Ok(())
    }
}

/// Has the planner asked once more.
pub(super) fn ask_again(run: &mut RunState) {
    run.planning.refused_before = run.planning.refused.len();
    run.tasks.entry(TaskId::Plan).or_default().begin_anew();
}

/// The plan was improved from lessons of earlier runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanIterated {
    /// The lessons.
    pub lessons: Vec<String>,
    /// What was changed, one line each; empty when nothing had to be.
    pub changes: Vec<String>,
}

impl Payload for PlanIterated {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        let (taught, changed) = (words.lines("lesson: ", &self.lessons), words.lines("+ ", &self.changes));
        format!("plan improved from earlier runs{taught}{changed}")
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Planning])?;
        let (lessons, changes) = (self.lessons.clone(), self.changes.clone());
        run.planning.iterated = Some(Iterated { lessons, changes });
        Ok(())
    }
}

/// There is a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanAdopted {
    /// The plan.
    pub plan: Plan,
    /// What was repaired in the draft, one line each.
    pub repairs: Vec<String>,
}

impl Payload for PlanAdopted {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        let tasks = plural(self.plan.tasks.len(), "task");
        format!("plan adopted: {tasks}{}", words.lines("repaired: ", &self.repairs))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Planning])?;
        run.planning.stage = PlanStage::Adopted;
        change_plan(run, &self.plan)?;
        run.phase = Phase::Executing;
        Ok(())
    }
}

/// A person gave the plan as it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanEdited {
    /// The plan.
    pub plan: Plan,
    /// Who changed it, and why.
    pub reason: String,
}

impl Payload for PlanEdited {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("plan edited ({}): {}", words.brief(&self.reason), plural(self.plan.tasks.len(), "task"))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        run.take_approvals_back();
        change_plan(run, &self.plan)
    }
}

/// It was decided of steps of the run's blueprint what becomes of them, and the plan grew by their tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct StepsExpanded {
    /// What became of each step.
    pub step_outcomes: BTreeMap<String, StepOutcome>,
    /// The tasks that came with it.
    pub tasks: BTreeMap<TaskIndex, PlanTask>,
}

impl Payload for StepsExpanded {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        let lines: Vec<String> =
            self.step_outcomes.iter().map(|(step, outcome)| became_of(step, outcome)).collect();
        let tasks = plural(self.tasks.len(), "task");
        format!("blueprint expanded by {tasks}{}", words.lines("", &lines))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        grow_plan(run, &self.tasks);
        run.planning.expansion.extend(self.step_outcomes.clone());
        Ok(())
    }
}

/// What became of a step of a blueprint, in a line.
fn became_of(step: &str, outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Placed { tasks, fallback, note, .. } => {
            let fallback =
                if fallback.is_empty() { String::new() } else { format!(", instead {}", list(fallback)) };
            let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
            format!("{step}: {}{fallback}{note}", list(tasks))
        }
        StepOutcome::LeftOut { reason } => format!("{step}: left out, {reason}"),
    }
}

/// How far the plan covers the goal changed, as its planner states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GoalUncovered {
    /// The parts of the goal that no task covers.
    pub parts: Vec<String>,
}

impl Payload for GoalUncovered {
    fn text(&self, words: Words<'_>) -> String {
        match self.parts.as_slice() {
            [] => "the new plan covers the whole goal".to_owned(),
            parts => format!("no task covers: {}", words.brief(&parts.join("; "))),
        }
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        run.planning.uncovered.clone_from(&self.parts);
        Ok(())
    }
}
