//! What agents say, and what is counted of it.

use super::super::event::{AgentEvent, AgentKey, EventKind, Input};
use super::super::state::{RunState, Seen};
use crate::flow::Step;
use crate::ids::{Generation, Seq};
use uuid::Uuid;

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
            | Input::Cancel { .. }
            | Input::Pause { .. }
            | Input::Resume { .. }
            | Input::Skip { .. }
            | Input::Redo { .. }
            | Input::Edit { .. }
            | Input::Answer { .. }
            | Input::SetContext { .. }
            | Input::Approve { .. }
            | Input::Reject { .. } => {}
        }
        if let Some(request) = input.request() {
            note_request(state, request);
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

/// How many requests are remembered: a command that is given out twice comes back within minutes.
const MOST_REQUESTS: usize = 256;

fn note_request(state: &mut RunState, request: Uuid) {
    if !state.requests.contains(&request) {
        if state.requests.len() >= MOST_REQUESTS {
            state.requests.pop_front();
        }
        state.requests.push_back(request);
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
pub(super) fn count_usage(run: &mut RunState, key: &AgentKey, event: &AgentEvent) {
    match event {
        AgentEvent::Outcome(outcome) => {
            run.usage += outcome.usage;
            no_longer_set_aside(run, key);
        }
        AgentEvent::Released(released) => {
            if released.parked {
                run.usage += released.usage;
                no_longer_set_aside(run, key);
            }
        }
        // What was used nobody can tell; its agent is done with it all the same.
        AgentEvent::Unreadable(unreadable) => {
            if matches!(unreadable.kind, EventKind::Outcome | EventKind::Released) {
                no_longer_set_aside(run, key);
            }
        }
        AgentEvent::Started(_) | AgentEvent::ToolStarted(_) | AgentEvent::Step(_) => {}
    }
}

fn no_longer_set_aside(run: &mut RunState, key: &AgentKey) {
    run.allotted.retain(|set_aside| (&set_aside.task, set_aside.generation) != (&key.task, key.generation));
}
