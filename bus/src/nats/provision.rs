//! Creating what [`crate::topology`] describes, or changing it in place. Nothing is ever deleted.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind};
use async_nats::jetstream::stream::{
    Config, ConsumerLimits, DiscardPolicy, PersistenceMode, Republish, RetentionPolicy, Source, StorageType,
    SubjectTransform,
};

use futures::{StreamExt, TryStreamExt, stream};

use super::Nats;
use super::write::is_missing;
use crate::backend::Backend;
use crate::error::BusError;
use crate::partition::Partitions;
use crate::topology::{self, Retention, SourceSpec, StreamSpec, TOPOLOGY_VERSION, WhenFull};

/// Under which the version stands in a stream's metadata.
const VERSION: &str = "muster.layout";
/// How often, and how long after each other, it is looked whether a stream copies from all of its sources.
const MOST_LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(30);
/// How often, and how long after each other, servers of a cluster are asked that lack others to keep a stream on.
const MOST_LOOKS_FOR_PEERS: u32 = 50;
const LOOK_FOR_PEERS: Duration = Duration::from_millis(200);
/// Longest time that a consumer of a stream without queues may be inactive: the default of ordered consumers of NATS clients. The
/// server refuses consumers with more, so readers that end without notice leave nothing behind.
const MAX_INACTIVE: Duration = Duration::from_secs(300);
/// How long the mark of an expired message stays.
const MARK_TTL: Duration = Duration::from_secs(60);

/// What others copy from goes first, then the others in their order: a server begins to copy up to a tenth of a second
/// after it was asked to, and no offer is seen before. A server alone is asked for all of them at once; several have to
/// agree on each, which they do not get done in time for all of them together.
pub(super) async fn provision(nats: &Nats) -> Result<(), BusError> {
    if let Some(found) = nats.parted().await?
        && found != nats.settings.parted()
    {
        return Err(BusError::Parted { found: found.count(), wanted: nats.settings.parted().count() });
    }
    if nats.kind.as_ref().is_some_and(|kind| !kind.may_provision()) {
        return wait_for_others(nats).await;
    }
    let specs = topology::streams(&nats.settings);
    let is_copied = |name: &str| specs.iter().flat_map(|spec| &spec.sources).any(|it| it.stream == name);
    let (sources, others): (Vec<_>, Vec<_>) = specs.iter().partition(|spec| is_copied(spec.name));
    let at_once = if nats.settings.replicas == 1 { specs.len() } else { 1 };
    for specs in [sources, others] {
        let specs = stream::iter(specs.into_iter().map(Ok));
        specs.try_for_each_concurrent(at_once, |spec| ensure(nats, spec)).await?;
    }
    for spec in specs.iter().filter(|spec| spec.sources.len() > 1) {
        copies_from_all(nats, spec).await?;
    }
    Ok(())
}

/// Creates the streams that are missing: somebody took them away.
pub(super) async fn mend(nats: &Nats) -> Result<(), BusError> {
    let mut there = HashSet::new();
    let mut names = nats.context.stream_names();
    while let Some(name) = nats.limited("the streams", async { names.next().await.transpose() }).await? {
        there.insert(name);
    }
    for spec in topology::streams(&nats.settings).iter().filter(|spec| !there.contains(spec.name)) {
        tracing::error!(stream = spec.name, "it is missing: somebody took it away; it is made anew, empty");
        ensure(nats, spec).await?;
    }
    Ok(())
}

/// Waits until somebody who may has laid out the bus.
async fn wait_for_others(nats: &Nats) -> Result<(), BusError> {
    for _ in 0..MOST_LOOKS {
        if nats.parted().await?.is_some() {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Err(BusError::NotProvisioned { what: "the record".to_owned() })
}

/// Waits until a stream copies from all of its sources. With several of them on a busy machine, what is written before may
/// never be copied (seen with nats-server 2.15: no lag is told, and the messages are not there).
async fn copies_from_all(nats: &Nats, spec: &StreamSpec) -> Result<(), BusError> {
    let what = format!("stream {}", spec.name);
    for _ in 0..MOST_LOOKS {
        let stream = nats.limited(&what, nats.context.get_stream(spec.name)).await?;
        if stream.cached_info().sources.iter().all(|source| source.active.is_some()) {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    tracing::warn!(stream = spec.name, "it does not copy from all streams yet");
    Ok(())
}

async fn ensure(nats: &Nats, spec: &StreamSpec) -> Result<(), BusError> {
    let what = format!("stream {}", spec.name);
    let wanted = config(spec, usize::from(nats.settings.replicas));
    let found = async {
        match nats.context.get_stream(spec.name).await {
            Ok(stream) => Ok(Some(stream.cached_info().config.clone())),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let Some(found) = nats.limited(&what, found).await? else {
        // Another process may create it at this moment; the same layout is no conflict.
        return match create(nats, &what, &wanted).await {
            Ok(()) => Ok(()),
            Err(error) => match nats.limited(&what, nats.context.get_stream(spec.name)).await {
                Ok(_) => Ok(()),
                Err(_) => Err(error),
            },
        };
    };
    let version = found.metadata.get(VERSION).and_then(|text| text.parse().ok()).unwrap_or(0);
    if version > TOPOLOGY_VERSION {
        return Err(BusError::TopologyNewer {
            stream: spec.name.to_owned(),
            found: version,
            known: TOPOLOGY_VERSION,
        });
    }
    let deny_purge = match Partitions::with_stream(spec.name) {
        // Whoever set the record up has said it: what can be removed stays so, whatever others have in their settings.
        Some(_) => found.deny_purge,
        None => wanted.deny_purge,
    };
    let wanted = Config { deny_purge, ..wanted };
    if is_as_wanted(&found, &wanted) {
        return Ok(());
    }
    // The server does not change this of an existing stream.
    let wanted = Config { persist_mode: found.persist_mode, ..wanted };
    tracing::info!(stream = spec.name, "it is laid out anew: it was not as it is meant to be");
    let update = |wanted: Config| nats.limited(&what, nats.context.update_stream(wanted));
    let updated = match update(wanted.clone()).await {
        // A server takes no limit that an existing consumer exceeds, and the fleet must start anyway.
        Err(error) if wanted.consumer_limits != found.consumer_limits => {
            tracing::warn!(%error, "inactive consumers stay; delete them and run `muster up` again");
            update(Config { consumer_limits: found.consumer_limits, ..wanted }).await
        }
        updated => updated,
    };
    updated.map(drop)
}

/// Creates a stream. Servers that came up just now do not know yet who of them is there, and refuse for a while.
async fn create(nats: &Nats, what: &str, wanted: &Config) -> Result<(), BusError> {
    let mut looks = 0;
    loop {
        let create = async {
            match nats.context.create_stream(wanted.clone()).await {
                Err(error) if looks < MOST_LOOKS_FOR_PEERS && lacks_peers(&error) => Ok(false),
                created => created.map(|_| true),
            }
        };
        if nats.limited(what, create).await? {
            return Ok(());
        }
        looks += 1;
        tokio::time::sleep(LOOK_FOR_PEERS).await;
    }
}

fn lacks_peers(error: &CreateStreamError) -> bool {
    matches!(error.kind(), CreateStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::CLUSTER_NO_PEERS)
}

/// Compares what we set; the server fills in the rest.
fn is_as_wanted(found: &Config, wanted: &Config) -> bool {
    let same_metadata = wanted.metadata.iter().all(|(name, value)| found.metadata.get(name) == Some(value));
    same_metadata && set_by_us(found) == set_by_us(wanted)
}

/// What of a stream's configuration we set, and may change.
fn set_by_us(config: &Config) -> Config {
    let sources = config.sources.iter().flatten().map(|source| Source {
        name: source.name.clone(),
        subject_transforms: source.subject_transforms.clone(),
        ..Source::default()
    });
    Config {
        subjects: config.subjects.clone(),
        max_bytes: config.max_bytes,
        max_age: config.max_age,
        max_messages_per_subject: config.max_messages_per_subject,
        num_replicas: config.num_replicas,
        discard: config.discard,
        retention: config.retention,
        allow_rollup: config.allow_rollup,
        deny_delete: config.deny_delete,
        deny_purge: config.deny_purge,
        allow_direct: config.allow_direct,
        allow_message_ttl: config.allow_message_ttl,
        subject_delete_marker_ttl: config.subject_delete_marker_ttl.filter(|ttl| !ttl.is_zero()),
        allow_atomic_publish: config.allow_atomic_publish,
        sources: (config.sources.is_some()).then(|| sources.collect()),
        republish: config.republish.clone(),
        consumer_limits: config.consumer_limits.clone(),
        ..Config::default()
    }
}

fn source(spec: &SourceSpec) -> Source {
    let transform = SubjectTransform { source: spec.filter.clone(), destination: spec.subject.to_owned() };
    Source { name: spec.stream.to_owned(), subject_transforms: vec![transform], ..Source::default() }
}

fn config(spec: &StreamSpec, replicas: usize) -> Config {
    Config {
        name: spec.name.to_owned(),
        description: Some(spec.description.to_owned()),
        subjects: spec.subjects.clone(),
        max_bytes: i64::try_from(spec.max_bytes).unwrap_or(i64::MAX),
        max_messages: -1,
        max_messages_per_subject: spec.per_subject.map_or(-1, i64::from),
        max_consumers: -1,
        discard: match spec.when_full {
            WhenFull::RefuseNew => DiscardPolicy::New,
            WhenFull::DropOldest => DiscardPolicy::Old,
        },
        retention: match spec.retention {
            Retention::Limits => RetentionPolicy::Limits,
            Retention::WorkQueue => RetentionPolicy::WorkQueue,
        },
        max_age: spec.max_age.unwrap_or_default(),
        storage: StorageType::File,
        // The server has this mode for single copies only; several are safe without waiting for each disk.
        persist_mode: (!spec.waits_for_disk && replicas == 1).then_some(PersistenceMode::Async),
        num_replicas: replicas,
        duplicate_window: spec.dedup.unwrap_or_default(),
        // The server wants it where it marks what expired.
        allow_rollup: spec.marks,
        deny_delete: spec.keeps,
        deny_purge: spec.keeps_all,
        allow_direct: spec.direct,
        allow_message_ttl: spec.expiry,
        subject_delete_marker_ttl: spec.marks.then_some(MARK_TTL),
        allow_atomic_publish: spec.batches,
        sources: (!spec.sources.is_empty()).then(|| spec.sources.iter().map(source).collect()),
        republish: spec.republish.map(|(from, to)| Republish {
            source: format!("{from}>"),
            destination: format!("{to}>"),
            headers_only: false,
        }),
        // Queues are durable: that of a role must outlive its agents.
        consumer_limits: (spec.retention == Retention::Limits)
            .then(|| ConsumerLimits { inactive_threshold: MAX_INACTIVE, ..ConsumerLimits::default() }),
        metadata: HashMap::from([(VERSION.to_owned(), TOPOLOGY_VERSION.to_string())]),
        ..Config::default()
    }
}
