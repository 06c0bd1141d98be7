//! Whether a task was taken from whoever began it: only decisions say so. That it is given out once more proves nothing, for a
//! queue whose server was killed or stood still gives out what others have at work; nor does it prove anything that another
//! began it, for all agents of a role may write so.

use std::borrow::Borrow;

use muster_shared::ids::{AgentId, Seq};
use muster_shared::run::Entry;

use super::journal::{Journal, Moment};
use super::opening::Opening;
use super::patience::{AfterPause, Pause, Tries, Unanswered};
use super::step::{JournalFailure, JournalStep, ReadTask};

/// Whether it was decided that whoever began a task does not have it any more: it was lost, handed the task over, or
/// another has it.
#[derive(Debug)]
pub struct AskWhoHolds<'e> {
    /// Who began it.
    pub agent: AgentId,
    /// Where that stands.
    pub since: Seq,
    tries: Tries,
    then: AfterHolder<'e>,
}

/// What it is asked for.
#[derive(Debug)]
enum AfterHolder<'e> {
    /// The task is begun if it was taken from whoever has it.
    Open(Box<Opening>),
    /// Another has begun what we have. If it was not taken from us, that was nothing, and what stands there is read again.
    GoOn {
        read: ReadTask<'e>,
        /// Where the other one began.
        begun: Seq,
    },
}

impl<'e> AskWhoHolds<'e> {
    /// Somebody has begun it and not ended, and we are to begin.
    pub(crate) fn before_we_do(
        agent: AgentId,
        since: Seq,
        opening: Box<Opening>,
        now: Moment,
    ) -> JournalStep<'static> {
        let (tries, then) = (Tries::since(now), AfterHolder::Open(opening));
        JournalStep::AskWhoHolds(AskWhoHolds { agent, since, tries, then })
    }

    /// Somebody began what we have, at this position.
    pub(crate) fn whether_we_do<E>(
        read: ReadTask<'e>,
        begun: Seq,
        journal: &Journal<E>,
        now: Moment,
    ) -> JournalStep<'e> {
        let (agent, since, tries) = (journal.mine.agent.clone(), journal.started, Tries::since(now));
        JournalStep::AskWhoHolds(Self { agent, since, tries, then: AfterHolder::GoOn { read, begun } })
    }

    /// Goes on with whether it was taken from it.
    pub fn told<E: Borrow<Entry>>(
        mut self,
        journal: &mut Journal<E>,
        was_taken: Result<bool, Unanswered>,
        now: Moment,
    ) -> JournalStep<'e> {
        let was_taken = match was_taken {
            Ok(was_taken) => was_taken,
            Err(why) => {
                let time = journal.pause(&mut self.tries, why, now);
                return Pause::before(time, AfterPause::AskWhoHolds(self));
            }
        };
        match self.then {
            AfterHolder::Open(opening) if was_taken => opening.start_if_newest(journal, now),
            AfterHolder::Open(_) => JournalStep::Done(Err(JournalFailure::LeftTo(self.agent))),
            AfterHolder::GoOn { .. } if was_taken => JournalStep::Done(Err(JournalFailure::Lost)),
            AfterHolder::GoOn { read, begun } => {
                journal.cleared = journal.cleared.max(begun);
                JournalStep::Read(read)
            }
        }
    }
}
