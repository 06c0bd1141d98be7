//! Runs that tasks wait for (R6): planning as an action. A child run has a record, indices and limits of its own;
//! it uses a part of what its task may use, and ends with it.
//!
//! Its id follows from the run's secret and the step that asked for it, so that a decision that is made again begins
//! the same run. Its end comes back as a command; a run that hears nothing asks again from time to time, and a child
//! that has ended then tells its end again.

use std::collections::BTreeSet;
use std::time::Duration;

use hmac::{Hmac, Mac};
use muster_shared::flow::{
    Background, ChildGoal, Goal, Observation, ObservationStatus, Parent, Planning, Report, RunLimits,
};
use muster_shared::ids::{Generation, RunId, TaskId, TaskIndex};
use muster_shared::run::event::{ChildAsked, ChildBegun, ChildEnded};
use muster_shared::run::{Child, ChildEnd, Input, Request, RequestAction, RunState, RunStatus, StopReason};
use muster_shared::time::Millis;
use muster_shared::wire::Command;
use sha2::Sha256;
use uuid::Uuid;

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::{Before, budget, deadline, replan, rights, survey, traced, waits, work};

/// How long a run waits for word of a child before it asks again.
const PATIENCE: Duration = Duration::from_secs(20);

/// Of what the task may use, the part that its child may, in percent: the rest is for going on with its report.
const CHILDS_PART: u64 = 75;

/// Of the time that the task has, the part that its child has, in percent.
const CHILDS_TIME: u64 = 90;

/// The least time that is worth beginning a run with.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// Longest report of a child that its task is given, in bytes.
const REPORT_KEPT: usize = 12 * 1024;

/// The step that asks for a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskingStep<'a> {
    /// Its task.
    pub(super) task: &'a TaskId,
    /// The generation of the task.
    pub(super) generation: Generation,
    /// Its number.
    pub(super) number: u32,
}

/// Begins a run for a task that waits for it, or tells the task why not.
pub(super) fn begin(decision: &mut DecisionBuilder<'_>, step: AskingStep<'_>, wanted: &ChildGoal) {
    let AskingStep { task, generation, .. } = step;
    let Some(run) = decision.open() else { return };
    match goal(run, decision.now(), task, wanted) {
        Ok(goal) => {
            let (child, goal) = (child_id(run, step), Box::new(goal));
            decision.emit(ChildBegun { task: task.clone(), generation, run: child, goal: goal.clone() });
            submit(decision, child, goal);
        }
        Err(why) => {
            waits::refuse(
                decision,
                task,
                &format!("No run of its own is begun: {why}. Do it within this task."),
            );
        }
    }
}

/// The goal of the child, with its part of time and budget.
fn goal(run: &RunState, now: Millis, task: &TaskId, wanted: &ChildGoal) -> Result<Goal, String> {
    let TaskId::Leaf(index) = task else {
        return Err("only a task of the plan can have a run of its own".to_owned());
    };
    let depth = run.goal.parent.as_ref().map_or(0, |parent| parent.depth) + 1;
    let most = run.limits.max_nesting;
    if depth > most {
        return Err(format!("runs within runs are {most} deep at most"));
    }
    if wanted.blueprint.is_none() && replan::is_unwanted(run) {
        return Err("this run is to get along without plans".to_owned());
    }
    let text = wanted.goal.trim().to_owned();
    let own = run.plan_task(&index.planned()).map(|task| task.goal.as_str());
    let above = run.goal.parent.iter().flat_map(|parent| parent.goals.iter().map(String::as_str));
    let above = above.chain([run.goal.text.as_str()]);
    if above.chain(own).any(|other| same(other, &text)) && wanted.blueprint.is_none() {
        return Err(
            "this is what is being worked on already, so that it would wait for itself; ask for a part of it"
                .to_owned(),
        );
    }
    // What was done before the task was begun anew does not count.
    let first = run.tasks.get(task).and_then(|state| state.continues);
    let before = run.children.values().filter(|child| child.task == *task);
    let mut before = before.filter(|child| first.is_none_or(|first| child.generation >= first));
    if before.any(|child| same(&child.goal.text, &text)) {
        return Err("there was a run for the same already, and you were told what came of it".to_owned());
    }
    let share = budget::allot(run, task).ok_or("too little of the budget is left")?;
    let share = share.map(|_, part| part * CHILDS_PART / 100);
    let time = deadline::of_offer(run, now).since(now).as_millis();
    let time = u64::try_from(time).unwrap_or(u64::MAX) / 100 * CHILDS_TIME;
    if u128::from(time) < LEAST_TIME.as_millis() {
        return Err("too little time is left".to_owned());
    }
    let goals = run.goal.parent.iter().flat_map(|parent| parent.goals.iter().cloned());
    let goals = goals.chain([run.goal.text.clone()]).chain(own.map(str::to_owned));
    let background = Some(Box::new(background(run, index)));
    let rights = rights::for_child(run, task);
    let (task, goals) = (task.clone(), goals.collect());
    let parent = Parent { run: run.id, task, depth, goals, rights: rights.clone(), background };
    let own_rights = Box::new(rights.effective());
    let limits = RunLimits { budget: share, run_deadline_ms: time, rights: own_rights, ..run.limits.clone() };
    let goal = Goal {
        corpus: run.goal.corpus.clone(),
        deadline_ms: Some(time),
        model: run.goal.model.clone(),
        asked_by: run.goal.asked_by.clone(),
        encoding: run.goal.encoding,
        limits: Some(limits),
        budget: share,
        blueprint: wanted.blueprint.clone(),
        domain: wanted.domain.clone().or_else(|| run.goal.domain.clone()),
        blueprints: run.goal.blueprints.clone(),
        // A plan is what was asked for, however small the goal.
        planning: Some(Planning::Always),
        role_name: run.goal.role_name.clone(),
        priority: run.goal.priority,
        parent: Some(Box::new(parent)),
        attended: run.goal.attended,
        trace: traced::below(run),
        ..Goal::new(text)
    };
    goal.check().map_err(|wrong| wrong.to_string())?;
    Ok(goal)
}

/// What the child is told of the work that it is a part of: the person's goal, the tasks above, what its task builds on,
/// and what was learnt.
fn background(run: &RunState, index: &TaskIndex) -> Background {
    let inherited = run.goal.parent.as_ref().and_then(|parent| parent.background.as_deref()).cloned();
    let is_within = run.goal.parent.is_some();
    let Background { asked, mut above, mut results, .. } = inherited.unwrap_or_default();
    let asked = if asked.is_empty() { run.goal.text.clone() } else { asked };
    above.extend(is_within.then(|| run.goal.text.clone()));
    above.extend(work::parents(run, &index.planned()));
    above.extend(run.plan_task(&index.planned()).map(|task| task.goal.clone()));
    let inputs = survey::inputs(run, &index.planned());
    results.extend(inputs.into_iter().map(|leaf| (leaf.name, leaf.result.conclusion)));
    Background { asked, above, results, lessons: work::lessons(run) }.bounded()
}

fn same(one: &str, other: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    words(one) == words(other)
}

fn submit(decision: &mut DecisionBuilder<'_>, run: RunId, goal: Box<Goal>) {
    let id = Some(derived(run, "begin", decision.now()));
    decision.effect(Effect::Command { command: Box::new(Command::Attend { run, goal, id }) });
}

/// Takes note of the end of a child. One that was told before, or that nobody waits for, changes nothing.
pub(super) fn ended(decision: &mut DecisionBuilder<'_>, child: RunId, end: &ChildEnd) {
    let Some(kept) = decision.open().and_then(|run| run.children.get(&child)) else { return };
    if kept.end.is_some() {
        return;
    }
    let (task, is_awaited) = (kept.task.clone(), awaited_by(decision.open(), child).is_some());
    decision.emit(ChildEnded { run: child, end: Box::new(end.clone()) });
    if is_awaited {
        let observed = observed(child, end);
        waits::answer(decision, &task, observed);
    }
}

/// Passes on to children what happens to the run, and to its parent how it ended.
pub(super) fn follow(decision: &mut DecisionBuilder<'_>, before: &Before, inputs: &[Input]) {
    end_forgotten(decision, before, inputs);
    pass_on_pause(decision, before);
    if inputs.contains(&Input::Timer) {
        ask_again(decision);
    }
    tell_parent(decision, before, inputs);
}

/// When a run that waits for children asks for word of them.
pub(super) fn next_asking(run: &RunState) -> Option<Millis> {
    let asked = awaited(run).filter_map(|child| run.children.get(&child));
    asked.map(|child| child.asked_at.after(PATIENCE)).min()
}

/// Ends children that nobody waits for any more. Whoever was to tell them may have died over it: as long as nothing is
/// known of their end, they are told again when the run is asked for or looked at anyway.
fn end_forgotten(decision: &mut DecisionBuilder<'_>, before: &Before, inputs: &[Input]) {
    let Some(run) = decision.run() else { return };
    let is: BTreeSet<RunId> = awaited(run).collect();
    let again = inputs.iter().any(is_occasion_to_tell_again);
    let goes_on = run.children.iter().filter(|(_, child)| child.end.is_none()).map(|(child, _)| child);
    let lost = goes_on.filter(|child| !is.contains(child) && (again || before.children.contains(child)));
    let lost: Vec<RunId> = lost.copied().collect();
    for child in lost {
        let reason = "the task that it was begun for does not wait for it any more".to_owned();
        ask_child(decision, child, RequestAction::Cancel, reason);
    }
}

/// Whether a run is asked to stop, or looked at though nothing may have changed.
fn is_occasion_to_tell_again(input: &Input) -> bool {
    match input {
        Input::Timer => true,
        Input::Request(request) => request.action == RequestAction::Cancel,
        Input::Goal { .. }
        | Input::Fork { .. }
        | Input::Refuse { .. }
        | Input::Agent { .. }
        | Input::Unreadable { .. }
        | Input::Capacity
        | Input::AgentLost { .. }
        | Input::Silent { .. }
        | Input::ChildEnded { .. }
        | Input::ContractBroken { .. }
        | Input::GuardsSaid { .. }
        | Input::TrialWithdrawn { .. }
        | Input::Bids { .. } => false,
    }
}

pub(super) fn ask_child(
    decision: &mut DecisionBuilder<'_>,
    child: RunId,
    action: RequestAction,
    reason: String,
) {
    let id = derived(child, action.name(), decision.now());
    let request = Request::new(child, action).because(reason).with_id(id);
    decision.effect(Effect::Command { command: Box::new(Command::Request(request)) });
}

fn pass_on_pause(decision: &mut DecisionBuilder<'_>, before: &Before) {
    let Some(run) = decision.open() else { return };
    let is = run.control.paused.as_ref().map(|paused| paused.reason.clone());
    if before.was_paused == is.is_some() {
        return;
    }
    let children: Vec<RunId> = awaited(run).collect();
    for child in children {
        match &is {
            Some(reason) => ask_child(decision, child, RequestAction::Pause, reason.clone()),
            None => {
                let reason = "the run that it belongs to goes on".to_owned();
                ask_child(decision, child, RequestAction::Resume { deadline_ms: None }, reason);
            }
        }
    }
}

/// Asks for word of children that were silent for long: what they said, or what they were told, may have got lost.
fn ask_again(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let silent = awaited(run).filter_map(|child| Some((child, run.children.get(&child)?)));
    let silent = silent.filter(|(_, child)| child.asked_at.after(PATIENCE) <= now);
    let silent: Vec<(RunId, Box<Goal>)> = silent.map(|(id, child)| (id, child.goal.clone())).collect();
    for (child, goal) in silent {
        decision.emit(ChildAsked { run: child });
        submit(decision, child, goal);
    }
}

/// Tells the parent how the run ended, as soon as it has, and whenever it is asked for again.
fn tell_parent(decision: &mut DecisionBuilder<'_>, before: &Before, inputs: &[Input]) {
    let Some(run) = decision.run().filter(|run| run.status.is_ended()) else { return };
    let Some(parent) = &run.goal.parent else { return };
    let asked = inputs.iter().any(|input| matches!(input, Input::Goal { .. }));
    if before.was_open || asked {
        let id = Some(derived(run.id, "end", decision.now()));
        let (to, child, end) = (parent.run, run.id, Box::new(end_of(run)));
        decision
            .effect(Effect::Command { command: Box::new(Command::ChildEnded { run: to, child, end, id }) });
    }
}

fn end_of(run: &RunState) -> ChildEnd {
    let report = run.report.clone().map(|mut report| {
        report.body.truncate(report.body.floor_char_boundary(REPORT_KEPT));
        report
    });
    let reason = run.reason.clone().unwrap_or_default();
    ChildEnd { status: run.status, reason, report, usage: run.spending.used }
}

/// The children that tasks of the run wait for.
pub(super) fn awaited(run: &RunState) -> impl Iterator<Item = RunId> + '_ {
    let tasks = run.tasks.values().filter(|_| !run.status.is_ended());
    tasks.filter_map(|task| task.waiting.as_ref()?.for_run)
}

fn awaited_by(run: Option<&RunState>, child: RunId) -> Option<&Child> {
    let run = run?;
    awaited(run).find(|awaited| *awaited == child).and_then(|child| run.children.get(&child))
}

/// What the task that waited is told.
fn observed(child: RunId, end: &ChildEnd) -> Observation {
    let text = |report: &Report| {
        let open = report.unanswered.iter().map(|open| format!("\n- {open}"));
        let open: String = open.collect();
        let open = if open.is_empty() { open } else { format!("\n\nNot answered:{open}") };
        format!("{}{open}", report.body.trim())
    };
    let report = end.report.as_ref().map(text);
    let how = match end.status {
        RunStatus::Completed => "completed",
        RunStatus::Created | RunStatus::Processing | RunStatus::Failed => "failed",
        RunStatus::Aborted(StopReason::Cancelled) => "was cancelled",
        RunStatus::Aborted(StopReason::DeadlinePassed) => "ran out of time",
        RunStatus::Aborted(StopReason::BudgetExhausted) => "ran out of its budget",
        RunStatus::Aborted(StopReason::Refused) => "was refused",
    };
    let short = child.short();
    let (status, content) = match (end.status, report) {
        (RunStatus::Completed, report) => (
            ObservationStatus::Success,
            format!("The run {short} {how}. Its report:\n\n{}", report.unwrap_or_default()),
        ),
        (_, Some(report)) => (
            ObservationStatus::Error,
            format!("The run {short} {how}: {}. What it had until then:\n\n{report}", end.reason),
        ),
        (_, None) => (
            ObservationStatus::Error,
            format!("The run {short} {how}: {}. Do it within this task, or go on without it.", end.reason),
        ),
    };
    Observation::new(status, content)
}

/// The id of the run that a step asks for: the same when the decision is made again.
fn child_id(run: &RunState, step: AskingStep<'_>) -> RunId {
    let AskingStep { task, generation, number } = step;
    derived_run(run, &format!("child/{}/{task}/{generation}/{number}", run.id))
}

/// The id of a run that another one begins, of about the same age: the same when the decision is made again.
pub(super) fn derived_run(run: &RunState, text: &str) -> RunId {
    let mut bytes = hashed(&run.secret, text);
    let own = run.id.as_uuid();
    let parent = own.as_bytes();
    let time = parent.iter().take(6).fold(0_u64, |time, byte| time << 8 | u64::from(*byte)).saturating_sub(1);
    bytes[..6].copy_from_slice(&time.to_be_bytes()[2..]);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    RunId::from_uuid(Uuid::from_bytes(bytes))
}

/// Tells a command from others like it: the same when the decision is made again.
pub(super) fn derived(run: RunId, what: &str, now: Millis) -> Uuid {
    Uuid::from_bytes(hashed("", &format!("{run}/{what}/{}", now.0)))
}

fn hashed(secret: &str, text: &str) -> [u8; 16] {
    let mut found = [0; 16];
    // An HMAC takes a key of any length.
    if let Ok(mut mac) = <Hmac<Sha256> as Mac>::new_from_slice(secret.as_bytes()) {
        mac.update(text.as_bytes());
        found.copy_from_slice(&mac.finalize().into_bytes()[..16]);
    }
    found
}
