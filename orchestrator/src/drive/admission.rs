//! Who gets in: how many runs go on at once, how many goals may wait for it, and how full the record may be. What is
//! above is refused at once, so that the asker knows and can come back; what is going on is not disturbed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use muster_bus::{Bus, BusError};
use muster_shared::ids::RunId;
use muster_shared::sync::lock;
use muster_shared::text::counted;

use super::OrchestratorSettings;

/// How long it counts how full the record was found to be.
const FRESH: Duration = Duration::from_secs(1);

/// A goal that waits is given out again every second; one that was not seen for this long went elsewhere.
const SEEN: Duration = Duration::from_secs(5);

/// What becomes of a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AdmissionDecision {
    /// There is room for it.
    Free,
    /// It waits for room.
    Wait,
    /// There is no room, and no more may wait; why, and what to do.
    None(String),
}

/// Who waits, and how full the record is.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// When each was seen last, and its priority.
    waiting: HashMap<RunId, (Instant, i8)>,
    full: Option<(Instant, f64)>,
}

/// What a seat is asked for with.
#[derive(Debug, Clone, Copy)]
pub(super) struct AdmissionRequest {
    pub(super) run: RunId,
    /// How many runs go on here, this one not counted.
    pub(super) going_on: usize,
    /// Whether another orchestrator has room.
    pub(super) room_elsewhere: bool,
    /// How often the goal was given out.
    pub(super) delivered: u64,
    /// Its priority.
    pub(super) priority: i8,
}

impl Admission {
    /// What becomes of a goal. `enter` is called for one that gets in, before anybody else is looked at.
    pub(super) fn seat(
        &self,
        settings: &OrchestratorSettings,
        asked: AdmissionRequest,
        enter: impl FnOnce(),
    ) -> AdmissionDecision {
        let now = Instant::now();
        let mut inner = self.lock();
        inner.waiting.retain(|_, (seen, _)| now.duration_since(*seen) < SEEN);
        let waits = inner.waiting.contains_key(&asked.run);
        let others = inner.waiting.len() - usize::from(waits);
        // What gets free is kept for those of higher priority: each of them is given out again within a second.
        let before = inner
            .waiting
            .iter()
            .filter(|(run, (_, priority))| **run != asked.run && *priority > asked.priority);
        let going_on = asked.going_on.saturating_add(before.count());
        let seat = seat(settings, AdmissionRequest { going_on, ..asked }, others);
        match seat {
            AdmissionDecision::Free => {
                inner.waiting.remove(&asked.run);
                enter();
            }
            AdmissionDecision::Wait => drop(inner.waiting.insert(asked.run, (now, asked.priority))),
            AdmissionDecision::None(_) => drop(inner.waiting.remove(&asked.run)),
        }
        seat
    }

    /// Whether the goal of a run waits for room.
    pub(super) fn waits(&self, run: RunId) -> bool {
        self.lock().waiting.get(&run).is_some_and(|(seen, _)| seen.elapsed() < SEEN)
    }

    /// How full the record is, from 0 to 1, as it was found within the last second.
    ///
    /// # Errors
    /// When the bus fails.
    pub(super) async fn fullness(&self, bus: &Bus) -> Result<f64, BusError> {
        if let Some((at, share)) = self.lock().full
            && at.elapsed() < FRESH
        {
            return Ok(share);
        }
        let share = bus.record().fullness().await?;
        self.lock().full = Some((Instant::now(), share));
        Ok(share)
    }

    /// Both parts are whole after every statement that changes them, so a panic elsewhere does not spoil them.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

/// What becomes of a goal when so many others wait.
fn seat(settings: &OrchestratorSettings, asked: AdmissionRequest, others: usize) -> AdmissionDecision {
    let most = settings.max_runs;
    if asked.going_on < most {
        return AdmissionDecision::Free;
    }
    if asked.room_elsewhere {
        return AdmissionDecision::Wait;
    }
    if others >= settings.max_waiting {
        return AdmissionDecision::None(format!(
            "{} going on and {}, which is the most: ask again later, start another orchestrator, or raise \
             `orchestrator.max_runs` or `orchestrator.max_waiting`",
            counted(most, "run is", "runs are"),
            counted(others, "goal waits", "goals wait")
        ));
    }
    if asked.delivered > settings.patience.as_secs() {
        return AdmissionDecision::None(format!(
            "it has waited for {} s and {} still going on, which is the most at once: ask again later, start another \
             orchestrator, or raise `orchestrator.max_runs`",
            settings.patience.as_secs(),
            counted(most, "run is", "runs are")
        ));
    }
    AdmissionDecision::Wait
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn settings() -> OrchestratorSettings {
        OrchestratorSettings {
            max_runs: 2,
            max_waiting: 1,
            patience: Duration::from_secs(9),
            ..OrchestratorSettings::default()
        }
    }

    fn asked(run: u128, going_on: usize) -> AdmissionRequest {
        let run = RunId::from_uuid(Uuid::from_u128(run));
        AdmissionRequest { run, going_on, room_elsewhere: false, delivered: 1, priority: 0 }
    }

    #[test]
    fn above_the_limit_some_wait_and_the_rest_are_refused_at_once() {
        let (admission, settings) = (Admission::default(), settings());
        let ask = |asked| admission.seat(&settings, asked, || {});
        assert_eq!(ask(asked(1, 1)), AdmissionDecision::Free);
        assert_eq!(ask(asked(2, 2)), AdmissionDecision::Wait);
        assert_eq!(ask(asked(2, 2)), AdmissionDecision::Wait, "it has its place");
        let refused = ask(asked(3, 2));
        assert!(
            matches!(&refused, AdmissionDecision::None(why) if why.contains("orchestrator.max_waiting")),
            "{refused:?}"
        );
        assert_eq!(
            ask(AdmissionRequest { room_elsewhere: true, ..asked(3, 2) }),
            AdmissionDecision::Wait,
            "another takes it"
        );
        assert_eq!(ask(asked(2, 1)), AdmissionDecision::Free);
    }

    #[test]
    fn goals_of_higher_priority_get_in_first() {
        let (admission, settings) =
            (Admission::default(), OrchestratorSettings { max_waiting: 9, ..settings() });
        let ask = |run, going_on, priority| {
            admission.seat(&settings, AdmissionRequest { priority, ..asked(run, going_on) }, || {})
        };
        assert_eq!(ask(1, 2, 0), AdmissionDecision::Wait);
        assert_eq!(ask(2, 2, 3), AdmissionDecision::Wait);
        assert_eq!(ask(1, 1, 0), AdmissionDecision::Wait, "the free seat is kept for the other");
        assert_eq!(ask(2, 1, 3), AdmissionDecision::Free);
        assert_eq!(ask(1, 1, 0), AdmissionDecision::Free);
    }

    #[test]
    fn nobody_waits_for_ever() {
        let late = AdmissionRequest { delivered: 10, ..asked(1, 2) };
        assert!(matches!(Admission::default().seat(&settings(), late, || {}), AdmissionDecision::None(_)));
    }
}
