//! How an event is written: behind the fence, and looked for where nobody knows whether it landed.

use std::borrow::{Borrow, Cow};

use muster_shared::ids::Seq;
use muster_shared::run::{AgentEvent, Entry, RecordEvent};

use super::journal::{Journal, Moment};
use super::opening::Opening;
use super::patience::{AfterPause, Pause, Tries, Unanswered};
use super::step::{AfterRead, JournalFailure, JournalStep, ReadTask};

impl<E> Journal<E> {
    /// Writes an event; in the end it is in the record.
    pub fn append<'e>(&self, event: Cow<'e, AgentEvent>, now: Moment) -> JournalStep<'e> {
        Writing::begin(event, None, self, now)
    }
}

/// An event that is being written.
#[derive(Debug)]
pub(crate) struct Writing<'e> {
    event: Cow<'e, AgentEvent>,
    /// What it begins, if it is the first word about the task.
    opening: Option<Box<Opening>>,
    tries: Tries,
    /// When it was sent last.
    sent: Moment,
    /// Whether an earlier attempt may have been stored though nobody said so.
    may_stand: bool,
}

/// What is found when a write is looked for.
enum Landing {
    Landed,
    Missing,
    Lost,
}

/// An event is to be written, if nobody wrote about this generation of the task since a position.
#[derive(Debug)]
pub struct AppendEvent<'e> {
    /// The position.
    pub after: Seq,
    writing: Box<Writing<'e>>,
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is stored there.
    Stored(Seq),
    /// Somebody wrote before.
    Conflict,
    /// Nobody knows whether it is stored.
    Ambiguous,
    /// It is larger than the record takes.
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// It could not be sent, or no answer came.
    Failed(Unanswered),
}

impl<'e> Writing<'e> {
    pub(crate) fn begin<E>(
        event: Cow<'e, AgentEvent>,
        opening: Option<Box<Opening>>,
        journal: &Journal<E>,
        now: Moment,
    ) -> JournalStep<'e> {
        let writing = Self { event, opening, tries: Tries::since(now), sent: now, may_stand: false };
        JournalStep::Append(AppendEvent { after: journal.last, writing: Box::new(writing) })
    }

    /// Whether the task is to be begun by it.
    pub(crate) fn begins(&self) -> bool {
        matches!(*self.event, AgentEvent::Started(_))
    }

    fn look<E>(self: Box<Self>, journal: &Journal<E>, now: Moment) -> JournalStep<'e> {
        let (generation, after) = (journal.mine.generation, journal.last);
        let then = AfterRead::Landing(self);
        JournalStep::Read(ReadTask { generation, after, tries: Tries::since(now), then })
    }

    pub(crate) fn looked<E: Borrow<Entry>>(
        self: Box<Self>,
        journal: &mut Journal<E>,
        entries: &[E],
        now: Moment,
    ) -> JournalStep<'e> {
        match (self.landing(journal, entries), self.opening) {
            (Landing::Landed, opening) => stored(journal, journal.last, self.sent, opening, now),
            (Landing::Lost, Some(opening)) => opening.again(journal, now),
            (Landing::Lost, None) => JournalStep::Done(Err(JournalFailure::Lost)),
            (Landing::Missing, opening) => Box::new(Self { opening, ..*self }).later(journal, now),
        }
    }

    /// Looks what was written since: whether our event landed after all. What else we wrote (a
    /// write that was given up half-way) moves our place, as does what others wrote. Whoever starts and
    /// was never left without an answer has written nothing yet: what stands there under its name is another slot's of the
    /// same process, and has to be read first.
    fn landing<E: Borrow<Entry>>(&self, journal: &mut Journal<E>, entries: &[E]) -> Landing {
        let starts = self.begins();
        if journal.shared && !starts {
            return self.landing_of_shared(journal, entries);
        }
        let mut landing = Landing::Missing;
        for entry in entries {
            let Entry { seq, event, .. } = entry.borrow();
            let RecordEvent::Agent(key, written) = event else { continue };
            let landed = (self.may_stand || !starts) && *key == journal.mine && *written == *self.event;
            if !landed && (starts || journal.ends_part(key, written)) {
                return Landing::Lost;
            }
            journal.last = *seq;
            if key.agent == journal.mine.agent {
                landing = if landed { Landing::Landed } else { Landing::Missing };
            }
        }
        landing
    }

    /// The same where another process may have written for the agent: what it wrote may be this very event. Anything else was
    /// not known when this one was thought of.
    fn landing_of_shared<E: Borrow<Entry>>(&self, journal: &mut Journal<E>, entries: &[E]) -> Landing {
        let mut landing = Landing::Missing;
        for entry in entries {
            let Entry { seq, event, .. } = entry.borrow();
            let RecordEvent::Agent(key, written) = event else { continue };
            let is_this = *key == journal.mine && *written == *self.event;
            if key.agent != journal.mine.agent {
                journal.last = *seq;
                continue;
            }
            landing = match (landing, is_this) {
                (Landing::Missing, true) => Landing::Landed,
                (Landing::Landed | Landing::Missing | Landing::Lost, _) => Landing::Lost,
            };
            if matches!(landing, Landing::Lost) {
                return landing;
            }
            journal.last = *seq;
        }
        landing
    }

    /// It is not there: it is written again after a while.
    fn later<E>(mut self: Box<Self>, journal: &Journal<E>, now: Moment) -> JournalStep<'e> {
        if self.tries.is_over(journal.patience, now) {
            return JournalStep::Done(Err(JournalFailure::TimedOut));
        }
        let time = self.tries.next_pause();
        let then = AfterPause::Append(AppendEvent { after: journal.last, writing: self });
        JournalStep::Wait(Pause { time, then })
    }
}

/// The event stands there, and had been sent at this moment or later.
fn stored<E: Borrow<Entry>>(
    journal: &mut Journal<E>,
    seq: Seq,
    sent: Moment,
    opening: Option<Box<Opening>>,
    now: Moment,
) -> JournalStep<'static> {
    journal.confirm(seq, sent);
    match opening {
        Some(opening) => {
            journal.started = seq;
            opening.started(journal, now)
        }
        None => JournalStep::Done(Ok(())),
    }
}

impl<'e> AppendEvent<'e> {
    /// The event.
    #[must_use]
    pub fn event(&self) -> &AgentEvent {
        &self.writing.event
    }

    pub(crate) fn at(mut self, now: Moment) -> Self {
        self.writing.sent = now;
        self
    }

    /// Goes on with what came of it.
    pub fn went<E: Borrow<Entry>>(
        self,
        journal: &mut Journal<E>,
        appended: Appended,
        now: Moment,
    ) -> JournalStep<'e> {
        let mut writing = self.writing;
        match appended {
            Appended::Stored(seq) => stored(journal, seq, writing.sent, writing.opening, now),
            Appended::TooLarge { bytes, most } => {
                JournalStep::Done(Err(JournalFailure::TooLarge { bytes, most }))
            }
            Appended::Conflict => writing.look(journal, now),
            Appended::Ambiguous => {
                writing.may_stand = true;
                writing.look(journal, now)
            }
            Appended::Failed(why) => {
                writing.may_stand = true;
                if !why.is_transient || writing.tries.is_over(journal.patience, now) {
                    return JournalStep::Done(Err(JournalFailure::Unreachable));
                }
                writing.later(journal, now)
            }
        }
    }
}
