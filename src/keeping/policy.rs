//! Which runs are over their time. Pure.

use std::time::Duration;

use muster_bus::KeepNote;
use muster_shared::run::{RunState, RunStatus, is_completed_in_part};
use muster_shared::time::Millis;

use crate::settings::KeepSettings;

/// What becomes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays as it is.
    Stays(Stays),
    /// It shrinks to a summary, by this rule.
    Shrinks(String),
}

/// Why a run stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stays {
    /// It has not ended, or belongs to one that has not.
    Open,
    /// It is marked.
    Marked,
    /// No setting says how long runs like it are kept.
    ForGood,
    /// Its time is not over.
    InTime,
}

/// What becomes of a run that `awaited` says another one waits for.
pub(crate) fn fate(
    state: &RunState,
    note: &KeepNote,
    awaited: bool,
    settings: &KeepSettings,
    now: Millis,
) -> Fate {
    let Some(ended) = state.ended_at.filter(|_| state.status.is_ended() && !awaited) else {
        return Fate::Stays(Stays::Open);
    };
    if note.kept {
        return Fate::Stays(Stays::Marked);
    }
    let (name, most) = time_of(state, settings);
    if most.is_zero() {
        return Fate::Stays(Stays::ForGood);
    }
    // A run that came from elsewhere ended long ago maybe: its time here begins when it came.
    let since = note.imported.as_ref().map_or(ended, |imported| ended.max(imported.at));
    if now.since(since) <= most {
        return Fate::Stays(Stays::InTime);
    }
    Fate::Shrinks(format!("keep.{name} = {}", muster_shared::span::text(most)))
}

/// The setting that a run goes by.
fn time_of(state: &RunState, settings: &KeepSettings) -> (&'static str, Duration) {
    match state.status {
        RunStatus::Completed if !is_completed_in_part(state) => ("completed", settings.completed),
        _ => ("failed", settings.failed),
    }
}

#[cfg(test)]
mod tests {
    use muster_bus::ImportNote;
    use muster_shared::run::StopReason;

    use super::*;

    const HOUR: u64 = 3_600_000;

    fn state(status: RunStatus) -> RunState {
        let mut state = crate::render::golden::a_run();
        state.status = status;
        state.plan = None;
        state.ended_at = status.is_ended().then_some(Millis(10 * HOUR));
        state
    }

    #[test]
    fn a_run_stays_until_its_time_is_over() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let settings = KeepSettings { completed: hours(2), failed: hours(5) };
        let of = |status, note: &KeepNote, awaited, at| {
            fate(&state(status), note, awaited, &settings, Millis(at * HOUR))
        };
        let none = KeepNote::default();
        let marked = KeepNote { kept: true, ..KeepNote::default() };
        let came = ImportNote { at: Millis(20 * HOUR), entries: 1, bytes: 1, hash: String::new() };
        let imported = KeepNote { imported: Some(came), ..KeepNote::default() };
        let stopped = RunStatus::Aborted(StopReason::Cancelled);
        let completed = Fate::Shrinks("keep.completed = 2h".into());
        let failed = Fate::Shrinks("keep.failed = 5h".into());
        for (status, note, awaited, at, wanted) in [
            (RunStatus::Processing, &none, false, 99, Fate::Stays(Stays::Open)),
            (RunStatus::Completed, &none, true, 99, Fate::Stays(Stays::Open)),
            (RunStatus::Completed, &none, false, 12, Fate::Stays(Stays::InTime)),
            (RunStatus::Completed, &none, false, 13, completed.clone()),
            (RunStatus::Completed, &marked, false, 99, Fate::Stays(Stays::Marked)),
            (RunStatus::Completed, &imported, false, 21, Fate::Stays(Stays::InTime)),
            (RunStatus::Completed, &imported, false, 23, completed),
            (RunStatus::Failed, &none, false, 13, Fate::Stays(Stays::InTime)),
            (RunStatus::Failed, &none, false, 16, failed.clone()),
            (stopped, &none, false, 16, failed),
        ] {
            assert_eq!(of(status, note, awaited, at), wanted, "{status:?} {note:?} {awaited} {at}");
        }
        let for_good =
            fate(&state(RunStatus::Completed), &none, false, &KeepSettings::default(), Millis(u64::MAX));
        assert_eq!(for_good, Fate::Stays(Stays::ForGood));
    }
}
