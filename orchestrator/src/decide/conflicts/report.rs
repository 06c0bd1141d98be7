//! What the report says of results that contradict each other. Nothing that does reaches it unmarked.

use muster_shared::conflict::{Comparison, ConflictVerdict, Side, compare};
use muster_shared::flow::ConflictBrief;
use muster_shared::ids::TaskIndex;
use muster_shared::run::{ConflictEnd, ConflictState, RunState};

use super::super::survey;
use super::found::{self, claimed_now};
use super::{is_same_subject, tolerance};

/// What holds where both sides do.
const EACH: &str = "each of them, of different things,";
/// What is said of these in the report.
const BOTH: &str = "both hold, of different things";

/// Most conflicts that are told of.
const MOST: usize = 50;

/// What the writer is told: every conflict, and what became of it.
pub(in crate::decide) fn brief(run: &RunState) -> Vec<ConflictBrief> {
    let newest = run.conflicts.found.iter().filter(|(id, conflict)| !is_asked_again(run, **id, conflict));
    newest.filter_map(|(_, conflict)| of_conflict(run, conflict)).chain(unexamined(run)).take(MOST).collect()
}

/// One conflict, unless there was none.
fn of_conflict(run: &RunState, conflict: &ConflictState) -> Option<ConflictBrief> {
    let (holds, why) = match &conflict.end {
        Some(ConflictEnd::Gone(_)) => return None,
        Some(ConflictEnd::Settled(verdict)) => {
            let again = claimed_again(run, conflict, verdict);
            (Some(verdict.value.to_string()), format!("{}: {}{again}", verdict.by, verdict.why))
        }
        Some(ConflictEnd::Unsettled(why)) => (None, why.clone()),
        Some(ConflictEnd::Both(why)) => (Some(EACH.to_owned()), why.clone()),
        None => (None, "it was not settled in time".to_owned()),
    };
    Some(ConflictBrief { subject: conflict.subject.clone(), claimed: claimed(&conflict.sides), holds, why })
}

/// Contradictions that nobody deals with any more: there were too many, or tasks that lost claim again what does not agree,
/// perhaps with what was found out for them.
fn unexamined(run: &RunState) -> Vec<ConflictBrief> {
    let found = found::contradictions(run, &claimed_now(run)).into_iter();
    let is_marked = |known: &[u32]| {
        let mut same = known.iter().filter_map(|id| run.conflicts.found.get(id));
        same.any(|conflict| !is_mended(run, conflict) && of_conflict(run, conflict).is_some())
    };
    let new = found.filter(|found| !is_marked(&found.known));
    new.map(|found| ConflictBrief {
        subject: found.subject,
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
    let open = run
        .conflicts
        .found
        .iter()
        .filter(|(id, conflict)| !is_mended(run, conflict) && !is_asked_again(run, **id, conflict));
    let marked =
        open.filter_map(|(_, conflict)| of_conflict(run, conflict)).chain(unexamined(run)).take(MOST);
    marked
        .map(|ConflictBrief { subject, claimed, holds, why }| {
            let claimed = claimed.join("; ");
            match holds {
                Some(value) if value == EACH => format!("{subject}: {BOTH} ({why}); claimed are {claimed}"),
                Some(value) => format!("{subject}: {value} holds ({why}); claimed were {claimed}"),
                None => format!("{subject}: it is not settled what holds ({why}); claimed are {claimed}"),
            }
        })
        .collect()
}

/// Whether all who lost have done their task again since, and do not claim the same as before. Where nobody lost, because
/// one task claims both, it is that task that has to be done again.
fn is_mended(run: &RunState, conflict: &ConflictState) -> bool {
    conflict.verdict().is_some_and(|verdict| {
        let changed = |task: &TaskIndex| {
            conflict
                .side(task)
                .zip(run.planned(task))
                .is_some_and(|(side, state)| state.generation > side.generation)
        };
        let claimants = conflict.sides.iter().map(|side| &side.task).filter(|_| verdict.losers.is_empty());
        verdict
            .losers
            .iter()
            .chain(claimants)
            .all(|task| changed(task) && !insists(run, conflict, verdict, task))
    })
}

/// Who did its task again and still claims what does not hold, in words.
fn claimed_again(run: &RunState, conflict: &ConflictState, verdict: &ConflictVerdict) -> String {
    let is_again = |task: &&TaskIndex| {
        conflict.side(task).is_some_and(|side| !found::stands(run, side))
            && insists(run, conflict, verdict, task)
    };
    let again: Vec<String> = verdict.losers.iter().filter(is_again).map(TaskIndex::to_string).collect();
    if again.is_empty() { String::new() } else { format!("; {} claims otherwise again", again.join(", ")) }
}

/// Whether a task that was done again still claims what does not hold.
fn insists(run: &RunState, conflict: &ConflictState, verdict: &ConflictVerdict, task: &TaskIndex) -> bool {
    let claims = survey::result_of(run, task).map(|result| result.claims.as_slice()).unwrap_or_default();
    claims.iter().any(|claim| {
        is_same_subject(&conflict.subject, &claim.subject)
            && compare(&claim.value, &verdict.value, tolerance(run)) == Comparison::Differ
    })
}

/// Whether what was settled was in question again later, and that is told: once is enough.
fn is_asked_again(run: &RunState, id: u32, conflict: &ConflictState) -> bool {
    let mut later = run.conflicts.found.range(id.saturating_add(1)..).map(|(_, later)| later);
    conflict.verdict().is_some()
        && later.any(|later| {
            is_same_subject(&later.subject, &conflict.subject)
                && !matches!(later.end, Some(ConflictEnd::Gone(_) | ConflictEnd::Both(_)))
                && !is_mended(run, later)
        })
}

/// The same as a passage for the report; nothing when there is nothing to say.
pub(in crate::decide) fn note(run: &RunState) -> Option<String> {
    let notes = notes(run);
    (!notes.is_empty()).then(|| {
        let lines: Vec<String> =
            notes.iter().map(|note| format!("> - {}", note.replace('\n', " "))).collect();
        let all_hold = notes.iter().all(|note| note.contains(BOTH));
        let what = if all_hold { "seem to contradict" } else { "contradict" };
        format!("> Results of this run {what} each other:\n{}", lines.join("\n"))
    })
}

/// What tasks that begin later are told, one line each: what holds where a result that they may see says otherwise.
pub(in crate::decide) fn told(run: &RunState) -> Vec<String> {
    let settled = run.conflicts.found.values().filter(|conflict| !is_mended(run, conflict));
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
