//! `muster runs`, and the words for states.

use muster_shared::run::{RunState, RunStatus, StopReason, is_completed_in_part};
use muster_shared::time::Millis;

use super::paint::Paint;
use super::{figures, table};
use crate::keeping::summary::Summary;

/// Runs, newest first, as a table; those whose record was removed come last.
pub(crate) fn table(runs: &[RunState], removed: &[&Summary], now: Millis) -> String {
    if runs.is_empty() && removed.is_empty() {
        return "there are no runs yet: ask one with `muster run \"…\"`".to_owned();
    }
    let rows =
        runs.iter().map(|run| row(run, now)).chain(removed.iter().map(|run| row_of_removed(run))).collect();
    table::plain(&["RUN", "STATE", "ASKED (UTC)", "TOOK", "CALLS", "GOAL"], rows, &[3, 4])
}

fn row_of_removed(run: &Summary) -> Vec<String> {
    vec![
        run.run.short(),
        format!("{}, removed", run.state),
        figures::date(run.created_at),
        figures::span(run.ended_at.unwrap_or(run.created_at).since(run.created_at)),
        run.usage.model_calls.to_string(),
        figures::one_line(&run.goal, 60),
    ]
}

fn row(run: &RunState, now: Millis) -> Vec<String> {
    vec![
        run.id.short(),
        word(run).to_owned(),
        figures::date(run.created_at),
        figures::span(run.ended_at.unwrap_or(now).since(run.created_at)),
        run.used().model_calls.to_string(),
        match (&run.goal.parent, &run.goal.shadow) {
            (_, Some(of)) => {
                let of = format!("trial {}, shadow of {} {}: ", of.trial, of.run.short(), of.task);
                figures::one_line(&format!("{of}{}", run.goal.text), 70)
            }
            (Some(parent), None) => {
                let of = format!("↳ {} {}: ", parent.run.short(), parent.task);
                figures::one_line(&format!("{of}{}", run.goal.text), 70)
            }
            (None, None) => figures::one_line(&run.goal.text, 60),
        },
    ]
}

/// The state of a run in a word or two.
pub(crate) fn word(run: &RunState) -> &'static str {
    match run.status {
        RunStatus::Created | RunStatus::Processing if run.control.paused.is_some() => "paused",
        RunStatus::Created | RunStatus::Processing if run.waits_for_person() => "waits for an answer",
        RunStatus::Completed if is_completed_in_part(run) => "completed in part",
        status => of_status(status),
    }
}

/// The same where no more than its state is known.
pub(crate) fn of_status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Created => "created",
        RunStatus::Processing => "in work",
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Aborted(StopReason::Cancelled) => "cancelled",
        RunStatus::Aborted(StopReason::DeadlinePassed) => "out of time",
        RunStatus::Aborted(StopReason::BudgetExhausted) => "out of budget",
        RunStatus::Aborted(StopReason::Refused) => "refused",
    }
}

/// The same, in its colour.
pub(crate) fn painted(run: &RunState, paint: Paint) -> String {
    let word = word(run);
    match run.status {
        RunStatus::Created | RunStatus::Processing
            if run.control.paused.is_some() || run.waits_for_person() =>
        {
            paint.warn(word)
        }
        RunStatus::Created | RunStatus::Processing => paint.busy(word),
        RunStatus::Completed if is_completed_in_part(run) => paint.warn(word),
        RunStatus::Completed => paint.good(word),
        RunStatus::Failed => paint.bad(word),
        RunStatus::Aborted(_) => paint.warn(word),
    }
}
