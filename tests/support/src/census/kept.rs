//! What a run leaves in the streams.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, consumer};
use futures::{StreamExt, TryStreamExt};
use muster_shared::ids::RunId;
use muster_shared::wire::Encoding;
use tokio::time::timeout;

use super::CensusError;
use super::parts::Parts;

/// The stream of the record.
const RECORD: &str = "RUNS";
/// Streams that are written by the clock.
const BEATEN: [&str; 2] = ["KV_AGENTS", "KV_LEASE"];
/// Time for the next message of the record.
const LIMIT: Duration = Duration::from_secs(10);

/// What the record holds of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Entries.
    pub entries: u64,
    /// Bytes of their payloads.
    pub payload: u64,
    /// Bytes of their headers.
    pub headers: u64,
    /// The payloads by kind of entry and field.
    pub parts: Parts,
}

/// How often each stream was written to.
pub(super) async fn written(client: &async_nats::Client) -> Result<BTreeMap<String, u64>, CensusError> {
    let context = jetstream::new(client.clone());
    let mut streams = context.streams();
    let mut found = BTreeMap::new();
    while let Some(info) = streams.try_next().await? {
        found.insert(info.config.name, info.state.last_sequence);
    }
    Ok(found)
}

/// How often each stream was written to in between, without those that the clock writes to.
pub(super) fn difference(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let more = |(name, last): (&String, &u64)| {
        let count = last.saturating_sub(before.get(name).copied().unwrap_or(0));
        (count > 0 && !BEATEN.contains(&name.as_str())).then(|| (name.clone(), count))
    };
    after.iter().filter_map(more).collect()
}

/// What the record holds of a run.
pub(super) async fn of_run(client: &async_nats::Client, run: RunId) -> Result<Kept, CensusError> {
    let stream = jetstream::new(client.clone()).get_stream(RECORD).await?;
    let config = consumer::pull::OrderedConfig {
        filter_subjects: vec![format!("run.{run}.>"), format!("evt.{run}.>")],
        ..Default::default()
    };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    let mut kept = Kept::default();
    loop {
        let message = timeout(LIMIT, messages.next()).await?.ok_or("the record ends")??;
        kept.entries += 1;
        kept.payload += message.payload.len() as u64;
        kept.headers += message.headers.as_ref().map_or(0, size);
        let content_type = message.headers.as_ref().and_then(|headers| headers.get("Content-Type"));
        let encoding = Encoding::of(content_type.map(async_nats::HeaderValue::as_str), &message.payload);
        kept.parts.add(&message.payload, encoding)?;
        if message.info()?.pending == 0 {
            return Ok(kept);
        }
    }
}

/// Bytes of headers as the server keeps them: `name: value` and the end of the line.
fn size(headers: &HeaderMap) -> u64 {
    let lines = headers.iter().flat_map(|(name, values)| {
        values.iter().map(move |value| name.to_string().len() + value.as_str().len() + ": \r\n".len())
    });
    lines.sum::<usize>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_by_the_clock_are_left_out() {
        let of = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<BTreeMap<_, _>>()
        };
        let before = of(&[("RUNS", 10), ("KV_LEASE", 5), ("TASKS", 3)]);
        let after = of(&[("RUNS", 90), ("KV_LEASE", 9), ("TASKS", 3), ("NEW", 2)]);
        assert_eq!(difference(&before, &after), of(&[("RUNS", 80), ("NEW", 2)]));
    }
}
