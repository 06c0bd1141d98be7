//! Who decided what, and what watched over it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::course::Course;
use super::story::Story;
use super::{Told, is_about, words};
use crate::flow::TaskOffered;
use crate::ids::{AgentId, Seq, TaskId};
use crate::run::event::{Request, RequestAction, SignedOrder};
use crate::run::{Decided, Entry, Input, RecordEvent};

/// Who decided what, and what watched over it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditTold {
    /// Goals and orders that were given, in order, and by whom.
    pub orders: Vec<Voice>,
    /// What people were asked and said.
    pub people: Vec<Told>,
    /// What guards said: of all that they were asked about.
    pub guards: Vec<Told>,
    /// What tasks may use, where that is not everything.
    pub rights: Vec<Told>,
    /// The orchestrators that decided, and how many decisions are theirs.
    pub decided_by: BTreeMap<AgentId, u64>,
    /// The first and the last entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<[Seq; 2]>,
}

/// A goal or an order, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Voice {
    /// Who gave it, as the record says.
    pub by: String,
    /// Who signed it, where it is signed. Whether the signature holds is for `muster audit` to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// What it was.
    #[serde(flatten)]
    pub told: Told,
}

/// Who decided what of a run, or of one task of it.
pub(super) fn audit(story: &Story<'_>, course: &Course, of: Option<&TaskId>) -> AuditTold {
    let is_wanted = |task: Option<&TaskId>| of.is_none_or(|of| task.is_some_and(|task| is_about(of, task)));
    let keep =
        |all: &[Told]| all.iter().filter(|told| is_wanted(told.task.as_ref())).cloned().collect::<Vec<_>>();
    let (mut orders, mut decided_by) = (Vec::new(), BTreeMap::new());
    let mut rights: BTreeMap<TaskId, Told> = BTreeMap::new();
    for entry in story.entries {
        match &entry.event {
            RecordEvent::Decided(decided) => {
                orders.extend(decided.inputs.iter().filter_map(|input| voice(entry, decided, input)));
                *decided_by.entry(decided.by.clone()).or_default() += 1;
                decided.offer.iter().for_each(|offer| note_rights(&mut rights, entry, offer));
            }
            RecordEvent::Offered(offer) => note_rights(&mut rights, entry, offer),
            RecordEvent::Agent(..) => {}
        }
    }
    orders.retain(|order: &Voice| is_wanted(order.told.task.as_ref()));
    let rights: Vec<Told> = rights.into_values().filter(|told| is_wanted(told.task.as_ref())).collect();
    let span = story.entries.first().zip(story.entries.last()).map(|(first, last)| [first.seq, last.seq]);
    AuditTold { orders, people: keep(&course.people), guards: keep(&course.guards), rights, decided_by, span }
}

/// What a task may use, by its newest offer.
fn note_rights(rights: &mut BTreeMap<TaskId, Told>, entry: &Entry, offer: &TaskOffered) {
    let may = offer.rights.effective().told();
    if may.is_empty() {
        return;
    }
    let text = words::brief(&format!("{} may use {}", offer.task, may.join("; ")));
    let told = Told { text, task: Some(offer.task.clone()), at: Some(entry.at), entries: vec![entry.seq] };
    rights.insert(offer.task.clone(), told);
}

/// The goal or the order in an input, if it is one.
fn voice(entry: &Entry, decided: &Decided, input: &Input) -> Option<Voice> {
    let (by, signed, text, task) = match input {
        Input::Goal { goal, signed, .. } => (&goal.asked_by, signed, "the goal".to_owned(), None),
        Input::Fork { goal, signed, .. } => (&goal.asked_by, signed, "a fork".to_owned(), None),
        Input::Request(request) => (&request.by, &request.signed, order(request), task_of(&request.action)),
        Input::Refuse { .. }
        | Input::Agent { .. }
        | Input::Unreadable { .. }
        | Input::Capacity
        | Input::Timer
        | Input::AgentLost { .. }
        | Input::Silent { .. }
        | Input::ChildEnded { .. }
        | Input::ContractBroken { .. }
        | Input::Bids { .. }
        | Input::TrialWithdrawn { .. }
        | Input::GuardsSaid { .. } => return None,
    };
    // A chain of batches names its inputs in each: they are told where it ends.
    if decided.continues {
        return None;
    }
    Some(Voice {
        by: words::brief(by),
        signed_by: signed.as_deref().map(signer),
        told: Told { text, task, at: Some(entry.at), entries: vec![entry.seq] },
    })
}

fn signer(signed: &SignedOrder) -> String {
    format!("{} ({})", words::brief(&signed.by), signed.kind.name())
}

fn order(request: &Request) -> String {
    let task = task_of(&request.action).map(|task| format!(" {task}")).unwrap_or_default();
    let why = match request.reason.as_str() {
        "" => String::new(),
        reason => format!(": {}", words::brief(reason)),
    };
    format!("{}{task}{why}", request.action.name())
}

fn task_of(action: &RequestAction) -> Option<TaskId> {
    match action {
        RequestAction::Skip { task } | RequestAction::Redo { task } => Some(TaskId::Leaf(task.clone())),
        RequestAction::Edit { task, .. } => task.clone().map(TaskId::Leaf),
        RequestAction::Cancel
        | RequestAction::Pause
        | RequestAction::Resume { .. }
        | RequestAction::Approve { .. }
        | RequestAction::Reject { .. }
        | RequestAction::Answer { .. }
        | RequestAction::SetContext { .. } => None,
    }
}
