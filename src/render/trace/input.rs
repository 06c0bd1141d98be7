//! What was decided upon, in words.

use muster_shared::run::{Input, Request, RequestAction, SignerKind};

use super::super::figures;

/// All inputs of a decision.
pub(super) fn inputs(inputs: &[Input]) -> String {
    let words = inputs.iter().map(|input| match input {
        Input::Goal { .. } => "a goal".to_owned(),
        Input::Fork { from, .. } => format!("a fork of {} at entry {}", from.run.short(), from.at),
        Input::Agent { seq } => format!("entry {seq}"),
        Input::Unreadable { seq, why: _ } => format!("entry {seq}, which cannot be read"),
        Input::Capacity => "free capacity".to_owned(),
        Input::ContractBroken { faults, .. } => {
            format!("a result breaks its contract: {}", faults.join("; "))
        }
        Input::Bids { task, bids, .. } => format!("{} bids for {task}", bids.len()),
        Input::GuardsSaid { .. } => "what guards said".to_owned(),
        Input::TrialWithdrawn { trial, .. } => {
            format!("the withdrawal of trial {}", figures::one_line(trial, 48))
        }
        Input::ChildEnded { child, .. } => format!("the end of {}", child.short()),
        Input::Timer => "a deadline".to_owned(),
        Input::AgentLost { agent, .. } => format!("the loss of {agent}"),
        Input::Silent { task, agent, for_ms, .. } => {
            format!("the silence of {agent} about {task} for {} s", for_ms / 1000)
        }
        Input::Request(asked) => request(asked),
        Input::Refuse { .. } => "a goal that is refused".to_owned(),
    });
    if inputs.is_empty() { "nothing new".to_owned() } else { figures::list(words) }
}

fn request(Request { by, action, signed, .. }: &Request) -> String {
    let by = figures::one_line(by, 40);
    // Whoever runs the fleet speaks for others; what a person signed is his own.
    let by = match signed.as_ref().map(|signed| signed.kind) {
        Some(SignerKind::Operator) => format!("{by} (said by the operator)"),
        Some(SignerKind::Person) => format!("{by} (signed)"),
        Some(SignerKind::Orchestrator) | None => by,
    };
    match action {
        RequestAction::Cancel => format!("a cancellation by {by}"),
        RequestAction::Pause => format!("a pause asked for by {by}"),
        RequestAction::Resume { .. } => format!("a resumption asked for by {by}"),
        RequestAction::Skip { task } => format!("a wish by {by} to skip {task}"),
        RequestAction::Redo { task } => format!("a wish by {by} to redo {task}"),
        RequestAction::Edit { task: Some(task), .. } => format!("a new goal for {task} by {by}"),
        RequestAction::Edit { task: None, .. } => format!("a new goal by {by}"),
        RequestAction::Approve { .. } => format!("an approval by {by}"),
        RequestAction::Reject { .. } => format!("a rejection by {by}"),
        RequestAction::Answer { question, .. } => format!("an answer to question {question} by {by}"),
        RequestAction::SetContext { key, .. } => format!("a value for context.{key} by {by}"),
    }
}
