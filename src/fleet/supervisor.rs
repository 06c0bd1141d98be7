//! The local fleet as a whole: brought up, watched over, taken down.

mod guard;
mod members;
mod server;
mod watcher;

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_bus::Bus;
use muster_bus::credentials::FleetKeys;
use muster_bus::server::{LocalServer, ServerError};
use muster_shared::ids::Role;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::far::FarDesk;
use super::joined::Membership;
use super::member::Changed;
use super::pass::{Desk, OwnDesk};
use super::scale;
use super::welcome::Welcome;
use crate::alerts::Alerts;
use crate::app::{App, bus_failure};
use crate::commands::guard::check_lists;
use crate::exit::Failure;
pub(crate) use members::global_words;
pub(crate) use server::{ReadAccess, lost_its_port};
use watcher::Watcher;

/// The name of the fleet's own NATS server among its processes.
pub(crate) const SERVER: &str = "nats-server";

/// Changes that wait to be told; a listener that is slower than this many loses none, the fleet waits for it.
const CHANGES: usize = 256;

/// A local fleet that this process watches over. Dropped, its processes end with it; better [`Fleet::stop`].
pub(crate) struct Fleet {
    url: String,
    changes: mpsc::Receiver<Changed>,
    stop: CancellationToken,
    watch: tokio::task::JoinHandle<()>,
    /// Answers machines that join, and evaluates alerts.
    tasks: JoinSet<()>,
}

impl Fleet {
    /// Brings a fleet up: a NATS server unless one is set, then all processes at the same time. Returns when they
    /// are started and the bus takes goals; they join by themselves.
    pub(crate) async fn start(
        app: &App,
        scale: &BTreeMap<String, u16>,
        for_runs: bool,
    ) -> Result<Self, Failure> {
        let scale = scale::of(app, scale)?;
        check_lists(app)?;
        let folder = app.fleet.clone();
        let lock = server::lock(&folder).await?;
        let alerts = Alerts::of(app)?;
        // What was wished of the one before is nothing to this one.
        folder.forget_wish();
        let server = match &app.settings().bus.url {
            Some(_) => None,
            None => Some(server::start_on_its_port(app).await?),
        };
        let url = server
            .as_ref()
            .map(LocalServer::url)
            .or_else(|| app.settings().bus.url.clone())
            .unwrap_or_default();
        let desk = server
            .as_ref()
            .map(|server| OwnDesk::of(server).map(Desk::Own))
            .transpose()
            .map_err(|error| bus_failure(ServerError::from(error).into()))?;
        let members = members::members(app, &url, desk.as_ref(), &scale)?;
        // Before any member starts: none of them has to wait for the others' streams.
        let bus = app.connect_with_system(&url, "supervisor").await?;
        bus.provision().await.map_err(bus_failure)?;
        if let Some(server) = &server {
            delete_abandoned_consumers(&bus, server.keys()).await;
        }

        let (teller, changes) = mpsc::channel(CHANGES);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        if let Some(server) = &server {
            tasks.spawn(Welcome::new(app, Arc::clone(server.keys())).serve(bus.clone()));
        }
        if let Some(alerts) = alerts {
            tasks.spawn(alerts.watch(bus.clone()));
        }
        let watcher = Watcher::new(app, folder, lock, &url, server, &members, teller);
        let watcher = watcher.scaled(scale, for_runs).let_in_by(desk);
        let watch = tokio::spawn(watcher.watch(members, Some(bus), stop.clone()));
        Ok(Self { url, changes, stop, watch, tasks })
    }

    /// Starts agents of a fleet that is elsewhere, as many of each role. Returns when their start is under way.
    pub(crate) async fn start_agents(
        app: &App,
        joined: &Membership,
        desk: Arc<FarDesk>,
        scale: &BTreeMap<Role, u16>,
    ) -> Result<Self, Failure> {
        let folder = app.fleet.clone();
        let lock = server::lock(&folder).await?;
        let (url, desk) = (joined.url.clone(), Desk::Far(desk));
        let members = members::agents(app, &url, &desk, scale)?;
        let (teller, changes) = mpsc::channel(CHANGES);
        let stop = CancellationToken::new();
        let watcher = Watcher::new(app, folder, lock, &url, None, &members, teller);
        let watcher = watcher.of_host(joined.host.clone());
        let watch = tokio::spawn(watcher.watch(members, None, stop.clone()));
        Ok(Self { url, changes, stop, watch, tasks: JoinSet::new() })
    }

    /// Where its bus listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The next change; nothing when the fleet has ended.
    pub(crate) async fn change(&mut self) -> Option<Changed> {
        self.changes.recv().await
    }

    /// Ends all processes in good order, by force those that take too long, and waits until they have ended.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        // Changes are still told while it ends; nobody may wait for us to take them.
        while self.changes.recv().await.is_some() {}
        let _ = self.watch.await;
        self.tasks.shutdown().await;
    }
}

/// Deletes the consumers of holders whose credentials were revoked. A failure does not stop a fleet that starts: the server
/// deletes inactive consumers later.
pub(crate) async fn delete_abandoned_consumers(bus: &Bus, keys: &FleetKeys) {
    let Ok(issued) = keys.issued() else { return };
    let holders = issued.iter().map(|one| one.name.to_string()).collect();
    match bus.delete_abandoned_consumers(&holders).await {
        Ok(0) => {}
        Ok(deleted) => tracing::info!(deleted, "consumers of revoked credentials deleted"),
        Err(error) => tracing::warn!(%error, "consumers of revoked credentials not deleted"),
    }
}
