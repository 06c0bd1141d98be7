//! Pausing and going on.
//!
//! What agents have in hand, they put down where it stands; what waits in a queue is closed at once. When the run is
//! resumed, all of it is offered again with the next generation, a new deadline, and the steps taken so far. The
//! deadline of the run goes on meanwhile, since whoever waits for the report waits through a pause too: who resumes
//! may set a later one.

use std::time::Duration;

use muster_shared::flow::TaskStatus;
use muster_shared::ids::{Generation, TaskId};
use muster_shared::run::event::{RunPaused, RunResumed, TaskParked};
use muster_shared::run::{Request, RunState};

use super::super::builder::DecisionBuilder;
use super::super::effect::Effect;
use super::asked_by;

/// Offers nothing more, and has what is in work put down.
pub(in crate::decide) fn pause(decision: &mut DecisionBuilder<'_>, request: &Request) -> Result<(), String> {
    let run = decision.require_open()?;
    if run.control.paused.is_some() {
        return Err("it is paused already: `muster resume` lets it go on".to_owned());
    }
    let reason = asked_by(request);
    let waiting = queued(run);
    decision.emit(RunPaused { reason: reason.clone() });
    for (task, generation) in waiting {
        decision.emit(TaskParked { task, generation });
    }
    decision.effect(Effect::ParkRun { reason });
    Ok(())
}

/// Lets the run go on.
pub(in crate::decide) fn resume(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    deadline_ms: Option<u64>,
) -> Result<(), String> {
    let run = decision.require_open()?;
    if run.control.paused.is_none() {
        return Err("it is not paused".to_owned());
    }
    let deadline = deadline_ms.map(|span| decision.now().after(Duration::from_millis(span)));
    decision.emit(RunResumed { reason: asked_by(request), deadline });
    Ok(())
}

/// An agent put a task down. It is offered again as soon as the run may offer anything.
pub(in crate::decide) fn put_down(decision: &mut DecisionBuilder<'_>, task: TaskId, generation: Generation) {
    decision.emit(TaskParked { task, generation });
}

/// An agent began a task of a run that is paused: it is to put it down.
pub(in crate::decide) fn stop_early_bird(decision: &mut DecisionBuilder<'_>, task: &TaskId) {
    let Some(run) = decision.open() else { return };
    let (Some(paused), Some(state)) = (&run.control.paused, run.tasks.get(task)) else { return };
    let (reason, generation, agent) = (paused.reason.clone(), state.generation, state.agent.clone());
    decision.effect(Effect::ParkTask { task: task.clone(), generation, agent, reason });
}

fn queued(run: &RunState) -> Vec<(TaskId, Generation)> {
    let queued =
        run.tasks.iter().filter(|(task, state)| state.status == TaskStatus::Queued && !is_parent(run, task));
    queued.map(|(task, state)| (task.clone(), state.generation)).collect()
}

/// The state of a parent follows from its leaves.
fn is_parent(run: &RunState, task: &TaskId) -> bool {
    let plan = run.plan.as_ref();
    task.as_leaf().is_some_and(|index| plan.is_some_and(|plan| !plan.is_leaf(&index.planned())))
}
