//! An agent of somebody else that bids for tasks: it promises one thing and does another.

use std::time::Duration;

use async_nats::jetstream::{self, consumer};
use async_nats::{Client, ConnectOptions, HeaderMap};
use futures::StreamExt;
use muster_shared::wire::{Encoding, Envelope, decode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use crate::foreign::StrangerError;

/// Time for any one call.
const LIMIT: Duration = Duration::from_secs(10);
/// How often it says that it lives.
const BEAT: Duration = Duration::from_secs(5);

/// An agent that bids. Dropped, it is gone without a word.
pub struct Bidder {
    runtime: Option<Runtime>,
}

impl Bidder {
    /// Joins a fleet as `agent` of this role: it bids for every task to be done within `promised`, and does what it is
    /// given after so long.
    ///
    /// # Errors
    /// When nothing answers there.
    pub fn join(
        url: &str,
        role: &str,
        agent: &str,
        promised: Duration,
        takes: Duration,
    ) -> Result<Self, StrangerError> {
        Self::join_with(url, role, agent, promised, Some(takes))
    }

    /// Joins a fleet as one that bids for every task to be done at once, and begins none.
    ///
    /// # Errors
    /// When nothing answers there.
    pub fn join_idle(url: &str, role: &str, agent: &str) -> Result<Self, StrangerError> {
        Self::join_with(url, role, agent, Duration::ZERO, None)
    }

    fn join_with(
        url: &str,
        role: &str,
        agent: &str,
        promised: Duration,
        takes: Option<Duration>,
    ) -> Result<Self, StrangerError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let seat = async {
            let client = crate::way::client_with(ConnectOptions::new().name(agent), url).await?;
            let seat = Seat { client, role: role.to_owned(), agent: agent.to_owned() };
            let (calls, tasks) = (seat.calls().await?, seat.tasks().await?);
            seat.live().await?;
            seat.client.flush().await?;
            Ok::<_, StrangerError>((seat, calls, tasks))
        };
        let (seat, calls, tasks) = runtime.block_on(async { timeout(LIMIT, seat).await })??;
        runtime.spawn(seat.clone().go_on_living());
        runtime.spawn(seat.clone().bid(calls, promised));
        runtime.spawn(seat.work(tasks, takes));
        Ok(Self { runtime: Some(runtime) })
    }
}

impl Drop for Bidder {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[derive(Clone)]
struct Seat {
    client: Client,
    role: String,
    agent: String,
}

impl Seat {
    async fn calls(&self) -> Result<async_nats::Subscriber, StrangerError> {
        Ok(self.client.subscribe(format!("cfp.{}.*.*", self.role)).await?)
    }

    /// What is offered to it alone.
    async fn tasks(&self) -> Result<consumer::pull::Stream, StrangerError> {
        let config = consumer::pull::Config {
            durable_name: Some(format!("@{}", self.agent)),
            filter_subject: format!("task.@{}.>", self.agent),
            ack_policy: consumer::AckPolicy::Explicit,
            ack_wait: Duration::from_secs(30),
            max_deliver: -1,
            inactive_threshold: Duration::from_secs(600),
            ..consumer::pull::Config::default()
        };
        let context = jetstream::new(self.client.clone());
        Ok(context.create_consumer_on_stream(config, "TASKS").await?.messages().await?)
    }

    async fn live(&self) -> Result<(), StrangerError> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-TTL", "15s");
        let profile = json!({ "agent": self.agent, "role": self.role, "slots": 1 });
        let entry = format!("$KV.AGENTS.{}", self.agent);
        self.client.publish_with_headers(entry, headers, message("profile", &profile).into()).await?;
        Ok(())
    }

    async fn go_on_living(self) {
        while self.live().await.is_ok() {
            sleep(BEAT).await;
        }
    }

    async fn bid(self, mut calls: async_nats::Subscriber, promised: Duration) {
        while let Some(call) = calls.next().await {
            let Some(call) = content(&call.payload) else { continue };
            let [run, task, number] = ["run", "task", "number"].map(|part| call[part].clone());
            let bid = json!({
                "agent": self.agent, "run": run, "task": task, "number": number,
                "millis": promised.as_millis() as u64, "confidence": 99,
            });
            let subject = format!("bid.{}.{}.{}.{}", self.role, self.agent, text(&run), text(&task));
            if self.client.publish(subject, message("bid", &bid).into()).await.is_err() {
                return;
            }
        }
    }

    async fn work(self, mut tasks: consumer::pull::Stream, takes: Option<Duration>) {
        while let Some(delivered) = tasks.next().await {
            let (Ok(delivered), Some(takes)) = (delivered, takes) else { continue };
            // What somebody else took meanwhile is theirs.
            let _done = self.carry_out(&delivered, takes).await;
            let _acknowledged = delivered.double_ack().await;
        }
    }

    async fn carry_out(&self, delivered: &jetstream::Message, takes: Duration) -> Result<(), StrangerError> {
        let body = content(&delivered.payload).ok_or("no offer")?;
        let offer = if body["offer"].is_object() { &body["offer"] } else { &body };
        let [run, task, generation] = ["run", "task", "generation"].map(|part| text(&offer[part]));
        let ack = delivered.reply.as_ref().map(ToString::to_string);
        let own = format!("evt.{run}.{}.{}.{task}.{generation}", self.role, self.agent);
        let fence = format!("evt.{run}.*.*.{task}.{generation}.>");
        let started = json!({ "ack": ack, "after_step": 0 });
        let seq = self.write(&format!("{own}.started"), &fence, 0, message("started", &started)).await?;
        sleep(takes).await;
        let outcome =
            json!({ "ending": "done", "product": { "result": { "conclusion": "Apples are green." } } });
        self.write(&format!("{own}.outcome"), &fence, seq, message("outcome", &outcome)).await?;
        Ok(())
    }

    /// Writes behind the fence.
    async fn write(
        &self,
        subject: &str,
        fence: &str,
        after: u64,
        bytes: Vec<u8>,
    ) -> Result<u64, StrangerError> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", after.to_string());
        headers.insert("Nats-Expected-Last-Subject-Sequence-Subject", fence);
        let context = jetstream::new(self.client.clone());
        let written = context.publish_with_headers(subject.to_owned(), headers, bytes.into()).await?;
        Ok(written.await?.sequence)
    }
}

fn message(kind: &str, content: &Value) -> Vec<u8> {
    json!({ "body": { "type": kind, "content": content } }).to_string().into_bytes()
}

fn content(payload: &[u8]) -> Option<Value> {
    let envelope = decode::<Envelope>(payload, Encoding::of(None, payload)).ok()?;
    let mut envelope = serde_json::to_value(envelope).ok()?;
    Some(envelope["body"]["content"].take())
}

/// A value as it stands in a subject.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
