//! What agents say, and what is counted of it.

use super::super::event::{AgentEvent, AgentKey, EventKind, Input};
use super::super::state::{RunState, Seen};
use crate::flow::Step;
use crate::ids::{Generation, Seq};

/// Drops the events of agents that a decision named. What an outcome among them used counts, whether or not
/// the decision made anything of it: it was paid for. Only whoever had the task can say so.
pub fn close_inputs(state: &mut RunState, inputs: &[Input]) {
    for input in inputs {
        if let Some((key, event)) = input.closes().and_then(|seq| state.pending.remove(&seq)) {
            count_usage_said(state, &key, &event);
        }
        if let Some(request) = input.request() {
            state.control.note_request(request);
        }
    }
}

/// Notes what an agent says. It waits for a decision, except where none can follow: what is about a task that
/// was never offered has no effect, and after the end of the run only its usage counts.
pub(super) fn apply_agent(run: &mut RunState, seq: Seq, key: &AgentKey, event: &AgentEvent) {
    let offered = run
        .tasks
        .get(&key.task)
        .is_some_and(|task| task.generation >= key.generation && key.generation > Generation(0));
    if !offered {
        return;
    }
    if is_heard(run, key) {
        note_seen(run.seen.entry(key.task.clone()).or_default(), key, event);
    }
    if run.status.is_ended() {
        count_usage_said(run, key, event);
        return;
    }
    match event {
        AgentEvent::Started(_)
        | AgentEvent::ToolStarted(_)
        | AgentEvent::Released(_)
        | AgentEvent::Outcome(_) => {
            run.pending.insert(seq, (key.clone(), event.clone()));
        }
        AgentEvent::Unreadable(unreadable) => {
            if unreadable.kind.is_decided_upon() {
                run.pending.insert(seq, (key.clone(), event.clone()));
            }
        }
        AgentEvent::Step(_) => {}
    }
}

/// Whether people are told of it: what others say of a task that somebody has is none of its course.
fn is_heard(run: &RunState, key: &AgentKey) -> bool {
    let holder = run.tasks.get(&key.task).filter(|task| task.generation == key.generation);
    let holder = holder.and_then(|task| task.agent.as_ref());
    holder.is_none_or(|holder| *holder == key.agent)
}

/// How much is noted of why something cannot be read, in characters.
const MOST_NOTED: usize = 160;

fn note_seen(seen: &mut Seen, key: &AgentKey, event: &AgentEvent) {
    if key.generation < seen.generation {
        return;
    }
    if key.generation > seen.generation {
        *seen = Seen { generation: key.generation, ..Seen::default() };
    }
    seen.agent = Some(key.agent.clone());
    match event {
        AgentEvent::Started(started) => seen.step = seen.step.max(started.after_step),
        AgentEvent::ToolStarted(tool) => seen.doing.clone_from(&tool.step.action.name),
        AgentEvent::Step(step) => note_step(seen, step),
        AgentEvent::Released(_) => seen.agent = None,
        AgentEvent::Outcome(outcome) => {
            if let Some(step) = &outcome.last_step {
                note_step(seen, step);
            }
            seen.usage = outcome.usage;
            (seen.ended, seen.well) = (true, outcome.ending.is_success());
        }
        AgentEvent::Unreadable(unreadable) => {
            let note = format!("[unreadable: {}]", unreadable.why);
            seen.doing = note.chars().take(MOST_NOTED).collect();
            seen.ended |= unreadable.kind == EventKind::Outcome;
        }
    }
}

fn note_step(seen: &mut Seen, step: &Step) {
    seen.step = seen.step.max(step.number);
    seen.doing.clone_from(&step.action.name);
    seen.usage.steps += 1;
    for call in &step.calls {
        seen.usage += call.usage;
    }
}

/// Whether it is for this agent to say what a generation of a task used.
pub(in crate::run) fn is_to_count(run: &RunState, key: &AgentKey) -> bool {
    run.spending.awaits(key)
}

/// Counts what an agent says was used, if that is for it to say.
pub(in crate::run) fn count_usage_said(run: &mut RunState, key: &AgentKey, event: &AgentEvent) {
    if is_to_count(run, key) {
        count_usage(run, key, event);
    }
}

/// Counts what an outcome, or a task that was put down, says was used, in place of what was set aside for it.
pub(in crate::run) fn count_usage(run: &mut RunState, key: &AgentKey, event: &AgentEvent) {
    match event {
        AgentEvent::Outcome(outcome) => {
            run.spending.used += outcome.usage;
            run.spending.free(&key.task, key.generation);
            run.spending.is_counted(&key.task, key.generation);
        }
        AgentEvent::Released(released) => {
            if released.parked {
                run.spending.used += released.usage;
                run.spending.free(&key.task, key.generation);
                run.spending.is_counted(&key.task, key.generation);
            }
        }
        // What was used nobody can tell; its agent is done with it all the same.
        AgentEvent::Unreadable(unreadable) => {
            if matches!(unreadable.kind, EventKind::Outcome | EventKind::Released) {
                run.spending.free(&key.task, key.generation);
                run.spending.is_counted(&key.task, key.generation);
            }
        }
        AgentEvent::Started(_) | AgentEvent::ToolStarted(_) | AgentEvent::Step(_) => {}
    }
}
