//! What follows from a refiner's operations: each is done or refused with its reason.

use muster_shared::flow::RefineOperation;
use muster_shared::ids::{Seq, TaskId, TaskIndex};
use muster_shared::plan;
use muster_shared::run::event::{PlanRefined, RefinementWanted};
use muster_shared::run::{Phase, RunState};

use super::builder::DecisionBuilder;
use super::outcome::completed;
use super::{control, survey};

/// Changes the plan as far as the operations are sound.
pub(super) fn refined(
    decision: &mut DecisionBuilder<'_>,
    number: u32,
    seq: Seq,
    operations: &[RefineOperation],
) {
    completed(decision, TaskId::Refine(number), seq);
    if let Some(made) = carried_out(decision, operations) {
        change(decision, number, made, None);
    }
}

/// Changes the plan as a reflection says itself, if nothing of it has to be refused: no refiner is asked. Tells whether it
/// was changed so. Where others ask for a change as well, the refiner hears of all of them.
pub(super) fn brought(
    decision: &mut DecisionBuilder<'_>,
    index: &TaskIndex,
    reason: &str,
    operations: &[RefineOperation],
) -> bool {
    let is_free = |run: &&RunState| {
        run.phase == Phase::Executing
            && !run.planning.is_replanning()
            && survey::open_refinement(run).is_none()
            && !run.is_verification(index)
    };
    let Some(run) = decision.open().filter(is_free) else { return false };
    let number = survey::next_refinement(run);
    if number > run.limits.max_refinements {
        return false;
    }
    let Some(made) = carried_out(decision, operations).filter(|made| made.refused.is_empty()) else {
        return false;
    };
    if made.changes.is_empty() {
        return false;
    }
    decision.emit(RefinementWanted { number, reason: format!("{index}: {reason}") });
    change(decision, number, made, Some(index.clone()));
    true
}

/// What becomes of the plan by these operations.
fn carried_out(decision: &mut DecisionBuilder<'_>, operations: &[RefineOperation]) -> Option<plan::Refined> {
    let specialists = decision.specialists();
    let roles = survey::roles_for_planners(decision.open()?, decision.capacity(), specialists);
    let known = decision.nameable_tools();
    let run = decision.open()?;
    let before = run.plan.as_ref()?;
    let limits = run.limits.clone();
    let values = survey::values(run);
    let rules = plan::RefineRules {
        limits: &limits,
        roles: &roles,
        specialists,
        named: survey::nameable(run, &known),
        values: Some(&values),
    };
    Some(plan::refine_by(before, &survey::statuses_to_refine(run), operations, &rules))
}

fn change(decision: &mut DecisionBuilder<'_>, number: u32, made: plan::Refined, by: Option<TaskIndex>) {
    let Some(before) = decision.open().and_then(|run| run.plan.clone()) else { return };
    let plan::Refined { plan, changes, refused } = made;
    for leaf in before.leaves().map(|(leaf, _)| leaf).filter(|leaf| !plan.is_leaf(leaf)) {
        control::interrupt(decision, &leaf.to_task_id(), "the task is split");
    }
    decision.emit(PlanRefined { number, changes, refused, plan, by });
    control::catch_up(decision, &before);
}
