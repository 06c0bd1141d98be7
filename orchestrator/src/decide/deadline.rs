//! Deadlines. They are compared with the time of the decision, whatever woke the run.

mod phase;

use std::time::Duration;

use muster_shared::flow::{Ending, FailureKind, TaskStatus};
use muster_shared::ids::{AgentId, Generation, Queue, TaskId};
use muster_shared::run::{RunState, StopReason, TaskState};
use muster_shared::time::Millis;

use super::auction;
use super::builder::DecisionBuilder;
use super::control;
use super::effect::Effect;
use super::failure::{self, Failure};

pub(super) use phase::{ends_at, takes_nothing_up};

/// How long after a task's deadline its agent's own word is waited for: the agent concludes at the deadline and
/// says what it has, which is better than cutting it off.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// A generation of a task whose time is up.
struct Late {
    task: TaskId,
    generation: Generation,
    agent: Option<AgentId>,
    kind: FailureKind,
    reason: String,
}

/// Ends what is past its deadline.
pub(super) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    if run.deadline <= now {
        return stop_run(decision);
    }
    if run.control.paused.is_some() {
        return;
    }
    if phase::is_over(run, now) {
        return phase::end(decision);
    }
    for Late { task, generation, agent, kind, reason } in late(run, now) {
        decision.effect(Effect::CancelTask { task: task.clone(), generation, agent, reason: reason.clone() });
        auction::broken(decision, &task);
        let (ending, outcome, part) = (Ending::DeadlinePassed, None, None);
        failure::failed(decision, &task, Failure { kind, ending, outcome, part, reason });
    }
}

fn stop_run(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    let span = run.deadline.since(run.created_at);
    let reason = if span.is_zero() {
        "its time was up before an orchestrator took it up: see with `muster ps` whether one is there, and ask again"
            .to_owned()
    } else {
        format!("its time of {} is up; ask again with a longer --deadline", in_words(span))
    };
    control::abort(decision, StopReason::DeadlinePassed, reason);
}

/// Whether the deadline of a task was that of its phase or of the run, so that there is no time for another try. An
/// agent may see it pass a moment before the run does.
pub(super) fn leaves_no_time(run: &RunState, task: &TaskState) -> bool {
    let last = phase::ends_at(run).map_or(run.deadline, |end| end.min(run.deadline));
    task.deadline.is_some_and(|deadline| deadline >= last)
}

/// Stops a run that cannot go on without what there is no time left for.
pub(super) fn stop(decision: &mut DecisionBuilder<'_>) {
    match decision.open().and_then(phase::ends_at) {
        Some(_) => phase::end(decision),
        None => stop_run(decision),
    }
}

/// When the next deadline passes; nothing once the run has ended.
#[must_use]
pub fn next_deadline(run: &RunState) -> Option<Millis> {
    if run.status.is_ended() {
        return None;
    }
    if let Some(end) = super::guards::stops_at(run) {
        return Some(end);
    }
    if run.control.paused.is_some() {
        return Some(run.deadline);
    }
    let tasks = run.tasks.values().filter(|task| task.status.is_in_work());
    let tasks = tasks.filter_map(|task| task.deadline).map(|deadline| deadline.after(GRACE));
    let questions = run.open_questions().map(|(_, question)| question.expires);
    let children = super::children::next_asking(run);
    let help = run.tasks.values().filter_map(|task| super::peers::expires(run, task.waiting.as_ref()?));
    let conflicts =
        super::conflicts::next_deadline(run).into_iter().chain(super::draft_review::next_deadline(run));
    let conflicts = conflicts.chain(super::guards::next_deadline(run));
    Some(
        tasks
            .chain(questions)
            .chain(children)
            .chain(help)
            .chain(conflicts)
            .chain(phase::over_at(run))
            .fold(run.deadline, Millis::min),
    )
}

/// When the time of a task is up that is offered now.
pub(super) fn of_offer(run: &RunState, now: Millis) -> Millis {
    let deadline = now.after(run.limits.task_deadline()).min(run.deadline);
    phase::ends_at(run).map_or(deadline, |end| deadline.min(end))
}

fn late(run: &RunState, now: Millis) -> Vec<Late> {
    let in_work = run.tasks.iter().filter(|(_, task)| task.status.is_in_work());
    let late = in_work.filter(|(_, task)| task.deadline.is_some_and(|deadline| deadline.after(GRACE) <= now));
    late.map(|(id, task)| Late {
        task: id.clone(),
        generation: task.generation,
        agent: task.agent.clone(),
        kind: if task.status == TaskStatus::Queued { FailureKind::NobodyTookIt } else { FailureKind::TimeUp },
        reason: if task.status == TaskStatus::Queued {
            nobody(task.queue.as_ref())
        } else {
            "its time was up before it ended".to_owned()
        },
    })
    .collect()
}

fn nobody(queue: Option<&Queue>) -> String {
    match queue {
        Some(Queue::Role(role)) => format!(
            "no {role} took it before its time was up: see with `muster ps` whether one is there, or start one with \
             `muster agent {role}`"
        ),
        Some(Queue::Agent(agent)) => format!("{agent} did not take it before its time was up"),
        None => "nobody took it before its time was up".to_owned(),
    }
}

/// A span as a person writes it, to the second above a minute and to the millisecond below a second.
pub(super) fn in_words(span: Duration) -> String {
    let seconds = span.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => format!("{} ms", span.as_millis()),
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}
