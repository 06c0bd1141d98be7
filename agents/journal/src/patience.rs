//! How long an answer is waited for that does not come.

use std::time::Duration;

use muster_shared::backoff::Backoff;

use super::journal::{Journal, Moment};
use super::look::AskNewest;
use super::step::{JournalFailure, JournalStep, ReadTask};
use super::taken::AskWhoHolds;
use super::writing::AppendEvent;

/// The first wait after a read or write that failed; it doubles up to [`MAX_PAUSE`].
pub const PAUSE: Duration = Duration::from_millis(50);
/// Short, so that whoever was cut off writes what it has before somebody else is given its task.
pub const MAX_PAUSE: Duration = Duration::from_millis(250);

/// An answer that did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered {
    /// Whether it may come when it is asked for again.
    pub is_transient: bool,
}

/// How often something was asked in vain, and since when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tries {
    begun: Duration,
    failures: u32,
}

impl Tries {
    pub(crate) const fn since(now: Moment) -> Self {
        Self { begun: now.at, failures: 0 }
    }

    /// How long to wait before it is asked again, if it may be.
    pub(crate) fn again(&mut self, why: Unanswered, patience: Duration, now: Moment) -> Option<Duration> {
        let may_wait = why.is_transient && now.at.saturating_sub(self.begun) < patience;
        may_wait.then(|| self.next_pause())
    }

    /// The same, whatever the patience.
    pub(crate) fn next_pause(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        Backoff::new(PAUSE, MAX_PAUSE).after(self.failures)
    }

    pub(crate) fn is_over(&self, patience: Duration, now: Moment) -> bool {
        now.at.saturating_sub(self.begun) > patience
    }
}

/// Time has to pass before something is asked again.
#[derive(Debug)]
pub struct Pause<'e> {
    /// How much.
    pub time: Duration,
    pub(crate) then: AfterPause<'e>,
}

/// What is asked once time has passed.
#[derive(Debug)]
pub(crate) enum AfterPause<'e> {
    Read(ReadTask<'e>),
    Append(AppendEvent<'e>),
    AskWhoHolds(AskWhoHolds<'e>),
    AskNewest(AskNewest),
}

impl<'e> Pause<'e> {
    /// Waits, unless waiting is of no use.
    pub(crate) fn before(time: Result<Duration, JournalFailure>, then: AfterPause<'e>) -> JournalStep<'e> {
        match time {
            Ok(time) => JournalStep::Wait(Self { time, then }),
            Err(failure) => JournalStep::Done(Err(failure)),
        }
    }

    /// The time has passed.
    #[must_use]
    pub fn over(self, now: Moment) -> JournalStep<'e> {
        match self.then {
            AfterPause::Read(step) => JournalStep::Read(step),
            AfterPause::Append(step) => JournalStep::Append(step.at(now)),
            AfterPause::AskWhoHolds(step) => JournalStep::AskWhoHolds(step),
            AfterPause::AskNewest(step) => JournalStep::AskNewest(step.at(now)),
        }
    }
}

impl<E> Journal<E> {
    /// Asks again after a pause, unless that was done for too long or is of no use.
    pub(crate) fn pause(
        &self,
        tries: &mut Tries,
        why: Unanswered,
        now: Moment,
    ) -> Result<Duration, JournalFailure> {
        tries.again(why, self.patience, now).ok_or(JournalFailure::Unreachable)
    }
}
