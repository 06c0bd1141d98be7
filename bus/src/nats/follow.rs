//! Reading streams: up to now, and from now on.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use async_nats::jetstream::stream::ConsumerCreateStrictErrorKind;
use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::Seq;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::convert::Delivered;
use super::gathered::Gathered;
use super::link::Link;
use super::{Nats, convert, missing};
use crate::backend::{Begin, Pace, Stored};
use crate::credentials::HolderKind;
use crate::credentials::rights::{CONSUMERS, consumer_names};
use crate::error::BusError;

/// Messages asked for at a time.
pub(super) const CHUNK: usize = 500;
/// Of large messages.
const FEW: usize = 8;
/// How long a consumer outlives its reader.
const IDLE: Duration = Duration::from_secs(30);
/// How often the server says that a follower with nothing to read is still served.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Pause before another try when all names of a holder are in use.
const BUSY: Duration = Duration::from_millis(20);
/// Pause before trying again after a failure.
const RETRY: Duration = Duration::from_millis(250);

/// A reader's consumer: named, in memory, no acknowledgements.
async fn reader(
    nats: &Nats,
    stream: &'static str,
    filters: &[String],
    begin: Begin,
    headers_only: bool,
) -> Result<Consumer<pull::Config>, BusError> {
    let deliver_policy = match begin {
        Begin::After(Seq(0)) => DeliverPolicy::All,
        Begin::After(seq) => DeliverPolicy::ByStartSequence { start_sequence: seq.0 + 1 },
        Begin::LastPerSubject => DeliverPolicy::LastPerSubject,
    };
    let config = |name: String| pull::Config {
        name: Some(name),
        deliver_policy,
        ack_policy: AckPolicy::None,
        filter_subjects: filters.to_vec(),
        inactive_threshold: IDLE,
        memory_storage: true,
        num_replicas: 1,
        headers_only,
        // Two processes of one holder with the same configuration would share a consumer unnoticed.
        metadata: HashMap::from([("muster.reader".to_owned(), Uuid::now_v7().simple().to_string())]),
        ..pull::Config::default()
    };
    let what = format!("reading stream {stream}");
    let until = Instant::now() + nats.settings.request_timeout;
    loop {
        for name in names(nats) {
            let create = nats.context.create_consumer_strict_on_stream(config(name), stream);
            match nats.within(&what, nats.settings.request_timeout, create).await? {
                Err(error) if matches!(error.kind(), ConsumerCreateStrictErrorKind::AlreadyExists) => {}
                created => return missing::of_stream(nats, &what, stream, async { created }).await,
            }
        }
        if Instant::now() >= until {
            let reason = format!(
                "all {CONSUMERS} consumers of {} on this stream are in use; end another command that reads with the same \
                 credentials, or issue others (`muster keys issue`)",
                nats.who
            );
            return Err(BusError::Other { what, reason });
        }
        tokio::time::sleep(BUSY).await;
    }
}

/// Names for a consumer, in the order to try: any unique one for a holder that may create all consumers, else the holder's own.
fn names(nats: &Nats) -> Vec<String> {
    let is_free = nats.kind.as_ref().is_none_or(HolderKind::may_provision);
    if is_free {
        return vec![format!("{}-{}", nats.who, Uuid::now_v7().simple())];
    }
    consumer_names(&nats.who).collect()
}

pub(super) async fn scan(
    nats: &Nats,
    stream: &'static str,
    filters: &[String],
    after: Seq,
) -> Result<Vec<Stored>, BusError> {
    read(nats, stream, filters, after, false).await
}

/// The same without bodies.
pub(super) async fn heads(
    nats: &Nats,
    stream: &'static str,
    filters: &[String],
    after: Seq,
) -> Result<Vec<Stored>, BusError> {
    read(nats, stream, filters, after, true).await
}

async fn read(
    nats: &Nats,
    stream: &'static str,
    filters: &[String],
    after: Seq,
    headers_only: bool,
) -> Result<Vec<Stored>, BusError> {
    let reading = Reading { nats, stream, filters, headers_only };
    reading.all(Begin::After(after)).await
}

/// The newest message of each subject, up to now.
pub(super) async fn latest(
    nats: &Nats,
    stream: &'static str,
    filter: String,
) -> Result<Vec<Stored>, BusError> {
    Reading { nats, stream, filters: &[filter], headers_only: false }.all(Begin::LastPerSubject).await
}

/// What the messages of a subject hold together, up to so many bytes and a few messages more.
pub(super) async fn content(
    nats: &Nats,
    stream: &'static str,
    subject: String,
    most: usize,
) -> Result<Vec<u8>, BusError> {
    let reading = Reading { nats, stream, filters: &[subject], headers_only: false };
    let mut content = Vec::with_capacity(most);
    reading
        .each(Begin::After(Seq(0)), FEW, |stored| {
            content.extend_from_slice(&stored.message.payload);
            content.len() <= most
        })
        .await?;
    Ok(content)
}

/// A message that a server takes for the end of the answers where they come from another account: it passes nothing on to the
/// reader that comes after it. Nothing of ours is so empty; whoever may write to a stream can write such a one.
pub(super) fn ends_answers(stored: &Stored) -> bool {
    stored.message.payload.is_empty() && stored.message.headers.0.is_empty()
}

/// What is read of a stream, up to now.
struct Reading<'a> {
    nats: &'a Nats,
    stream: &'static str,
    filters: &'a [String],
    headers_only: bool,
}

impl Reading<'_> {
    async fn all(&self, begin: Begin) -> Result<Vec<Stored>, BusError> {
        let mut found = Vec::new();
        self.each(begin, CHUNK, |stored| {
            found.push(stored);
            true
        })
        .await?;
        Ok(found)
    }

    /// Gives each message that is there now, asked for in chunks, until the taker wants no more.
    async fn each(
        &self,
        mut begin: Begin,
        chunk: usize,
        mut take: impl FnMut(Stored) -> bool + Send,
    ) -> Result<(), BusError> {
        let (mut taken, mut whole) = (0, None);
        loop {
            let consumer = reader(self.nats, self.stream, self.filters, begin, self.headers_only).await?;
            let _forgotten = Reader::of(self.nats, self.stream, &consumer);
            let pending = usize::try_from(consumer.cached_info().num_pending).unwrap_or(usize::MAX);
            let whole = *whole.get_or_insert(pending);
            let mut cut_short = None;
            while taken < whole && cut_short.is_none() {
                let (link, limit) = (&self.nats.link, self.nats.settings.request_timeout);
                let messages = batch(link, limit, &consumer, (whole - taken).min(chunk)).await?;
                // What was purged or expired in the meantime does not come.
                if messages.is_empty() {
                    return Ok(());
                }
                taken += messages.len();
                cut_short = messages.last().filter(|last| ends_answers(last)).map(|last| last.seq);
                for stored in messages {
                    if !take(stored) {
                        return Ok(());
                    }
                }
            }
            match cut_short {
                Some(seq) if taken < whole => begin = Begin::After(seq),
                Some(_) | None => return Ok(()),
            }
        }
    }
}

/// So many messages of a consumer, or those before the server takes the answers for ended.
pub(super) async fn batch(
    link: &Link,
    limit: Duration,
    consumer: &Consumer<pull::Config>,
    wanted: usize,
) -> Result<Vec<Stored>, BusError> {
    let found = deliveries(link, limit, consumer, wanted).await?;
    Ok(found.into_iter().map(|delivered| delivered.stored).collect())
}

/// The same, with what the consumer counts.
pub(super) async fn deliveries(
    link: &Link,
    limit: Duration,
    consumer: &Consumer<pull::Config>,
    wanted: usize,
) -> Result<Vec<Delivered>, BusError> {
    let mut found = Vec::with_capacity(wanted);
    let messages = consumer.fetch().max_messages(wanted).messages();
    let mut batch = link.limited("reading", limit, messages).await?;
    while let Some(message) = link.limited("reading", limit, async { batch.next().await.transpose() }).await?
    {
        let read = convert::delivered(message);
        let read = read.map_err(|reason| BusError::Other { what: "reading".into(), reason })?;
        let is_last = ends_answers(&read.stored);
        found.push(read);
        if is_last {
            break;
        }
    }
    Ok(found)
}

/// Removes a consumer when it is dropped: every one that is left costs the server something with every write.
struct Reader {
    context: jetstream::Context,
    stream: &'static str,
    name: String,
}

impl Reader {
    fn of(nats: &Nats, stream: &'static str, consumer: &Consumer<pull::Config>) -> Self {
        Self { context: nats.context.clone(), stream, name: consumer.cached_info().name.clone() }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        forget(&self.context, self.stream, std::mem::take(&mut self.name));
    }
}

/// Removes a consumer. Nobody waits for this: what is left behind disappears by itself when it was idle for long.
pub(super) fn forget(context: &jetstream::Context, stream: &str, name: String) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let (context, stream) = (context.clone(), stream.to_owned());
    runtime.spawn(async move { context.delete_consumer_from_stream(name, stream).await });
}

/// A reader that goes on for ever.
struct Follower {
    nats: Nats,
    stream: &'static str,
    filters: Vec<String>,
    begin: Begin,
    pace: Pace,
    epoch: watch::Receiver<u64>,
    source: Option<Source>,
}

/// The server's side of a follower, until the next interruption.
struct Source {
    messages: Messages,
    /// The consumer, forgotten with this.
    _consumer: Reader,
    /// What the consumer gave out so far; a gap means that something was lost on the way.
    given: u64,
}

/// How the messages of a consumer come.
enum Messages {
    AtOnce(Box<pull::Stream>),
    Gathered(Box<Gathered>),
}

impl Messages {
    async fn next(&mut self) -> Option<Delivered> {
        match self {
            Self::AtOnce(messages) => convert::delivered(messages.next().await?.ok()?).ok(),
            Self::Gathered(messages) => messages.next().await,
        }
    }
}

pub(super) async fn follow(
    nats: &Nats,
    stream: &'static str,
    filters: Vec<String>,
    begin: Begin,
    pace: Pace,
) -> Result<BoxStream<'static, Stored>, BusError> {
    let epoch = nats.link.epoch();
    let mut follower = Follower { nats: nats.clone(), stream, filters, begin, pace, epoch, source: None };
    follower.open().await?;
    Ok(futures::stream::unfold(follower, |mut follower| async move {
        let stored = follower.next().await?;
        Some((stored, follower))
    })
    .boxed())
}

impl Follower {
    async fn open(&mut self) -> Result<(), BusError> {
        self.epoch.mark_unchanged();
        let consumer = reader(&self.nats, self.stream, &self.filters, self.begin, false).await?;
        let _consumer = Reader::of(&self.nats, self.stream, &consumer);
        let messages = match self.pace {
            Pace::AtOnce => {
                let stream = consumer.stream().max_messages_per_batch(CHUNK);
                let stream = stream.heartbeat(HEARTBEAT).expires(HEARTBEAT * 3);
                Messages::AtOnce(Box::new(self.nats.limited("following", stream.messages()).await?))
            }
            Pace::Gathered(pause) => Messages::Gathered(Box::new(Gathered::new(&self.nats, consumer, pause))),
        };
        self.source = Some(Source { messages, given: 0, _consumer });
        Ok(())
    }

    /// The next message. Nothing only when the connection is of no use any more.
    async fn next(&mut self) -> Option<Stored> {
        loop {
            if self.source.is_none()
                && let Err(error) = self.open().await
            {
                if error.is_fatal() {
                    tracing::error!(%error, stream = self.stream, "following ends");
                    return None;
                }
                tracing::debug!(%error, stream = self.stream, "following tries again");
                tokio::time::sleep(RETRY).await;
                continue;
            }
            match self.receive().await {
                Some(stored) => {
                    self.begin = Begin::After(stored.seq);
                    return Some(stored);
                }
                None => self.source = None,
            }
        }
    }

    /// The next message of the present consumer; nothing when another one must be made.
    async fn receive(&mut self) -> Option<Stored> {
        let source = self.source.as_mut()?;
        loop {
            let read = tokio::select! {
                read = source.messages.next() => read?,
                // The consumer may be gone with the server it was on.
                changed = self.epoch.changed() => return changed.ok().and(None),
            };
            if read.consumer_seq != source.given + 1 {
                return None;
            }
            source.given = read.consumer_seq;
            let is_last = ends_answers(&read.stored);
            match self.begin {
                Begin::After(last) if read.stored.seq <= last => {}
                Begin::After(_) | Begin::LastPerSubject => {
                    if is_last {
                        self.source = None;
                    }
                    return Some(read.stored);
                }
            }
        }
    }
}
