//! Every message of one run, counted on the wire while nobody watches the run, and what the run leaves on disk.
//!
//! The observer is a bare NATS client that subscribes to everything. It announces nothing, asks for nothing and has no
//! consumer on any stream, so that nobody takes it for a watcher; it sees each message once, whoever else gets it. That
//! the run has ended it reads in the decision that says so as it passes: the run is submitted, and nothing else is
//! asked of it until all is quiet. What streams hold is read before and after the count.

mod class;
mod kept;
mod parts;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Message, Subscriber};
use futures::StreamExt;
use muster_bus::Bus;
use muster_shared::flow::Goal;
use muster_shared::ids::{AgentId, RunId};
use muster_shared::run::RunEvent;
use muster_shared::secret::Redactor;
use muster_shared::wire::{Body, Command, Encoding, Envelope, decode};
use tokio::time::timeout;
use uuid::Uuid;

pub use class::{Cause, Class};
pub use kept::Kept;
pub use parts::Parts;

/// Anything that goes wrong with a count.
pub type CensusError = Box<dyn std::error::Error + Send + Sync>;

/// The longest that a run may take.
const LIMIT: Duration = Duration::from_secs(60);
/// A run has come to rest when nothing was sent for it for so long. Its end is followed by what is put away.
const REST: Duration = Duration::from_millis(500);

/// What one run sent and kept.
#[derive(Debug, Clone, Default)]
pub struct Census {
    /// Messages by class.
    pub messages: BTreeMap<Class, u64>,
    /// Bytes of these messages, payloads only.
    pub bytes: u64,
    /// What the record holds of the run.
    pub record: Kept,
    /// Messages stored by stream, those stored by the clock left out. Each is a write.
    pub writes: BTreeMap<String, u64>,
}

impl Census {
    /// Messages sent because of the run.
    #[must_use]
    pub fn of_work(&self) -> u64 {
        self.messages.iter().filter(|(class, _)| class.cause == Cause::Work).map(|(_, count)| count).sum()
    }

    /// The same without what the server sends: answers, what it gives out, and what it tells of itself.
    #[must_use]
    pub fn of_processes(&self) -> u64 {
        let is_ours = |class: &Class| class.cause == Cause::Work && !class.is_of_server();
        self.messages.iter().filter(|(class, _)| is_ours(class)).map(|(_, count)| count).sum()
    }

    /// Writes of all streams.
    #[must_use]
    pub fn all_writes(&self) -> u64 {
        self.writes.values().sum()
    }

    /// The whole as a table, the most frequent first.
    #[must_use]
    pub fn table(&self) -> String {
        let mut rows: Vec<(&Class, &u64)> = self.messages.iter().collect();
        rows.sort_by_key(|(class, count)| (class.cause, std::cmp::Reverse(**count)));
        let mut text = String::new();
        for (class, count) in rows {
            let note = match class.cause {
                Cause::Work => "",
                Cause::Clock => "  (by the clock, not counted)",
                Cause::Observer => "  (sent to the observer alone, not counted)",
            };
            let _ = writeln!(text, "{count:>6}  {class}{note}");
        }
        let _ =
            writeln!(text, "{:>6}  messages of the run, {} bytes on the wire", self.of_work(), self.bytes);
        let _ = writeln!(text, "{:>6}  of them sent by processes of the fleet", self.of_processes());
        let Kept { entries, payload, headers, parts } = &self.record;
        let _ =
            writeln!(text, "{entries:>6}  entries in the record: {payload} bytes, and {headers} of headers");
        text.push_str(&parts.table());
        let writes: Vec<String> =
            self.writes.iter().map(|(stream, count)| format!("{stream} {count}")).collect();
        let _ = writeln!(text, "{:>6}  writes: {}", self.all_writes(), writes.join(", "));
        text
    }
}

/// Counts runs on one fleet.
pub struct Observer {
    client: async_nats::Client,
    bus: Bus,
    /// Everything that passes.
    passing: Subscriber,
}

impl Observer {
    /// An observer of the fleet on this bus.
    ///
    /// # Errors
    /// When nothing answers there.
    pub async fn connect(url: &str) -> Result<Self, CensusError> {
        let who: AgentId = "census".parse()?;
        let settings = crate::way::settings(url);
        let bus = Bus::connect(&settings, &who, Arc::new(Redactor::default())).await?;
        // More room than a run has messages: what a slow client loses is not counted.
        let options = async_nats::ConnectOptions::new().subscription_capacity(1 << 16);
        let client = crate::way::client_with(options, url).await?;
        let passing = client.subscribe(">").await?;
        client.flush().await?;
        Ok(Self { client, bus, passing })
    }

    /// One run from its goal to its end, with nobody watching it.
    ///
    /// # Errors
    /// When the run does not complete in time, or the bus fails.
    pub async fn count(&mut self, goal: Goal) -> Result<Census, CensusError> {
        let run = RunId::from_uuid(Uuid::now_v7());
        self.until_quiet().await;
        let before = kept::written(&self.client).await?;
        self.until_quiet().await;
        let command = Command::Submit { run, goal: Box::new(goal) };
        self.bus.commands().send(&command, Encoding::MessagePack).await?;
        let mut census = self.until_over(run).await?;
        let after = kept::written(&self.client).await?;
        census.writes = kept::difference(&before, &after);
        // Last, since it makes a consumer, of which the server tells.
        census.record = kept::of_run(&self.client, run).await?;
        Ok(census)
    }

    /// Lets pass what belongs to earlier runs.
    async fn until_quiet(&mut self) {
        let mut quiet_since = Instant::now();
        while let Some(left) = REST.checked_sub(quiet_since.elapsed()) {
            if let Ok(Some(message)) = timeout(left, self.passing.next()).await
                && class_of(&message).cause == Cause::Work
            {
                quiet_since = Instant::now();
            }
        }
    }

    async fn until_over(&mut self, run: RunId) -> Result<Census, CensusError> {
        let mut census = Census::default();
        let (began, mut quiet_since, mut ended) = (Instant::now(), Instant::now(), false);
        loop {
            let most = if ended { REST } else { LIMIT };
            let Some(left) = most.checked_sub(quiet_since.elapsed()) else { break };
            if let Ok(Some(message)) = timeout(left, self.passing.next()).await {
                let class = class_of(&message);
                if class.cause == Cause::Work {
                    quiet_since = Instant::now();
                    census.bytes += message.payload.len() as u64;
                }
                ended |= tells_end(&message, run)?;
                *census.messages.entry(class).or_default() += 1;
            }
            if began.elapsed() > LIMIT {
                break;
            }
        }
        if ended {
            Ok(census)
        } else {
            Err(format!("no end of run {run} was seen:\n{}", census.table()).into())
        }
    }
}

fn class_of(message: &Message) -> Class {
    let header = |name: &str| message.headers.as_ref()?.get(name).map(async_nats::HeaderValue::as_str);
    class::class(&class::Seen {
        subject: &message.subject,
        reply: message.reply.as_ref().map(async_nats::Subject::as_str),
        status: message.status.map(|status| status.as_u16()),
        stream: header("Nats-Stream"),
        payload: &message.payload,
    })
}

/// Whether this is the decision by which a run completes. One that ends it otherwise is an error.
fn tells_end(message: &Message, run: RunId) -> Result<bool, CensusError> {
    if !message.subject.starts_with(&format!("run.{run}.")) {
        return Ok(false);
    }
    let header = message.headers.as_ref().and_then(|headers| headers.get("Content-Type"));
    let encoding = Encoding::of(header.map(async_nats::HeaderValue::as_str), &message.payload);
    let Ok(Envelope { body: Body::Decided(decided), .. }) = decode(&message.payload, encoding) else {
        return Ok(false);
    };
    let completed = decided.events.iter().any(|event| matches!(event, RunEvent::RunCompleted(_)));
    if decided.events.iter().any(RunEvent::ends_run) && !completed {
        return Err(format!("run {run} did not complete: {:?}", decided.events).into());
    }
    Ok(completed)
}
