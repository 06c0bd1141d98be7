//! Dead letters: what could not be processed is kept, as it came, with its reason.

use std::sync::Arc;

use bytes::Bytes;
use muster_shared::ids::{Queue, RunId, Seq, TaskId};
use muster_shared::time::Millis;
use muster_shared::wire::{Envelope, encode};
use serde_json::Value;
use uuid::Uuid;

use crate::backend::{Headers, Message, Stored, WriteOptions};
use crate::bus::{Core, now};
use crate::error::{AppendError, BusError};
use crate::seal::{encoding_of, open_inline};
use crate::signatures::{Purpose, SIGNATURE};
use crate::subject::Subject;
use crate::topology::{COMMANDS, DEAD};

const REASON: &str = "Muster-Dead-Reason";
const SUBJECT: &str = "Muster-Dead-Subject";
const AT: &str = "Muster-Dead-At";
const STORED: &str = "Muster-Dead-Object";

/// Longest reason that is kept, in characters.
const REASON_LIMIT: usize = 1000;
/// A larger payload goes to the object store.
const PAYLOAD_LIMIT: usize = 128 * 1024;

/// A message that could not be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it came in.
    pub subject: String,
    /// Why it could not be processed.
    pub reason: String,
    /// What it was.
    pub payload: Bytes,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// When it was given up, in UTC milliseconds.
    pub at: Millis,
    /// Its place among the dead letters; 0 until it is there.
    pub seq: Seq,
}

impl DeadLetter {
    /// The dead letter of a task that is given to nobody any more, with the evidence.
    #[must_use]
    pub fn of_task(queue: &Queue, run: RunId, task: &TaskId, reason: &str, evidence: &Value) -> Self {
        let subject = Subject::Task(queue.clone(), run, task.clone()).to_string();
        let payload = Bytes::from(evidence.to_string());
        Self::of(&Message { subject, headers: Headers::default(), payload }, reason)
    }

    /// The dead letter that a message becomes.
    pub(crate) fn of(message: &Message, reason: &str) -> Self {
        Self {
            subject: message.subject.clone(),
            reason: reason.chars().take(REASON_LIMIT).collect(),
            payload: message.payload.clone(),
            headers: message.headers.0.clone(),
            at: now(),
            seq: Seq(0),
        }
    }
}

/// Where a dead letter came from, as far as that says what can be done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The queue of commands: it can be sent again.
    Command,
    /// A task queue: the run can offer the task anew.
    Task {
        /// The run.
        run: RunId,
        /// The task.
        task: TaskId,
    },
    /// Somewhere else: it can be looked at and dropped.
    Elsewhere,
}

impl DeadLetter {
    /// Where it came from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match Subject::parse(&self.subject) {
            Ok(Subject::Command(..)) => Origin::Command,
            Ok(Subject::Task(_, run, task)) => Origin::Task { run, task },
            Ok(_) | Err(_) => Origin::Elsewhere,
        }
    }
}

/// The dead letters.
#[derive(Clone)]
pub struct DeadLetters {
    pub(crate) core: Arc<Core>,
}

impl DeadLetters {
    /// Keeps a dead letter.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn put(&self, letter: DeadLetter) -> Result<(), BusError> {
        self.core.bury(letter).await
    }

    /// Keeps an entry of the record that cannot be read, as it stands there. Nothing is kept of one that is gone.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn put_entry(&self, run: RunId, seq: Seq, reason: &str) -> Result<(), BusError> {
        let Some(stored) = self.core.entry_at(run, seq).await? else { return Ok(()) };
        self.core.bury(DeadLetter::of(&stored.message, reason)).await
    }

    /// The newest dead letters, oldest first, `limit` at most.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, BusError> {
        let span = u64::try_from(limit).unwrap_or(u64::MAX);
        let last = self.core.backend.state(DEAD, None).await?.last;
        let after = Seq(last.0.saturating_sub(span));
        let stored = self.core.backend.scan(DEAD, &["dlq.>".to_owned()], after).await?;
        let mut letters = Vec::with_capacity(stored.len());
        for message in stored {
            letters.push(self.core.exhume(message).await?);
        }
        Ok(letters)
    }

    /// How many there are.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn count(&self) -> Result<u64, BusError> {
        Ok(self.core.backend.state(DEAD, None).await?.messages)
    }

    /// The dead letter at this place, if there is one.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn get(&self, seq: Seq) -> Result<Option<DeadLetter>, BusError> {
        match self.core.backend.get(DEAD, seq).await? {
            Some(stored) => self.core.exhume(stored).await.map(Some),
            None => Ok(None),
        }
    }

    /// Removes the dead letter at this place, if there is one.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn remove(&self, seq: Seq) -> Result<(), BusError> {
        self.core.backend.remove(DEAD, seq).await
    }

    /// Sends a command once more, as it came but for its signature and when it was sent, and removes its dead letter: it is
    /// whoever sends it again who gives the order now.
    ///
    /// # Errors
    /// [`BusError::Unsupported`] when the letter is not of a command (see [`DeadLetter::origin`]), else when the bus
    /// fails.
    pub async fn resend(&self, letter: &DeadLetter) -> Result<(), BusError> {
        if letter.origin() != Origin::Command {
            return Err(BusError::Unsupported {
                what: format!("sending again what came on {}", letter.subject),
            });
        }
        self.core.check_clock().await?;
        let message = self.core.signatures.sign_message(Purpose::Order, again(letter));
        match self.core.backend.append(COMMANDS, vec![message], WriteOptions::default()).await {
            Ok(_) => self.remove(letter.seq).await,
            Err(AppendError::Ambiguous { limit }) => {
                Err(BusError::TimedOut { what: "sending a command again".into(), limit })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A command as it is sent once more: now, under an id of its own, and unsigned.
fn again(letter: &DeadLetter) -> Message {
    let headers = letter.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(SIGNATURE));
    let headers = Headers(headers.cloned().collect());
    let message = Message { subject: letter.subject.clone(), headers, payload: letter.payload.clone() };
    // What cannot be read is sent as it is, and refused as it was.
    let Ok(envelope) = open_inline(&message) else { return message };
    match encode(&Envelope { id: Uuid::now_v7(), sent: now(), ..envelope }, encoding_of(&message)) {
        Ok(payload) => Message { payload: payload.into(), ..message },
        Err(_) => message,
    }
}

impl Core {
    /// Keeps a dead letter. Its payload is kept as it came, but for secrets.
    pub(crate) async fn bury(&self, letter: DeadLetter) -> Result<(), BusError> {
        let mut headers = Headers::default();
        // The broker's own headers would be obeyed again.
        for (name, value) in letter.headers.iter().filter(|(name, _)| !is_brokers(name)) {
            headers.add(name, &self.redactor.redact(value));
        }
        headers.add(REASON, &self.redactor.redact(&letter.reason));
        headers.add(SUBJECT, &letter.subject);
        headers.add(AT, &letter.at.to_string());
        let mut payload = letter.payload;
        if self.redactor.hits(&payload) {
            payload = self.redactor.redact(&String::from_utf8_lossy(&payload)).into_owned().into();
        }
        if payload.len() > PAYLOAD_LIMIT {
            let name = crate::store::hash(&payload);
            self.backend.object_put(&name, payload).await?;
            headers.add(STORED, &name);
            payload = Bytes::new();
        }
        let subject = Subject::Dead(letter.subject).to_string();
        let message = Message { subject, headers, payload };
        self.backend.append(DEAD, vec![message], WriteOptions::default()).await?;
        Ok(())
    }

    async fn exhume(&self, stored: Stored) -> Result<DeadLetter, BusError> {
        let Message { subject, headers, payload } = stored.message;
        let payload = match headers.get(STORED) {
            Some(name) => {
                self.backend.object_get(name, self.settings.object_limit).await?.unwrap_or_default()
            }
            None => payload,
        };
        let came_on = subject.strip_prefix("dlq.").unwrap_or(&subject).to_owned();
        let mut kept: Vec<(String, String)> =
            headers.0.iter().filter(|(name, _)| !name.starts_with("Muster-Dead-")).cloned().collect();
        // The client gives headers in no order.
        kept.sort_unstable();
        Ok(DeadLetter {
            subject: headers.get(SUBJECT).map_or(came_on, str::to_owned),
            reason: headers.get(REASON).unwrap_or("no reason was given").to_owned(),
            at: headers.get(AT).and_then(|text| text.parse().ok()).map_or(stored.at, Millis),
            headers: kept,
            payload,
            seq: stored.seq,
        })
    }
}

fn is_brokers(name: &str) -> bool {
    name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("nats-"))
}
