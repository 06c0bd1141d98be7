//! Goals and commands of people, with author and signer. `muster audit` verifies the signatures.

use super::{ExplanationItem, words};
use crate::ids::TaskId;
use crate::run::event::{Request, RequestAction};
use crate::run::{Entry, Input, RecordEvent};

/// Goals and commands, in order.
pub(super) fn requests(entries: &[Entry]) -> Vec<ExplanationItem> {
    let mut all = Vec::new();
    for entry in entries {
        // Each batch of a chain repeats the inputs: only the last one is read.
        if let RecordEvent::Decided(decided) = &entry.event
            && !decided.continues
        {
            all.extend(decided.inputs.iter().filter_map(|input| request(entry, input)));
        }
    }
    all
}

fn request(entry: &Entry, input: &Input) -> Option<ExplanationItem> {
    let (by, signed, text, task) = match input {
        Input::Goal { goal, signed, .. } => (&goal.asked_by, signed, "goal".to_owned(), None),
        Input::Fork { goal, signed, .. } => (&goal.asked_by, signed, "fork".to_owned(), None),
        Input::Request(request) => (&request.by, &request.signed, command(request), task_of(&request.action)),
        _ => return None,
    };
    let author = if by.is_empty() { "unknown author" } else { by.as_str() };
    let signer = signed.as_deref().map_or_else(
        || "not signed".to_owned(),
        |signed| format!("signed by {} ({})", signed.by, signed.kind.name()),
    );
    let text = words::brief(&format!("{author}: {text}; {signer}"));
    Some(ExplanationItem { text, task, at: Some(entry.at), entries: vec![entry.seq] })
}

fn command(request: &Request) -> String {
    let task = task_of(&request.action).map(|task| format!(" {task}")).unwrap_or_default();
    let reason = if request.reason.is_empty() { "" } else { ": " };
    format!("{}{task}{reason}{}", request.action.name(), request.reason)
}

fn task_of(action: &RequestAction) -> Option<TaskId> {
    match action {
        RequestAction::Skip { task } | RequestAction::Redo { task } => Some(task.to_task_id()),
        RequestAction::Edit { task, .. } => task.clone().map(TaskId::Leaf),
        _ => None,
    }
}
