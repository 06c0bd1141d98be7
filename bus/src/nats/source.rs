//! Reading streams of others: on a connection of its own, by readers that the server keeps in memory and forgets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::datetime::DateTime;
use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use muster_shared::ids::AgentId;
use muster_shared::time::Millis;
use serde::Deserialize;
use uuid::Uuid;

use super::connect::{Caller, client, speaker};
use super::follow::{batch, ends_answers, forget};
use super::link::Link;
use crate::backend::Stored;
use crate::credentials::rights::inbox;
use crate::error::BusError;
use crate::settings::BusSettings;
use crate::sources::{SourceBegin, SourceEntry, SourcePage, SourceState, SourceWanted};

/// Messages asked for at a time: of the largest that a server takes by itself, a few megabytes.
const CHUNK: usize = 16;
/// How long a reader outlives whoever asked.
const IDLE: Duration = Duration::from_secs(5);
/// Most times that a place is looked for: twice the digits of the largest number of messages.
const MOST_PROBES: usize = 128;

/// A connection by which streams of others are read.
pub struct SourceReader {
    context: jetstream::Context,
    client: async_nats::Client,
    link: Arc<Link>,
    limit: Duration,
}

impl std::fmt::Debug for SourceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceReader").finish_non_exhaustive()
    }
}

/// A reader of a stream, gone when this is dropped.
struct Reader<'a> {
    consumer: Consumer<pull::Config>,
    context: &'a jetstream::Context,
    stream: &'a str,
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        forget(self.context, self.stream, self.consumer.cached_info().name.clone());
    }
}

impl SourceReader {
    /// Connects to the server that the settings name, as whom they say.
    ///
    /// # Errors
    /// As for [`crate::Bus::connect`].
    pub async fn connect(settings: &BusSettings) -> Result<Self, BusError> {
        settings.check()?;
        let url = settings.url.clone().unwrap_or_default();
        let (who, _) = speaker(settings, &AgentId::anonymous())?;
        let link = Link::new(&url, settings);
        let caller = Caller { settings, url: &url, inbox: inbox(&who), pinned: None };
        let client = client(&caller, "source", &link).await?;
        if !client.server_info().jetstream {
            return Err(BusError::NoJetStream { url: super::without_user(&url) });
        }
        let mut context = jetstream::new(client.clone());
        context.set_timeout(settings.request_timeout * 2);
        Ok(Self { context, client, link, limit: settings.request_timeout })
    }

    /// What a stream is and where it stands; nothing where there is no such stream. With `subjects`, which of those it has, and
    /// how many messages each: no more of them than `most`.
    ///
    /// # Errors
    /// When the server does not answer in time, or does not let us ask.
    pub async fn state(
        &self,
        stream: &str,
        subjects: Option<&str>,
        most: usize,
    ) -> Result<Option<SourceState>, BusError> {
        let asked = subjects.map(|filter| serde_json::json!({"subjects_filter": filter}));
        let body = asked.map(|asked| asked.to_string()).unwrap_or_default();
        let subject = format!("$JS.API.STREAM.INFO.{stream}");
        let answer = self.limited("the state of a stream", self.client.request(subject, body.into())).await?;
        let read: Answer = serde_json::from_slice(&answer.payload)
            .map_err(|error| BusError::Codec { reason: error.to_string() })?;
        match read {
            Answer { error: Some(error), .. } if error.code == 404 => Ok(None),
            Answer { error: Some(error), .. } => {
                Err(BusError::Other { what: "the state of a stream".into(), reason: error.description })
            }
            Answer { error: None, config, state, mirror, ts } => {
                let state = state.unwrap_or_default();
                Ok(Some(state_of(config.unwrap_or_default(), state, mirror, &ts, most)))
            }
        }
    }

    /// Reads what is there now.
    ///
    /// # Errors
    /// When the server does not answer in time, or does not let us read.
    pub async fn read(&self, stream: &str, wanted: &SourceWanted) -> Result<SourcePage, BusError> {
        let mut page = SourcePage::default();
        let (mut begin, mut bytes, mut whole) = (wanted.begin, 0, None);
        'readers: loop {
            let reader = self.reader(stream, wanted, begin).await?;
            let pending = reader.consumer.cached_info().num_pending;
            let whole = *whole.get_or_insert(pending);
            loop {
                page.more = whole.saturating_sub(page.entries.len() as u64);
                let left = wanted.most.saturating_sub(page.entries.len());
                let left = left.min(usize::try_from(page.more).unwrap_or(usize::MAX)).min(CHUNK);
                if left == 0 || bytes >= wanted.most_bytes {
                    return Ok(page);
                }
                let batch = batch(&self.link, self.limit, &reader.consumer, left).await?;
                // What was purged or expired in the meantime does not come.
                let Some(last) = batch.last().map(|last| (last.seq.0, ends_answers(last))) else {
                    page.more = 0;
                    return Ok(page);
                };
                for stored in batch {
                    if wanted.until.is_some_and(|until| stored.seq.0 > until) {
                        return Ok(page);
                    }
                    let entry = entry(stored);
                    bytes += entry.body.len();
                    page.entries.push(entry);
                }
                if let (seq, true) = last {
                    if wanted.begin == SourceBegin::LastPerSubject {
                        page.is_broken_off = page.entries.len() < wanted.most && page.more > 1;
                        return Ok(page);
                    }
                    begin = SourceBegin::At(seq + 1);
                    continue 'readers;
                }
            }
        }
    }

    /// The place from which on there are so many messages of these subjects, or all of them if there are fewer.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub async fn place_of_last(
        &self,
        state: &SourceState,
        filter: Option<&str>,
        count: u64,
    ) -> Result<u64, BusError> {
        let at = |seq: u64| SourceWanted {
            filter: filter.map(str::to_owned),
            begin: SourceBegin::At(seq),
            until: None,
            most: 0,
            most_bytes: 0,
            headers_only: true,
        };
        let first = state.first.max(1);
        // Of `low` on there are enough or all, of `high` on there are too few; both come closer.
        let (mut low, mut high, mut step) = (None, state.last + 1, count.max(1));
        for _ in 0..MOST_PROBES {
            let probe = match low {
                None => high.saturating_sub(step).max(first),
                Some(low) => low + (high - low) / 2,
            };
            if low == Some(probe) || probe >= high {
                break;
            }
            let wanted = at(probe);
            let reader = self.reader(&state.stream, &wanted, wanted.begin).await?;
            let pending = reader.consumer.cached_info().num_pending;
            if pending >= count || probe == first {
                low = Some(probe);
                if pending <= count {
                    break;
                }
            } else {
                high = probe;
                step = step.saturating_mul(2);
            }
        }
        Ok(low.unwrap_or(first))
    }

    async fn reader<'a>(
        &'a self,
        stream: &'a str,
        wanted: &SourceWanted,
        begin: SourceBegin,
    ) -> Result<Reader<'a>, BusError> {
        let deliver_policy = match begin {
            SourceBegin::At(0 | 1) => DeliverPolicy::All,
            SourceBegin::At(start_sequence) => DeliverPolicy::ByStartSequence { start_sequence },
            SourceBegin::Since(at) => DeliverPolicy::ByStartTime { start_time: moment(at)? },
            SourceBegin::LastPerSubject => DeliverPolicy::LastPerSubject,
        };
        let config = pull::Config {
            name: Some(format!("read-{}", Uuid::now_v7().simple())),
            deliver_policy,
            ack_policy: AckPolicy::None,
            // Of one subject, it stands in the request too, so that rights may hang on it.
            filter_subject: wanted.filter.clone().unwrap_or_default(),
            inactive_threshold: IDLE,
            memory_storage: true,
            num_replicas: 1,
            headers_only: wanted.headers_only,
            ..pull::Config::default()
        };
        let made = self.context.create_consumer_on_stream(config, stream.to_owned());
        let consumer = self.limited(&format!("reading stream {stream}"), made).await?;
        Ok(Reader { consumer, context: &self.context, stream })
    }

    fn limited<T, E: std::fmt::Display>(
        &self,
        what: &str,
        call: impl IntoFuture<Output = Result<T, E>, IntoFuture: Send> + Send,
    ) -> impl Future<Output = Result<T, BusError>> {
        // Whoever reads is a tool's call, which is to stay small.
        Box::pin(self.link.limited(what, self.limit, call))
    }
}

fn entry(stored: Stored) -> SourceEntry {
    /// By which a bucket says that a value was taken away.
    const OPERATION: &str = "KV-Operation";
    /// By which a server says that a key's time is up.
    const REASON: &str = "Nats-Marker-Reason";
    /// How large the body is, where it was left out.
    const SIZE: &str = "Nats-Msg-Size";
    let headers = &stored.message.headers;
    let is_removal =
        headers.get(OPERATION).is_some_and(|what| what != "PUT") || headers.get(REASON).is_some();
    let told: Option<u64> = headers.get(SIZE).and_then(|size| size.parse().ok());
    SourceEntry {
        seq: stored.seq.0,
        at: stored.at,
        bytes: told.unwrap_or(stored.message.payload.len() as u64),
        is_removal,
        subject: stored.message.subject,
        body: stored.message.payload,
    }
}

fn moment(at: Millis) -> Result<DateTime, BusError> {
    let nanos = i128::from(at.0) * 1_000_000;
    DateTime::from_unix_timestamp_nanos(nanos)
        .map_err(|error| BusError::Other { what: "the time to read from".into(), reason: error.to_string() })
}

/// What a server answers that is asked for a stream, as far as it is of use here.
#[derive(Deserialize)]
struct Answer {
    error: Option<Wrong>,
    config: Option<Config>,
    state: Option<State>,
    mirror: Option<Copied>,
    #[serde(default)]
    ts: String,
}

#[derive(Deserialize)]
struct Wrong {
    code: u32,
    #[serde(default)]
    description: String,
}

#[derive(Default, Deserialize)]
struct Config {
    name: String,
    #[serde(default)]
    subjects: Vec<String>,
    mirror: Option<Named>,
    #[serde(default)]
    sources: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Copied {
    #[serde(default)]
    lag: u64,
}

#[derive(Default, Deserialize)]
struct State {
    messages: u64,
    bytes: u64,
    first_seq: u64,
    last_seq: u64,
    #[serde(default)]
    first_ts: String,
    #[serde(default)]
    last_ts: String,
    #[serde(default)]
    subjects: BTreeMap<String, u64>,
}

fn state_of(config: Config, state: State, mirror: Option<Copied>, ts: &str, most: usize) -> SourceState {
    // An empty stream has the year 1 for a time.
    let time = |text: &str| {
        let at: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(at.as_millisecond()).ok().filter(|at| *at > 0).map(Millis)
    };
    let copies = config.mirror.into_iter().chain(config.sources).map(|copied| copied.name).collect();
    SourceState {
        stream: config.name,
        subjects: config.subjects,
        copies,
        behind: mirror.map(|mirror| mirror.lag),
        messages: state.messages,
        bytes: state.bytes,
        first: state.first_seq,
        last: state.last_seq,
        first_at: time(&state.first_ts),
        last_at: time(&state.last_ts),
        asked_at: time(ts).unwrap_or_else(crate::bus::now),
        counted: state.subjects.len() as u64,
        counts: state.subjects.into_iter().take(most).collect(),
    }
}
