//! A program that knows nothing of Muster: it has a NATS client, and that is all.

use std::time::Duration;

use async_nats::jetstream::{self, consumer};
use bytes::Bytes;
use futures::StreamExt;
use muster_bus::signatures::{Purpose, SIGNATURE, Signatures, said_by};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Anything that goes wrong.
pub type StrangerError = Box<dyn std::error::Error + Send + Sync>;

/// Time for any one call.
const LIMIT: Duration = Duration::from_secs(10);

/// Entries of agents that nobody can read: the kind of entry, what it says, and the field to be named.
pub const UNREADABLE: [(&str, &str, &str); 5] = [
    ("outcome", r#"{"body":{"type":"outcome","content":{"ending":"success"}}}"#, "ending"),
    (
        "outcome",
        r#"{"body":{"type":"outcome","content":{"ending":"done","usage":{"steps":2.5}}}}"#,
        "body.content.usage.steps",
    ),
    (
        "outcome",
        r#"{"body":{"type":"outcome","content":{"ending":"done","product":{"conclusion":"x"}}}}"#,
        "body.content.product",
    ),
    ("started", r#"{"body":{"type":"started","content":{"attempt":1}}}"#, "ack"),
    ("outcome", "I am done.", "not valid"),
];

/// A foreign program on the bus.
pub struct Stranger {
    runtime: Runtime,
    client: async_nats::Client,
    signatures: Signatures,
}

impl Stranger {
    /// Connects to a bus.
    ///
    /// # Errors
    /// When nothing answers there.
    pub fn connect(url: &str) -> Result<Self, StrangerError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = runtime.block_on(async { timeout(LIMIT, crate::way::client(url)).await })??;
        let signatures = Signatures::of(crate::way::credentials(url).as_deref())?;
        Ok(Self { runtime, client, signatures })
    }

    /// Publishes bytes without any header.
    ///
    /// # Errors
    /// When the client refuses them.
    pub fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), StrangerError> {
        let payload = Bytes::copy_from_slice(payload);
        let publish = self.client.publish(subject.to_owned(), payload);
        self.runtime.block_on(async { timeout(LIMIT, publish).await })??;
        Ok(())
    }

    /// Publishes an order, signed where a fleet has keys.
    ///
    /// # Errors
    /// When the client refuses it.
    pub fn order(&self, subject: &str, payload: &[u8]) -> Result<(), StrangerError> {
        let (headers, payload) = (self.signature(subject, payload), Bytes::copy_from_slice(payload));
        let publish = self.client.publish_with_headers(subject.to_owned(), headers, payload);
        self.runtime.block_on(async { timeout(LIMIT, publish).await })??;
        Ok(())
    }

    fn signature(&self, subject: &str, payload: &[u8]) -> async_nats::HeaderMap {
        let mut headers = async_nats::HeaderMap::new();
        if let Some(signature) = self.signatures.sign(Purpose::Order, &said_by(subject, payload)) {
            headers.insert(SIGNATURE, signature.to_string().as_str());
        }
        headers
    }

    /// Asks something as NATS programs do, signed where a fleet has keys, and waits for the answer.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn request(&self, subject: &str, payload: &[u8]) -> Result<Vec<u8>, StrangerError> {
        let (headers, payload) = (self.signature(subject, payload), Bytes::copy_from_slice(payload));
        let request = self.client.request_with_headers(subject.to_owned(), headers, payload);
        Ok(self.runtime.block_on(async { timeout(LIMIT, request).await })??.payload.to_vec())
    }

    /// Publishes bytes that ask for an answer on a subject of the sender's choice.
    ///
    /// # Errors
    /// When the client refuses them.
    pub fn publish_with_reply(
        &self,
        subject: &str,
        reply: &str,
        payload: &[u8],
    ) -> Result<(), StrangerError> {
        let payload = Bytes::copy_from_slice(payload);
        let publish = self.client.publish_with_reply(subject.to_owned(), reply.to_owned(), payload);
        self.runtime.block_on(async { timeout(LIMIT, publish).await })??;
        Ok(())
    }

    /// Answers requests on a subject, as one of a group, for as long as this program is there. What is answered with nothing
    /// is not answered.
    ///
    /// # Errors
    /// When the server does not allow it.
    pub fn serve(
        &self,
        subject: &str,
        group: &str,
        answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static,
    ) -> Result<(), StrangerError> {
        let client = self.client.clone();
        let subscribe = async {
            let requests = client.queue_subscribe(subject.to_owned(), group.to_owned()).await?;
            client.flush().await?;
            Ok::<_, StrangerError>(requests)
        };
        let mut requests = self.runtime.block_on(async { timeout(LIMIT, subscribe).await })??;
        let client = self.client.clone();
        self.runtime.spawn(async move {
            while let Some(request) = requests.next().await {
                if let (Some(reply), Some(bytes)) = (request.reply, answer(&request.payload)) {
                    let _ = client.publish(reply, bytes.into()).await;
                }
            }
        });
        Ok(())
    }

    /// Waits until the server has seen everything.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn flush(&self) -> Result<(), StrangerError> {
        self.runtime.block_on(async { timeout(LIMIT, self.client.flush()).await })??;
        Ok(())
    }

    /// Listens on subjects.
    ///
    /// # Errors
    /// When the server does not allow it.
    pub fn subscribe(&self, subjects: &[&str]) -> Result<Listening<'_>, StrangerError> {
        let subscribe = async {
            let mut all = futures::stream::SelectAll::new();
            for subject in subjects {
                all.push(self.client.subscribe((*subject).to_owned()).await?);
            }
            self.client.flush().await?;
            Ok::<_, StrangerError>(all)
        };
        let messages = self.runtime.block_on(async { timeout(LIMIT, subscribe).await })??;
        Ok(Listening { runtime: &self.runtime, messages: Mutex::new(messages) })
    }

    /// The raw bytes of every message in every stream of the server: subjects, headers and payloads.
    ///
    /// # Errors
    /// When a stream cannot be read.
    pub fn everything_stored(&self) -> Result<Vec<u8>, StrangerError> {
        self.runtime.block_on(async { timeout(3 * LIMIT, everything_stored(&self.client)).await })?
    }
}

/// Messages as they arrive.
pub struct Listening<'a> {
    runtime: &'a Runtime,
    messages: Mutex<futures::stream::SelectAll<async_nats::Subscriber>>,
}

impl Listening<'_> {
    /// The next message: subject and payload.
    ///
    /// # Errors
    /// When none comes within `limit`.
    pub fn next(&self, limit: Duration) -> Result<(String, Vec<u8>), StrangerError> {
        let next = async { self.messages.lock().await.next().await };
        let message =
            self.runtime.block_on(async { timeout(limit, next).await })?.ok_or("the bus is gone")?;
        Ok((message.subject.to_string(), message.payload.to_vec()))
    }
}

async fn everything_stored(client: &async_nats::Client) -> Result<Vec<u8>, StrangerError> {
    let context = jetstream::new(client.clone());
    let mut found = Vec::new();
    let mut names = context.stream_names();
    while let Some(name) = names.next().await {
        let mut stream = context.get_stream(name?).await?;
        let state = stream.info().await?.state.clone();
        let work_queue =
            stream.cached_info().config.retention == jetstream::stream::RetentionPolicy::WorkQueue;
        if state.messages == 0 || work_queue {
            continue;
        }
        let config = consumer::pull::OrderedConfig::default();
        let mut messages = stream.create_consumer(config).await?.messages().await?;
        while let Some(message) = messages.next().await {
            let message = message?;
            found.extend_from_slice(message.subject.as_bytes());
            found.extend_from_slice(format!("{:?}", message.headers).as_bytes());
            found.extend_from_slice(&message.payload);
            // The last message of the stream may be gone by now, so its position is not waited for.
            if message.info()?.pending == 0 {
                break;
            }
        }
    }
    Ok(found)
}
