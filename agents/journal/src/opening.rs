//! How a task is begun: read what was done before, see that nobody else has it, write `started` behind the fence.

use std::borrow::{Borrow, Cow};
use std::time::Duration;

use muster_shared::ids::{Generation, Seq};
use muster_shared::run::{AgentEvent, Entry, RecordEvent, Say, Started};

use super::fold::TaskFold;
use super::journal::{Found, Journal, Moment};
use super::look::{AfterNewest, AskNewest};
use super::patience::Tries;
use super::step::{AfterRead, JournalFailure, JournalStep, ReadTask};
use super::taken::AskWhoHolds;
use super::writing::Writing;

/// How often a task is looked up anew when somebody wrote in between, before it counts as somebody else's.
const OPENINGS: u32 = 3;

/// An offer that was longer on its way, or is given out once more, may have been made again meanwhile: a queue that stood
/// still, because its server died or nobody was there to take from it, gives out both, and doing both would be paid for
/// twice. Orchestrators make a lost offer again after 5 s.
pub const LATE: Duration = Duration::from_secs(2);

/// How a task came to whoever begins it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// The first of the generations whose steps it goes on from.
    pub continues: Option<Generation>,
    /// How often the task was given out, from 1.
    pub delivered: u64,
    /// How long the offer was on its way.
    pub waited: Duration,
    /// Where the queue's acknowledgement goes.
    pub ack: String,
    /// The process.
    pub pid: u32,
    /// The machine.
    pub host: String,
}

impl Begin {
    /// Whether the task may have been offered again since this offer was made.
    fn may_be_superseded(&self) -> bool {
        self.delivered > 1 || self.waited >= LATE
    }
}

/// A task that is about to be begun.
#[derive(Debug)]
pub(crate) struct Opening {
    begin: Begin,
    /// The earlier generation that is read, or was read last.
    generation: Generation,
    /// The earlier generations.
    before: TaskFold,
    /// They and this one.
    fold: TaskFold,
    times: u32,
}

impl<E: Borrow<Entry>> Journal<E> {
    /// Begins the task: in the end `started` is in the record. One given out for the first time is taken for new, without a
    /// look into the record: the fence tells when it is not.
    pub fn open(&mut self, begin: Begin, now: Moment) -> JournalStep<'static> {
        (self.found, self.says) = (Found::default(), Vec::new());
        let generation = begin.continues.unwrap_or(self.mine.generation);
        let (before, fold) = (TaskFold::default(), TaskFold::default());
        let opening = Box::new(Opening { begin, generation, before, fold, times: 0 });
        if opening.begin.may_be_superseded() {
            return AskNewest::now(AfterNewest::Open(opening), now);
        }
        opening.read_earlier(self, now)
    }
}

impl Opening {
    pub(crate) fn read_earlier<E: Borrow<Entry>>(
        self: Box<Self>,
        journal: &mut Journal<E>,
        now: Moment,
    ) -> JournalStep<'static> {
        if self.generation < journal.mine.generation {
            let generation = self.generation;
            return read(generation, AfterRead::Before(self), now);
        }
        if self.begin.delivered > 1 {
            return self.look_up(journal, now);
        }
        let fold = self.before.clone();
        Self { fold, ..*self }.begin(journal, now)
    }

    pub(crate) fn read_before<E: Borrow<Entry>>(
        self: Box<Self>,
        journal: &mut Journal<E>,
        entries: Vec<E>,
        now: Moment,
    ) -> JournalStep<'static> {
        let mut say = Say::of(&journal.mine, self.generation);
        let mut entries = entries;
        say.keep(&mut entries);
        let before = self.before.clone().and_then(&entries).before_the_next();
        journal.found.before.push(entries);
        journal.says.push(say);
        let generation = self.generation.next();
        Box::new(Self { before, generation, ..*self }).read_earlier(journal, now)
    }

    fn look_up<E>(self: Box<Self>, journal: &Journal<E>, now: Moment) -> JournalStep<'static> {
        read(journal.mine.generation, AfterRead::Own(self), now)
    }

    pub(crate) fn read_own<E: Borrow<Entry>>(
        self: Box<Self>,
        journal: &mut Journal<E>,
        entries: Vec<E>,
        now: Moment,
    ) -> JournalStep<'static> {
        let is_word = |entry: &&E| matches!((*entry).borrow().event, RecordEvent::Agent(..));
        let last = entries.iter().rev().find(is_word).map(|entry| entry.borrow().seq);
        // What others say of it than whoever has it is no part of it.
        let mut own = entries;
        Say::of(&journal.mine, journal.mine.generation).keep(&mut own);
        let fold = self.before.clone().and_then(&own).read_to(last);
        journal.found.entries = own;
        Self { fold, ..*self }.begin(journal, now)
    }

    fn begin<E>(mut self, journal: &mut Journal<E>, now: Moment) -> JournalStep<'static> {
        self.times += 1;
        if self.fold.is_closed() {
            return JournalStep::Done(Err(JournalFailure::Closed));
        }
        match self.fold.holder().filter(|(agent, _)| *agent != journal.mine.agent).cloned() {
            Some((agent, since)) => AskWhoHolds::before_we_do(agent, since, Box::new(self), now),
            None => Box::new(self).start_if_newest(journal, now),
        }
    }

    /// Begins it, unless it took so long until now that it may have been offered anew.
    pub(crate) fn start_if_newest<E>(
        self: Box<Self>,
        journal: &mut Journal<E>,
        now: Moment,
    ) -> JournalStep<'static> {
        if journal.is_newest(now) {
            return self.start(journal, now);
        }
        AskNewest::now(AfterNewest::Start(self), now)
    }

    pub(crate) fn start<E>(self: Box<Self>, journal: &mut Journal<E>, now: Moment) -> JournalStep<'static> {
        journal.last = self.fold.last();
        let Begin { ack, pid, host, .. } = &self.begin;
        let attempt = self.fold.next_attempt();
        let started = Started {
            attempt,
            ack: ack.clone(),
            pid: *pid,
            host: host.clone(),
            after_step: self.fold.last_step(),
        };
        Writing::begin(Cow::Owned(AgentEvent::Started(started)), Some(self), journal, now)
    }

    /// `started` is in the log. An old offer may have been superseded between the last lookup and this entry, which is then
    /// ignored (see [`Say`]): only a lookup after the entry shows that.
    pub(crate) fn started<E: Borrow<Entry>>(self, journal: &Journal<E>, now: Moment) -> JournalStep<'static> {
        if self.begin.may_be_superseded() {
            return AskNewest::now(AfterNewest::Started(Box::new(self)), now);
        }
        self.read_since(journal, now)
    }

    /// Another agent may have appended to an earlier generation since it was read, because the fence covers one generation.
    /// The rest is read now.
    pub(crate) fn read_since<E: Borrow<Entry>>(
        &self,
        journal: &Journal<E>,
        now: Moment,
    ) -> JournalStep<'static> {
        let first = self.begin.continues.unwrap_or(journal.mine.generation);
        read_on(first, journal, now)
    }

    /// Somebody wrote in between: what it was has to be read.
    pub(crate) fn again<E>(self: Box<Self>, journal: &Journal<E>, now: Moment) -> JournalStep<'static> {
        if self.times >= OPENINGS {
            return JournalStep::Done(Err(JournalFailure::Lost));
        }
        self.look_up(journal, now)
    }
}

/// Reads on in the earlier generations, from this one.
fn read_on<E: Borrow<Entry>>(
    generation: Generation,
    journal: &Journal<E>,
    now: Moment,
) -> JournalStep<'static> {
    if generation >= journal.mine.generation {
        return JournalStep::Done(Ok(()));
    }
    let read = journal.place_of(generation).and_then(|index| journal.found.before.get(index));
    let after = read.and_then(|read| read.last()).map(|entry| entry.borrow().seq);
    let then = AfterRead::Later;
    JournalStep::Read(ReadTask {
        generation,
        after: after.unwrap_or_default(),
        tries: Tries::since(now),
        then,
    })
}

impl<E: Borrow<Entry>> Journal<E> {
    /// Where what was read of an earlier generation is kept: the last of them is the one before ours.
    fn place_of(&self, generation: Generation) -> Option<usize> {
        let back = usize::try_from(self.mine.generation.0.checked_sub(generation.0)?).ok()?;
        self.found.before.len().checked_sub(back)
    }

    /// What was written in an earlier generation since it was read.
    pub(crate) fn read_later(
        &mut self,
        generation: Generation,
        entries: Vec<E>,
        now: Moment,
    ) -> JournalStep<'static> {
        let mut entries = entries;
        if let Some(index) = self.place_of(generation)
            && let (Some(read), Some(say)) = (self.found.before.get_mut(index), self.says.get_mut(index))
        {
            say.keep(&mut entries);
            read.extend(entries);
        }
        read_on(generation.next(), self, now)
    }
}

fn read(generation: Generation, then: AfterRead<'static>, now: Moment) -> JournalStep<'static> {
    JournalStep::Read(ReadTask { generation, after: Seq(0), tries: Tries::since(now), then })
}
