//! What the journal needs next. What it is given fits what it asked for by its type.

use std::borrow::Borrow;

use muster_shared::ids::{AgentId, Generation, Seq};
use muster_shared::run::Entry;

use super::journal::{Journal, Moment};
use super::look::{AskNewest, Looking};
use super::opening::Opening;
use super::patience::{AfterPause, Pause, Tries, Unanswered};
use super::taken::AskWhoHolds;
use super::writing::{AppendEvent, Writing};

/// What the journal needs next.
#[derive(Debug)]
pub enum JournalStep<'e> {
    /// What was written about a generation of the task.
    Read(ReadTask<'e>),
    /// That an event is written, if nobody else has written.
    Append(AppendEvent<'e>),
    /// Whether it was decided that whoever began the task does not have it any more.
    AskWhoHolds(AskWhoHolds<'e>),
    /// Where the last word about the task stands, and which generation was offered last.
    AskNewest(AskNewest),
    /// That time passes.
    Wait(Pause<'e>),
    /// Nothing: the task is begun, the event is in the record, or the task is still ours; or why not.
    Done(Result<(), JournalFailure>),
}

/// Why nothing more can be done about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalFailure {
    /// Its outcome is in the record already.
    Closed,
    /// It had been offered anew before it was begun.
    OfferedAnew,
    /// Somebody else took it over, or it was offered anew.
    Lost,
    /// It was given out again though who has it lives: it is left to that one.
    LeftTo(AgentId),
    /// The event is larger than the record takes.
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// An answer did not come for longer than is waited, or will not come; the last that was missing says why.
    Unreachable,
    /// A write did not land for longer than is waited.
    TimedOut,
}

/// What was written about a generation of the task after a position is needed.
#[derive(Debug)]
pub struct ReadTask<'e> {
    /// The generation.
    pub generation: Generation,
    /// The position.
    pub after: Seq,
    pub(crate) tries: Tries,
    pub(crate) then: AfterRead<'e>,
}

/// Which decisions are read with what was written about a generation, from its first entry on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithDecisions {
    /// None.
    No,
    /// All, where more than one agent wrote about it: which of them had it is decided.
    IfOfSeveral,
    /// All: it may be closed, which its own entries do not tell.
    Yes,
}

/// What it is read for.
#[derive(Debug)]
pub(crate) enum AfterRead<'e> {
    /// The task is about to be begun; this is an earlier generation.
    Before(Box<Opening>),
    /// The same, with its own generation.
    Own(Box<Opening>),
    /// The task is begun; this is what was written in an earlier generation meanwhile.
    Later,
    /// Whether a write landed.
    Landing(Box<Writing<'e>>),
    /// Whether the task is still ours.
    Look(Looking),
}

impl AfterRead<'_> {
    /// Whether the task is ours, so that another may have taken it.
    fn is_of_ours(&self) -> bool {
        match self {
            Self::Landing(writing) => !writing.begins(),
            Self::Look(_) => true,
            Self::Before(_) | Self::Own(_) | Self::Later => false,
        }
    }
}

impl<'e> ReadTask<'e> {
    /// Which decisions are needed besides. They stand among the entries, in the order of the record.
    #[must_use]
    pub const fn decisions(&self) -> WithDecisions {
        match self.then {
            AfterRead::Before(_) => WithDecisions::Yes,
            AfterRead::Own(_) => WithDecisions::IfOfSeveral,
            AfterRead::Later | AfterRead::Landing(_) | AfterRead::Look(_) => WithDecisions::No,
        }
    }

    /// Goes on with what was written, in the order of the record.
    pub fn read<E: Borrow<Entry>>(
        mut self,
        journal: &mut Journal<E>,
        entries: Result<Vec<E>, Unanswered>,
        now: Moment,
    ) -> JournalStep<'e> {
        let entries = match entries {
            Ok(entries) => entries,
            Err(why) => {
                let time = journal.pause(&mut self.tries, why, now);
                return Pause::before(time, AfterPause::Read(self));
            }
        };
        if self.then.is_of_ours()
            && let Some(seq) = journal.is_begun_by_another(&entries)
        {
            return AskWhoHolds::whether_we_do(self, seq, journal, now);
        }
        match self.then {
            AfterRead::Before(opening) => opening.read_before(journal, entries, now),
            AfterRead::Own(opening) => opening.read_own(journal, entries, now),
            AfterRead::Later => journal.read_later(self.generation, entries, now),
            AfterRead::Landing(writing) => writing.looked(journal, &entries, now),
            AfterRead::Look(looking) => looking.read(journal, &entries, now),
        }
    }
}
