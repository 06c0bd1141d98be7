//! What follows when all that can be done with the plan has been done.

use muster_shared::ids::TaskId;
use muster_shared::plan::order;
use muster_shared::run::event::{RunFailed, TaskBlocked};
use muster_shared::run::{Phase, RunState};

use super::builder::DecisionBuilder;
use super::{blueprint, budget, conflicts, groups, replan, response, schedule, single, survey};

/// Goes over to writing when nothing is in work and nothing is due; fails the run when there is nothing to write.
pub(super) fn settle(decision: &mut DecisionBuilder<'_>) {
    budget::stop_if_stuck(decision);
    loop {
        response::wind_up(decision);
        if !decision.open().is_some_and(is_settled) {
            return;
        }
        if decision.open().is_some_and(|run| run.planning.is_replanning() && replan::is_used_up(run)) {
            return replan::give_up(decision, None);
        }
        block_the_rest(decision);
        budget::leave_out_the_rest(decision);
        // What was blocked or left out may decide on groups, and on steps of a blueprint that waited for it.
        let settled = groups::settle(decision);
        if !blueprint::expand(decision) && !settled {
            break;
        }
    }
    conflicts::give_up(decision, "nothing more could be done about it");
    let Some(run) = decision.open() else { return };
    if !survey::has_results(run) {
        let reason = nothing_to_write(run);
        match budget::note(run) {
            Some(_) => budget::stop_without(decision, &TaskId::Write, &reason),
            None => decision.emit(RunFailed { reason }),
        }
    } else {
        single::write(decision);
        budget::stop_if_stuck(decision);
    }
}

fn is_settled(run: &RunState) -> bool {
    run.phase == Phase::Executing
        && run.control.paused.is_none()
        && !blueprint::waits_for_approval(run)
        && !survey::anything_in_work(run)
        && !survey::anything_waits(run)
        && !run.guarding.holds_the_end()
        && !conflicts::waits_for_person(run)
        && schedule::due(run).is_empty()
}

/// Only now is it certain that no refinement will make these possible.
fn block_the_rest(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    let blocked = run.plan.as_ref().map(|plan| order::blocked(plan, &run.statuses())).unwrap_or_default();
    for (task, reason) in blocked {
        decision.emit(TaskBlocked { task, reason });
    }
}

fn nothing_to_write(run: &RunState) -> String {
    let why: Vec<String> = survey::fruitless(run)
        .into_iter()
        .map(|(index, name, why)| format!("{index} {name}: {why}"))
        .collect();
    if why.is_empty() {
        return "the plan has no task left that could give a result; ask for something more definite"
            .to_owned();
    }
    format!(
        "no task gave a result ({}). See `muster trace` for what was tried; check the models with `muster doctor`, or \
         ask for something smaller or more definite",
        why.join("; ")
    )
}
