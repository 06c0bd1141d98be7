//! The broker: a record with fences, work queues and leases. What it acknowledges survives it.

use std::collections::BTreeMap;
use std::rc::Rc;

use muster_journal::{Newest, WithDecisions};
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::run::chain::{self, Read};
use muster_shared::run::event::{TaskOrphaned, TaskReleased, TaskStarted, TaskTakenBack};
use muster_shared::run::{
    AgentEvent, AgentKey, ChainEntry, Covered, Decided, Entry, Input, Link, LinkDraft, RecordEvent, RunEvent,
    is_of_one,
};
use muster_shared::time::Millis;
use muster_shared::wire::ControlMessage;

use crate::Sabotage;
use crate::agenda::Time;
use crate::messages::{Answer, Item, Life, Line, Request, Taken};
use crate::queue::{ACK_WAIT, Waiting, WorkQueue};

/// The broker's clock when the simulation begins, in UTC milliseconds.
pub(crate) const EPOCH: u64 = 1_700_000_000_000;

/// How long a lease lasts without renewal.
pub(crate) const LEASE: Time = 15_000;

/// What a write compares with. Only identical fences exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Fence {
    Run(RunId),
    Task(RunId, TaskId, Generation),
}

#[derive(Debug, Default)]
pub(crate) struct Broker {
    log: Vec<Rc<Entry>>,
    /// The links of decisions, by where these stand.
    links: BTreeMap<Seq, Link>,
    fences: BTreeMap<Fence, Seq>,
    lines: BTreeMap<Line, WorkQueue>,
    leases: BTreeMap<Life, Time>,
    /// The generation of each task that was offered last.
    offered: BTreeMap<(RunId, TaskId), Generation>,
    items: u64,
    sabotage: Option<Sabotage>,
}

/// What came of a request.
#[derive(Debug, Default)]
pub(crate) struct Handled {
    /// Nothing when the answer comes later, or is of no interest.
    pub(crate) answer: Option<Answer>,
    /// What was appended.
    pub(crate) appended: Vec<Rc<Entry>>,
    /// What goes to all agents.
    pub(crate) control: Option<ControlMessage>,
}

impl Handled {
    fn answer(answer: Answer) -> Self {
        Self { answer: Some(answer), ..Self::default() }
    }

    fn done() -> Self {
        Self::answer(Answer::Done)
    }
}

impl Broker {
    pub(crate) fn new(sabotage: Option<Sabotage>) -> Self {
        Self { sabotage, ..Self::default() }
    }

    pub(crate) fn log(&self) -> &[Rc<Entry>] {
        &self.log
    }

    pub(crate) fn handle(&mut self, from: Life, call: u64, request: Request, now: Time) -> Handled {
        match request {
            Request::Decide { run, after, decided, offers, link } => {
                let handled = self.decide(run, after, *decided, offers, now);
                self.linked(handled, link)
            }
            Request::Report { run, key, after, event } => self.report(run, key, after, event, now),
            Request::ReadRun(run) => {
                let elsewhere = self
                    .author(run)
                    .is_some_and(|author| author != agent_of(from) && self.holder(&author, now).is_some());
                let (entries, chain) = (self.read_run(run), self.chain_of(run));
                Handled::answer(Answer::Record { entries, chain, elsewhere })
            }
            Request::ReadTask { run, task, generation, after, decisions } => {
                let entries = self.read_task(run, &task, generation, after);
                Handled::answer(Answer::Entries(self.with_decisions(run, entries, decisions)))
            }
            Request::WasTaken { run, task, agent, since } => {
                Handled::answer(Answer::WasTaken(self.was_taken_from(run, &task, &agent, since)))
            }
            Request::Newest { run, task, generation } => {
                let offered = self.offered.get(&(run, task.clone())).copied();
                let last = self.fences.get(&Fence::Task(run, task, generation)).copied();
                Handled::answer(Answer::Newest(Newest { last, offered }))
            }
            Request::Orphans => Handled::answer(Answer::Runs(self.orphans(from, now))),
            Request::Renew => {
                self.leases.insert(from, now + LEASE);
                Handled::done()
            }
            Request::GiveUp => {
                self.leases.remove(&from);
                Handled::done()
            }
            Request::Take { lines, wait } => {
                for line in lines {
                    self.line(line).wait(from, call, now + wait);
                }
                Handled::default()
            }
            Request::Done { line, item } => {
                self.line(line).done(item);
                Handled::done()
            }
            Request::Back { line, item, after } => {
                self.line(line).hold_until(item, now + after);
                Handled::done()
            }
            Request::GiveOutAgain { line, run, task } => {
                self.line(line).give_out_again(run, &task, now);
                Handled::done()
            }
            Request::WithdrawAll { run } => {
                self.lines.values_mut().for_each(|line| line.withdraw_all(run));
                Handled::done()
            }
            Request::Progress { line, item } => {
                self.line(line).hold_until(item, now + ACK_WAIT);
                Handled::done()
            }
            Request::Command(run, order) => {
                self.put(Line::Commands, Item::Command(run, order), now);
                Handled::done()
            }
            Request::Control(message) => Handled { control: Some(message), ..Handled::done() },
        }
    }

    fn was_taken_from(&self, run: RunId, wanted: &TaskId, from: &AgentId, since: Seq) -> bool {
        let after = usize::try_from(since.0).unwrap_or(usize::MAX).min(self.log.len());
        let takes = |event: &RunEvent| match event {
            RunEvent::TaskOrphaned(TaskOrphaned { task, agent, .. })
            | RunEvent::TaskReleased(TaskReleased { task, agent, .. })
            | RunEvent::TaskTakenBack(TaskTakenBack { task, agent, .. }) => (task, agent) == (wanted, from),
            RunEvent::TaskStarted(TaskStarted { task, agent, .. }) => task == wanted && agent != from,
            _ => false,
        };
        self.log[after..].iter().filter(|entry| entry.run == run).any(|entry| match &entry.event {
            RecordEvent::Decided(decided) => decided.events.iter().any(takes),
            RecordEvent::Offered(_) | RecordEvent::Agent(..) => false,
        })
    }

    /// Puts something into a queue.
    pub(crate) fn put(&mut self, line: Line, body: Item, free_at: Time) {
        self.items += 1;
        let item = self.items;
        self.line(line).put(item, body, free_at);
    }

    /// Gives out what is due to those who wait.
    pub(crate) fn give_out(&mut self, now: Time) -> Vec<(Waiting, Taken)> {
        let mut given = Vec::new();
        let lines: Vec<Line> = self
            .lines
            .iter()
            .filter(|(_, line)| line.is_waited_for())
            .map(|(name, _)| name.clone())
            .collect();
        for name in lines {
            while let Some((waiting, taken)) = self.lines.get_mut(&name).and_then(|line| line.give(now)) {
                // Whoever waits at several takes one thing.
                self.lines.values_mut().for_each(|line| line.leave(waiting.call));
                given.push((waiting, taken));
            }
        }
        given
    }

    /// When time will bring something about.
    pub(crate) fn next(&self) -> Option<Time> {
        self.lines.values().filter_map(WorkQueue::next).min()
    }

    /// The server is started again on its store.
    pub(crate) fn restart(&mut self, forget: bool) {
        self.lines.values_mut().for_each(|line| line.restart(forget));
        if self.sabotage == Some(Sabotage::AcknowledgedLost) {
            self.log.pop();
        }
    }

    /// The server notices at once that a process died.
    pub(crate) fn disconnected(&mut self, who: Life) {
        self.lines.values_mut().for_each(|line| line.disconnected(who));
    }

    fn line(&mut self, line: Line) -> &mut WorkQueue {
        self.lines.entry(line).or_default()
    }

    fn decide(
        &mut self,
        run: RunId,
        after: Seq,
        decided: Decided,
        offers: Vec<TaskOffered>,
        now: Time,
    ) -> Handled {
        let fence = Fence::Run(run);
        let unfenced = match self.sabotage {
            Some(Sabotage::OwnersWriteUnfenced) => true,
            Some(Sabotage::GoalsDecidedTwice) => {
                decided.inputs.iter().any(|input| matches!(input, Input::Goal { .. }))
            }
            Some(
                Sabotage::AgentsWriteUnfenced
                | Sabotage::HistoryUnread
                | Sabotage::NewerOffersUnseen
                | Sabotage::InputsUntold
                | Sabotage::AcknowledgedLost
                | Sabotage::LentHeldAgainst
                | Sabotage::StepsUncovered
                | Sabotage::OthersBelieved,
            )
            | None => false,
        };
        if !unfenced && !self.holds(&fence, after) {
            return Handled::answer(Answer::Conflict);
        }
        let inside = decided.offer.as_deref().cloned();
        for offer in inside.into_iter().chain(offers.iter().cloned()) {
            self.offered.insert((run, offer.task.clone()), offer.generation);
            self.put(Line::Tasks(offer.queue.clone()), Item::Task(Rc::new(offer)), now);
        }
        let events = std::iter::once(RecordEvent::Decided(decided))
            .chain(offers.into_iter().map(RecordEvent::Offered));
        self.append(run, &fence, events, now)
    }

    fn report(&mut self, run: RunId, key: AgentKey, after: Seq, event: AgentEvent, now: Time) -> Handled {
        let fence = Fence::Task(run, key.task.clone(), key.generation);
        if self.sabotage != Some(Sabotage::AgentsWriteUnfenced) && !self.holds(&fence, after) {
            return Handled::answer(Answer::Conflict);
        }
        self.append(run, &fence, [RecordEvent::Agent(key, event)], now)
    }

    /// Somebody writes about a task, whoever has it.
    pub(crate) fn forge(
        &mut self,
        run: RunId,
        key: AgentKey,
        event: AgentEvent,
        now: Time,
    ) -> Vec<Rc<Entry>> {
        let fence = Fence::Task(run, key.task.clone(), key.generation);
        self.append(run, &fence, [RecordEvent::Agent(key, event)], now).appended
    }

    fn holds(&self, fence: &Fence, after: Seq) -> bool {
        self.fences.get(fence).copied().unwrap_or_default() == after
    }

    fn append(
        &mut self,
        run: RunId,
        fence: &Fence,
        events: impl IntoIterator<Item = RecordEvent>,
        now: Time,
    ) -> Handled {
        let begin = self.log.len();
        for event in events {
            let seq = Seq(self.log.len() as u64 + 1);
            self.log.push(Rc::new(Entry { seq, at: Millis(EPOCH + now), run, event }));
        }
        let appended = self.log[begin..].to_vec();
        let (first, last) = (Seq(begin as u64 + 1), Seq(self.log.len() as u64));
        self.fences.insert(fence.clone(), last);
        Handled { answer: Some(Answer::Appended { first, last, link: None }), appended, control: None }
    }

    /// Completes the link of a decision that was just appended.
    fn linked(&mut self, mut handled: Handled, draft: LinkDraft) -> Handled {
        if let Some(Answer::Appended { first, link, .. }) = &mut handled.answer {
            let made = draft.over(handled.appended.iter().map(|entry| covered(entry.seq).digest));
            *link = Some(made.hash);
            self.links.insert(*first, made);
        }
        handled
    }

    /// What the hash chain of a run goes by.
    fn chain_of(&self, run: RunId) -> Vec<ChainEntry> {
        let of_run = self.log.iter().filter(|entry| entry.run == run);
        let entries = of_run.filter_map(|entry| match &entry.event {
            RecordEvent::Agent(..) => Some(ChainEntry::Agent(covered(entry.seq))),
            RecordEvent::Decided(_) | RecordEvent::Offered(_) => {
                let link = Box::new(self.links.get(&entry.seq)?.clone());
                Some(ChainEntry::Linked { seq: entry.seq, link })
            }
        });
        entries.collect()
    }

    /// A run's entries, to be held against its chain.
    pub(crate) fn to_verify(&self, run: RunId) -> Vec<Read> {
        let of_run = self.log.iter().filter(|entry| entry.run == run);
        let read = |entry: &Rc<Entry>| Read {
            seq: entry.seq,
            digest: covered(entry.seq).digest,
            by_agent: matches!(entry.event, RecordEvent::Agent(..)),
            link: self.links.get(&entry.seq).cloned().map(Ok),
        };
        of_run.map(read).collect()
    }

    fn read_run(&self, run: RunId) -> Vec<Rc<Entry>> {
        self.log.iter().filter(|entry| entry.run == run).cloned().collect()
    }

    fn read_task(&self, run: RunId, task: &TaskId, generation: Generation, after: Seq) -> Vec<Rc<Entry>> {
        let about = |entry: &&Rc<Entry>| match &entry.event {
            RecordEvent::Agent(key, _) => {
                entry.run == run && key.task == *task && key.generation == generation
            }
            RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
        };
        let after = usize::try_from(after.0).unwrap_or(usize::MAX).min(self.log.len());
        self.log[after..].iter().filter(about).cloned().collect()
    }

    /// The same with the decisions since the first of them, where they are needed.
    fn with_decisions(
        &self,
        run: RunId,
        mut entries: Vec<Rc<Entry>>,
        which: WithDecisions,
    ) -> Vec<Rc<Entry>> {
        let needs_them = match which {
            WithDecisions::No => false,
            WithDecisions::IfOfSeveral => !is_of_one(&entries),
            WithDecisions::Yes => true,
        };
        let Some(first) = entries.first().map(|entry| entry.seq).filter(|_| needs_them) else {
            return entries;
        };
        let after = usize::try_from(first.0).unwrap_or(usize::MAX).min(self.log.len());
        let is_decision = |entry: &&Rc<Entry>| {
            entry.run == run && matches!(entry.event, RecordEvent::Decided(_) | RecordEvent::Offered(_))
        };
        entries.extend(self.log[after..].iter().filter(is_decision).cloned());
        entries.sort_by_key(|entry| entry.seq);
        entries
    }

    /// Unfinished runs that fall to somebody: its own, and its share of those whose author's lease has lapsed.
    fn orphans(&self, to: Life, now: Time) -> Vec<RunId> {
        let mut runs: Vec<RunId> = self.log.iter().map(|entry| entry.run).collect();
        runs.sort_unstable();
        runs.dedup();
        let heirs: Vec<Life> =
            self.leases.iter().filter(|(_, until)| **until > now).map(|(who, _)| *who).collect();
        runs.retain(|run| {
            let heir = usize::try_from(run.as_uuid().as_u128() % heirs.len().max(1) as u128).unwrap_or(0);
            let lapsed = |author: &AgentId| self.holder(author, now).is_none();
            self.is_unfinished(*run)
                && self.author(*run).is_some_and(|author| {
                    author == agent_of(to) || lapsed(&author) && heirs.get(heir) == Some(&to)
                })
        });
        runs
    }

    fn is_unfinished(&self, run: RunId) -> bool {
        let mut decided = self.decisions(run);
        !decided.any(|decided| decided.events.iter().any(RunEvent::ends_run))
    }

    fn decisions(&self, run: RunId) -> impl Iterator<Item = &Decided> {
        let written = self.log.iter().rev().filter(move |entry| entry.run == run);
        written.filter_map(|entry| match &entry.event {
            RecordEvent::Decided(decided) => Some(decided),
            RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
        })
    }

    /// Who decided last about a run.
    fn author(&self, run: RunId) -> Option<AgentId> {
        self.decisions(run).next().map(|decided| decided.by.clone())
    }

    /// The process of this name, if its lease holds.
    fn holder(&self, name: &AgentId, now: Time) -> Option<Life> {
        let holds = |(who, until): &(&Life, &Time)| **until > now && agent_of(**who) == *name;
        self.leases.iter().find(holds).map(|(who, _)| *who)
    }
}

/// What is hashed of an entry here: nothing changes what stands at a place, so the place stands for it.
pub(crate) fn covered(seq: Seq) -> Covered {
    Covered { seq, digest: chain::digest("", &seq.0.to_be_bytes()) }
}

/// The name of an orchestrator.
pub(crate) fn agent_of(who: Life) -> AgentId {
    AgentId::new("orchestrator", u32::try_from(who.place).unwrap_or(0) << 16 | who.number)
}
