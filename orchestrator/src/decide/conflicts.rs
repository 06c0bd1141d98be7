//! Results that contradict each other: found when a leaf ends, settled step by step by the policy of the run, and said
//! in the report. What holds, and what comes next, is decided by [`muster_shared::conflict`]; here it is put into the
//! run's terms: tasks, questions, deadlines.

mod answers;
mod ask;
mod compatible_claims;
mod found;
mod report;

use std::collections::BTreeSet;
use std::time::Duration;

use muster_shared::conflict::{ConflictFacts, ConflictVerdict, Next, Subject, Tolerance, as_said, next};
use muster_shared::flow::{About, ConflictStep, Plan};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::plan::order;
use muster_shared::run::event::{ConflictResolved, QuestionWithdrawn, TaskAborted};
use muster_shared::run::{ConflictEnd, ConflictState, RunState, Settling};
use muster_shared::time::Millis;

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::{control, survey};
use answers::answers;

pub(super) use found::after_leaf;
pub(super) use report::{brief, note, notes, told};

/// Of the time that the run has left, the most that settling one conflict may take, in percent.
const MOST_OF_THE_REST: u64 = 50;

/// How far apart numbers may lie in this run and still agree; inside its committees too.
pub(super) const fn tolerance(run: &RunState) -> Tolerance {
    Tolerance { percent: run.limits.conflicts.tolerance_percent }
}

/// Whether two texts name one subject.
fn is_same_subject(one: &str, other: &str) -> bool {
    Subject::of(one) == Subject::of(other)
}

/// When the time is up to settle what is found now.
fn until(run: &RunState, now: Millis) -> Millis {
    let left = run.deadline.0.saturating_sub(now.0);
    now.after(Duration::from_millis(run.limits.conflicts.settle_within_ms.min(left / 100 * MOST_OF_THE_REST)))
}

/// When the next conflict has to be settled.
pub(super) fn next_deadline(run: &RunState) -> Option<Millis> {
    run.open_conflicts().map(|(_, conflict)| conflict.until).min()
}

/// Whether a leaf has to wait: what it uses is in dispute.
pub(super) fn holds(run: &RunState, plan: &Plan, leaf: &TaskIndex) -> bool {
    let mut disputed = run.open_conflicts().flat_map(|(_, conflict)| &conflict.sides).peekable();
    if disputed.peek().is_none() {
        return false;
    }
    let needed = order::dependencies(plan, leaf);
    disputed.any(|side| needed.contains(&side.task))
}

/// The small tasks that help to settle what is open, as far as they were not offered yet.
pub(super) fn to_settle(run: &RunState) -> Vec<TaskId> {
    let open = |settling: &Settling| run.open_conflicts().any(|(id, _)| settling.conflict == id);
    let tasks = run.conflicts.settling.iter().filter(|(_, settling)| open(settling));
    let tasks = tasks.map(|(number, _)| TaskId::Settle(*number));
    tasks.filter(|task| survey::is_unoffered(run, task)).collect()
}

/// Whether a person is asked about an open conflict.
pub(super) fn waits_for_person(run: &RunState) -> bool {
    run.open_questions().any(|(_, asked)| matches!(asked.about, About::Conflict(_)))
}

/// Goes on with every open conflict as far as that can be decided now.
pub(super) fn pursue(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open().filter(|run| run.control.paused.is_none()) else { return };
    let open: Vec<u32> = run.open_conflicts().map(|(id, _)| id).collect();
    for id in open {
        // No step is taken twice, so this comes to an end.
        while go_on(decision, id) {}
    }
}

/// Leaves open what nothing can be done about any more.
pub(super) fn give_up(decision: &mut DecisionBuilder<'_>, why: &str) {
    let Some(run) = decision.open() else { return };
    let open: Vec<u32> = run.open_conflicts().map(|(id, _)| id).collect();
    for id in open {
        end(decision, id, ConflictEnd::Unsettled(why.to_owned()), Vec::new());
    }
}

/// Takes the next step; whether another may follow at once.
fn go_on(decision: &mut DecisionBuilder<'_>, id: u32) -> bool {
    let now = decision.now();
    let Some(run) = decision.open() else { return false };
    let Some(conflict) = run.conflicts.found.get(&id).filter(|conflict| conflict.is_open()) else {
        return false;
    };
    let over = if let Some(why) = found::gone(run, conflict) {
        Some(ConflictEnd::Gone(why))
    } else if conflict.until <= now {
        Some(ConflictEnd::Unsettled("the time to settle it was up".to_owned()))
    } else {
        compatible_claims::holds(run, id).map(ConflictEnd::Both)
    };
    if let Some(over) = over {
        end(decision, id, over, Vec::new());
        return false;
    }
    if let Some(verdict) = known_before(run, id) {
        settled(decision, id, verdict);
        return false;
    }
    follow_policy(decision, id)
}

fn follow_policy(decision: &mut DecisionBuilder<'_>, id: u32) -> bool {
    let Some(run) = decision.open() else { return false };
    let Some(conflict) = run.conflicts.found.get(&id) else { return false };
    let Some(answers) = answers(run, id) else { return false };
    let limits = &run.limits.conflicts;
    let known = ConflictFacts {
        policy: &limits.policy,
        tolerance: tolerance(run),
        authority: &limits.authority,
        answers: &answers,
    };
    match next(&conflict.sides, &known) {
        Next::Ask(step) => return ask::ask(decision, id, step),
        Next::Settled(verdict) => settled(decision, id, verdict),
        Next::Unsettled => {
            let why = if limits.policy.is_empty() {
                "conflicts are only told"
            } else {
                "no step of the policy settled it"
            };
            end(decision, id, ConflictEnd::Unsettled(why.to_owned()), Vec::new());
        }
    }
    false
}

/// What somebody found out before who looked: whoever claims something else again does not open the question anew.
fn known_before(run: &RunState, id: u32) -> Option<ConflictVerdict> {
    let conflict = run.conflicts.found.get(&id)?;
    let is_same = |earlier: &&ConflictState| is_same_subject(&earlier.subject, &conflict.subject);
    let earlier = run.conflicts.found.range(..id).rev().map(|(_, earlier)| earlier);
    let is_found_out =
        |verdict: &&ConflictVerdict| matches!(verdict.by, ConflictStep::Verify | ConflictStep::Person);
    // Only those are read of which somebody found out what holds.
    let mut settled = earlier.filter(|earlier| earlier.verdict().as_ref().is_some_and(is_found_out));
    let known = settled.find(is_same)?.verdict()?;
    let why =
        format!("it was found out before: {}", known.why.trim_start_matches("it was found out before: "));
    as_said(&conflict.sides, &known.value, (known.by, why), tolerance(run))
}

/// Records a verdict, and has those who lost do their task again, told of it.
fn settled(decision: &mut DecisionBuilder<'_>, id: u32, verdict: ConflictVerdict) {
    let Some(run) = decision.open() else { return };
    let Some(conflict) = run.conflicts.found.get(&id) else { return };
    let redone = to_do_again(run, conflict, &verdict);
    let reason = format!(
        "what it claimed of {:?} does not hold: it is {} (settled by {}: {}). Do it again with that taken into account",
        conflict.subject, verdict.value, verdict.by, verdict.why
    );
    end(decision, id, ConflictEnd::Settled(verdict), redone.iter().cloned().collect());
    if !redone.is_empty() {
        control::begin_again(decision, &redone, &reason, true);
    }
}

/// Those who lost and may do their task again: not more often than the limits say, and only what still stands.
fn to_do_again(run: &RunState, conflict: &ConflictState, verdict: &ConflictVerdict) -> BTreeSet<TaskIndex> {
    let before =
        |task: &TaskIndex| run.conflicts.found.values().filter(|other| other.redone.contains(task)).count();
    let may = |task: &&TaskIndex| {
        let stands = conflict.side(task).is_some_and(|side| found::stands(run, side));
        stands && u32::try_from(before(task)).unwrap_or(u32::MAX) < run.limits.conflicts.max_redos
    };
    verdict.losers.iter().filter(may).cloned().collect()
}

/// Ends a conflict; who is still busy with it is told to stop.
fn end(decision: &mut DecisionBuilder<'_>, id: u32, end: ConflictEnd, redone: Vec<TaskIndex>) {
    let Some(run) = decision.open() else { return };
    let mine = run.conflicts.settling.iter().filter(|(_, settling)| settling.conflict == id);
    let mine = mine.map(|(number, _)| TaskId::Settle(*number));
    let is_busy = |task: &TaskId| run.tasks.get(task).is_some_and(|state| !state.status.is_ended());
    let busy: Vec<TaskId> = mine.filter(is_busy).collect();
    let question = run.open_questions().find(|(_, asked)| asked.about == About::Conflict(id));
    let question = question.map(|(id, _)| id);
    for task in busy {
        let Some(state) = decision.task(&task) else { continue };
        let reason = "the conflict that it was for has ended".to_owned();
        if state.status.is_in_work() {
            let (generation, agent) = (state.generation, state.agent.clone());
            let task = task.clone();
            decision.effect(Effect::CancelTask { task, generation, agent, reason: reason.clone() });
        }
        decision.emit(TaskAborted { task, reason });
    }
    if let Some(id) = question {
        let reason = "the conflict that it was about has ended".to_owned();
        decision.emit(QuestionWithdrawn { id, reason });
    }
    decision.emit(ConflictResolved { id, end, redone });
}
