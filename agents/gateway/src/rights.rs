//! What a task of a program has a right to. The gateway carries out what programs ask for, so it is the gateway that looks.

use muster_shared::flow::{Note, Refusal, Use};
use muster_shared::wire::gateway::GatewayRefusal;

use crate::open::{Course, OpenTask};
use crate::refusal::not_allowed;

/// Most refusals that are noted with one step.
const MOST_NOTED: usize = 16;

/// Whether a task has a right to all of these. What it has no right to is noted with its next step.
///
/// # Errors
/// When it has not: nothing is done then.
pub(crate) fn may(task: &OpenTask, course: &mut Course, wanted: &[Use<'_>]) -> Result<(), GatewayRefusal> {
    task.offer.rights.allow_all(wanted).map_err(|refusal| {
        let said = not_allowed(format!("{refusal}: go on without, or finish with what there is"));
        note(course, refusal);
        said
    })
}

/// Notes with a step what its task had no right to.
pub(crate) fn note(course: &mut Course, refusal: Refusal) {
    let note = Note::Denied { at: 0, refusal };
    let noted = course.notes.iter().filter(|note| matches!(note, Note::Denied { .. })).count();
    if noted < MOST_NOTED && !course.notes.contains(&note) {
        course.notes.push(note);
    }
}
