//! What a task of a program has a right to, and what guards leave of it. The gateway carries out what programs ask for, so it
//! is the gateway that looks and asks.

use muster_agents::host::guarded::AfterGuards;
use muster_shared::flow::{Action, Guarded, Hook, Note, Refusal, Use};
use muster_shared::wire::gateway::GatewayRefusal;
use serde_json::Value;

use crate::desk::Desk;
use crate::open::{Course, OpenTask};
use crate::refusal::not_allowed;

/// Most refusals that are noted with one step.
const MOST_NOTED: usize = 16;
/// Most verdicts of guards that wait for a step to hold them.
const MOST_VERDICTS: usize = 64;

/// Whether a task has a right to all of these. What it has no right to is noted with its next step, by its place there.
///
/// # Errors
/// When it has not: nothing is done then.
pub(crate) fn may(
    task: &OpenTask,
    course: &mut Course,
    at: usize,
    wanted: &[Use<'_>],
) -> Result<(), GatewayRefusal> {
    task.offer.rights.allow_all(wanted).map_err(|refusal| {
        let said = not_allowed(format!("{refusal}: go on without, or finish with what there is"));
        note(course, at, refusal);
        said
    })
}

/// Notes with a step what its task had no right to.
pub(crate) fn note(course: &mut Course, at: usize, refusal: Refusal) {
    let note = Note::Denied { at: u32::try_from(at).unwrap_or(u32::MAX), refusal };
    let noted = course.notes.iter().filter(|note| matches!(note, Note::Denied { .. })).count();
    if noted < MOST_NOTED && !course.notes.contains(&note) {
        course.notes.push(note);
    }
}

/// Whether what guards would say still finds a place in the record.
///
/// # Errors
/// When too much waits for a step.
pub(crate) fn has_place(course: &Course) -> Result<(), GatewayRefusal> {
    let kept = course.notes.iter().filter(|note| matches!(note, Note::Guarded { .. })).count();
    if kept < MOST_VERDICTS {
        return Ok(());
    }
    Err(not_allowed(format!(
        "guards said {kept} things that stand in no step yet: record what was done by a `step` with its observation first"
    )))
}

/// Asks guards about a call that is to be done at this place of a step, and notes what they said: gives the arguments that
/// take the place of its own. `fits` says what is wrong with arguments.
///
/// # Errors
/// When a guard refuses: nothing is done then.
pub(crate) async fn ask_guards(
    desk: &Desk,
    task: &OpenTask,
    (at, action): (usize, &Action),
    fits: &(dyn Fn(&Value) -> Result<(), String> + Sync),
) -> AfterGuards<Result<Option<Value>, GatewayRefusal>> {
    let AfterGuards { what, note } = desk.shared.guard_call(&task.role, &task.offer, at, action, fits).await;
    let what = what.map_err(|why| {
        not_allowed(format!(
            "{} is not done: {why}. Go on without, or finish with what there is",
            action.name
        ))
    });
    AfterGuards { what, note }
}

/// The same for a call whose task is in hand: what they said is noted.
///
/// # Errors
/// When a guard refuses, or what they would say finds no place: nothing is done then.
pub(crate) async fn let_through(
    desk: &Desk,
    task: &OpenTask,
    course: &mut Course,
    call: (usize, &Action),
    fits: &(dyn Fn(&Value) -> Result<(), String> + Sync),
) -> Result<Option<Value>, GatewayRefusal> {
    has_place(course)?;
    let AfterGuards { what, note } = ask_guards(desk, task, call, fits).await;
    keep(course, note);
    what
}

/// Keeps what guards said for the next step. That they had nothing against several things alike is counted in one note.
pub(crate) fn keep(course: &mut Course, note: Option<Note>) {
    let Some(note) = note else { return };
    if let Note::Guarded { hook, at, said, .. } = &note {
        let alike = course.notes.iter_mut().find_map(|kept| {
            let Note::Guarded { hook: of, at: place, said: before, .. } = kept else { return None };
            (of == hook && place == at && is_plain(before) && is_plain(said)).then_some(before)
        });
        if let Some(before) = alike {
            before.allowed = before.allowed.saturating_add(said.allowed);
            return;
        }
    }
    if !course.notes.contains(&note) {
        course.notes.push(note);
    }
}

fn is_plain(said: &Guarded) -> bool {
    said.verdicts.is_empty() && said.changed.is_none()
}

/// The arguments that guards put in the place of a call's own, by the notes of its step.
pub(crate) fn changed_arguments(notes: &[Note], about: usize) -> Option<&Value> {
    // What was said last is about the step as it stands.
    (0..notes.len())
        .rev()
        .find_map(|from| Note::guarded(&notes[from..=from], Hook::BeforeTool, about))?
        .changed
        .as_ref()?
        .get("arguments")
}
