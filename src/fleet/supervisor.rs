//! The local fleet as a whole: brought up, watched over, taken down.

mod folder;
mod guard;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use muster_bus::server::{LocalServer, ServerError, ServerSettings, SystemAccount};
use muster_shared::ids::Role;
use secrecy::ExposeSecret;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::member::{Changed, MemberChange, MemberSpec, keep};
use super::policy::{Deaths, RestartDecision, RestartPolicy};
use super::process::{ProcessRef, resident_bytes};
use super::state::{FleetFolder, FleetLock, FleetState, GaveUp, MemberState};
use super::store::{self, Care, StoreWatch};
use super::{keys, readiness, scale, team};
use crate::app::{App, bus_failure, now};
use crate::exit::Failure;
use crate::render::figures;
use crate::settings::{self, FleetSettings};
use folder::Specialists;
use guard::Sight;

/// The name of the fleet's own NATS server among its processes.
pub(crate) const SERVER: &str = "nats-server";

/// How long somebody who only reads the record, or a server whose supervisor was killed, is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often they are looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The variable that holds the password of the server's system account.
const SYSTEM_PASSWORD: &str = "MUSTER_BUS_SYSTEM_PASSWORD";

/// How often the memory of each process is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Changes that wait to be told; a listener that is slower than this many loses none, the fleet waits for it.
const CHANGES: usize = 256;

/// A local fleet that this process watches over. Dropped, its processes end with it; better [`Fleet::stop`].
pub(crate) struct Fleet {
    url: String,
    changes: mpsc::Receiver<Changed>,
    stop: CancellationToken,
    watch: tokio::task::JoinHandle<()>,
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
        let folder = app.fleet.clone();
        let lock = lock(&folder).await?;
        let server = match &app.settings().bus.url {
            Some(_) => None,
            None => Some(start_on_its_port(app).await?),
        };
        let url = server
            .as_ref()
            .map(LocalServer::url)
            .or_else(|| app.settings().bus.url.clone())
            .unwrap_or_default();
        let system = server.as_ref().and_then(LocalServer::system_account);
        let members = members(app, &url, system.as_ref(), &scale)?;
        // Before any member starts: none of them has to wait for the others' streams.
        let bus = app.connect_to(&url, "supervisor").await?;
        bus.provision().await.map_err(bus_failure)?;

        let (teller, changes) = mpsc::channel(CHANGES);
        let stop = CancellationToken::new();
        let mut watcher = Watcher::new(app, folder, lock, &url, server, &members, teller);
        watcher.specialists.scale = scale;
        watcher.state.for_runs = for_runs;
        let watch = tokio::spawn(watcher.watch(members, bus, stop.clone()));
        Ok(Self { url, changes, stop, watch })
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
    }
}

/// Takes the lock. Who only reads the record has it for a moment, and a supervisor that ends has it until it has ended.
async fn lock(folder: &FleetFolder) -> Result<FleetLock, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::failed(format!("cannot write to {}: {error}", folder.path().display()))
            .help("change to a writable folder: the local fleet keeps its data there")
    };
    folder.create().map_err(cannot)?;
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(lock) = folder.lock().map_err(cannot)? {
            return Ok(lock);
        }
        let live = folder.live();
        if live.is_some() || Instant::now() >= until {
            let who = live.map_or_else(String::new, |state| format!(" (process {})", state.supervisor.pid));
            return Err(Failure::failed(format!(
                "another muster{who} supervises a fleet in {}",
                folder.path().display()
            ))
            .help("use it as it is, or stop it with `muster down`"));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Starts the fleet's own NATS server on its store.
pub(crate) async fn start_server(app: &App, port: u16) -> Result<LocalServer, Failure> {
    launch(app, port).await.map_err(|error| bus_failure(error.into()))
}

/// Starts the server where it listened last, so that whoever still looks for it finds it; elsewhere if that port is taken.
async fn start_on_its_port(app: &App) -> Result<LocalServer, Failure> {
    let known = app.fleet.port().filter(|_| app.settings().server.port == 0);
    let mut server = match known {
        Some(port) => launch(app, port).await,
        None => launch(app, 0).await,
    };
    if known.is_some() && matches!(server, Err(ServerError::PortTaken { .. })) {
        tracing::warn!(port = known, "the port of this fleet is taken; it gets another one");
        server = launch(app, 0).await;
    }
    let server = server.map_err(|error| bus_failure(error.into()))?;
    if let Err(error) = app.fleet.keep_port(server.port()) {
        tracing::warn!(%error, "the port of the fleet cannot be kept");
    }
    Ok(server)
}

/// Starts the server. One whose supervisor was killed ends by itself, and is waited for.
async fn launch(app: &App, port: u16) -> Result<LocalServer, ServerError> {
    let mut settings: ServerSettings = app.settings().server.clone();
    settings.store_dir = app.beside_fleet(&settings.store_dir);
    settings.detached = false;
    if port != 0 {
        settings.port = port;
    }
    let until = Instant::now() + PATIENCE;
    loop {
        match LocalServer::start(&settings).await {
            Err(ServerError::StoreInUse { .. }) if Instant::now() < until => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            started => return started,
        }
    }
}

/// The processes of a fleet.
fn members(
    app: &App,
    url: &str,
    system: Option<&SystemAccount>,
    scale: &BTreeMap<String, u16>,
) -> Result<Vec<MemberSpec>, Failure> {
    let program = std::env::current_exe().map_err(|e| {
        Failure::failed(format!("cannot find the path of this program: {e}"))
            .help("start it by its full path")
    })?;
    let count = |role: &str| scale.get(role).copied().unwrap_or(1);
    let mut members = Vec::new();
    for n in 1..=count(scale::ORCHESTRATOR) {
        let mut orchestrator = member(app, &program, url, &format!("orchestrator-{n}"), &["orchestrator"]);
        // The system account is for orchestrators alone.
        orchestrator.hidden.clear();
        orchestrator.variables.extend(system.into_iter().flat_map(variables));
        members.push(orchestrator);
    }
    for role in Role::BUILT_IN.map(|role| role.to_string()) {
        for n in 1..=count(&role) {
            members.push(member(app, &program, url, &format!("{role}-{n}"), &["agent", &role]));
        }
    }
    if let Some(team) = &app.loaded.team {
        team::check(team)?;
        for specialist in &team.specialists {
            let like = |name: &str, words: &[&str]| member(app, &program, url, name, words);
            members.extend(team::specs(team, specialist, count(&specialist.role), like));
        }
    }
    Ok(members)
}

fn member(app: &App, program: &std::path::Path, url: &str, name: &str, command: &[&str]) -> MemberSpec {
    let settings = app.settings();
    let mut arguments = global_words(app);
    arguments.extend(command.iter().map(|&word| word.to_owned()));
    // Not as arguments, which can be read by everybody: a URL may hold a password, and so may what is set.
    let mut variables = vec![
        ("MUSTER_BUS_URL".to_owned(), url.to_owned()),
        ("MUSTER_AGENT_NAME".to_owned(), name.to_owned()),
    ];
    let set: Vec<_> = app.flags.iter().filter(|(key, ..)| key != "bus.url").cloned().collect();
    variables.extend(settings::handed_down(&set));
    MemberSpec {
        name: name.to_owned(),
        program: program.to_owned(),
        arguments,
        folder: None,
        variables,
        hidden: vec![SYSTEM_PASSWORD.to_owned()],
        log: app.fleet.log(name),
        max_log_bytes: settings.log.max_file_mib * 1024 * 1024,
        policy: policy(&settings.fleet),
        stop_limit: settings.fleet.stop_limit,
        is_foreign: false,
    }
}

/// The options of every command, as this process was given them, for one that it starts.
pub(crate) fn global_words(app: &App) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if let Some(file) = &app.loaded.file {
        words.extend(["--config".to_owned(), absolute(file).display().to_string()]);
    }
    if let Some(team) = &app.loaded.team {
        words.extend(["--fleet".to_owned(), absolute(&team.path).display().to_string()]);
    }
    words
}

fn variables(system: &SystemAccount) -> [(String, String); 2] {
    let SystemAccount { user, password } = system;
    let password = password.expose_secret().to_owned();
    [("MUSTER_BUS_SYSTEM_USER".to_owned(), user.clone()), (SYSTEM_PASSWORD.to_owned(), password)]
}

fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

const fn policy(settings: &FleetSettings) -> RestartPolicy {
    RestartPolicy {
        max_restarts: settings.max_restarts,
        window: settings.restart_window,
        first_wait: settings.restart_wait,
        longest_wait: settings.max_restart_wait,
    }
}

/// Keeps the state file true, the server running, and tells what changes.
struct Watcher {
    app: App,
    folder: FleetFolder,
    _lock: FleetLock,
    state: FleetState,
    server: Option<LocalServer>,
    server_deaths: Deaths,
    teller: mpsc::Sender<Changed>,
    too_large: std::collections::BTreeSet<String>,
    specialists: Specialists,
    store: StoreWatch,
    /// Cancelled when everybody has joined.
    settled: CancellationToken,
}

impl Watcher {
    fn new(
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
            members: of_server.chain(others).collect(),
            ..FleetState::new(url.to_owned(), supervisor, now().0)
        };
        Self {
            app: app.clone(),
            folder,
            _lock: lock,
            state,
            server,
            server_deaths: Deaths::default(),
            teller,
            too_large: std::collections::BTreeSet::new(),
            specialists: Specialists::default(),
            store: StoreWatch::default(),
            settled: CancellationToken::new(),
        }
    }

    async fn watch(mut self, members: Vec<MemberSpec>, bus: muster_bus::Bus, stop: CancellationToken) {
        self.write();
        let (changed, mut changes) = mpsc::channel(CHANGES);
        let mut keepers = JoinSet::new();
        for member in members {
            keepers.spawn(keep(member, changed.clone(), stop.clone()));
        }
        self.follow_folder(&mut keepers, &changed, &stop).await;
        if let Some(server) = &self.server {
            let process = ProcessRef::of(server.pid());
            self.tell(SERVER, MemberChange::Started(process)).await;
        }
        let (seen, mut sights) = mpsc::channel(1);
        let guard = tokio::spawn(guard::keep_watch(bus, self.server.is_some(), self.settled.clone(), seen));
        let mut look = tokio::time::interval(LOOK);
        let mut folder = tokio::time::interval(self.app.settings().fleet.agents_look);
        loop {
            tokio::select! {
                biased;
                Some((name, change)) = changes.recv() => {
                    self.note(&name, &change);
                    self.tell(&name, change).await;
                }
                // When every keeper has ended, asked to or since each process was given up, so does the fleet.
                ended = keepers.join_next() => if ended.is_none() { break },
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
                _ = look.tick() => self.look().await,
                _ = folder.tick(), if !stop.is_cancelled() => {
                    self.follow_folder(&mut keepers, &changed, &stop).await;
                }
            }
        }
        guard.abort();
        if let Some(server) = self.server.take() {
            if let Err(error) = server.stop().await {
                tracing::warn!(%error, "the NATS server could not be stopped in good order");
            }
            self.tell(SERVER, MemberChange::Stopped).await;
        }
        self.folder.clear();
    }

    /// Takes note of what was seen on the bus. `false` when the fleet has to end.
    async fn take(&mut self, sight: Sight) -> bool {
        match sight {
            Sight::Joined(_) if self.state.ready => true,
            Sight::Joined(profiles) => {
                self.state.awaited = readiness::awaited(&self.state.members, &profiles, self.state.since);
                self.state.ready = self.state.up && self.state.awaited.is_empty();
                if self.state.ready {
                    self.settled.cancel();
                }
                self.write();
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
        if let Err(error) = server.stop().await {
            tracing::warn!(%error, "the NATS server could not be stopped in good order");
        }
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
            self.state.members.retain(|member| member.name != name || member.file.is_none());
        }
        let is_there =
            |member: &MemberState| member.process.is_some() || (member.given_up && member.file.is_some());
        self.state.up |= self.state.members.iter().all(is_there);
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
        let limit = self.app.settings().fleet.memory_warning_mib.saturating_mul(1024 * 1024);
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

/// Waits until the server ends, and says how; for ever where there is none.
async fn server_ended(server: &mut Option<LocalServer>) -> String {
    match server {
        Some(server) => match server.wait().await {
            Ok(status) => format!("ended ({status})"),
            Err(error) => error.to_string(),
        },
        None => std::future::pending().await,
    }
}

/// A bus to read from: a fleet that is up, or the record of one that is not, served for as long as this lives.
pub(crate) struct ReadAccess {
    /// The bus.
    pub(crate) bus: muster_bus::Bus,
    server: Option<(LocalServer, FleetLock)>,
}

impl ReadAccess {
    /// Finds the fleet, or serves the local record when the fleet is down.
    pub(crate) async fn open(app: &App) -> Result<Self, Failure> {
        if let Some(url) = app.url() {
            return Ok(Self { bus: app.connect_to(&url, "reader").await?, server: None });
        }
        if !app.fleet.store().join("jetstream").is_dir() {
            return Err(crate::app::no_fleet());
        }
        let lock = match lock(&app.fleet).await {
            Ok(lock) => lock,
            // One has come up in this moment.
            Err(failure) => match app.url() {
                Some(url) => return Ok(Self { bus: app.connect_to(&url, "reader").await?, server: None }),
                None => return Err(failure),
            },
        };
        let server = start_server(app, 0).await?;
        let bus = app.connect_to(&server.url(), "reader").await?;
        Ok(Self { bus, server: Some((server, lock)) })
    }

    /// Whether no fleet is up, and the record is served by this process.
    pub(crate) const fn is_served_here(&self) -> bool {
        self.server.is_some()
    }

    /// Stops what was started for reading.
    pub(crate) async fn close(self) {
        drop(self.bus);
        if let Some((server, lock)) = self.server {
            if let Err(error) = server.stop().await {
                tracing::warn!(%error, "the NATS server could not be stopped in good order");
            }
            drop(lock);
        }
    }
}
