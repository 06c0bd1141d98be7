//! Work queues: one durable pull consumer each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::{StatusCode, Subject, Subscriber, jetstream};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use muster_shared::ids::Role;
use muster_shared::sync::lock;
use tokio::time::Instant;

use super::{Nats, convert};
use crate::backend::{Ack, Backend, Delivery, Headers, Message, Pull, QueueSpec};
use crate::credentials::HolderKind;
use crate::error::BusError;
use crate::queue::QUEUES_MADE;

/// Most deliveries in hand per queue, over all who take from it.
const IN_HAND: i64 = 20_000;
/// Most requests that wait per queue, over all who take from it.
const WAITING: i64 = 8192;
/// Pause after a failed request, so that a caller that asks again at once does no harm.
const PAUSE: Duration = Duration::from_millis(100);
/// How long an agent waits for an orchestrator that makes its queues.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often is asked by one inbox: what the server remembers of requests that pass from account to account it forgets with it.
const MOST_ASKED: u32 = 64;
/// Shorter waits ask for what is there now.
const SHORTEST: Duration = Duration::from_millis(5);

pub(super) async fn join(nats: &Nats, spec: &QueueSpec) -> Result<Arc<dyn Pull>, BusError> {
    provide(nats, spec).await?;
    Ok(Arc::new(NatsPull { nats: nats.clone(), spec: spec.clone(), inboxes: Mutex::default() }))
}

/// Creates the consumer, or finds it. Consumers are created here and for readers only, since the right to create
/// them lets a process read what it may not.
async fn provide(nats: &Nats, spec: &QueueSpec) -> Result<(), BusError> {
    if let Some(HolderKind::Agent(role)) = &nats.kind {
        return have_provided(nats, role).await;
    }
    let config = pull::Config {
        durable_name: Some(spec.name.clone()),
        filter_subject: spec.filter.clone(),
        ack_policy: AckPolicy::Explicit,
        ack_wait: spec.ack_wait,
        max_deliver: -1,
        max_ack_pending: IN_HAND,
        max_waiting: WAITING,
        inactive_threshold: spec.idle.unwrap_or_default(),
        ..pull::Config::default()
    };
    let what = format!("queue {} of stream {}", spec.name, spec.stream);
    nats.limited(&what, nats.context.create_consumer_on_stream(config, spec.stream)).await.map(drop)
}

/// Has an orchestrator make the queues of an agent that may not do so itself, as soon as one is there.
async fn have_provided(nats: &Nats, role: &Role) -> Result<(), BusError> {
    let subject = crate::subject::Subject::Queues(role.clone(), nats.who.clone()).to_string();
    let until = Instant::now() + PATIENCE;
    loop {
        let question =
            Message { subject: subject.clone(), headers: Headers::default(), payload: Bytes::new() };
        let asked = nats.request(question, nats.settings.request_timeout).await;
        match asked {
            Ok(answer) if answer.payload.as_ref() == QUEUES_MADE => return Ok(()),
            Ok(answer) => {
                let reason = String::from_utf8_lossy(&answer.payload).chars().take(300).collect();
                return Err(BusError::Other { what: "the queues of this agent".to_owned(), reason });
            }
            Err(error @ BusError::Denied { .. }) => return Err(error),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(_) => tokio::time::sleep(PAUSE / 4).await,
        }
    }
}

struct NatsPull {
    nats: Nats,
    spec: QueueSpec,
    /// Where messages come in, for requests to come: a new subscription for each would cost the server more than the request.
    inboxes: Mutex<Vec<Inbox>>,
}

/// A subscription on which the answers to one request at a time come in.
struct Inbox {
    subject: Subject,
    answers: Subscriber,
    asked: u32,
}

/// What became of a request.
enum Pulled {
    Message(Box<async_nats::Message>),
    /// There was nothing in time.
    Nothing,
    /// The server does not serve the request any more, for this reason.
    Ended(String),
}

#[async_trait]
impl Pull for NatsPull {
    async fn pull(&self, wait: Duration) -> Result<Option<Delivery>, BusError> {
        self.nats.link.check()?;
        let mut epoch = self.nats.link.epoch();
        epoch.mark_unchanged();
        let mut inbox = self.inbox().await?;
        let limit = wait + self.nats.settings.request_timeout;
        let pulled = tokio::select! {
            pulled = self.nats.within("a queue", limit, self.ask(&mut inbox, wait)) => pulled??,
            // The server forgets requests when the connection breaks: the caller asks again.
            _ = epoch.changed() => return Ok(None),
        };
        match pulled {
            // Whatever else ends a request may leave it open: its inbox is then dropped, so that nothing is given to nobody.
            Pulled::Message(message) => {
                self.keep(inbox);
                let context = self.nats.context.clone();
                delivery(jetstream::Message { message: *message, context }).map(Some)
            }
            Pulled::Nothing => {
                self.keep(inbox);
                Ok(None)
            }
            Pulled::Ended(reason) => self.recover(&reason).await,
        }
    }
}

impl NatsPull {
    async fn inbox(&self) -> Result<Inbox, BusError> {
        let kept = lock(&self.inboxes).pop();
        if let Some(inbox) = kept {
            return Ok(inbox);
        }
        let client = &self.nats.client;
        let subject = Subject::from(client.new_inbox());
        let answers = self.nats.limited("a subscription", client.subscribe(subject.clone())).await?;
        Ok(Inbox { subject, answers, asked: 0 })
    }

    /// Nothing is waited for: who has a message in hand may be dropped at any such place, and the message with it.
    fn keep(&self, inbox: Inbox) {
        if inbox.asked >= MOST_ASKED {
            return;
        }
        lock(&self.inboxes).push(inbox);
    }

    /// Asks for one message and waits for what becomes of it.
    async fn ask(&self, inbox: &mut Inbox, wait: Duration) -> Result<Pulled, BusError> {
        let request = match wait < SHORTEST {
            true => r#"{"batch":1,"no_wait":true}"#.to_owned(),
            false => format!(r#"{{"batch":1,"expires":{}}}"#, wait.as_nanos()),
        };
        let QueueSpec { stream, name, .. } = &self.spec;
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}");
        let asked = self.nats.client.publish_with_reply(subject, inbox.subject.clone(), request.into());
        inbox.asked += 1;
        self.nats.limited("a queue", asked).await?;
        while let Some(message) = inbox.answers.next().await {
            match message.status {
                None | Some(StatusCode::OK) => return Ok(Pulled::Message(Box::new(message))),
                Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => return Ok(Pulled::Nothing),
                Some(StatusCode::IDLE_HEARTBEAT) => {}
                Some(status) => {
                    let said = message.description.as_deref().unwrap_or_default();
                    return Ok(Pulled::Ended(format!("{status} {said}")));
                }
            }
        }
        Ok(Pulled::Ended("the subscription has ended".to_owned()))
    }

    /// The consumer may be gone: it was idle for too long, or the server was replaced.
    async fn recover(&self, reason: &str) -> Result<Option<Delivery>, BusError> {
        tracing::debug!(queue = self.spec.name, reason, "joining a queue again");
        provide(&self.nats, &self.spec).await?;
        tokio::time::sleep(PAUSE).await;
        Ok(None)
    }
}

fn delivery(message: jetstream::Message) -> Result<Delivery, BusError> {
    let read = convert::delivered(message);
    let read = read.map_err(|reason| BusError::Other { what: "a delivery".into(), reason })?;
    Ok(Delivery { stored: read.stored, delivered: read.delivered, ack: read.ack })
}

pub(super) async fn ack(nats: &Nats, subject: &str, ack: Ack, confirm: bool) -> Result<(), BusError> {
    let word: Bytes = match ack {
        Ack::Done => Bytes::from_static(b"+ACK"),
        Ack::Progress => Bytes::from_static(b"+WPI"),
        Ack::Term => Bytes::from_static(b"+TERM"),
        Ack::Nak(delay) if delay.is_zero() => Bytes::from_static(b"-NAK"),
        Ack::Nak(delay) => format!("-NAK {{\"delay\": {}}}", delay.as_nanos()).into(),
    };
    if confirm {
        nats.limited("an acknowledgement", nats.client.request(subject.to_owned(), word)).await?;
        return Ok(());
    }
    nats.limited("an acknowledgement", nats.client.publish(subject.to_owned(), word)).await
}

/// The server takes a word about a delivery by the message's place in the stream, and looks at its number in the queue
/// only to see that so many were given out (`processNak` of nats-server 2.10 to 2.15).
pub(super) async fn give_out_again(nats: &Nats, spec: &QueueSpec, subject: &str) -> Result<bool, BusError> {
    let QueueSpec { stream, name, .. } = spec;
    let Some(newest) = nats.last(stream, subject).await? else { return Ok(false) };
    let handle = nats.stream(stream).await?;
    let info = nats.limited("a queue", handle.consumer_info::<&str>(name)).await?;
    let (reached, count) = (info.delivered.stream_sequence, info.delivered.consumer_sequence);
    let seq = newest.seq.0;
    if seq > reached {
        return Ok(false);
    }
    let delivery = format!("$JS.ACK.{stream}.{name}.1.{seq}.{count}.0.0");
    ack(nats, &delivery, Ack::Nak(Duration::ZERO), false).await?;
    Ok(true)
}

pub(super) async fn in_hand(nats: &Nats, stream: &'static str) -> Result<BTreeMap<String, u64>, BusError> {
    let handle = nats.stream(stream).await?;
    let consumers = handle.consumers().map_ok(|info| (info.name, info.num_ack_pending as u64));
    nats.limited("the queues of a stream", consumers.try_collect()).await
}
