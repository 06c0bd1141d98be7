//! The record: the event log of every run, the only truth. Every write is fenced.

mod append;
mod chain;
mod entry;
mod line;
mod named;
mod newest;
mod parts;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::run::event::{TaskOrphaned, TaskReleased, TaskStarted, TaskTakenBack};
use muster_shared::run::{Entry, EventKind, RunEvent};
use muster_shared::time::Millis;

use crate::backend::{Pace, StreamState};
use crate::bus::Core;
use crate::error::BusError;
use crate::kept::Kept;
use crate::places::Places;
use crate::subject::{self, Subject};
pub use append::{AppendedDecision, LinkedDecision};
pub use chain::{Heard, KeptMessage, RunRecord};
pub use entry::Unreadable;
pub(crate) use entry::check_offer;
pub use line::RecordLine;
pub use named::Named;
pub use newest::NewestRuns;

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
    /// The decisions of all runs, with the offers that they make.
    AllDecisions,
    /// What orchestrators decide upon: started, released and outcome, of all runs.
    AgentSignals,
    /// Everything.
    Everything,
}

impl RecordFilter {
    /// The run that it is about; nothing when it is about all.
    const fn run(&self) -> Option<RunId> {
        match self {
            Self::Run(run) | Self::Task { run, .. } | Self::Decisions(run) => Some(*run),
            Self::AllDecisions | Self::AgentSignals | Self::Everything => None,
        }
    }

    pub(crate) fn subjects(&self) -> Vec<String> {
        match self {
            Self::Run(run) => vec![format!("run.{run}.>"), format!("evt.{run}.>")],
            Self::Task { run, task, generation } => vec![subject::task_fence(*run, task, *generation)],
            Self::Decisions(run) => vec![subject::run_fence(*run)],
            Self::AllDecisions => vec!["run.>".into()],
            Self::AgentSignals => [EventKind::Started, EventKind::Released, EventKind::Outcome]
                .map(|kind| format!("evt.*.*.*.*.*.{kind}"))
                .to_vec(),
            Self::Everything => vec!["run.>".into(), "evt.>".into()],
        }
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
    pub async fn read(
        &self,
        which: &RecordFilter,
        after: impl Into<Places> + Send,
    ) -> Result<Vec<Entry>, BusError> {
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
        after: impl Into<Places> + Send,
    ) -> Result<Vec<Result<Entry, Unreadable>>, BusError> {
        let stored = match which {
            // Of a run that came from elsewhere as well. Those at work ask for less, and are not made to look twice.
            RecordFilter::Run(run) => self.core.scan_run(*run, &which.subjects(), &after.into()).await?,
            _ => self.core.scan_record(which.run(), &which.subjects(), &after.into()).await?,
        };
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
        after: impl Into<Places> + Send,
    ) -> Result<BoxStream<'static, Result<Entry, Unreadable>>, BusError> {
        self.follow_at(which, after.into(), Pace::AtOnce).await
    }

    /// The same for whoever only looks on: the first is given at once, and what comes within `pause` after it together. Where much
    /// is written, that costs the server and the reader a small part of what each entry by itself does.
    ///
    /// # Errors
    /// When the bus fails at the start.
    pub async fn look_on(
        &self,
        which: &RecordFilter,
        after: impl Into<Places> + Send,
        pause: Duration,
    ) -> Result<BoxStream<'static, Result<Entry, Unreadable>>, BusError> {
        self.follow_at(which, after.into(), Pace::Gathered(pause)).await
    }

    async fn follow_at(
        &self,
        which: &RecordFilter,
        after: Places,
        pace: Pace,
    ) -> Result<BoxStream<'static, Result<Entry, Unreadable>>, BusError> {
        let messages = self.core.follow_record(which.run(), &which.subjects(), &after, pace).await?;
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
        match self.core.last_of(run, subject::run_fence(run)).await? {
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
        let Some(stored) = self.core.last_of(run, subject).await? else { return Ok(None) };
        Ok(self.core.entry(&stored).await??.event.into_offer().map(|offer| offer.generation))
    }

    /// Sequence number and broker time of the newest entry about a generation of a task, as the leader knows them. The entry
    /// need not be readable.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn last_word(
        &self,
        run: RunId,
        task: &TaskId,
        generation: Generation,
    ) -> Result<Option<(Seq, Millis)>, BusError> {
        let last = self.core.last_of(run, subject::task_fence(run, task, generation)).await?;
        Ok(last.map(|stored| (stored.seq, stored.at)))
    }

    /// Whether it was decided after a position that an agent does not have a task any more: it was lost, or handed the
    /// task over, or another has it. The newest decision is looked at first.
    ///
    /// # Errors
    /// [`BusError::Unreadable`] when a decision cannot be read; else when the bus fails.
    pub async fn was_taken_from(
        &self,
        run: RunId,
        task: &TaskId,
        agent: &AgentId,
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

    /// The first entry after a position, if there is one.
    ///
    /// # Errors
    /// [`BusError::Unreadable`] when it cannot be read; else when the bus fails.
    pub async fn first(&self, which: &RecordFilter, after: Seq) -> Result<Option<Entry>, BusError> {
        let mut messages =
            self.core.follow_record(which.run(), &which.subjects(), &after.into(), Pace::AtOnce).await?;
        match tokio::time::timeout(self.core.settings.request_timeout, messages.next()).await {
            Ok(Some(stored)) => Ok(Some(self.core.entry(&stored).await??)),
            Ok(None) | Err(_) => Ok(None),
        }
    }

    /// All runs in the event log, by descending id. [`Self::newest_runs`] has the order of creation.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn runs(&self) -> Result<Vec<RunId>, BusError> {
        let mut runs: Vec<RunId> = self.named_by("run.*.decided").await?.into_iter().collect();
        runs.sort_unstable_by(|one, other| other.cmp(one));
        Ok(runs)
    }

    /// Runs of which there are offers and no other decision, by descending id: at least their beginning is lost.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn fragments(&self) -> Result<Vec<RunId>, BusError> {
        let whole: BTreeSet<RunId> = self.runs().await?.into_iter().collect();
        let mut found = self.named_by("run.*.task.>").await?;
        found.retain(|run| !whole.contains(run));
        Ok(found.into_iter().rev().collect())
    }

    /// How many entries of a run there are to be: as many as the server counts, whether or not it can still give them out, or as
    /// many as came with it from elsewhere.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn counted(&self, run: RunId) -> Result<u64, BusError> {
        match self.counted_here(run).await? {
            0 => Ok(Kept::new(&self.core).note(run).await?.imported.map_or(0, |note| note.entries)),
            counted => Ok(counted),
        }
    }

    /// How many entries of a run the streams of the record hold, as the server counts them.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn counted_here(&self, run: RunId) -> Result<u64, BusError> {
        let mut counted = 0_u64;
        for filter in RecordFilter::Run(run).subjects() {
            for state in self.core.states(Some(run), Some(&filter)).await? {
                counted = counted.saturating_add(state.subjects.values().sum());
            }
        }
        Ok(counted)
    }

    /// How many entries of all runs are not there any more, though nobody removed them.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn lost(&self) -> Result<u64, BusError> {
        let notes = Kept::new(&self.core).all().await?;
        let mut lost = 0_u64;
        for part in self.core.parts(None).await? {
            let state = self.core.backend.state(part.stream(), None).await?;
            let here = notes.iter().filter(|(run, _)| part.holds(**run));
            let removed: u64 = here.filter_map(|(_, note)| note.removed_after(state.first)).sum();
            let written = (state.last.0 + 1).saturating_sub(state.first.0.max(1));
            lost = lost.saturating_add(written.saturating_sub(state.messages).saturating_sub(removed));
        }
        Ok(lost)
    }

    /// The position of the last message in each part of the record.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn newest(&self) -> Result<Places, BusError> {
        Ok(self.core.states(None, None).await?.iter().map(|state| state.last).collect())
    }

    /// How full the fullest part of the record is, from 0 to 1. New goals are refused from 0.8 on.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn fullness(&self) -> Result<f64, BusError> {
        #[expect(clippy::cast_precision_loss, reason = "a share for people and a threshold")]
        let share =
            |state: &StreamState| state.max_bytes.map_or(0.0, |most| state.bytes as f64 / most as f64);
        Ok(self.core.states(None, None).await?.iter().map(share).fold(0.0, f64::max))
    }

    /// The runs in subjects of the record.
    async fn named_by(&self, filter: &str) -> Result<BTreeSet<RunId>, BusError> {
        let states = self.core.states(None, Some(filter)).await?;
        let subjects = states.iter().flat_map(|state| state.subjects.keys());
        Ok(subjects.filter_map(|text| Subject::parse(text).ok()?.run()).collect())
    }
}

/// Whether a decision takes a task from an agent.
fn takes_from(entry: &Entry, wanted: &TaskId, from: &AgentId) -> bool {
    entry.event.events().iter().any(|event| match event {
        RunEvent::TaskOrphaned(TaskOrphaned { task, agent, .. })
        | RunEvent::TaskReleased(TaskReleased { task, agent, .. })
        | RunEvent::TaskTakenBack(TaskTakenBack { task, agent, .. }) => (task, agent) == (wanted, from),
        RunEvent::TaskStarted(TaskStarted { task, agent, .. }) => task == wanted && agent != from,
        _ => false,
    })
}
