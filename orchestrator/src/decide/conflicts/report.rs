//! What the report says of results that contradict each other. Nothing that does reaches it unmarked.

use muster_shared::conflict::{Side, Subject, detect};
use muster_shared::flow::ConflictBrief;
use muster_shared::run::{ConflictEnd, ConflictState, RunState};

use super::found::claimed_now;
use super::{is_on, tolerance};

/// Most conflicts that are told of.
const MOST: usize = 50;

/// What the writer is told: every conflict, and what became of it.
pub(in crate::decide) fn brief(run: &RunState) -> Vec<ConflictBrief> {
    run.conflicts.values().filter_map(of_conflict).chain(unexamined(run)).take(MOST).collect()
}

/// One conflict, unless there was none.
fn of_conflict(conflict: &ConflictState) -> Option<ConflictBrief> {
    let (holds, why) = match &conflict.end {
        Some(ConflictEnd::Gone(_)) => return None,
        Some(ConflictEnd::Settled(verdict)) => {
            (Some(verdict.value.to_string()), format!("{}: {}", verdict.by, verdict.why))
        }
        Some(ConflictEnd::Unsettled(why)) => (None, why.clone()),
        None => (None, "it was not settled in time".to_owned()),
    };
    Some(ConflictBrief { subject: conflict.subject.clone(), claimed: claimed(&conflict.sides), holds, why })
}

/// Contradictions that nobody deals with any more: there were too many, or tasks that lost claim again what does not agree,
/// perhaps with what was found out for them.
fn unexamined(run: &RunState) -> Vec<ConflictBrief> {
    if !is_on(run) {
        return Vec::new();
    }
    let found = detect(&claimed_now(run), tolerance(run)).into_iter().filter(|found| found.certain);
    let is_marked = |subject: &Subject| {
        let mut same = run.conflicts.values().filter(|conflict| conflict.subject().as_ref() == Some(subject));
        same.any(|conflict| !is_mended(run, conflict) && of_conflict(conflict).is_some())
    };
    let new = found.filter(|found| !is_marked(&found.subject));
    new.map(|found| ConflictBrief {
        subject: found.sides.first().map(|side| side.claim.subject.clone()).unwrap_or_default(),
        claimed: claimed(&found.sides),
        holds: None,
        why: "there were too many conflicts to settle this one, or it came up again".to_owned(),
    })
    .collect()
}

fn claimed(sides: &[Side]) -> Vec<String> {
    sides.iter().map(ToString::to_string).collect()
}

/// What the report says of contradictions by rule, one line each: those that are not settled, and those whose losers
/// were not done again.
pub(in crate::decide) fn notes(run: &RunState) -> Vec<String> {
    let open = run.conflicts.values().filter(|conflict| !is_mended(run, conflict));
    let marked = open.filter_map(of_conflict).chain(unexamined(run)).take(MOST);
    marked
        .map(|ConflictBrief { subject, claimed, holds, why }| {
            let claimed = claimed.join("; ");
            match holds {
                Some(value) => format!("{subject}: {value} holds ({why}); claimed were {claimed}"),
                None => format!("{subject}: it is not settled what holds ({why}); claimed are {claimed}"),
            }
        })
        .collect()
}

/// Whether all who lost have done their task again since.
fn is_mended(run: &RunState, conflict: &ConflictState) -> bool {
    conflict.verdict().is_some_and(|verdict| {
        let changed = |task| {
            conflict
                .side(task)
                .zip(run.planned(task))
                .is_some_and(|(side, state)| state.generation > side.generation)
        };
        verdict.losers.iter().all(changed)
    })
}

/// The same as a passage for the report; nothing when there is nothing to say.
pub(in crate::decide) fn note(run: &RunState) -> Option<String> {
    let notes = notes(run);
    (!notes.is_empty()).then(|| {
        let lines: Vec<String> =
            notes.iter().map(|note| format!("> - {}", note.replace('\n', " "))).collect();
        format!("> Results of this run contradict each other:\n{}", lines.join("\n"))
    })
}

/// What tasks that begin later are told, one line each: what holds where a result that they may see says otherwise.
pub(in crate::decide) fn told(run: &RunState) -> Vec<String> {
    let settled = run.conflicts.values().filter(|conflict| !is_mended(run, conflict));
    settled
        .filter_map(|conflict| {
            let verdict = conflict.verdict()?;
            let losers: Vec<String> = verdict.losers.iter().map(ToString::to_string).collect();
            Some(format!(
                "{}: {} holds, not what {} claims",
                conflict.subject,
                verdict.value,
                losers.join(", ")
            ))
        })
        .collect()
}
