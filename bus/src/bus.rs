//! The handle of the bus.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use muster_shared::ids::{AgentId, Role};
use muster_shared::secret::Redactor;
use muster_shared::time::{Millis, millis};
use muster_shared::wire::TraceContext;
use tokio::sync::watch;

use crate::allowance::Allowances;
use crate::answers::Answers;
use crate::asks::Asks;
use crate::auctions::Auctions;
use crate::backend::Backend;
use crate::commands::Commands;
use crate::control::Control;
use crate::credentials::rights::{consumer_holder, is_abandoned, of_runs};
use crate::dead::DeadLetters;
use crate::error::BusError;
use crate::files::Files;
use crate::gateway::GatewayDoor;
use crate::guards::GuardDoor;
use crate::hosts::HostDoor;
#[cfg(any(test, feature = "testing"))]
use crate::in_memory::InMemory;
use crate::kept::Kept;
use crate::leases::Leases;
use crate::lessons::Lessons;
use crate::live::LiveFeed;
use crate::nats::Nats;
use crate::observer::Observer;
use crate::queue::Tasks;
use crate::record::Record;
use crate::registry::Registry;
use crate::settings::BusSettings;
use crate::signatures::Signatures;
use crate::store::Store;
use crate::tap::Tap;
use crate::tool_servers::ToolServerDoor;
use crate::topology::DEAD;
use crate::track_record::TrackRecord;
use crate::trials::Trials;

/// One process's access to the bus. Cheap to clone.
#[derive(Clone)]
pub struct Bus {
    pub(crate) core: Arc<Core>,
}

/// What all services of one bus share.
#[derive(Clone)]
pub(crate) struct Core {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) who: AgentId,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) settings: BusSettings,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) live: crate::live::LiveSender,
    pub(crate) files: Arc<crate::files::FileLists>,
    pub(crate) signatures: Signatures,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

/// What the server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// The URL of the server.
    pub url: String,
    /// Its version.
    pub version: String,
    /// Its name.
    pub name: String,
    /// Whether it stores anything.
    pub jetstream: bool,
    /// Largest message it takes, in bytes.
    pub max_payload: usize,
    /// Time of one round trip.
    pub round_trip: Duration,
    /// Its clock minus ours, in milliseconds, where it can be told.
    pub clock_skew: Option<i64>,
}

impl Bus {
    /// Connects to the server that the settings name. Nothing is created; see [`Bus::provision`].
    ///
    /// # Errors
    /// [`BusError::Unreachable`], [`BusError::TooOld`], [`BusError::NoJetStream`], [`BusError::Unauthorized`]
    /// and [`BusError::Settings`], each saying what to do.
    pub async fn connect(
        settings: &BusSettings,
        who: &AgentId,
        redactor: Arc<Redactor>,
    ) -> Result<Self, BusError> {
        settings.check()?;
        // Large, and soon over.
        let backend = Box::pin(Nats::connect(settings, who)).await?;
        let who = backend.who().clone();
        let wrong = |error| BusError::Settings { reason: format!("the credentials file {error}") };
        let signatures = Signatures::of(settings.credentials.as_deref()).map_err(wrong)?;
        Ok(Self::on(Arc::new(backend), settings.clone(), &who, redactor).signed_by(signatures))
    }

    /// A bus in this process's memory, provisioned, with default settings.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn in_memory(who: &AgentId) -> Self {
        Self::in_memory_with(who, BusSettings::default(), Arc::new(Redactor::default()))
    }

    /// A bus in this process's memory, provisioned, with settings and a redactor.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn in_memory_with(who: &AgentId, settings: BusSettings, redactor: Arc<Redactor>) -> Self {
        Self::on(Arc::new(InMemory::new(&settings)), settings, who, redactor)
    }

    fn on(backend: Arc<dyn Backend>, settings: BusSettings, who: &AgentId, redactor: Arc<Redactor>) -> Self {
        let live = crate::live::LiveSender::default();
        let files = Arc::default();
        let signatures = Signatures::default();
        let (who, trace, observer) = (who.clone(), None, None);
        let core = Core { backend, who, redactor, settings, trace, live, files, signatures, observer };
        Self { core: Arc::new(core) }
    }

    /// The same connection in another agent's name.
    #[must_use]
    pub fn as_agent(&self, who: &AgentId) -> Self {
        let core = &self.core;
        Self::on(Arc::clone(&core.backend), core.settings.clone(), who, Arc::clone(&core.redactor))
            .signed_by(core.signatures.clone())
            .observed_by(core.observer.clone())
    }

    /// The same bus; what is sent through it is signed by other credentials.
    #[must_use]
    pub fn signed_by(&self, signatures: Signatures) -> Self {
        Self { core: Arc::new(Core { signatures, ..(*self.core).clone() }) }
    }

    /// The same bus; somebody looks on at what is written through it.
    #[must_use]
    pub fn observed_by(&self, observer: Option<Arc<dyn Observer>>) -> Self {
        Self { core: Arc::new(Core { observer, ..(*self.core).clone() }) }
    }

    /// Who looks on, if anybody does.
    #[must_use]
    pub fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.core.observer.as_ref()
    }

    /// What this process signs with, and by what it tells who signed.
    #[must_use]
    pub fn signatures(&self) -> &Signatures {
        &self.core.signatures
    }

    /// The same bus; what is written through it carries this trace context.
    #[must_use]
    pub fn traced(&self, trace: TraceContext) -> Self {
        Self { core: Arc::new(Core { trace: Some(trace), ..(*self.core).clone() }) }
    }

    /// Creates streams, consumers and buckets, or upgrades them in place. Doing it again changes nothing.
    ///
    /// # Errors
    /// When a newer build laid the bus out, when the server refuses, or when it does not answer in time.
    pub async fn provision(&self) -> Result<(), BusError> {
        self.core.backend.provision().await
    }

    /// Creates what is missing of the layout, and changes nothing that is there: settings of others may have made it.
    ///
    /// # Errors
    /// When the bus fails, or this process may not lay it out.
    pub async fn mend(&self) -> Result<(), BusError> {
        self.core.backend.mend().await
    }

    /// Nothing is in hand here: lets go what is kept for the runs at work, and gives memory back.
    pub fn rest(&self) {
        self.core.files.forget_all();
        crate::memory::give_back();
    }

    /// What the server says about itself, measured now.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub async fn server(&self) -> Result<ServerInfo, BusError> {
        self.core.backend.server().await
    }

    /// Waits until the bus is of no use to this process any more (a subject was denied), and says why.
    pub async fn failed(&self) -> BusError {
        first_error(self.core.backend.fatal()).await
    }

    /// Whether the connection to the server stands at this moment. One that was lost is made again by itself, at the
    /// address that was given.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.core.backend.is_connected()
    }

    /// How long the server takes to answer, whatever becomes of what it stores.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub async fn ping(&self) -> Result<Duration, BusError> {
        self.core.backend.ping().await
    }

    /// Writes a few bytes that wait for the disk, in place of those written before, and says how long that took.
    ///
    /// # Errors
    /// When the server stores nothing any more, or does not answer in time.
    pub async fn probe_store(&self) -> Result<Duration, BusError> {
        crate::files::probe(&self.core).await
    }

    /// Names of the consumers of all streams that readers may read, with their streams.
    ///
    /// # Errors
    /// When the bus fails.
    async fn consumers(&self) -> Result<Vec<(&'static str, String)>, BusError> {
        let backend = &self.core.backend;
        let parts = backend.parted().await?.unwrap_or_default();
        let mut found = Vec::new();
        for stream in of_runs(parts).chain([DEAD]) {
            found.extend(backend.in_hand(stream).await?.into_keys().map(|name| (stream, name)));
        }
        Ok(found)
    }

    /// Number of consumers of each holder, over all streams that readers may read.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn consumers_by_holder(&self) -> Result<BTreeMap<String, usize>, BusError> {
        let mut counts = BTreeMap::new();
        for (_, name) in self.consumers().await? {
            *counts.entry(consumer_holder(&name).to_owned()).or_insert(0) += 1;
        }
        Ok(counts)
    }

    /// Deletes the consumers whose holders have no credentials; returns their number.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn delete_abandoned_consumers(&self, holders: &BTreeSet<String>) -> Result<usize, BusError> {
        let mut deleted = 0;
        for (stream, name) in self.consumers().await? {
            if is_abandoned(&name, holders) {
                self.core.backend.delete_consumer(stream, &name).await?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// In whose name this handle speaks.
    #[must_use]
    pub fn who(&self) -> &AgentId {
        &self.core.who
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &BusSettings {
        &self.core.settings
    }

    /// The record of all runs.
    #[must_use]
    pub fn record(&self) -> Record {
        Record::new(&self.core)
    }

    /// The task queues.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        Tasks { core: Arc::clone(&self.core) }
    }

    /// The durable commands.
    #[must_use]
    pub fn commands(&self) -> Commands {
        Commands { core: Arc::clone(&self.core) }
    }

    /// Who is on the bus.
    #[must_use]
    pub fn registry(&self) -> Registry {
        Registry { core: Arc::clone(&self.core) }
    }

    /// Messages that interrupt.
    #[must_use]
    pub fn control(&self) -> Control {
        Control { core: Arc::clone(&self.core) }
    }

    /// What is happening right now.
    #[must_use]
    pub fn live(&self) -> LiveFeed {
        LiveFeed { core: Arc::clone(&self.core) }
    }

    /// Large and shared bytes.
    #[must_use]
    pub fn store(&self) -> Store {
        Store::new(&self.core)
    }

    /// Which orchestrators are at work, and on which runs.
    #[must_use]
    pub fn leases(&self) -> Leases {
        Leases { core: Arc::clone(&self.core) }
    }

    /// What runs that ended taught.
    #[must_use]
    pub fn lessons(&self) -> Lessons {
        Lessons { core: Arc::clone(&self.core) }
    }

    /// Answers of models and tools that may serve agents of this role again.
    #[must_use]
    pub fn answers(&self, role: Role) -> Answers {
        Answers::new(&self.core, role)
    }

    /// Requests that are answered.
    #[must_use]
    pub fn asks(&self) -> Asks {
        Asks { core: Arc::clone(&self.core) }
    }

    /// What task gateways serve and tell each other.
    #[must_use]
    pub fn gateway(&self) -> GatewayDoor {
        GatewayDoor { core: Arc::clone(&self.core) }
    }

    /// What guards are asked, and answer.
    #[must_use]
    pub fn guards(&self) -> GuardDoor {
        GuardDoor { core: Arc::clone(&self.core) }
    }

    /// What agents and tool servers tell each other.
    #[must_use]
    pub fn tool_servers(&self) -> ToolServerDoor {
        ToolServerDoor { core: Arc::clone(&self.core) }
    }

    /// What machines ask that join.
    #[must_use]
    pub fn hosts(&self) -> HostDoor {
        HostDoor { core: Arc::clone(&self.core) }
    }

    /// Calls for proposals, and bids.
    #[must_use]
    pub fn auctions(&self) -> Auctions {
        Auctions { core: Arc::clone(&self.core) }
    }

    /// The files of runs.
    #[must_use]
    pub fn files(&self) -> Files {
        Files::new(&self.core)
    }

    /// What is kept of runs besides the record, and what was removed of it.
    #[must_use]
    pub fn kept(&self) -> Kept {
        Kept::new(&self.core)
    }

    /// What agents and tools did in runs that ended.
    #[must_use]
    pub fn track_record(&self) -> TrackRecord {
        TrackRecord { core: Arc::clone(&self.core) }
    }

    /// How trials stand.
    #[must_use]
    pub fn trials(&self) -> Trials {
        Trials { core: Arc::clone(&self.core) }
    }

    /// What the whole fleet shares and may use only so much of.
    #[must_use]
    pub fn allowances(&self) -> Allowances {
        Allowances { core: Arc::clone(&self.core) }
    }

    /// What could not be processed.
    #[must_use]
    pub fn dead(&self) -> DeadLetters {
        DeadLetters { core: Arc::clone(&self.core) }
    }

    /// All that passes, decoded.
    #[must_use]
    pub fn tap(&self) -> Tap {
        Tap { core: Arc::clone(&self.core) }
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("who", &self.core.who).finish_non_exhaustive()
    }
}

/// Waits for the error that ends a connection.
pub(crate) async fn first_error(mut fatal: watch::Receiver<Option<BusError>>) -> BusError {
    match fatal.wait_for(Option::is_some).await.map(|error| error.clone()) {
        Ok(Some(error)) => error,
        // Without a sender nothing can fail any more.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

/// This machine's time. What counts is the broker's stamp; this one is for messages that have none.
#[must_use]
pub fn now() -> Millis {
    Millis(millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
}
