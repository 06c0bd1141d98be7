//! What follows from a refiner's operations: each is done or refused with its reason.

use muster_shared::flow::{RefineOperation, RefusedOperation, TaskDraft};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::plan::{self, tools};
use muster_shared::run::event::PlanRefined;

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
    let roles = survey::leaf_roles(decision.capacity());
    let specialists = decision.specialists();
    let known = tools::known(specialists);
    let mut operations = operations.to_vec();
    for operation in &mut operations {
        plan::matching::give(tasks_in(operation), &roles, specialists);
    }
    let Some(run) = decision.open() else { return };
    let Some(before) = run.plan.clone() else { return };
    let limits = survey::limits_of_plans(run);
    let (sound, unusable) = apart(operations, survey::nameable(run, &known, decision.reader()));
    let values = survey::values(run);
    let plan::Refined { plan, changes, mut refused } =
        plan::refine(&before, &survey::statuses_to_refine(run), &sound, &limits, &roles, values.as_ref());
    refused.extend(unusable);
    for leaf in before.leaves().map(|(leaf, _)| leaf).filter(|leaf| !plan.is_leaf(leaf)) {
        control::interrupt(decision, &TaskId::Leaf(leaf.clone()), "the task is split");
    }
    decision.emit(PlanRefined { number, changes, refused, plan });
    control::catch_up(decision, &before);
}

/// The tasks that an operation brings, to be given to whoever can do them.
fn tasks_in(operation: &mut RefineOperation) -> &mut [TaskDraft] {
    match operation {
        RefineOperation::Split { into, .. } => into,
        RefineOperation::Add { tasks, .. } => tasks,
        RefineOperation::Delete { .. } | RefineOperation::Exit { .. } => &mut [],
    }
}

/// The operations, without those whose tasks name tools that nobody has.
fn apart(
    operations: Vec<RefineOperation>,
    known: tools::Nameable<'_>,
) -> (Vec<RefineOperation>, Vec<RefusedOperation>) {
    let (mut sound, mut refused) = (Vec::new(), Vec::new());
    for operation in operations {
        match tasks_of(&operation).iter().find_map(|task| tools::problem(task, known)) {
            Some(reason) => refused.push(RefusedOperation { operation, reason }),
            None => sound.push(operation),
        }
    }
    (sound, refused)
}

/// The tasks that an operation brings.
fn tasks_of(operation: &RefineOperation) -> &[TaskDraft] {
    match operation {
        RefineOperation::Split { into, .. } => into,
        RefineOperation::Add { tasks, .. } => tasks,
        RefineOperation::Delete { .. } | RefineOperation::Exit { .. } => &[],
    }
}
