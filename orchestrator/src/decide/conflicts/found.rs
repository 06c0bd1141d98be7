//! Contradictions between claims, and when one becomes a conflict.

use muster_shared::conflict::{DetectedConflict, Side, Subject, detect};
use muster_shared::flow::{Claim, Plan, TaskStatus};
use muster_shared::ids::{Generation, TaskIndex};
use muster_shared::run::event::ConflictFound;
use muster_shared::run::{ConflictState, Phase, RunState};

use super::super::builder::DecisionBuilder;
use super::super::survey;
use super::{is_same_subject, tolerance, until};

/// Claims about one subject that contradict each other.
pub(super) struct Contradiction {
    /// The subject, as a side wrote it.
    pub(super) subject: String,
    pub(super) sides: Vec<Side>,
    /// Earlier conflicts about the same subject.
    pub(super) known: Vec<u32>,
}

/// The claims that contradict each other.
pub(super) fn contradictions(run: &RunState, sides: &[Side]) -> Vec<Contradiction> {
    let with_known = |found: DetectedConflict| {
        let subject = Subject::of(&found.subject);
        let known = run.conflicts.found.iter().filter(|(_, conflict)| conflict.subject() == subject);
        let known = known.map(|(id, _)| *id).collect();
        Contradiction { subject: found.subject, sides: found.sides, known }
    };
    detect(sides, tolerance(run)).into_iter().map(with_known).collect()
}

/// Whether the same attempts contradicted each other on this subject before.
fn is_known(run: &RunState, found: &Contradiction) -> bool {
    let attempts = |sides: &[Side]| -> Vec<(TaskIndex, Generation)> {
        sides.iter().map(|side| (side.task.clone(), side.generation)).collect()
    };
    let mut known = found.known.iter().filter_map(|id| run.conflicts.found.get(id));
    known.any(|conflict| attempts(&conflict.sides) == attempts(&found.sides))
}

/// Looks for contradictions to what a leaf claims that has just ended well.
pub(in crate::decide) fn after_leaf(decision: &mut DecisionBuilder<'_>, index: &TaskIndex) {
    let Some(run) = decision.open().filter(|run| run.phase == Phase::Executing) else { return };
    if survey::result_of(run, index).is_none_or(|result| result.claims.is_empty()) {
        return;
    }
    let mut found = contradictions(run, &track_record(run));
    found.retain(|found| !is_known(run, found));
    for found in found {
        record(decision, found);
    }
}

fn record(decision: &mut DecisionBuilder<'_>, found: Contradiction) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let open = run.open_conflicts().map(|(id, _)| id).find(|id| found.known.contains(id));
    let most = usize::try_from(run.limits.conflicts.max_conflicts).unwrap_or(usize::MAX);
    let id = match open {
        Some(id) => id,
        None if run.conflicts.found.len() >= most => return,
        None => run.conflicts.found.last_key_value().map_or(0, |(id, _)| *id).saturating_add(1),
    };
    let until = until(run, now);
    let Contradiction { subject, sides, .. } = found;
    decision.emit(ConflictFound { id, subject, sides, until });
}

/// All that may contradict each other: what is claimed, but for what was found out to settle it.
fn track_record(run: &RunState) -> Vec<Side> {
    let mut sides = claimed_now(run);
    // What a task finds that was added to settle a conflict decides it, and is no side of it.
    sides.retain(|side| !run.is_verification(&side.task));
    sides
}

/// All that is claimed by leaves that ended well, and was not overruled.
pub(super) fn claimed_now(run: &RunState) -> Vec<Side> {
    let mut sides = Vec::new();
    for (index, task) in run.plan.iter().flat_map(Plan::leaves) {
        let Some(state) = run.planned(index) else { continue };
        let Some(result) = survey::result(state) else { continue };
        sides.extend(result.claims.iter().take(Claim::MOST).map(|claim| Side {
            task: index.clone(),
            generation: state.generation,
            agent: state.ended_by.clone(),
            role: Some(task.role.clone()),
            claim: claim.clone(),
        }));
    }
    sides.retain(|side| !is_overruled(run, side));
    sides
}

fn is_overruled(run: &RunState, side: &Side) -> bool {
    let is_same = |known: &Side| is_same_subject(&known.claim.subject, &side.claim.subject);
    run.conflicts.found.values().any(|conflict| {
        let lost = conflict.verdict().is_some_and(|verdict| verdict.losers.contains(&side.task));
        let is_it =
            |known: &Side| known.task == side.task && known.generation == side.generation && is_same(known);
        lost && conflict.sides.iter().any(is_it)
    })
}

/// Whether a side is still what its task gave.
pub(super) fn stands(run: &RunState, side: &Side) -> bool {
    run.planned(&side.task)
        .is_some_and(|state| state.status == TaskStatus::Completed && state.generation == side.generation)
}

/// Why a conflict is none any more: those who contradicted each other are being done again, or were left out.
pub(super) fn gone(run: &RunState, conflict: &ConflictState) -> Option<String> {
    let (still, changed): (Vec<&Side>, Vec<&Side>) =
        conflict.sides.iter().partition(|side| stands(run, side));
    if changed.is_empty() {
        return None;
    }
    let still: Vec<Side> = still.into_iter().cloned().collect();
    detect(&still, tolerance(run)).is_empty().then(|| {
        let changed: Vec<String> = changed.into_iter().map(|side| side.task.to_string()).collect();
        format!("{} changed meanwhile", changed.join(", "))
    })
}
