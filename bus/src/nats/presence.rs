//! What the server's system account is asked: who comes and goes, and now and then who is there.
//!
//! What the server tells of one connection is told once. Whoever began to listen later, or was cut off, or lived while
//! a server died with all that was connected to it, finds out by the roll.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::watch;

use super::connect;
use super::link::Link;
use super::{Nats, convert};
use crate::backend::{Headers, Message};
use crate::error::BusError;
use crate::presence::{HEALTH_REQUEST, ROLL, ROLL_REQUEST, SUBJECTS};

/// The second roll follows the first after this time, so that whoever is missing is missed twice soon: where the server was
/// just started, those who live are still on their way.
const SECOND: Duration = Duration::from_millis(1_500);
/// The same where somebody has been connected for [`LONG`]: whoever lives is connected by now, but for who is about to be.
const SECOND_SOON: Duration = Duration::from_millis(300);
/// Longer than anybody takes to come back to a server that was started again.
const LONG: Duration = Duration::from_secs(5);
/// Servers that said nothing for this long after another one answered say nothing any more.
const QUIET: Duration = Duration::from_millis(250);
/// Most connections that one server names.
const MOST: u32 = 10_000;
/// Most servers that are listened to.
const MOST_SERVERS: usize = 100;

/// What the server says of connections; nothing when no system account is set.
pub(super) async fn presence(nats: &Nats) -> Result<Option<BoxStream<'static, Message>>, BusError> {
    let Some((client, link)) = connect::system_client(nats).await? else { return Ok(None) };
    let told = nats.subscribe_on(client.clone(), &SUBJECTS.map(str::to_owned)).await?;
    let told = told.map(|incoming| incoming.message);
    let second = SECOND;
    let rolls = Rolls { nats: nats.clone(), client, again: link.epoch(), link, taken: 0, second };
    Ok(Some(stream::select(told, rolls.stream()).boxed()))
}

/// The health of each server; empty when no system account is set.
pub(super) async fn health(nats: &Nats) -> Result<Vec<Bytes>, BusError> {
    let system = nats.system.get_or_try_init(|| connect::system_client(nats)).await?;
    let Some((client, link)) = system else { return Ok(Vec::new()) };
    // A denied request has no answer.
    link.check()?;
    ask_servers(nats, client, HEALTH_REQUEST, Bytes::from_static(b"{\"details\":true}")).await
}

/// The answers of all servers to a request.
async fn ask_servers(
    nats: &Nats,
    client: &async_nats::Client,
    subject: &'static str,
    question: Bytes,
) -> Result<Vec<Bytes>, BusError> {
    let inbox = client.new_inbox();
    let mut replies = nats.limited("a subscription", client.subscribe(inbox.clone())).await?;
    nats.limited(subject, client.publish_with_reply(subject, inbox, question)).await?;
    let is_clustered = client.server_info().cluster.is_some();
    let mut answers: Vec<Bytes> = Vec::new();
    let mut patience = nats.settings.request_timeout;
    while answers.len() < MOST_SERVERS {
        let Some(Some(reply)) = timed(patience, replies.next()).await else { break };
        answers.push(convert::message(reply).payload);
        if !is_clustered {
            break;
        }
        patience = QUIET;
    }
    Ok(answers)
}

/// Takes the roll at once, soon after, and then regularly; anew with every connection that is made again.
struct Rolls {
    nats: Nats,
    client: async_nats::Client,
    link: Arc<Link>,
    again: watch::Receiver<u64>,
    taken: u32,
    /// After how long the second roll follows.
    second: Duration,
}

impl Rolls {
    /// Ends when the server denies what is asked.
    fn stream(self) -> BoxStream<'static, Message> {
        stream::unfold(self, |mut rolls| async move {
            loop {
                rolls.wait().await;
                if rolls.link.check().is_err() {
                    tracing::warn!(
                        "the system account may not publish to {ROLL_REQUEST}: a death that this process was not told of is \
                         noticed late"
                    );
                    return None;
                }
                match rolls.take().await {
                    Ok(payload) => {
                        return Some((
                            Message { subject: ROLL.into(), headers: Headers::default(), payload },
                            rolls,
                        ));
                    }
                    Err(error) => tracing::debug!(%error, "the server does not say who is connected"),
                }
            }
        })
        .boxed()
    }

    async fn wait(&mut self) {
        let pause = match self.taken {
            0 => Duration::ZERO,
            1 => self.second,
            _ => self.nats.settings.heartbeat,
        };
        self.taken = self.taken.saturating_add(1);
        // Its sender lives as long as the connection.
        if let Some(Ok(())) = timed(pause, self.again.changed()).await {
            self.taken = 1;
        }
    }

    /// The answers of all servers, as one list.
    async fn take(&mut self) -> Result<Bytes, BusError> {
        let question = Bytes::from(format!("{{\"limit\":{MOST}}}"));
        let answers = ask_servers(&self.nats, &self.client, ROLL_REQUEST, question).await?;
        // Whoever was itself cut off may not be the only one.
        let was_cut_off = *self.again.borrow() > 0;
        let all_since_long = !answers.is_empty() && answers.iter().all(|answer| is_up_since_long(answer));
        self.second = if all_since_long && !was_cut_off { SECOND_SOON } else { SECOND };
        Ok(Bytes::from([b"[", answers.join(&b","[..]).as_slice(), b"]"].concat()))
    }
}

/// Whether somebody has been connected to a server for [`LONG`], by its answer.
fn is_up_since_long(answer: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        now: String,
        connections: Vec<Connection>,
    }
    #[derive(Deserialize)]
    struct Connection {
        start: String,
    }
    let Ok(Answer { data: Data { now, connections } }) = serde_json::from_slice(answer) else { return false };
    let Ok(now) = now.parse::<Timestamp>() else { return false };
    let begun = connections.iter().filter_map(|connection| connection.start.parse::<Timestamp>().ok());
    begun.min().is_some_and(|first| first <= now && now.duration_since(first).unsigned_abs() >= LONG)
}

async fn timed<T>(limit: Duration, wait: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, wait).map(Result::ok).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_up_since_long_when_somebody_is_connected_since_long() {
        let answer = |starts: &[&str]| {
            let connections: Vec<_> =
                starts.iter().map(|start| serde_json::json!({ "cid": 1, "start": start })).collect();
            let data = serde_json::json!({ "now": "2026-01-01T00:00:10.5Z", "connections": connections });
            is_up_since_long(serde_json::json!({ "data": data }).to_string().as_bytes())
        };
        assert!(answer(&["2026-01-01T00:00:09Z", "2026-01-01T00:00:05.123456789Z"]));
        assert!(!answer(&["2026-01-01T00:00:09Z", "2026-01-01T00:00:06Z"]));
        assert!(!answer(&[]) && !answer(&["2026-01-01T01:00:00Z"]));
        assert!(!is_up_since_long(b"nonsense"));
    }
}
