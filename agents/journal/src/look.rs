//! Whether a task is still ours, looked at right before a call is paid for.
//!
//! The fence keeps whoever lost a task from writing, but not from asking a model once more. A process that stood still
//! (stopped, swapped out, a machine that slept) or was cut off from the bus does not know what happened meanwhile: it
//! looks first. One that wrote a moment ago over the same connection cannot have been taken for dead since.

use std::borrow::Borrow;
use std::time::Duration;

use muster_shared::ids::{Generation, Seq};
use muster_shared::run::{Entry, RecordEvent};

use super::journal::{Journal, Moment};
use super::opening::{LATE, Opening};
use super::patience::{AfterPause, Pause, Tries, Unanswered};
use super::step::{AfterRead, JournalFailure, JournalStep, ReadTask};

/// So long after its last word nobody else is given a task, by any of the ways in which a death is noticed.
pub const SURE: Duration = Duration::from_millis(200);
/// So often it is looked when an answer took longer than that. A bus that is as slow as this all the time has to do.
const LOOKS: u32 = 3;

impl<E> Journal<E> {
    /// Looks whether the task is still ours; at once where nobody can have taken it.
    pub fn look(&self, now: Moment) -> JournalStep<'static> {
        if self.is_sure(now) {
            return JournalStep::Done(Ok(()));
        }
        let then = AfterNewest::Look(Looking { sent: now, looks: 1 });
        AskNewest::now(then, now)
    }

    fn is_sure(&self, now: Moment) -> bool {
        now.at.saturating_sub(self.ours_at.at) < SURE
            && now.connections == self.ours_at.connections
            && self.is_newest(now)
    }

    /// Whether it cannot have been offered anew since that was looked up. One that lives and writes may lose its task in
    /// this way alone: its fence says nothing of it, and the word that it is over may be lost.
    pub(crate) fn is_newest(&self, now: Moment) -> bool {
        now.at.saturating_sub(self.newest_at) < LATE
    }
}

/// A look whether the task is still ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looking {
    /// When it was asked last where the last word stands.
    sent: Moment,
    looks: u32,
}

/// Where the last word about this generation of the task stands, and which generation was offered last, are needed: the
/// fence of a generation says nothing of the next one.
#[derive(Debug)]
pub struct AskNewest {
    pub(crate) tries: Tries,
    /// When it was asked last.
    pub(crate) sent: Moment,
    pub(crate) then: AfterNewest,
}

/// What it is asked for.
#[derive(Debug)]
pub(crate) enum AfterNewest {
    /// The task came late.
    Open(Box<Opening>),
    /// The task is about to be begun, and it took long until then.
    Start(Box<Opening>),
    /// The start of an old offer is in the log.
    Started(Box<Opening>),
    /// Whether the task is still ours.
    Look(Looking),
}

/// What was written last about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    /// The last word about the generation; nothing when there is none.
    pub last: Option<Seq>,
    /// The generation that was offered last; nothing when that is not known.
    pub offered: Option<Generation>,
}

impl AskNewest {
    pub(crate) const fn now(then: AfterNewest, now: Moment) -> JournalStep<'static> {
        JournalStep::AskNewest(Self { tries: Tries::since(now), sent: now, then })
    }

    pub(crate) const fn at(mut self, now: Moment) -> Self {
        self.sent = now;
        self
    }

    /// Goes on with what was written last.
    pub fn told<E: Borrow<Entry>>(
        mut self,
        journal: &mut Journal<E>,
        newest: Result<Newest, Unanswered>,
        now: Moment,
    ) -> JournalStep<'static> {
        let newest = match newest {
            Ok(newest) => newest,
            Err(why) => {
                let time = journal.pause(&mut self.tries, why, now);
                return Pause::before(time, AfterPause::AskNewest(self));
            }
        };
        let is_superseded = newest.offered.is_some_and(|offered| offered > journal.mine.generation);
        if !is_superseded {
            journal.newest_at = self.sent.at;
        }
        match self.then {
            AfterNewest::Open(_) | AfterNewest::Start(_) | AfterNewest::Started(_) if is_superseded => {
                JournalStep::Done(Err(JournalFailure::OfferedAnew))
            }
            AfterNewest::Open(opening) => opening.read_earlier(journal, now),
            AfterNewest::Start(opening) => opening.start(journal, now),
            AfterNewest::Started(opening) => opening.read_since(journal, now),
            AfterNewest::Look(_) if is_superseded => JournalStep::Done(Err(JournalFailure::Lost)),
            AfterNewest::Look(looking) => {
                Looking { sent: self.sent, ..looking }.told(journal, newest.last, now)
            }
        }
    }
}

impl Looking {
    fn told<E>(self, journal: &mut Journal<E>, last: Option<Seq>, now: Moment) -> JournalStep<'static> {
        if last.is_none_or(|last| last <= journal.last) {
            return self.still_ours(journal, now);
        }
        let (generation, after) = (journal.mine.generation, journal.last);
        let then = AfterRead::Look(self);
        JournalStep::Read(ReadTask { generation, after, tries: Tries::since(now), then })
    }

    pub(crate) fn read<E: Borrow<Entry>>(
        self,
        journal: &mut Journal<E>,
        entries: &[E],
        now: Moment,
    ) -> JournalStep<'static> {
        let lost = entries.iter().any(|entry| match &entry.borrow().event {
            RecordEvent::Agent(key, written) => journal.ends_part(key, written),
            _ => false,
        });
        if lost {
            return JournalStep::Done(Err(JournalFailure::Lost));
        }
        self.still_ours(journal, now)
    }

    /// It was ours when it was asked. Whoever stood still until the answer was heard looks again.
    fn still_ours<E>(self, journal: &mut Journal<E>, now: Moment) -> JournalStep<'static> {
        journal.confirm(journal.last, self.sent);
        if journal.is_sure(now) || self.looks >= LOOKS {
            return JournalStep::Done(Ok(()));
        }
        let then = AfterNewest::Look(Self { sent: now, looks: self.looks + 1 });
        AskNewest::now(then, now)
    }
}
