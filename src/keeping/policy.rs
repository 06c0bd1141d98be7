//! Which runs are over their time. Pure.

use muster_bus::KeepNote;
use muster_shared::run::{RunState, RunStatus, is_completed_in_part};
use muster_shared::time::Millis;

use crate::settings::KeepSettings;

/// The rule by which a run shrinks to a summary. It stays if it has not ended, if it is marked, if another run waits for it
/// (`awaited`), or until its time is over.
pub(crate) fn shrink_rule(
    state: &RunState,
    note: &KeepNote,
    awaited: bool,
    settings: &KeepSettings,
    now: Millis,
) -> Option<String> {
    let ended = state.ended_at.filter(|_| state.status.is_ended() && !awaited && !note.kept)?;
    let (name, most) = match state.status {
        RunStatus::Completed if !is_completed_in_part(state) => ("completed", settings.completed),
        _ => ("failed", settings.failed),
    };
    // A run that came from elsewhere ended long ago maybe: its time here begins when it came.
    let since = note.imported.as_ref().map_or(ended, |imported| ended.max(imported.at));
    let is_over = !most.is_zero() && now.since(since) > most;
    is_over.then(|| format!("keep.{name} = {}", muster_shared::span::text(most)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
            shrink_rule(&state(status), note, awaited, &settings, Millis(at * HOUR))
        };
        let none = KeepNote::default();
        let marked = KeepNote { kept: true, ..KeepNote::default() };
        let came = ImportNote { at: Millis(20 * HOUR), entries: 1, bytes: 1, hash: String::new() };
        let imported = KeepNote { imported: Some(came), ..KeepNote::default() };
        let stopped = RunStatus::Aborted(StopReason::Cancelled);
        let (completed, failed) = (Some("keep.completed = 2h"), Some("keep.failed = 5h"));
        for (status, note, awaited, at, wanted) in [
            (RunStatus::Processing, &none, false, 99, None),
            (RunStatus::Completed, &none, true, 99, None),
            (RunStatus::Completed, &none, false, 12, None),
            (RunStatus::Completed, &none, false, 13, completed),
            (RunStatus::Completed, &marked, false, 99, None),
            (RunStatus::Completed, &imported, false, 21, None),
            (RunStatus::Completed, &imported, false, 23, completed),
            (RunStatus::Failed, &none, false, 13, None),
            (RunStatus::Failed, &none, false, 16, failed),
            (stopped, &none, false, 16, failed),
        ] {
            assert_eq!(
                of(status, note, awaited, at).as_deref(),
                wanted,
                "{status:?} {note:?} {awaited} {at}"
            );
        }
        let settings = KeepSettings::default();
        assert_eq!(
            shrink_rule(&state(RunStatus::Completed), &none, false, &settings, Millis(u64::MAX)),
            None
        );
    }
}
