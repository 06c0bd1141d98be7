//! The record: the event log of every run, the only truth. Every write is fenced.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{AgentId, Attempt, Generation, Queue, RunId, Seq, TaskId};
use muster_shared::run::Unreadable as Garbled;
use muster_shared::run::event::{TaskOrphaned, TaskReleased, TaskTakenBack};
use muster_shared::run::{AgentEvent, AgentKey, Decided, Entry, EventKind, RecordEvent, RunEvent};
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Encoding, Envelope};

use crate::backend::{Appended, Begin, Fence, Stored, WriteOptions};
use crate::bus::Core;
use crate::error::{AppendError, BusError};
use crate::seal::About;
use crate::subject::{self, Subject};
use crate::topology::RUNS;

/// Most messages in one batch. The server takes 1,000; larger decisions are chained by their author.
pub const BATCH_LIMIT: usize = 500;

/// Which part of the record is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordFilter {
    /// All of a run.
    Run(RunId),
    /// What agents wrote about one generation of a task.
    Task {
        /// The run.
        run: RunId,
        /// The task.
        task: TaskId,
        /// The generation.
        generation: Generation,
    },
    /// The decisions of a run, with the offers that they make.
    Decisions(RunId),
    /// What decides how a run stands: its decisions, and what agents wrote apart from their steps.
    Deciding(RunId),
    /// The decisions of all runs, with the offers that they make.
    AllDecisions,
    /// What orchestrators wait for: started, released and outcome, of all runs.
    AgentSignals,
    /// Everything.
    Everything,
}

/// What agents write that waits for a decision.
const DECIDING: [EventKind; 4] =
    [EventKind::Started, EventKind::Tool, EventKind::Released, EventKind::Outcome];

impl RecordFilter {
    fn subjects(&self) -> Vec<String> {
        match self {
            Self::Run(run) => vec![format!("run.{run}.>"), format!("evt.{run}.>")],
            Self::Task { run, task, generation } => vec![subject::task_fence(*run, task, *generation)],
            Self::Decisions(run) => vec![subject::run_fence(*run)],
            Self::Deciding(run) => std::iter::once(subject::run_fence(*run))
                .chain(DECIDING.map(|kind| format!("evt.{run}.*.*.*.*.{kind}")))
                .collect(),
            Self::AllDecisions => vec!["run.>".into()],
            Self::AgentSignals => [EventKind::Started, EventKind::Released, EventKind::Outcome]
                .map(|kind| format!("evt.*.*.*.*.*.{kind}"))
                .to_vec(),
            Self::Everything => vec!["run.>".into(), "evt.>".into()],
        }
    }
}

/// Most characters of the reason why an agent's entry cannot be read: it may quote what somebody sent.
const MOST_WHY: usize = 400;

/// A message of the record that cannot be read: foreign, damaged, or written by a newer build. Whoever folds the
/// run it belongs to must stop, never skip, unless it is [of nobody](Unreadable::of_nobody). What an agent wrote about a
/// task is an entry whatever it says (see [`AgentEvent::Unreadable`]).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("message {seq} of the record ({subject}) cannot be read: {reason}")]
pub struct Unreadable {
    /// Its place.
    pub seq: Seq,
    /// Its subject.
    pub subject: String,
    /// What is wrong.
    pub reason: String,
    /// Whether it stands among the agents' entries and names no task, so that no state can depend on it.
    pub of_nobody: bool,
}

impl From<Unreadable> for BusError {
    fn from(Unreadable { seq, subject, reason, of_nobody: _ }: Unreadable) -> Self {
        Self::Unreadable { seq, subject, reason }
    }
}

/// The record of all runs.
#[derive(Clone)]
pub struct Record {
    core: Arc<Core>,
}

impl Record {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Appends a decision and its offers, all or nothing, if nothing was written under `run.<run>.>` since `after`.
    /// Each offer is at the same time its queue entry; so is a decision with an offer inside, which is one message.
    /// Several are an atomic batch, for which the server sets up a store of its own: some 3 ms.
    ///
    /// # Errors
    /// See [`AppendError`]. A batch of more than [`BATCH_LIMIT`] messages, or with offers of another run, is a
    /// mistake of the caller and refused.
    pub async fn append_decision(
        &self,
        run: RunId,
        after: Seq,
        decided: &Decided,
        offers: &[TaskOffered],
        encoding: Encoding,
    ) -> Result<Appended, AppendError> {
        check_batch(run, decided, offers)?;
        let (subject, about) = match decided.offer.as_deref() {
            Some(offer) => place_of(offer),
            None => (Subject::Decided(run), About::run(run)),
        };
        let mut messages = Vec::with_capacity(1 + offers.len());
        let decision = Body::Decided(decided.clone());
        messages.push(self.core.seal(subject.to_string(), decision, about, encoding).await?);
        for offer in offers {
            let (subject, about) = place_of(offer);
            let body = Body::Offered(offer.clone());
            messages.push(self.core.seal(subject.to_string(), body, about, encoding).await?);
        }
        self.append(messages, Fence { filter: subject::run_fence(run), after }).await
    }

    /// Appends an agent's event if nobody wrote about this generation of the task since `after`.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub async fn append_agent(
        &self,
        run: RunId,
        key: &AgentKey,
        after: Seq,
        event: &AgentEvent,
        encoding: Encoding,
    ) -> Result<Seq, AppendError> {
        let subject = Subject::Event(run, key.clone(), event.kind()).to_string();
        let attempt = match event {
            AgentEvent::Started(started) => Some(started.attempt).filter(|attempt| *attempt > Attempt(0)),
            AgentEvent::ToolStarted(_)
            | AgentEvent::Step(_)
            | AgentEvent::Released(_)
            | AgentEvent::Outcome(_)
            | AgentEvent::Unreadable(_) => None,
        };
        let about = About { attempt, ..About::task(run, &key.task) };
        let body = body_of(event).map_err(|garbled| BusError::Other {
            what: "a write to the record".into(),
            reason: format!("what cannot be read is not written: {}", garbled.why),
        })?;
        let message = self.core.seal(subject, body, about, encoding).await?;
        let filter = subject::task_fence(run, &key.task, key.generation);
        self.append(vec![message], Fence { filter, after }).await.map(|appended| appended.last)
    }

    /// The only write to the record. The server accepts a fence that does not cover the subject and then guards
    /// nothing, so that is checked here.
    async fn append(
        &self,
        messages: Vec<crate::backend::Message>,
        fence: Fence,
    ) -> Result<Appended, AppendError> {
        if let Some(stray) =
            messages.iter().find(|message| !subject::matches(&fence.filter, &message.subject))
        {
            let reason = format!("the fence {} does not cover {}", fence.filter, stray.subject);
            return Err(BusError::Other { what: "a write to the record".into(), reason }.into());
        }
        let options = WriteOptions { fence: Some(fence), ..WriteOptions::default() };
        self.core.backend.append(RUNS, messages, options).await
    }

    /// How often the connection to the bus broke and was made again. What was true over one connection may have
    /// changed before the next.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.core.backend.connections()
    }

    /// All entries after a position, up to the last at the time of the call. What is [of nobody](Unreadable::of_nobody)
    /// is left out.
    ///
    /// # Errors
    /// [`BusError::Unreadable`] at the first entry that cannot be read; else when the bus fails.
    pub async fn read(&self, which: &RecordFilter, after: Seq) -> Result<Vec<Entry>, BusError> {
        let mut entries = Vec::new();
        for read in self.read_each(which, after).await? {
            match read {
                Ok(entry) => entries.push(entry),
                Err(stray) if stray.of_nobody => tracing::debug!(%stray, "an entry of no task is left out"),
                Err(unreadable) => return Err(unreadable.into()),
            }
        }
        Ok(entries)
    }

    /// The same, with what cannot be read in its place: for whoever shows the record and does not fold it.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn read_each(
        &self,
        which: &RecordFilter,
        after: Seq,
    ) -> Result<Vec<Result<Entry, Unreadable>>, BusError> {
        let stored = self.core.backend.scan(RUNS, &which.subjects(), after).await?;
        let mut entries = Vec::with_capacity(stored.len());
        for message in &stored {
            entries.push(self.core.entry(message).await?);
        }
        Ok(entries)
    }

    /// Entries after a position as they come: in order, none missing and none twice, over reconnects too. The
    /// stream ends only when the bus is of no use any more (see [`crate::Bus::failed`]).
    ///
    /// # Errors
    /// When the bus fails at the start.
    pub async fn follow(
        &self,
        which: &RecordFilter,
        after: Seq,
    ) -> Result<BoxStream<'static, Result<Entry, Unreadable>>, BusError> {
        let messages = self.core.backend.follow(RUNS, which.subjects(), Begin::After(after)).await?;
        let core = Arc::clone(&self.core);
        let entries = messages.then(move |message| {
            let core = Arc::clone(&core);
            async move { core.entry_insisting(&message).await }
        });
        Ok(entries.boxed())
    }

    /// The newest entry that an orchestrator wrote about a run: one message is read, however long the record.
    ///
    /// # Errors
    /// [`BusError::Unreadable`] when it cannot be read; else when the bus fails.
    pub async fn last_decision(&self, run: RunId) -> Result<Option<Entry>, BusError> {
        match self.core.backend.last(RUNS, &subject::run_fence(run)).await? {
            Some(stored) => Ok(Some(self.core.entry(&stored).await??)),
            None => Ok(None),
        }
    }

    /// The generation of the newest offer of a task, by the leader's word; nothing when it was never offered.
    ///
    /// # Errors
    /// When the bus fails, or the offer cannot be read.
    pub async fn newest_offer(&self, run: RunId, task: &TaskId) -> Result<Option<Generation>, BusError> {
        let subject = format!("run.{run}.task.*.{task}");
        let Some(stored) = self.core.backend.last(RUNS, &subject).await? else { return Ok(None) };
        Ok(match self.core.entry(&stored).await??.event {
            RecordEvent::Decided(decided) => decided.offer.map(|offer| offer.generation),
            RecordEvent::Offered(offer) => Some(offer.generation),
            RecordEvent::Agent(..) => None,
        })
    }

    /// When anybody wrote last about a generation of a task, by the broker's time; what it was need not be readable.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn last_word(
        &self,
        run: RunId,
        task: &TaskId,
        generation: Generation,
    ) -> Result<Option<Millis>, BusError> {
        let last = self.core.backend.last(RUNS, &subject::task_fence(run, task, generation)).await?;
        Ok(last.map(|stored| stored.at))
    }

    /// Where the last word about a generation of a task stands, by the leader's word; what it was need not be readable.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn last_place(
        &self,
        run: RunId,
        task: &TaskId,
        generation: Generation,
    ) -> Result<Option<Seq>, BusError> {
        let last = self.core.backend.last(RUNS, &subject::task_fence(run, task, generation)).await?;
        Ok(last.map(|stored| stored.seq))
    }

    /// Whether it was decided after a position that an agent does not have a task any more: it was lost, or handed the
    /// task over. The newest decision is looked at first.
    ///
    /// # Errors
    /// [`BusError::Unreadable`] when a decision cannot be read; else when the bus fails.
    pub async fn was_taken_from(
        &self,
        run: RunId,
        (task, agent): (&TaskId, &AgentId),
        after: Seq,
    ) -> Result<bool, BusError> {
        let newest = self.last_decision(run).await?.filter(|entry| entry.seq > after);
        match newest {
            None => Ok(false),
            Some(newest) if takes_from(&newest, task, agent) => Ok(true),
            Some(_) => {
                let decisions = self.read(&RecordFilter::Decisions(run), after).await?;
                Ok(decisions.iter().any(|entry| takes_from(entry, task, agent)))
            }
        }
    }

    /// Whether a process says of itself in the registry that it lives.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn is_registered(&self, agent: &AgentId) -> Result<bool, BusError> {
        crate::registry::is_registered(&self.core, agent).await
    }

    /// The first entry after a position, if there is one.
    ///
    /// # Errors
    /// [`BusError::Unreadable`] when it cannot be read; else when the bus fails.
    pub async fn first(&self, which: &RecordFilter, after: Seq) -> Result<Option<Entry>, BusError> {
        let mut messages = self.core.backend.follow(RUNS, which.subjects(), Begin::After(after)).await?;
        match tokio::time::timeout(self.core.settings.request_timeout, messages.next()).await {
            Ok(Some(stored)) => Ok(Some(self.core.entry(&stored).await??)),
            Ok(None) | Err(_) => Ok(None),
        }
    }

    /// All runs in the record, newest first.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn runs(&self) -> Result<Vec<RunId>, BusError> {
        let state = self.core.backend.state(RUNS, Some("run.*.decided")).await?;
        let mut runs: Vec<RunId> =
            state.subjects.keys().filter_map(|text| Subject::parse(text).ok()?.run()).collect();
        runs.sort_unstable_by(|one, other| other.cmp(one));
        Ok(runs)
    }

    /// Runs of which there are offers and no other decision, newest first: at least their beginning is lost.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn fragments(&self) -> Result<Vec<RunId>, BusError> {
        let whole: BTreeSet<RunId> = self.runs().await?.into_iter().collect();
        let state = self.core.backend.state(RUNS, Some("run.*.task.>")).await?;
        let named = state.subjects.keys().filter_map(|text| Subject::parse(text).ok()?.run());
        let found: BTreeSet<RunId> = named.filter(|run| !whole.contains(run)).collect();
        Ok(found.into_iter().rev().collect())
    }

    /// How many entries of a run the server counts, whether or not it can still give them out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn counted(&self, run: RunId) -> Result<u64, BusError> {
        let mut counted = 0_u64;
        for filter in RecordFilter::Run(run).subjects() {
            let state = self.core.backend.state(RUNS, Some(&filter)).await?;
            counted = counted.saturating_add(state.subjects.values().sum());
        }
        Ok(counted)
    }

    /// How many entries of all runs are not there any more, though nothing ever removes one.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn lost(&self) -> Result<u64, BusError> {
        let state = self.core.backend.state(RUNS, None).await?;
        let written = (state.last.0 + 1).saturating_sub(state.first.0.max(1));
        Ok(written.saturating_sub(state.messages))
    }

    /// The position of the last message of the record.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn last_seq(&self) -> Result<Seq, BusError> {
        Ok(self.core.backend.state(RUNS, None).await?.last)
    }

    /// How full the record is, from 0 to 1. New goals are refused from 0.8 on.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn fullness(&self) -> Result<f64, BusError> {
        let state = self.core.backend.state(RUNS, None).await?;
        #[expect(clippy::cast_precision_loss, reason = "a share for people and a threshold")]
        let share = state.max_bytes.map_or(0.0, |most| state.bytes as f64 / most as f64);
        Ok(share)
    }
}

/// Whether a decision takes a task from an agent.
fn takes_from(entry: &Entry, wanted: &TaskId, from: &AgentId) -> bool {
    let RecordEvent::Decided(decided) = &entry.event else { return false };
    decided.events.iter().any(|event| match event {
        RunEvent::TaskOrphaned(TaskOrphaned { task, agent, .. })
        | RunEvent::TaskReleased(TaskReleased { task, agent, .. })
        | RunEvent::TaskTakenBack(TaskTakenBack { task, agent, .. }) => (task, agent) == (wanted, from),
        _ => false,
    })
}

fn check_batch(run: RunId, decided: &Decided, offers: &[TaskOffered]) -> Result<(), AppendError> {
    let wrong = |reason: String| {
        Err(AppendError::Bus(BusError::Other { what: "a write to the record".into(), reason }))
    };
    if offers.len() >= BATCH_LIMIT {
        return wrong(format!(
            "a batch of {} offers; chain decisions of {} or more",
            offers.len(),
            BATCH_LIMIT
        ));
    }
    if usize::try_from(decided.offers).ok() != Some(offers.len()) {
        return wrong(format!("the decision announces {} offers, {} follow", decided.offers, offers.len()));
    }
    if decided.offer.is_some() && (decided.tells_secret() || !offers.is_empty()) {
        return wrong("an offer inside a decision that tells the run's secret, or has other offers".into());
    }
    match decided.offer.as_deref().into_iter().chain(offers).find(|offer| offer.run != run) {
        Some(offer) => wrong(format!("an offer of run {} in a decision of run {run}", offer.run)),
        None => Ok(()),
    }
}

/// Where an offer is written, and what its envelope says: agents read it from there.
fn place_of(offer: &TaskOffered) -> (Subject, About) {
    let subject = Subject::Offer(offer.run, offer.queue.clone(), offer.task.clone());
    let receiver = match &offer.queue {
        Queue::Agent(agent) => Some(agent.clone()),
        Queue::Role(_) => None,
    };
    (subject, About { expires: Some(offer.deadline), receiver, ..About::task(offer.run, &offer.task) })
}

/// What is written of an event. What could not be read is nothing to be written.
fn body_of(event: &AgentEvent) -> Result<Body, Garbled> {
    Ok(match event.clone() {
        AgentEvent::Started(started) => Body::Started(started),
        AgentEvent::ToolStarted(started) => Body::ToolStarted(started),
        AgentEvent::Step(step) => Body::Step(step),
        AgentEvent::Released(released) => Body::Released(released),
        AgentEvent::Outcome(outcome) => Body::Outcome(outcome),
        AgentEvent::Unreadable(unreadable) => return Err(unreadable),
    })
}

impl Core {
    /// Reads a message of the record.
    async fn entry(&self, stored: &Stored) -> Result<Result<Entry, Unreadable>, BusError> {
        let read = match self.open(&stored.message).await? {
            Ok(envelope) => entry_of(stored, envelope),
            Err(reason) => Err(reason),
        };
        Ok(read.or_else(|reason| garbled(stored, reason)))
    }

    /// The same, asking again while the object store cannot be reached: skipping would be a gap.
    async fn entry_insisting(&self, stored: &Stored) -> Result<Entry, Unreadable> {
        loop {
            match self.entry(stored).await {
                Ok(entry) => return entry,
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, seq = %stored.seq, "asking again for a body of the record");
                    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                }
                Err(error) => {
                    let (seq, subject) = (stored.seq, stored.message.subject.clone());
                    return Err(Unreadable { seq, subject, reason: error.to_string(), of_nobody: false });
                }
            }
        }
    }
}

/// The entry that a message is whose content cannot be read: what an agent wrote about a task stays one, so that a task
/// can fail of it and nothing else does.
fn garbled(stored: &Stored, reason: String) -> Result<Entry, Unreadable> {
    let subject = stored.message.subject.clone();
    match Subject::parse(&subject) {
        Ok(Subject::Event(run, key, kind)) => {
            let why = reason.chars().take(MOST_WHY).collect();
            let event = RecordEvent::Agent(key, AgentEvent::Unreadable(Garbled { kind, why }));
            Ok(Entry { seq: stored.seq, at: stored.at, run, event })
        }
        Ok(_) | Err(_) => {
            let of_nobody = subject.starts_with("evt.");
            Err(Unreadable { seq: stored.seq, subject, reason, of_nobody })
        }
    }
}

/// The entry that a message is, if body and subject belong together.
fn entry_of(stored: &Stored, envelope: Envelope) -> Result<Entry, String> {
    let subject = Subject::parse(&stored.message.subject)?;
    let run = subject.run().ok_or("its subject names no run")?;
    if envelope.run.is_some_and(|named| named != run) {
        return Err("envelope and subject name different runs".into());
    }
    let event = match (subject, envelope.body) {
        (Subject::Decided(_), Body::Decided(decided)) if decided.offer.is_none() => {
            RecordEvent::Decided(decided)
        }
        (Subject::Offer(_, queue, task), Body::Decided(decided)) => {
            let offer =
                decided.offer.as_deref().ok_or("the decision on the subject of an offer makes none")?;
            check_offer(offer, run, &queue, &task)?;
            RecordEvent::Decided(decided)
        }
        (Subject::Offer(_, queue, task), Body::Offered(offer)) => {
            check_offer(&offer, run, &queue, &task)?;
            RecordEvent::Offered(offer)
        }
        (Subject::Event(_, key, kind), body) => {
            let found = body.kind();
            let event = body.into_agent_event().filter(|event| event.kind() == kind);
            let event = event.ok_or_else(|| format!("the subject promises {kind}, the body is {found:?}"))?;
            RecordEvent::Agent(key, event)
        }
        (subject, body) => {
            return Err(format!("a body of kind {:?} does not belong on {subject}", body.kind()));
        }
    };
    Ok(Entry { seq: stored.seq, at: stored.at, run, event })
}

/// An offer must be the one that its subject names.
pub(crate) fn check_offer(
    offer: &TaskOffered,
    run: RunId,
    queue: &Queue,
    task: &TaskId,
) -> Result<(), String> {
    if (offer.run, &offer.queue, &offer.task) == (run, queue, task) {
        return Ok(());
    }
    Err("the offer is not the one its subject names".into())
}
