//! Runs within runs: how one is found from the run it belongs to, and whether something can still be asked of it.

use muster_bus::Bus;
use muster_shared::flow::TaskStatus;
use muster_shared::ids::{RunId, TaskId, TaskIndex};
use muster_shared::plan::unknown_task;
use muster_shared::run::RunState;

use super::select;
use crate::exit::{Failure, usage};
use crate::render;

/// Most runs within a run that are looked at.
pub(crate) const MOST: usize = 100;

/// Deeper than runs stand within runs.
const MOST_LEVELS: usize = 20;

/// The run that a task of a run waits for; the newest of those it waited for when there is none.
pub(super) async fn of_task(bus: &Bus, run: RunId, task: &TaskIndex) -> Result<RunId, Failure> {
    newest(&select::state(bus, run).await?, task)
}

fn newest(state: &RunState, task: &TaskIndex) -> Result<RunId, Failure> {
    let short = state.id.short();
    let help = format!("`muster show {short}` lists the tasks, and the runs within");
    let awaited = state.planned(task).and_then(|task| task.waiting.as_ref()?.for_run);
    let leaf = TaskId::Leaf(task.clone());
    let of_it = state.children.iter().filter(|(_, child)| child.task == leaf);
    let newest = of_it.max_by_key(|(_, child)| (child.generation, child.asked_at)).map(|(run, _)| *run);
    awaited.or(newest).ok_or_else(|| match &state.plan {
        Some(plan) if !plan.tasks.contains_key(task) => Failure::usage(unknown_task(plan, task)).help(help),
        _ => usage!("{task} of run {short} has no child run").help(help),
    })
}

/// The runs within a run, each before those within it. One that has no record yet
/// is left out.
pub(crate) async fn all(bus: &Bus, state: &RunState) -> Result<Vec<RunState>, Failure> {
    let (mut found, mut open) = (Vec::new(), first(state));
    while let Some(run) = open.pop() {
        let entries = select::entries(bus, run).await?;
        if entries.is_empty() || found.len() >= MOST {
            continue;
        }
        let child = select::fold(run, &entries)?;
        open.extend(first(&child));
        found.push(child);
    }
    Ok(found)
}

/// The children of a run, the first at the end.
pub(crate) fn first(state: &RunState) -> Vec<RunId> {
    let mut children: Vec<(u64, RunId)> =
        state.children.iter().map(|(run, child)| (child.asked_at.0, *run)).collect();
    children.sort_by(|one, other| other.cmp(one));
    children.into_iter().map(|(_, run)| run).collect()
}

/// Refuses what is asked of a run that nobody waits for any more: the task that it was begun for, or one further above,
/// has ended or is done anew.
pub(super) async fn check_above(bus: &Bus, state: &RunState) -> Result<(), Failure> {
    let mut below = state.clone();
    for _ in 0..MOST_LEVELS {
        let Some(parent) = &below.goal.parent else { return Ok(()) };
        let entries = select::entries(bus, parent.run).await?;
        // Without its record nothing speaks against it.
        if entries.is_empty() {
            return Ok(());
        }
        let above = select::fold(parent.run, &entries)?;
        if let Some(why) = conflict(&above, &parent.task, below.id) {
            return Err(why);
        }
        below = above;
    }
    Ok(())
}

/// What speaks against a change within the run that was begun for this task. Pure.
fn conflict(above: &RunState, task: &TaskId, run: RunId) -> Option<Failure> {
    let state = above.tasks.get(task);
    if state.and_then(|state| state.waiting.as_ref()?.for_run) == Some(run) {
        return None;
    }
    let (short, outer) = (run.short(), above.id.short());
    let again = format!("`muster redo {outer} {task}` has {task} done again, with a run of its own");
    if above.status.is_ended() {
        let how = render::runs::word(above);
        return Some(
            usage!(
                "run {short} belongs to {task} of run {outer}, which has ended ({how}): it cannot be changed any more"
            )
            .help(format!("`muster show {outer}` shows the result; start a new run with `muster run`")),
        );
    }
    let ended = state.map(|state| state.status).filter(|status| status.is_ended());
    let has_told = above.children.get(&run).is_some_and(|child| child.end.is_some());
    let why = match (ended, has_told) {
        (Some(TaskStatus::Skipped), _) => format!("{task} of run {outer} is left out"),
        (Some(_), _) => format!("{task} of run {outer} has ended"),
        (None, true) => {
            format!("run {short} has ended, and {task} of run {outer} goes on with what came of it")
        }
        (None, false) => {
            format!("{task} of run {outer} is done anew, and does not wait for run {short} any more")
        }
    };
    Some(usage!("{why}: nothing within it can be changed").help(again))
}
