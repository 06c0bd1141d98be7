//! A message of the record as an entry: read, checked against its subject, or told to be unreadable.

use muster_shared::flow::TaskOffered;
use muster_shared::ids::{Queue, RunId, Seq, TaskId};
use muster_shared::run::Unreadable as Garbled;
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use muster_shared::wire::{Body, Envelope};

use crate::backend::Stored;
use crate::bus::Core;
use crate::error::BusError;
use crate::subject::Subject;

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

impl Core {
    /// Reads a message of the record.
    pub(super) async fn entry(&self, stored: &Stored) -> Result<Result<Entry, Unreadable>, BusError> {
        let read = match self.open(&stored.message).await? {
            Ok(envelope) => entry_of(stored, envelope),
            Err(reason) => Err(reason),
        };
        Ok(read.or_else(|reason| garbled(stored, reason)))
    }

    /// The same, asking again while the object store cannot be reached: skipping would be a gap.
    pub(super) async fn entry_insisting(&self, stored: &Stored) -> Result<Entry, Unreadable> {
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
