//! What orchestrators read and hear of a run for its hash chain, besides what they decide upon; and the record of a run as
//! it stands, to be held against its chain.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::chain::{Read, digest};
use muster_shared::run::{ChainEntry, Covered, Entry, EventKind, Link};
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Encoding};

use super::{Record, RecordFilter, Unreadable};
use crate::backend::{Pace, Stored};
use crate::error::BusError;
use crate::places::Places;
use crate::seal::{encoding_of, open_inline};
use crate::subject::{Subject, matches};

/// What subjects of agents begin with.
const OF_AGENTS: &str = "evt.";

/// What decides how a run stands, and what its chain goes by.
#[derive(Debug, Default)]
pub struct RunRecord {
    /// Its decisions, and what agents wrote apart from their steps.
    pub entries: Vec<Entry>,
    /// All that agents wrote, and the links.
    pub chain: Vec<ChainEntry>,
}

/// What an agent wrote, as orchestrators hear of it.
#[derive(Debug)]
pub struct Heard {
    /// The run.
    pub run: RunId,
    /// The entry, if something is decided upon it: started, released or outcome.
    pub signal: Option<Result<Entry, Unreadable>>,
    stored: Stored,
}

impl Heard {
    /// What the chain of the run goes by.
    #[must_use]
    pub fn covered(&self) -> Covered {
        covered(&self.stored)
    }
}

/// A message of the record as it stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMessage {
    /// Its place.
    pub seq: Seq,
    /// When the broker stored it.
    pub at: Millis,
    /// Its subject, without the number of a part.
    pub subject: String,
    /// How its bytes are written.
    pub encoding: Encoding,
    /// Its bytes.
    pub payload: Bytes,
    /// What stands in the header for its link.
    pub link: Option<String>,
}

impl Record {
    /// All that a run is decided upon after a position, with what its chain goes by. Steps are not looked into: bodies of
    /// theirs that lie elsewhere stay there.
    ///
    /// # Errors
    /// As [`Record::read`].
    pub async fn read_deciding(&self, run: RunId, after: Seq) -> Result<RunRecord, BusError> {
        let filters = RecordFilter::Run(run).subjects();
        let stored = self.core.scan_record(Some(run), &filters, &Places::from(after)).await?;
        self.deciding(&stored).await
    }

    /// The same of a run that may have come from elsewhere, from its beginning: to begin another one from it.
    ///
    /// # Errors
    /// As [`Record::read`].
    pub async fn read_origin(&self, run: RunId) -> Result<RunRecord, BusError> {
        self.deciding(&self.stored(run).await?).await
    }

    /// All messages of a run, which may have come from elsewhere.
    pub(super) async fn stored(&self, run: RunId) -> Result<Vec<Stored>, BusError> {
        let filters = RecordFilter::Run(run).subjects();
        self.core.scan_run(run, &filters, &Places::default()).await
    }

    async fn deciding(&self, stored: &[Stored]) -> Result<RunRecord, BusError> {
        let mut read = RunRecord::default();
        for message in stored {
            read.chain.extend(chain_entry(message));
            if kind_of(message) == Some(EventKind::Step) {
                continue;
            }
            match self.core.entry(message).await? {
                Ok(entry) => read.entries.push(entry),
                Err(stray) if stray.of_nobody => tracing::debug!(%stray, "an entry of no task is left out"),
                Err(unreadable) => return Err(unreadable.into()),
            }
        }
        Ok(read)
    }

    /// All that agents write after a position, as it comes: in order, none missing and none twice, over reconnects too.
    ///
    /// # Errors
    /// When the bus fails at the start.
    pub async fn follow_agents(
        &self,
        after: impl Into<Places> + Send,
    ) -> Result<BoxStream<'static, Heard>, BusError> {
        let messages =
            self.core.follow_record(None, &["evt.>".to_owned()], &after.into(), Pace::AtOnce).await?;
        let core = Arc::clone(&self.core);
        let signals: Arc<[String]> = RecordFilter::AgentSignals.subjects().into();
        let heard = messages.filter_map(move |stored| {
            let (core, signals) = (Arc::clone(&core), Arc::clone(&signals));
            async move {
                let run = run_of(&stored)?;
                let is_signal = signals.iter().any(|signal| matches(signal, &stored.message.subject));
                let signal = if is_signal { Some(core.entry_insisting(&stored).await) } else { None };
                Some(Heard { run, signal, stored })
            }
        });
        Ok(heard.boxed())
    }

    /// All messages of a run, as they stand in the record.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn kept(&self, run: RunId) -> Result<Vec<KeptMessage>, BusError> {
        Ok(self.stored(run).await?.into_iter().map(kept).collect())
    }

    /// Whether the body of a message, where it lies apart from it, is the one whose hash the message names. Nothing when the
    /// body is in the message; an error in words when it is another, or gone.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn body_apart(&self, message: &KeptMessage) -> Result<Option<Result<(), String>>, BusError> {
        let stored = message.as_stored();
        match open_inline(&stored.message) {
            Ok(envelope) if matches!(envelope.body, Body::Stored(_)) => {
                Ok(Some(self.core.open(&stored.message).await?.map(drop)))
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }
}

impl KeptMessage {
    /// What of it is held against the run's chain.
    #[must_use]
    pub fn to_verify(&self) -> Read {
        Read {
            seq: self.seq,
            digest: digest(&self.subject, &self.payload),
            by_agent: self.subject.starts_with(OF_AGENTS),
            link: self.link.as_deref().map(|text| Link::of_header(text).map_err(|error| error.to_string())),
        }
    }

    fn as_stored(&self) -> Stored {
        let mut headers = crate::backend::Headers::default();
        headers.add(crate::seal::CONTENT_TYPE, self.encoding.content_type());
        let (subject, payload) = (self.subject.clone(), self.payload.clone());
        Stored { seq: self.seq, at: self.at, message: crate::backend::Message { subject, headers, payload } }
    }
}

pub(super) fn kept(Stored { seq, at, message }: Stored) -> KeptMessage {
    let (encoding, link) = (encoding_of(&message), message.headers.get(Link::HEADER).map(str::to_owned));
    KeptMessage { seq, at, subject: message.subject, encoding, payload: message.payload, link }
}

fn covered(stored: &Stored) -> Covered {
    Covered { seq: stored.seq, digest: digest(&stored.message.subject, &stored.message.payload) }
}

/// Nothing of what orchestrators wrote without a link. One that cannot be read is none: an audit finds that.
fn chain_entry(stored: &Stored) -> Option<ChainEntry> {
    if stored.message.subject.starts_with(OF_AGENTS) {
        return Some(ChainEntry::Agent(covered(stored)));
    }
    let link = Link::of_header(stored.message.headers.get(Link::HEADER)?).ok()?;
    Some(ChainEntry::Linked { seq: stored.seq, link: Box::new(link) })
}

/// What kind of entry of an agent it is, by its subject.
fn kind_of(stored: &Stored) -> Option<EventKind> {
    match Subject::parse(&stored.message.subject) {
        Ok(Subject::Event(_, _, kind)) => Some(kind),
        Ok(_) | Err(_) => None,
    }
}

/// The run of an entry, also where the rest of its subject cannot be read.
fn run_of(stored: &Stored) -> Option<RunId> {
    stored.message.subject.split('.').nth(1)?.parse().ok()
}
