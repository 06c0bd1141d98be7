//! Machines that join: what they ask on `join.<invitation>` and `host.<name>.credentials`, and how the fleet answers. By NATS
//! request and reply, in JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{BoxStream, select};
use muster_shared::ids::{AgentId, Role};
use muster_shared::text::quoted;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::backend::{Headers, Incoming, Message};
use crate::bus::Core;
use crate::credentials::rights::inbox;
use crate::credentials::signing::Trust;
use crate::error::BusError;
use crate::subject::{host_requests, join_requests};

/// Largest request that is read, in bytes.
const MOST_BYTES: usize = 4 * 1024;
/// Most that is said of what cannot be read, in characters.
const MOST_SAID: usize = 400;
/// Who serves them: of several, one.
const DESKS: &str = "desk";

/// Who asks for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asking {
    /// Whoever holds this invitation wants to join.
    Join(AgentId),
    /// This machine wants credentials for a process.
    Start(AgentId),
}

impl Asking {
    /// The subject on which nobody else may ask.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::Join(invitation) => join_requests(invitation.as_str()),
            Self::Start(host) => host_requests(host.as_str()),
        }
    }

    /// Whose name it is.
    #[must_use]
    pub const fn who(&self) -> &AgentId {
        match self {
            Self::Join(name) | Self::Start(name) => name,
        }
    }

    fn read(subject: &str) -> Option<Self> {
        let tokens: Vec<&str> = subject.split('.').collect();
        match tokens.as_slice() {
            ["join", invitation] => invitation.parse().ok().map(Self::Join),
            ["host", host, "credentials"] => host.parse().ok().map(Self::Start),
            _ => None,
        }
    }
}

/// Where a machine is told that keys have changed.
pub(crate) fn nudges(host: &AgentId) -> String {
    format!("{}.nudge", inbox(host))
}

/// What a machine says that wants to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinQuestion {
    /// Its public key.
    pub key: String,
    /// What it is called by itself.
    pub machine: String,
    /// The version of Muster there.
    pub version: String,
}

/// What a machine is told that joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinAnswer {
    /// What it is called from now on.
    pub host: AgentId,
    /// Of which roles it may start agents.
    pub roles: Vec<Role>,
    /// What is said of its key.
    pub jwt: String,
    /// Settings that all processes of the fleet share, as far as they are not the usual ones.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The version of Muster here.
    pub version: String,
}

/// What a machine says that wants to start a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartQuestion {
    /// The public key of the process.
    pub key: String,
    /// Its role.
    pub role: Role,
    /// What it is called there.
    pub member: AgentId,
}

/// What a machine that joined asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostQuestion {
    /// Credentials for a process.
    Start(StartQuestion),
    /// To be vouched for again itself, with its own public key: signing keys are replaced at times.
    Stay(String),
}

/// What it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartAnswer {
    /// What the process, or the machine, is called on the bus.
    pub id: AgentId,
    /// What is said of its key.
    pub jwt: String,
    /// The fleet's public keys, by which it tells who is of the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Trust>,
}

/// How a question was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer<T> {
    /// With what was asked for.
    Granted(T),
    /// It may not have it.
    Refused(String),
    /// It could not be seen to: worth another try.
    Failed(String),
}

/// Reads an answer.
///
/// # Errors
/// Says in bounded words what is wrong with it: what stands there may be of any length.
pub fn read_answer<A: DeserializeOwned>(answer: &[u8]) -> Result<A, String> {
    serde_json::from_slice(answer).map_err(|error| quoted(&error.to_string(), MOST_SAID))
}

/// A question, as it came.
#[derive(Debug, Clone)]
pub struct Question {
    /// Who asks for what: the server lets nobody ask in another's name.
    pub asking: Asking,
    reply: String,
    payload: bytes::Bytes,
}

impl Question {
    /// Nothing where the answer would not go to whoever may ask so: into his inbox, where nobody else listens.
    fn read(Incoming { message, reply }: Incoming) -> Option<Self> {
        let asking = Asking::read(&message.subject)?;
        let own = format!("{}.", inbox(asking.who()));
        let reply = reply.filter(|reply| reply.starts_with(&own))?;
        Some(Self { asking, reply, payload: message.payload })
    }

    /// What it says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn content<T: DeserializeOwned>(&self) -> Result<T, String> {
        if self.payload.len() > MOST_BYTES {
            return Err(format!("it has {} bytes, {MOST_BYTES} is the most", self.payload.len()));
        }
        serde_json::from_slice(&self.payload).map_err(|error| error.to_string())
    }
}

/// The door for machines that join.
#[derive(Clone)]
pub struct HostDoor {
    pub(crate) core: Arc<Core>,
}

impl HostDoor {
    /// Questions from now on.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn serve(&self) -> Result<BoxStream<'static, Question>, BusError> {
        let backend = &self.core.backend;
        let joining = backend.serve(&join_requests("*"), DESKS).await?;
        let starting = backend.serve(&host_requests("*"), DESKS).await?;
        let all = select(joining, starting);
        Ok(all.filter_map(|incoming| std::future::ready(Question::read(incoming))).boxed())
    }

    /// Tells a machine that it is to have itself and its processes vouched for again: the fleet's keys are others now. It hears
    /// this where answers to it come in.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn nudge(&self, host: &AgentId) -> Result<(), BusError> {
        let (subject, headers, payload) = (nudges(host), Headers::default(), bytes::Bytes::new());
        self.core.backend.publish(Message { subject, headers, payload }).await
    }

    /// Answers a question.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn answer<T: Serialize + Sync>(
        &self,
        to: &Question,
        answer: &Answer<T>,
    ) -> Result<(), BusError> {
        let payload = serde_json::to_vec(answer)?.into();
        let message = Message { subject: to.reply.clone(), headers: Headers::default(), payload };
        self.core.backend.publish(message).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(subject: &str, reply: Option<&str>) -> Option<Question> {
        let payload = bytes::Bytes::from_static(b"{}");
        let message = Message { subject: subject.to_owned(), headers: Headers::default(), payload };
        Question::read(Incoming { message, reply: reply.map(str::to_owned) })
    }

    #[test]
    fn an_answer_goes_to_whoever_may_ask_and_to_nobody_else() {
        let asked = question("join.guest-1", Some("_INBOX.guest-1.x")).unwrap();
        assert_eq!(asked.asking, Asking::Join("guest-1".parse().unwrap()));
        assert_eq!(asked.asking.subject(), "join.guest-1");
        let asked = question("host.mill.credentials", Some("_INBOX.mill.x")).unwrap();
        assert_eq!(asked.asking, Asking::Start("mill".parse().unwrap()));
        assert_eq!(asked.asking.subject(), "host.mill.credentials");
        for (subject, reply) in [
            ("join.guest-1", None),
            ("join.guest-1", Some("_INBOX.guest-2.x")),
            ("join.guest-1", Some("_INBOX.guest-1")),
            ("join.guest-1", Some("_INBOX.guest-12.x")),
            ("join.guest-1", Some("run.x.decided")),
            ("host.mill.credentials", Some("$JS.ACK.RUNS.x.1.1.1.1.1")),
            ("host.mill", Some("_INBOX.mill.x")),
            ("host.mill.other", Some("_INBOX.mill.x")),
            ("join.a.b", Some("_INBOX.a.x")),
        ] {
            assert!(question(subject, reply).is_none(), "{subject} {reply:?}");
        }
    }
}
