//! The bus on NATS.

mod asker;
mod connect;
mod convert;
mod follow;
mod gathered;
mod link;
mod listener;
mod missing;
mod objects;
mod pinned;
mod presence;
mod provision;
mod queue;
mod tls;
mod write;

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::{Request, jetstream};
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::{AgentId, Seq};
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;

pub use self::asker::{Asker, Reply};
pub use self::connect::shown as without_user;
use self::link::Link;
use crate::backend::{
    Ack, Appended, Backend, Begin, Incoming, Message, Pace, Pull, QueueSpec, Stored, StreamState,
    WriteOptions,
};
use crate::bus::ServerInfo;
use crate::credentials::HolderKind;
use crate::error::{AppendError, BusError, NOBODY};
use crate::partition::Partitions;
use crate::settings::BusSettings;
use crate::store::ListedObject;

/// A connection with the state of its link.
type LinkedClient = (async_nats::Client, Arc<Link>);

/// A connection to a NATS server.
#[derive(Clone)]
pub(crate) struct Nats {
    client: async_nats::Client,
    context: jetstream::Context,
    link: Arc<Link>,
    settings: Arc<BusSettings>,
    who: AgentId,
    /// What its credentials are for, if these say it.
    kind: Option<HolderKind>,
    url: String,
    /// How the record is parted, once it is known.
    parted: Arc<OnceLock<Partitions>>,
    /// Connection to the system account for single requests, once there was one.
    system: Arc<OnceCell<Option<LinkedClient>>>,
}

impl Nats {
    /// In whose name it speaks.
    pub(crate) const fn who(&self) -> &AgentId {
        &self.who
    }

    /// Runs a call within the time limit, unless the connection is of no use any more.
    fn limited<T, E: std::fmt::Display>(
        &self,
        what: &str,
        call: impl IntoFuture<Output = Result<T, E>, IntoFuture: Send> + Send,
    ) -> impl Future<Output = Result<T, BusError>> {
        self.link.limited(what, self.settings.request_timeout, call)
    }

    /// Waits for an answer within a limit, unless the connection is of no use any more.
    fn within<T>(
        &self,
        what: &str,
        limit: Duration,
        call: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T, BusError>> {
        self.link.within(what, limit, call)
    }

    /// How the record is parted, by the streams there are; nothing where there is none of it.
    async fn ask_how_parted(&self) -> Result<Option<Partitions>, jetstream::context::GetStreamByNameError> {
        use jetstream::context::GetStreamByNameErrorKind::NotFound;
        match self.context.stream_by_subject("run.>").await {
            Ok(name) => {
                let found = Partitions::with_stream(&name);
                Ok(found.map(|found| *self.parted.get_or_init(|| found)))
            }
            Err(error) if error.kind() == NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A stream's handle, without asking the server.
    async fn stream(&self, name: &'static str) -> Result<jetstream::stream::Stream<()>, BusError> {
        self.limited(name, self.context.get_stream_no_info(name)).await
    }

    /// One round trip: when it returns, the server has seen all that was sent before.
    async fn round_trip(&self, client: &async_nats::Client) -> Result<Duration, BusError> {
        let began = Instant::now();
        let inbox = client.new_inbox();
        let trip = async {
            let mut replies = client.subscribe(inbox.clone()).await.map_err(|e| e.to_string())?;
            client.publish(inbox, Bytes::new()).await.map_err(|e| e.to_string())?;
            replies.next().await.ok_or_else(|| "the connection is closed".to_owned())
        };
        self.limited("a round trip", trip).await?;
        Ok(began.elapsed())
    }

    async fn subscribe_on(
        &self,
        client: async_nats::Client,
        subjects: &[String],
    ) -> Result<BoxStream<'static, Incoming>, BusError> {
        let mut all = futures::stream::SelectAll::new();
        for subject in subjects {
            all.push(self.limited("a subscription", client.subscribe(subject.clone())).await?);
        }
        self.round_trip(&client).await?;
        // The client lives as long as its subscriptions.
        Ok(all
            .map(move |message| {
                let _connection = &client;
                convert::incoming(message)
            })
            .boxed())
    }
}

#[async_trait]
impl Backend for Nats {
    async fn parted(&self) -> Result<Option<Partitions>, BusError> {
        match self.parted.get() {
            Some(parted) => Ok(Some(*parted)),
            None => self.limited("the streams of the record", self.ask_how_parted()).await,
        }
    }

    async fn provision(&self) -> Result<(), BusError> {
        provision::provision(self).await
    }

    async fn mend(&self) -> Result<(), BusError> {
        provision::mend(self).await
    }

    async fn server(&self) -> Result<ServerInfo, BusError> {
        connect::server(self).await
    }

    async fn clock_skew(&self) -> Option<i64> {
        connect::clock_skew(self).await
    }

    fn fatal(&self) -> watch::Receiver<Option<BusError>> {
        self.link.fatal()
    }

    fn connections(&self) -> u64 {
        self.link.connections()
    }

    async fn ping(&self) -> Result<Duration, BusError> {
        self.round_trip(&self.client).await
    }

    fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    fn max_payload(&self) -> usize {
        self.client.max_payload()
    }

    async fn append(
        &self,
        stream: &'static str,
        messages: Vec<Message>,
        options: WriteOptions,
    ) -> Result<Appended, AppendError> {
        write::append(self, stream, messages, options).await
    }

    async fn scan(
        &self,
        stream: &'static str,
        filters: &[String],
        after: Seq,
    ) -> Result<Vec<Stored>, BusError> {
        follow::scan(self, stream, filters, after).await
    }

    async fn heads(
        &self,
        stream: &'static str,
        filters: &[String],
        after: Seq,
    ) -> Result<Vec<Stored>, BusError> {
        follow::heads(self, stream, filters, after).await
    }

    async fn follow(
        &self,
        stream: &'static str,
        filters: Vec<String>,
        begin: Begin,
        pace: Pace,
    ) -> Result<BoxStream<'static, Stored>, BusError> {
        follow::follow(self, stream, filters, begin, pace).await
    }

    async fn last(&self, stream: &'static str, subject: &str) -> Result<Option<Stored>, BusError> {
        use jetstream::stream::LastRawMessageErrorKind::NoMessageFound;
        let handle = self.stream(stream).await?;
        let get = async {
            match handle.get_last_raw_message_by_subject(subject).await {
                Ok(message) => Ok(Some(convert::raw(message))),
                Err(error) if error.kind() == NoMessageFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        missing::of_stream(self, "the last message of a subject", stream, get).await
    }

    async fn get(&self, stream: &'static str, seq: Seq) -> Result<Option<Stored>, BusError> {
        use jetstream::stream::LastRawMessageErrorKind::NoMessageFound;
        let handle = self.stream(stream).await?;
        let get = async {
            match handle.get_raw_message(seq.0).await {
                Ok(message) => Ok(Some(convert::raw(message))),
                Err(error) if error.kind() == NoMessageFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        missing::of_stream(self, "a message by its place", stream, get).await
    }

    async fn remove(&self, stream: &'static str, seq: Seq) -> Result<(), BusError> {
        if self.get(stream, seq).await?.is_none() {
            return Ok(());
        }
        let handle = self.stream(stream).await?;
        self.limited("a deletion", handle.delete_message(seq.0)).await.map(drop)
    }

    async fn state(&self, stream: &'static str, subjects: Option<&str>) -> Result<StreamState, BusError> {
        let handle = self.stream(stream).await?;
        let Some(filter) = subjects else {
            let info = self.limited("the state of a stream", handle.get_info()).await?;
            return Ok(state_in(&info));
        };
        let mut info = self.limited("the state of a stream", handle.info_with_subjects(filter)).await?;
        let mut state = state_in(&info.info);
        while let Some(subject) =
            self.limited("the subjects of a stream", async { info.next().await.transpose() }).await?
        {
            state.subjects.insert(subject.0, subject.1 as u64);
        }
        Ok(state)
    }

    async fn purge(&self, stream: &'static str, filter: &str) -> Result<u64, BusError> {
        let handle = self.stream(stream).await?;
        Ok(self.limited("a purge", handle.purge().filter(filter)).await?.purged)
    }

    async fn join(&self, queue: &QueueSpec) -> Result<Arc<dyn Pull>, BusError> {
        queue::join(self, queue).await
    }

    async fn ack(&self, subject: &str, ack: Ack, confirm: bool) -> Result<(), BusError> {
        queue::ack(self, subject, ack, confirm).await
    }

    async fn give_out_again(&self, queue: &QueueSpec, subject: &str) -> Result<bool, BusError> {
        queue::give_out_again(self, queue, subject).await
    }

    async fn delete_consumer(&self, stream: &'static str, name: &str) -> Result<(), BusError> {
        self.limited("deleting a consumer", self.context.delete_consumer_from_stream(name, stream))
            .await
            .map(drop)
    }

    async fn in_hand(&self, stream: &'static str) -> Result<BTreeMap<String, u64>, BusError> {
        queue::in_hand(self, stream).await
    }

    async fn object_put(&self, name: &str, bytes: Bytes) -> Result<(), BusError> {
        objects::put(self, name, bytes).await
    }

    async fn object_get(&self, name: &str, most: usize) -> Result<Option<Bytes>, BusError> {
        objects::get(self, name, most).await
    }

    async fn object_has(&self, name: &str) -> Result<bool, BusError> {
        objects::has(self, name).await
    }

    async fn object_delete(&self, name: &str) -> Result<(), BusError> {
        objects::delete(self, name).await
    }

    async fn object_list(&self, prefix: &str) -> Result<Vec<ListedObject>, BusError> {
        objects::list(self, prefix).await
    }

    async fn object_sweep(&self, unused_for: Duration) -> Result<u64, BusError> {
        objects::sweep(self, unused_for).await
    }

    async fn publish(&self, message: Message) -> Result<(), BusError> {
        let (bytes, most) = (message.payload.len(), self.max_payload());
        if bytes > most {
            return Err(BusError::TooLarge { what: "a message".into(), bytes, most });
        }
        let headers = convert::headers(&message.headers);
        let publish = self.client.publish_with_headers(message.subject, headers, message.payload);
        self.limited("a publication", publish).await
    }

    async fn subscribe(&self, subject: &str) -> Result<BoxStream<'static, Message>, BusError> {
        let incoming = self.subscribe_on(self.client.clone(), &[subject.to_owned()]).await?;
        Ok(incoming.map(|incoming| incoming.message).boxed())
    }

    async fn subscribe_apart(&self, subjects: &[String]) -> Result<BoxStream<'static, Incoming>, BusError> {
        let name = format!("{} control", self.who);
        let inbox = crate::credentials::rights::inbox(&self.who);
        let caller = connect::Caller { settings: &self.settings, url: &self.url, inbox, pinned: None };
        let client = connect::client(&caller, &name, &self.link.apart()).await?;
        self.subscribe_on(client, subjects).await
    }

    async fn serve(&self, subject: &str, name: &str) -> Result<BoxStream<'static, Incoming>, BusError> {
        let subscribe = self.client.queue_subscribe(subject.to_owned(), name.to_owned());
        let requests = self.limited("a subscription", subscribe).await?;
        Ok(requests.map(convert::incoming).boxed())
    }

    async fn request(&self, message: Message, patience: Duration) -> Result<Message, BusError> {
        let (bytes, most) = (message.payload.len(), self.max_payload());
        if bytes > most {
            return Err(BusError::TooLarge { what: "a request".into(), bytes, most });
        }
        self.link.check()?;
        let request = Request::new().headers(convert::headers(&message.headers)).payload(message.payload);
        let call = self.client.send_request(message.subject, request.timeout(None));
        let answer = self.within("a request", patience, call).await?;
        answer.map(convert::message).map_err(|error| {
            let reason = match error.kind() {
                async_nats::RequestErrorKind::NoResponders => NOBODY.to_owned(),
                _ => error.to_string(),
            };
            BusError::Other { what: "a request".into(), reason }
        })
    }

    async fn presence(&self) -> Result<Option<BoxStream<'static, Message>>, BusError> {
        presence::presence(self).await
    }

    async fn health(&self) -> Result<Vec<Bytes>, BusError> {
        presence::health(self).await
    }
}

fn state_in(info: &jetstream::stream::Info) -> StreamState {
    StreamState {
        first: Seq(info.state.first_sequence),
        last: Seq(info.state.last_sequence),
        messages: info.state.messages,
        bytes: info.state.bytes,
        max_bytes: u64::try_from(info.config.max_bytes).ok().filter(|&most| most > 0),
        keeps_all: info.config.deny_purge,
        subjects: BTreeMap::new(),
    }
}
