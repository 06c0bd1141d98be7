//! Presence: which processes have a connection to the broker, told by the broker itself.
//!
//! The server tells of every connection that is made and ends, to whoever may listen on its system account. That is
//! how the death of a process is noticed within a millisecond, and a frozen one as soon as it leaves pings unanswered.
//! Only orchestrators hold the credentials.

use std::collections::BTreeMap;
use std::fmt;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::AgentId;
use serde::Deserialize;
use serde_json::Value;

use crate::backend::Message;
use crate::bus::Bus;
use crate::error::BusError;

/// Where the server tells of connections: `$SYS.ACCOUNT.<account>.CONNECT` and `….DISCONNECT`.
pub(crate) const SUBJECTS: [&str; 2] = ["$SYS.ACCOUNT.*.CONNECT", "$SYS.ACCOUNT.*.DISCONNECT"];

/// Where servers are asked who is connected. All of a cluster answer.
pub(crate) const ROLL_REQUEST: &str = "$SYS.REQ.SERVER.PING.CONNZ";

/// Where servers are asked for their health. All of a cluster answer.
pub(crate) const HEALTH_REQUEST: &str = "$SYS.REQ.SERVER.PING.HEALTHZ";

/// The words before the reason for which a server writes no more to a stream.
const WRITE_ERROR: &str = "write error: ";

/// The subject under which their answers come, taken together.
pub(crate) const ROLL: &str = "ROLL";

/// A connection was made, or ended. Connections bear the id of their process for a name; those that a process has
/// beside its main one are not told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// A process is connected.
    Came {
        /// The process.
        agent: AgentId,
        /// Its connection.
        instance: Instance,
    },
    /// A connection ended. The process may make another at once: a dead one does not.
    Went {
        /// The process.
        agent: AgentId,
        /// The connection that ended.
        instance: Instance,
        /// Why, in the server's words, such as `Client Closed` or `Stale Connection`.
        reason: String,
    },
    /// Everybody who is connected now, as far as the servers answered.
    Here(Vec<(AgentId, Instance)>),
}

/// One connection of a process, told apart from all others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance {
    /// The id of the server.
    pub server: String,
    /// The number that the server gave the connection.
    pub connection: u64,
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.server, self.connection)
    }
}

impl Bus {
    /// Connections as they are made and end, from now on; nothing when no system account is set
    /// (`bus.system_user`, `bus.system_password`). What happens while this process is itself cut off is not told.
    ///
    /// # Errors
    /// When the account is refused, or the server cannot be reached.
    pub async fn presence(&self) -> Result<Option<BoxStream<'static, Presence>>, BusError> {
        let Some(messages) = self.core.backend.presence().await? else { return Ok(None) };
        let told = messages.filter_map(|message| std::future::ready(read(&message)));
        Ok(Some(told.boxed()))
    }

    /// Streams that store nothing until their server is restarted, with the reasons. After a full disk some streams are
    /// among them and others are not. Empty when no system account is set.
    ///
    /// # Errors
    /// When the account is refused, or no server answers.
    pub async fn failed_streams(&self) -> Result<BTreeMap<String, String>, BusError> {
        let answers = self.core.backend.health().await?;
        Ok(answers.iter().flat_map(|answer| failed_streams(answer)).collect())
    }
}

/// The streams that a server does not write to, by its answer.
fn failed_streams(answer: &[u8]) -> Vec<(String, String)> {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let failed = |fault: &Value| {
        let (_, reason) = fault["error"].as_str()?.split_once(WRITE_ERROR)?;
        Some((fault["stream"].as_str()?.to_owned(), reason.to_owned()))
    };
    answer["data"]["errors"].as_array().into_iter().flatten().filter_map(failed).collect()
}

/// What the server says, as far as it is of interest.
#[derive(Deserialize)]
struct Advisory {
    server: Server,
    client: Client,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Server {
    id: String,
}

#[derive(Deserialize)]
struct Client {
    id: u64,
    #[serde(default)]
    name: String,
}

/// What a server answers when it is asked who is connected.
#[derive(Deserialize)]
struct ServerReply {
    server: Server,
    data: Connections,
}

#[derive(Deserialize)]
struct Connections {
    /// How many there are; all of them are named.
    total: usize,
    connections: Vec<Connection>,
}

#[derive(Deserialize)]
struct Connection {
    cid: u64,
    #[serde(default)]
    name: String,
}

/// Who is connected by the answers of all servers; nothing when one of them cannot be read or names not everybody.
fn roll(payload: &[u8]) -> Option<Presence> {
    let answers: Vec<ServerReply> = serde_json::from_slice(payload).ok()?;
    if answers.is_empty() || answers.iter().any(|answer| answer.data.connections.len() < answer.data.total) {
        return None;
    }
    let here = answers.into_iter().flat_map(|ServerReply { server, data }| {
        data.connections.into_iter().filter_map(move |Connection { cid, name }| {
            Some((name.parse().ok()?, Instance { server: server.id.clone(), connection: cid }))
        })
    });
    Some(Presence::Here(here.collect()))
}

/// What an advisory tells; nothing for connections that are none of a Muster process, or none of its main ones.
fn read(message: &Message) -> Option<Presence> {
    if message.subject == ROLL {
        return roll(&message.payload);
    }
    let Advisory { server, client, reason } = serde_json::from_slice(&message.payload).ok()?;
    let agent: AgentId = client.name.parse().ok()?;
    let instance = Instance { server: server.id, connection: client.id };
    match message.subject.rsplit('.').next()? {
        "CONNECT" => Some(Presence::Came { agent, instance }),
        "DISCONNECT" => Some(Presence::Went { agent, instance, reason }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::backend::Headers;

    fn message(subject: &str, payload: &str) -> Message {
        let payload = Bytes::from(payload.to_owned());
        Message { subject: subject.into(), headers: Headers::default(), payload }
    }

    #[test]
    fn streams_with_a_write_error_are_named_with_the_reason() {
        let errors = serde_json::json!([
            { "stream": "RUNS", "error": "JetStream stream write error: no space left" },
            { "stream": "DLQ", "error": "JetStream stream is not current" },
            { "error": "write error: none of a stream" },
        ]);
        let answer = serde_json::json!({ "data": { "errors": errors } }).to_string();
        assert_eq!(failed_streams(answer.as_bytes()), [("RUNS".to_owned(), "no space left".to_owned())]);
        assert_eq!(failed_streams(b"{}"), []);
    }

    #[test]
    fn the_servers_words_are_understood() {
        let text = r#"{"type":"io.nats.server.advisory.v1.client_disconnect","server":{"name":"muster","id":"NB"},
            "client":{"start":"2026-01-01T00:00:00Z","id":7,"acc":"MUSTER","name":"worker-0000000a"},
            "sent":{"msgs":0},"reason":"Stale Connection"}"#;
        let told = read(&message("$SYS.ACCOUNT.MUSTER.DISCONNECT", text)).unwrap();
        let instance = Instance { server: "NB".into(), connection: 7 };
        let agent: AgentId = "worker-0000000a".parse().unwrap();
        assert_eq!(told, Presence::Went { agent, instance, reason: "Stale Connection".into() });
    }

    #[test]
    fn connections_beside_the_main_one_and_strangers_are_not_told_of() {
        for name in ["worker-0000000a control", "", "somebody's dashboard"] {
            let text = format!(r#"{{"server":{{"id":"NB"}},"client":{{"id":7,"name":"{name}"}}}}"#);
            assert_eq!(read(&message("$SYS.ACCOUNT.MUSTER.CONNECT", &text)), None, "{name:?}");
        }
        assert_eq!(read(&message("$SYS.ACCOUNT.MUSTER.CONNECT", "no JSON")), None);
    }

    #[test]
    fn a_roll_names_who_is_connected_to_any_server() {
        let server = |id: &str, total: usize, names: &[&str]| {
            let connections: Vec<_> = names
                .iter()
                .zip(1..)
                .map(|(name, cid)| serde_json::json!({ "cid": cid, "name": name }))
                .collect();
            serde_json::json!({ "server": { "id": id }, "data": { "total": total, "connections": connections } })
        };
        let told =
            |answers: &[serde_json::Value]| read(&message(ROLL, &serde_json::json!(answers).to_string()));
        let (a, b) =
            (server("A", 2, &["worker-0000000a", "x control"]), server("B", 1, &["writer-0000000b"]));
        let here = |name: &str, server: &str| {
            (name.parse().unwrap(), Instance { server: server.into(), connection: 1 })
        };
        let both = vec![here("worker-0000000a", "A"), here("writer-0000000b", "B")];
        assert_eq!(told(&[a.clone(), b]), Some(Presence::Here(both)));
        assert_eq!(told(&[a.clone(), server("B", 2, &["writer-0000000b"])]), None, "not everybody is named");
        assert_eq!(told(&[a, serde_json::json!({ "error": { "code": 503 } })]), None);
        assert_eq!(told(&[]), None, "nobody answered");
    }
}
