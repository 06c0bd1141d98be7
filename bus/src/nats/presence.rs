//! What the server's system account is asked: who comes and goes, and now and then who is there.
//!
//! What the server tells of one connection is told once. Whoever began to listen later, or was cut off, or lived while
//! a server died with all that was connected to it, finds out by the roll.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;

use super::connect::{self, Link};
use super::{Nats, convert};
use crate::backend::{Headers, Message};
use crate::error::BusError;
use crate::presence::{ROLL, ROLL_REQUEST, SUBJECTS};

/// The second roll follows the first after this time, so that whoever is missing is missed twice soon.
const SECOND: Duration = Duration::from_millis(1_500);
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
    let rolls = Rolls { nats: nats.clone(), client, again: link.epoch(), link, taken: 0 };
    Ok(Some(stream::select(told, rolls.stream()).boxed()))
}

/// Takes the roll at once, soon after, and then regularly; anew with every connection that is made again.
struct Rolls {
    nats: Nats,
    client: async_nats::Client,
    link: Arc<Link>,
    again: watch::Receiver<u64>,
    taken: u32,
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
            1 => SECOND,
            _ => self.nats.settings.heartbeat,
        };
        self.taken = self.taken.saturating_add(1);
        // Its sender lives as long as the connection.
        if let Some(Ok(())) = timed(pause, self.again.changed()).await {
            self.taken = 1;
        }
    }

    /// The answers of all servers, as one list.
    async fn take(&self) -> Result<Bytes, BusError> {
        let inbox = self.client.new_inbox();
        let mut replies = self.nats.limited("a subscription", self.client.subscribe(inbox.clone())).await?;
        let question = Bytes::from(format!("{{\"limit\":{MOST}}}"));
        let asked = self.client.publish_with_reply(ROLL_REQUEST, inbox, question);
        self.nats.limited("asking who is connected", asked).await?;
        let mut answers: Vec<Bytes> = Vec::new();
        let mut patience = self.nats.settings.request_timeout;
        while answers.len() < MOST_SERVERS {
            let Some(Some(reply)) = timed(patience, replies.next()).await else { break };
            answers.push(convert::message(reply).payload);
            patience = QUIET;
        }
        Ok(Bytes::from([b"[", answers.join(&b","[..]).as_slice(), b"]"].concat()))
    }
}

async fn timed<T>(limit: Duration, wait: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, wait).map(Result::ok).await
}
