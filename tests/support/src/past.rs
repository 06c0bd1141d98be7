//! Finished runs, many of them and quickly: one run that was really made, written again and again under other names.
//! Each copy is a valid run: fenced as the first was, with places that name its own entries.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use muster_bus::Bus;
use muster_bus::server::{LocalServer, ServerSettings};
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, Decided, Entry, RecordEvent};
use muster_shared::secret::Redactor;
use muster_shared::wire::Encoding;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

/// Copies that are written at the same time.
const AT_ONCE: usize = 64;
/// Fields that name a place of the record.
const PLACES: [&str; 4] = ["seq", "basis", "after", "outcome"];

/// A connection for whoever fills a store.
///
/// # Errors
/// When nothing answers there.
pub async fn connect(url: &str) -> io::Result<Bus> {
    let who: AgentId = "past".parse().map_err(io::Error::other)?;
    let settings = crate::way::settings(url);
    Bus::connect(&settings, &who, Arc::new(Redactor::default())).await.map_err(io::Error::other)
}

/// Fills the store of a server that is not running with so many copies of a finished run.
///
/// # Errors
/// When there can be no server, or see [`multiply`].
pub async fn fill(store: &Path, entries: &[Entry], copies: usize) -> io::Result<()> {
    let settings =
        ServerSettings { store_dir: store.to_owned(), sync_always: false, ..ServerSettings::default() };
    let server = LocalServer::start(&settings).await.map_err(io::Error::other)?;
    crate::way::remember(&server.url(), store);
    let bus = connect(&server.url()).await?;
    bus.provision().await.map_err(io::Error::other)?;
    multiply(&bus, &server.url(), entries, copies).await?;
    server.stop().await.map_err(io::Error::other)
}

/// Writes so many copies of a finished run, and takes their offers out of the queues again. Nobody else may be at work
/// on this bus.
///
/// # Errors
/// When the bus refuses a copy, or the run cannot be copied.
pub async fn multiply(bus: &Bus, url: &str, entries: &[Entry], copies: usize) -> io::Result<()> {
    let batches = Arc::new(batches(entries)?);
    // Each in a task of its own, so that all cores make copies.
    let write = |()| {
        let (bus, batches) = (bus.clone(), Arc::clone(&batches));
        let written = tokio::spawn(async move { Twin::of(&bus, &batches).write().await });
        async move { written.await.map_err(io::Error::other)? }
    };
    stream::iter((0..copies).map(|_| ()))
        .map(write)
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    empty_queues(url).await.map_err(|error| io::Error::other(error.to_string()))
}

/// Offers of runs that have ended are not to be worked on.
async fn empty_queues(url: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let context = async_nats::jetstream::new(crate::way::client(url).await?);
    // The queue is filled from the record a little later than the record is written.
    let mut queue = context.get_stream("TASKS").await?;
    loop {
        queue.purge().await?;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        if queue.info().await?.state.messages == 0 {
            return Ok(());
        }
    }
}

/// What was written at once.
enum Batch {
    Decision(Decided, Vec<TaskOffered>, Seq),
    Agent(AgentKey, Box<AgentEvent>, Seq),
}

fn batches(entries: &[Entry]) -> io::Result<Vec<Batch>> {
    let mut batches = Vec::new();
    for Entry { seq, event, .. } in entries {
        match (event, batches.last_mut()) {
            (RecordEvent::Decided(decided), _) => {
                batches.push(Batch::Decision(decided.clone(), Vec::new(), *seq));
            }
            (RecordEvent::Agent(key, event), _) => {
                batches.push(Batch::Agent(key.clone(), Box::new(event.clone()), *seq));
            }
            (RecordEvent::Offered(offer), Some(Batch::Decision(_, offers, _))) => offers.push(offer.clone()),
            (RecordEvent::Offered(_), _) => return Err(io::Error::other("an offer without its decision")),
        }
    }
    Ok(batches)
}

/// One copy in the making.
struct Twin<'a> {
    bus: &'a Bus,
    batches: &'a [Batch],
    run: RunId,
    /// Where entries of the first run stand in the copy.
    places: BTreeMap<u64, u64>,
    /// The newest place of each fence.
    decided: Seq,
    told: BTreeMap<(TaskId, Generation), Seq>,
}

impl<'a> Twin<'a> {
    fn of(bus: &'a Bus, batches: &'a [Batch]) -> Self {
        let run = RunId::from_uuid(Uuid::now_v7());
        Self { bus, batches, run, places: BTreeMap::new(), decided: Seq(0), told: BTreeMap::new() }
    }

    async fn write(mut self) -> io::Result<()> {
        let other = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
        for batch in self.batches {
            match batch {
                Batch::Decision(decided, offers, seq) => {
                    let mut decided: Decided = self.renamed(decided)?;
                    decided.batch = Uuid::now_v7();
                    let offers =
                        offers.iter().map(|offer| self.renamed(offer)).collect::<io::Result<Vec<_>>>()?;
                    let written = self
                        .bus
                        .record()
                        .append_decision(self.run, self.decided, &decided, &offers, Encoding::MessagePack)
                        .await
                        .map_err(|error| other(&error))?;
                    for at in 0..=offers.len() as u64 {
                        self.places.insert(seq.0 + at, written.first.0 + at);
                    }
                    self.decided = written.last;
                }
                Batch::Agent(key, event, seq) => {
                    let event = self.renamed_event(event)?;
                    let fence = (key.task.clone(), key.generation);
                    let after = self.told.get(&fence).copied().unwrap_or_default();
                    let record = self.bus.record();
                    let written =
                        record.append_agent(self.run, key, after, &event, Encoding::MessagePack).await;
                    let written = written.map_err(|error| other(&error))?;
                    self.places.insert(seq.0, written.0);
                    self.told.insert(fence, written);
                }
            }
        }
        Ok(())
    }

    fn renamed_event(&self, event: &AgentEvent) -> io::Result<AgentEvent> {
        Ok(match event {
            AgentEvent::Started(started) => AgentEvent::Started(self.renamed(started)?),
            AgentEvent::ToolStarted(started) => AgentEvent::ToolStarted(self.renamed(started)?),
            AgentEvent::Step(step) => AgentEvent::Step(self.renamed(step)?),
            AgentEvent::Released(released) => AgentEvent::Released(self.renamed(released)?),
            AgentEvent::Outcome(outcome) => AgentEvent::Outcome(self.renamed(outcome)?),
            AgentEvent::Unreadable(_) => return Err(io::Error::other("an entry that cannot be read")),
        })
    }

    fn renamed<T: Serialize + DeserializeOwned>(&self, value: &T) -> io::Result<T> {
        let mut value = serde_json::to_value(value)?;
        rename(&mut value, self.run, &self.places);
        Ok(serde_json::from_value(value)?)
    }
}

/// Puts the places of a copy in place of those of the first run, and the copy's name into what names a run.
fn rename(value: &mut Value, run: RunId, places: &BTreeMap<u64, u64>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let place = value.as_u64().filter(|_| PLACES.contains(&name.as_str()));
                match place.and_then(|place| places.get(&place)) {
                    Some(place) => *value = (*place).into(),
                    None if name == "run" && value.is_string() => *value = run.to_string().into(),
                    None => rename(value, run, places),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, run, places)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_copy_names_itself_and_its_own_entries() {
        let run = RunId::from_uuid(Uuid::from_u128(1));
        let mut value = json!({
            "run": "another", "basis": 7, "after": 0,
            "inputs": [{ "seq": 8, "steps": 7 }, { "outcome": { "seq": 9 } }],
        });
        rename(&mut value, run, &BTreeMap::from([(7, 107), (8, 210)]));
        let expected = json!({
            "run": run.to_string(), "basis": 107, "after": 0,
            "inputs": [{ "seq": 210, "steps": 7 }, { "outcome": { "seq": 9 } }],
        });
        assert_eq!(value, expected);
    }
}
