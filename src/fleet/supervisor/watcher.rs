//! Watching over a fleet: its processes, its server and its store, and the state file that tells of them.

mod folder;
mod renewal;
mod scaling;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use muster_bus::Bus;
use muster_bus::server::LocalServer;
use muster_shared::ids::AgentId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::guard::{self, Sight};
use super::members::policy;
use super::server::{lost_its_port, server_ended, start_server, stop_server};
use super::{CHANGES, SERVER};
use crate::app::{App, now};
use crate::fleet::lock::FleetLock;
use crate::fleet::member::{Changed, MemberChange, MemberSpec, keep};
use crate::fleet::pass::Desk;
use crate::fleet::policy::{Deaths, RestartDecision};
use crate::fleet::process::{ProcessRef, resident_bytes};
use crate::fleet::state::{FleetFolder, FleetState, GaveUp, MemberState, RefusedFile};
use crate::fleet::store::{self, Care, StoreWatch};
use crate::fleet::{keys, readiness, team};
use crate::render::figures;
use crate::settings;
use folder::Specialists;
use scaling::Scaling;
use tools::{McpServers, OwnTools};

/// Resident memory of one process that causes a warning, in MiB. Processes take 30 to 100 MiB.
const MEMORY_WARNING_MIB: u64 = 1024;

/// How long the other processes wait at most for orchestrators and planners, with which every run begins: if all started at
/// once on a few cores, all would be late.
const HEAD_START: Duration = Duration::from_millis(200);

/// How often the memory of each process is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// How often it is looked whether the server's certificate is near its end, or this machine has other addresses than it bears.
const CERTIFICATES: Duration = Duration::from_secs(3600);

/// The tasks that keep processes running, until they are told to stop.
struct Keepers {
    tasks: JoinSet<()>,
    changed: mpsc::Sender<Changed>,
    stop: CancellationToken,
}

impl Keepers {
    /// Keeps a process running until its end.
    fn keep(&mut self, member: MemberSpec, end: CancellationToken) {
        self.tasks.spawn(keep(member, self.changed.clone(), end));
    }
}

/// Keeps the state file true, the server running, and tells what changes.
pub(super) struct Watcher {
    app: App,
    folder: FleetFolder,
    _lock: FleetLock,
    state: FleetState,
    server: Option<LocalServer>,
    server_deaths: Deaths,
    /// By what processes are let in.
    desk: Option<Desk>,
    teller: mpsc::Sender<Changed>,
    too_large: BTreeSet<String>,
    specialists: Specialists,
    scaling: Scaling,
    own_tools: OwnTools,
    mcp_servers: McpServers,
    store: StoreWatch,
    /// Cancelled when orchestrators and planners have joined.
    planned: CancellationToken,
    /// Cancelled when everybody has joined.
    settled: CancellationToken,
}

impl Watcher {
    pub(super) fn new(
        app: &App,
        folder: FleetFolder,
        lock: FleetLock,
        url: &str,
        server: Option<LocalServer>,
        members: &[MemberSpec],
        teller: mpsc::Sender<Changed>,
    ) -> Self {
        let of_server = server
            .iter()
            .map(|server| MemberState::new(SERVER.to_owned(), Some(ProcessRef::of(server.pid()))));
        let others = members.iter().map(|member| MemberState {
            is_foreign: member.is_foreign,
            ..MemberState::new(member.name.clone(), None)
        });
        let supervisor = ProcessRef::of(std::process::id());
        let state = FleetState {
            team: app.loaded.team.as_ref().map(|team| team.name.clone()),
            settings: settings::runs_with(&app.loaded.effective),
            keys: Some(keys::here()),
            listen: server.as_ref().and_then(LocalServer::listens_on).map(|listen| listen.to_string()),
            members: of_server.chain(others).collect(),
            refused: team::faults(app),
            ..FleetState::new(url.to_owned(), supervisor, now().0)
        };
        Self {
            app: app.clone(),
            folder,
            _lock: lock,
            state,
            server,
            server_deaths: Deaths::default(),
            desk: None,
            teller,
            too_large: BTreeSet::new(),
            specialists: Specialists::default(),
            scaling: Scaling::default(),
            own_tools: OwnTools::default(),
            mcp_servers: McpServers::default(),
            store: StoreWatch::default(),
            planned: CancellationToken::new(),
            settled: CancellationToken::new(),
        }
    }

    /// With so many processes of each specialist, and whether the fleet is there for the runs that brought it up alone.
    pub(super) fn scaled(mut self, scale: BTreeMap<String, u16>, for_runs: bool) -> Self {
        self.specialists.scale = scale;
        self.state.for_runs = for_runs;
        self
    }

    /// With what processes are let in by that are started later.
    pub(super) fn let_in_by(mut self, desk: Option<Desk>) -> Self {
        self.desk = desk;
        self
    }

    /// With what the machine is called in a fleet that is elsewhere.
    pub(super) fn of_host(mut self, host: AgentId) -> Self {
        self.state.host = Some(host);
        self
    }

    /// Watches over the processes until told to stop, and over what is seen on the bus, where it may be looked at.
    pub(super) async fn watch(mut self, members: Vec<MemberSpec>, bus: Option<Bus>, stop: CancellationToken) {
        self.write();
        let (changed, mut changes) = mpsc::channel(CHANGES);
        let mut keepers = Keepers { tasks: JoinSet::new(), changed, stop: stop.clone() };
        // Nobody sees who joins a bus that is elsewhere.
        if bus.is_none() {
            self.planned.cancel();
        }
        for member in members {
            let end = self.scaling.end_of(&member.name, &stop);
            let head_start = (!readiness::begins_runs(&member.name)).then(|| self.planned.clone());
            let kept = keep(member, keepers.changed.clone(), end);
            keepers.tasks.spawn(async move {
                if let Some(planned) = head_start {
                    // Late or not, it starts.
                    let _in_time = tokio::time::timeout(HEAD_START, planned.cancelled()).await;
                }
                kept.await;
            });
        }
        for RefusedFile { path, reason } in self.state.refused.clone() {
            self.tell(&path.display().to_string(), MemberChange::Refused { reason }).await;
        }
        self.follow_folder(&mut keepers).await;
        self.follow_tools(&mut keepers);
        self.follow_mcp(&mut keepers);
        if let Some(server) = &self.server {
            let process = ProcessRef::of(server.pid());
            self.tell(SERVER, MemberChange::Started(process)).await;
        }
        let (seen, mut sights) = mpsc::channel(1);
        let (is_own, settled) = (self.server.is_some(), self.settled.clone());
        let guard = bus.map(|bus| tokio::spawn(guard::keep_watch(bus, is_own, settled, seen)));
        let mut look = tokio::time::interval(LOOK);
        let mut certificates = tokio::time::interval_at(Instant::now() + CERTIFICATES, CERTIFICATES);
        let mut folder = tokio::time::interval(crate::settings::FOLDER_SCAN_INTERVAL);
        loop {
            tokio::select! {
                biased;
                Some((name, change)) = changes.recv() => {
                    self.note(&name, &change);
                    self.tell(&name, change).await;
                }
                // When every keeper has ended, asked to or since each process was given up, so does the fleet.
                ended = keepers.tasks.join_next() => if ended.is_none() { break },
                how = server_ended(&mut self.server), if !stop.is_cancelled() => {
                    if !self.restart_server(how).await {
                        stop.cancel();
                    }
                }
                Some(sight) = sights.recv(), if !stop.is_cancelled() => {
                    if !self.take(sight).await {
                        stop.cancel();
                    }
                }
                _ = look.tick() => {
                    self.look().await;
                    self.drop_retired_keys();
                }
                _ = certificates.tick() => self.renew_certificate(),
                _ = folder.tick(), if !stop.is_cancelled() => {
                    self.follow_folder(&mut keepers).await;
                    self.follow_tools(&mut keepers);
                    self.follow_mcp(&mut keepers);
                    self.follow_wish(&mut keepers);
                }
            }
        }
        if let Some(guard) = guard {
            guard.abort();
        }
        if let Some(server) = self.server.take() {
            stop_server(server).await;
            self.tell(SERVER, MemberChange::Stopped).await;
        }
        self.folder.clear();
    }

    /// Takes note of what was seen on the bus. `false` when the fleet has to end.
    async fn take(&mut self, sight: Sight) -> bool {
        match sight {
            Sight::Joined(_) if self.state.ready => true,
            Sight::Joined(profiles) => {
                let awaited = readiness::awaited(&self.state.members, &profiles, self.state.since, now());
                if !awaited.iter().any(|name| readiness::begins_runs(name)) {
                    self.planned.cancel();
                }
                let ready = self.state.up && awaited.is_empty();
                if ready {
                    self.settled.cancel();
                    // What follows is little, for as long as the fleet is up.
                    muster_bus::memory::rest();
                }
                // It is looked often, and most looks show nothing new.
                if ready || awaited != self.state.awaited {
                    (self.state.awaited, self.state.ready) = (awaited, ready);
                    self.write();
                }
                true
            }
            Sight::Probed(probe) => {
                let folder = self.app.beside_fleet(&self.app.settings().server.store_dir);
                match self.store.judge(&probe, store::free_space(&folder), now()) {
                    Care::Nothing => true,
                    Care::SayFull(free) => {
                        let (free, place) = (figures::bytes(free), folder.display());
                        tracing::error!("the disk of the store is full ({free} free at {place}): make room");
                        true
                    }
                    Care::Restart(why) => self.renew_server(&why).await,
                }
            }
        }
    }

    /// Ends a server that does not write any more though there is room, and starts it again. `false` when it died too
    /// often.
    async fn renew_server(&mut self, why: &str) -> bool {
        let Some(server) = self.server.take() else { return true };
        tracing::error!(
            "the store takes no writes though there is room ({why}); its server is started again"
        );
        stop_server(server).await;
        self.restart_server(format!("took no writes any more ({why})")).await
    }

    /// Starts the server again on its old port, where everybody looks for it. `false` when it died too often.
    async fn restart_server(&mut self, how: String) -> bool {
        self.server = None;
        let port = self.state.url.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0);
        let mut how = how;
        loop {
            match self.server_deaths.died(now(), &policy(&self.app.settings().fleet)) {
                RestartDecision::GiveUp => {
                    self.tell_of(SERVER, MemberChange::GivenUp { how }).await;
                    return false;
                }
                RestartDecision::Restart { after } => {
                    self.tell_of(SERVER, MemberChange::Died { how, again_after: after }).await;
                    tokio::time::sleep(after).await;
                }
            }
            match start_server(&self.app, port).await {
                Ok(server) => {
                    self.tell_of(SERVER, MemberChange::Started(ProcessRef::of(server.pid()))).await;
                    self.server = Some(server);
                    return true;
                }
                // Waiting does not free it: the fleet comes up anew, on another one.
                Err(failure) if lost_its_port(&self.app) => {
                    self.tell_of(SERVER, MemberChange::GivenUp { how: failure.to_string() }).await;
                    return false;
                }
                Err(failure) => how = failure.to_string(),
            }
        }
    }

    async fn tell_of(&mut self, name: &str, change: MemberChange) {
        self.note(name, &change);
        self.tell(name, change).await;
    }

    /// Writes a change into the state.
    fn note(&mut self, name: &str, change: &MemberChange) {
        if let Some(member) = self.state.members.iter_mut().find(|member| member.name == name) {
            match change {
                MemberChange::Started(process) => member.process = Some(process.clone()),
                MemberChange::Died { how, .. } => {
                    member.process = None;
                    member.restarts += 1;
                    member.how = Some(how.clone());
                }
                MemberChange::GivenUp { how } => {
                    member.process = None;
                    member.given_up = true;
                    member.how = Some(how.clone());
                    member.gave_up = Some(GaveUp { at: now().0, how: how.clone() });
                }
                MemberChange::Stopped => member.process = None,
                MemberChange::Refused { .. } => {}
            }
        }
        if matches!(change, MemberChange::Stopped) {
            let leaves = self.scaling.leaving.remove(name);
            self.state.members.retain(|member| member.name != name || (member.file.is_none() && !leaves));
        }
        let is_there =
            |member: &MemberState| member.process.is_some() || (member.given_up && member.file.is_some());
        self.state.up |= self.state.members.iter().all(is_there);
        // Who is on the bus of a fleet that is elsewhere is not for this machine to see.
        self.state.ready |= self.state.up && self.state.host.is_some();
        self.write();
    }

    fn write(&self) {
        if let Err(error) = self.folder.write(&self.state) {
            tracing::warn!(%error, "cannot write the state of the fleet");
        }
    }

    async fn tell(&self, name: &str, change: MemberChange) {
        let _ = self.teller.send((name.to_owned(), change)).await;
    }

    /// Looks at the memory of every process.
    async fn look(&mut self) {
        let limit = MEMORY_WARNING_MIB.saturating_mul(1024 * 1024);
        for member in &mut self.state.members {
            member.resident_bytes = member.process.as_ref().and_then(|p| resident_bytes(p.pid)).unwrap_or(0);
            if member.resident_bytes <= limit {
                self.too_large.remove(&member.name);
            } else if self.too_large.insert(member.name.clone()) {
                tracing::warn!(name = member.name, bytes = member.resident_bytes, "uses much memory");
            }
        }
        self.write();
    }
}
