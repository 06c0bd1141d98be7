//! Dead letters: what could not be processed is kept, as it came, with its reason.

use std::sync::Arc;

use bytes::Bytes;
use muster_shared::ids::{Queue, RunId, Seq, TaskId};
use muster_shared::run::{SignedOrder, SignerKind};
use muster_shared::time::Millis;
use muster_shared::wire::{Envelope, encode};
use serde_json::Value;
use uuid::Uuid;

use crate::backend::{Headers, Message, Stored, WriteOptions};
use crate::bus::{Core, now};
use crate::commands::{ASKED_BY, check_signer};
use crate::error::{AppendError, BusError};
use crate::orders::{proof, refusal, signer_kind};
use crate::seal::{encoding_of, open_inline};
use crate::signatures::{Purpose, SIGNATURE, said_by};
use crate::subject::Subject;
use crate::topology::{COMMANDS, DEAD};

const REASON: &str = "Muster-Dead-Reason";
const AT: &str = "Muster-Dead-At";
const STORED: &str = "Muster-Dead-Object";
/// Signature of the writer, over the subject of the letter and its payload.
const WRITTEN_BY: &str = "Muster-Dead-Signature";

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
    /// Name of the process that wrote the letter; empty until it is stored.
    pub writer: String,
    /// True if an orchestrator or an operator signed the letter, or if the fleet has no keys. A letter of any other process is
    /// evidence only: that process can write any text into it.
    pub is_attested: bool,
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
            writer: String::new(),
            is_attested: false,
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
    /// The message as it came.
    fn message(&self) -> Message {
        let Self { subject, headers, payload, .. } = self;
        Message { subject: subject.clone(), headers: Headers(headers.clone()), payload: payload.clone() }
    }

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

    /// Checks that a letter may become an order again. Returns the order of a command with its author; nothing for a task, and in
    /// a fleet without keys.
    ///
    /// # Errors
    /// States why the letter is evidence only: neither an orchestrator nor an operator wrote it, or the command has no valid
    /// signature of an author who may give it.
    pub fn check_retry(&self, letter: &DeadLetter) -> Result<Option<SignedOrder>, String> {
        if !letter.is_attested {
            return Err(format!(
                "{} wrote it, and only a letter of an orchestrator can be retried",
                letter.writer
            ));
        }
        match letter.origin() {
            Origin::Command => self.author(&letter.message()),
            Origin::Task { .. } => Ok(None),
            Origin::Elsewhere => Err("only a command or a task can be retried".to_owned()),
        }
    }

    /// The signed order in a command. A goal that an orchestrator accepted for a person is the order of that person.
    fn author(&self, message: &Message) -> Result<Option<SignedOrder>, String> {
        let who = self.core.signatures.sender_of(Purpose::Order, message, now());
        let Some(who) = who.map_err(|error| refusal(&error))? else { return Ok(None) };
        let envelope = open_inline(message)?;
        let kind = signer_kind(&who.kind)?;
        check_signer(&who, kind, &message.subject, &envelope)?;
        match message.headers.get(ASKED_BY).filter(|_| kind != SignerKind::Person) {
            Some(asked) => serde_json::from_str(asked).map(Some).map_err(|error| error.to_string()),
            None => Ok(Some(proof(&self.core, &who, kind, message))),
        }
    }

    /// Sends a command again, under the id and in the name of its author, and removes its dead letter. The signature of this
    /// process confirms it: that of the author is usually older than an order may be.
    ///
    /// # Errors
    /// If [`Self::check_retry`] refuses the letter, if it is of no command, or if the bus fails.
    pub async fn resend(&self, letter: &DeadLetter) -> Result<(), BusError> {
        let refused = |reason: String| BusError::Other {
            what: format!("dead letter {} is not sent again", letter.seq),
            reason,
        };
        if letter.origin() != Origin::Command {
            return Err(refused(format!("{} is not the subject of a command", letter.subject)));
        }
        let author = self.check_retry(letter).map_err(refused)?;
        self.core.check_clock().await?;
        let mut message = self.core.signatures.sign_message(Purpose::Order, again(letter));
        if let Some(author) = author {
            message.headers.add(ASKED_BY, &serde_json::to_string(&author)?);
        }
        match self.core.backend.append(COMMANDS, vec![message], WriteOptions::default()).await {
            Ok(_) => self.remove(letter.seq).await,
            Err(AppendError::Ambiguous { limit }) => {
                Err(BusError::TimedOut { what: "sending a command again".into(), limit })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A command as it is sent again: now, under a new message id, without the proofs of its author.
fn again(letter: &DeadLetter) -> Message {
    let mut message = letter.message();
    message.headers.0.retain(|(name, _)| !is_proof(name));
    // An unreadable message is sent unchanged and refused again; only a fleet without keys gets here.
    let Ok(envelope) = open_inline(&message) else { return message };
    let sent = now();
    // Its lifetime starts again: a letter whose order expired is retried because that order is still wanted.
    let expires = envelope.expires.map(|expires| sent.after(expires.since(envelope.sent)));
    match encode(&Envelope { id: Uuid::now_v7(), sent, expires, ..envelope }, encoding_of(&message)) {
        Ok(payload) => Message { payload: payload.into(), ..message },
        Err(_) => message,
    }
}

/// Returns true for a header that proves who gave an order.
fn is_proof(name: &str) -> bool {
    [SIGNATURE, ASKED_BY].iter().any(|proof| name.eq_ignore_ascii_case(proof))
}

impl Core {
    /// Keeps a dead letter. Its payload is kept as it came, but for secrets.
    pub(crate) async fn bury(&self, letter: DeadLetter) -> Result<(), BusError> {
        let mut headers = Headers::default();
        // The broker's own headers would be obeyed again.
        for (name, value) in letter.headers.iter().filter(|(name, _)| !is_brokers(name)) {
            // A signature holds a public token that looks like a secret one.
            headers.add(name, &if is_proof(name) { value.into() } else { self.redactor.redact(value) });
        }
        headers.add(REASON, &self.redactor.redact(&letter.reason));
        headers.add(AT, &letter.at.to_string());
        let mut payload = letter.payload;
        if self.redactor.hits(&payload) {
            payload = self.redactor.redact(&String::from_utf8_lossy(&payload)).into_owned().into();
        }
        let subject = Subject::Dead(self.who.clone(), letter.subject).to_string();
        if let Some(signature) = self.signatures.sign(Purpose::Letter, &said_by(&subject, &payload)) {
            headers.add(WRITTEN_BY, &signature.to_string());
        }
        if payload.len() > PAYLOAD_LIMIT {
            let name = crate::store::hash(&payload);
            self.backend.object_put(&name, payload).await?;
            headers.add(STORED, &name);
            payload = Bytes::new();
        }
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
        let is_attested = self.attests(&subject, headers.get(WRITTEN_BY), &payload, stored.at);
        let rest = subject.strip_prefix("dlq.").unwrap_or(&subject);
        let (writer, came_on) = rest.split_once('.').unwrap_or((rest, ""));
        let mut kept: Vec<(String, String)> =
            headers.0.iter().filter(|(name, _)| !name.starts_with("Muster-Dead-")).cloned().collect();
        // The client gives headers in no order.
        kept.sort_unstable();
        Ok(DeadLetter {
            subject: came_on.to_owned(),
            reason: headers.get(REASON).unwrap_or("no reason was given").to_owned(),
            at: headers.get(AT).and_then(|text| text.parse().ok()).map_or(stored.at, Millis),
            headers: kept,
            payload,
            seq: stored.seq,
            writer: writer.to_owned(),
            is_attested,
        })
    }

    /// Checks the signature of the writer of a letter. In a fleet without keys every letter passes.
    fn attests(&self, subject: &str, signature: Option<&str>, payload: &[u8], at: Millis) -> bool {
        let Ok(signature) = signature.map(str::parse).transpose() else { return false };
        let who = self.signatures.verify(Purpose::Letter, signature.as_ref(), &said_by(subject, payload), at);
        who.is_ok_and(|who| {
            who.is_none_or(|who| match signer_kind(&who.kind) {
                // Each program of an operator has a separate name.
                Ok(SignerKind::Operator) => true,
                Ok(SignerKind::Orchestrator) => subject.starts_with(&format!("dlq.{}.", who.name)),
                Ok(SignerKind::Person) | Err(_) => false,
            })
        })
    }
}

fn is_brokers(name: &str) -> bool {
    name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("nats-"))
}
