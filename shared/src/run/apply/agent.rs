//! What agents say, and what is counted of it.

use super::super::event::{AgentEvent, AgentKey, EventKind, Input};
use super::super::state::{RunState, Seen};
use crate::flow::Step;
use crate::ids::{Generation, Seq};

/// Drops the events of agents that a decision named. What an outcome among them used counts, whether or not
/// the decision made anything of it: it was paid for.
pub fn close_inputs(state: &mut RunState, inputs: &[Input]) {
    for input in inputs {
        match input {
            Input::Agent { seq } | Input::Unreadable { seq, .. } => {
                if let Some((key, event)) = state.pending.remove(seq) {
                    count_usage(state, &key, &event);
                }
            }
            Input::GuardsSaid { outcome, .. } => {
                if let Some((key, event)) = outcome.and_then(|seq| state.pending.remove(&seq)) {
                    count_usage(state, &key, &event);
                }
            }
            Input::Goal { .. }
            | Input::Fork { .. }
            | Input::Refuse { .. }
            | Input::Capacity
            | Input::Timer
            | Input::ChildEnded { .. }
            | Input::ContractBroken { .. }
            | Input::Bids { .. }
            | Input::AgentLost { .. }
            | Input::Silent { .. }
            | Input::Request(_) => {}
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
    note_seen(run.seen.entry(key.task.clone()).or_default(), key, event);
    if run.status.is_ended() {
        count_usage(run, key, event);
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

/// Counts what an outcome, or a task that was put down, says was used, in place of what was set aside for it.
pub(in crate::run) fn count_usage(run: &mut RunState, key: &AgentKey, event: &AgentEvent) {
    match event {
        AgentEvent::Outcome(outcome) => {
            run.spending.used += outcome.usage;
            run.spending.free(&key.task, key.generation);
        }
        AgentEvent::Released(released) => {
            if released.parked {
                run.spending.used += released.usage;
                run.spending.free(&key.task, key.generation);
            }
        }
        // What was used nobody can tell; its agent is done with it all the same.
        AgentEvent::Unreadable(unreadable) => {
            if matches!(unreadable.kind, EventKind::Outcome | EventKind::Released) {
                run.spending.free(&key.task, key.generation);
            }
        }
        AgentEvent::Started(_) | AgentEvent::ToolStarted(_) | AgentEvent::Step(_) => {}
    }
}
