//! The fleet's own NATS server: started where it listened last, waited for, and served for whoever only reads.

use std::path::PathBuf;
use std::time::Duration;

use muster_bus::server::{LocalServer, ServerError, ServerSettings, keys_folder};
use tokio::time::Instant;

use crate::app::{App, bus_failure};
use crate::exit::{Failure, failed};
use crate::fleet::lock::FleetLock;
use crate::fleet::state::FleetFolder;
use crate::fleet::{own_keys, server_program};

/// How long somebody who only reads the record, or a server whose supervisor was killed, is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often they are looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Takes the lock. Who only reads the record has it for a moment, and a supervisor that ends has it until it has ended.
pub(super) async fn lock(folder: &FleetFolder) -> Result<FleetLock, Failure> {
    let cannot = |error: std::io::Error| {
        failed!("cannot write to {}: {error}", folder.path().display())
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
            return Err(failed!("another muster{who} supervises a fleet in {}", folder.path().display())
                .help("use it as it is, or stop it with `muster down`"));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Starts the fleet's own NATS server on its store.
pub(super) async fn start_server(app: &App, port: u16) -> Result<LocalServer, Failure> {
    let program = server_program::of(app)?;
    launch(app, port, program).await.map_err(|error| bus_failure(error.into()))
}

/// Starts the server where it listened last, so that whoever still looks for it finds it; elsewhere if that port is taken.
pub(super) async fn start_on_its_port(app: &App) -> Result<LocalServer, Failure> {
    // Only a port that nobody asked for may be another one.
    let listens_on = app.settings().server.listens_on().map_err(|error| bus_failure(error.into()))?;
    let known = app.fleet.port().filter(|_| listens_on.port.is_none());
    let program = server_program::of(app)?;
    own_the_keys(app)?;
    let mut server = launch(app, known.unwrap_or(0), program.clone()).await;
    if known.is_some() && matches!(server, Err(ServerError::PortTaken { .. })) {
        tracing::warn!(port = known, "the port of this fleet is taken; it gets another one");
        server = launch(app, 0, program).await;
    }
    let server = server.map_err(|error| bus_failure(error.into()))?;
    if let Err(error) = app.fleet.keep_port(server.port()) {
        tracing::warn!(%error, "the port of the fleet cannot be kept");
    }
    Ok(server)
}

/// Sees that the keys by which the server is to let anybody in are the user's own.
fn own_the_keys(app: &App) -> Result<(), Failure> {
    let folder = keys_folder(&app.beside_fleet(&app.settings().server.store_dir));
    own_keys::made_or_trusted(app, &folder.map_err(|error| bus_failure(error.into()))?)
}

/// Whether somebody else listens where the fleet's server listened last, and another port would do: other machines know this one
/// where they may join.
pub(crate) fn lost_its_port(app: &App) -> bool {
    let Ok(listens_on) = app.settings().server.listens_on() else { return false };
    let is_any = listens_on.port.is_none() && app.settings().server.listen.is_none();
    let is_taken = |port: u16| {
        let bound = std::net::TcpListener::bind((listens_on.host.as_str(), port));
        bound.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
    };
    is_any && app.fleet.port().is_some_and(is_taken)
}

/// Starts the server for this process alone: nobody else is to find it, on another machine least of all.
async fn start_to_read(app: &App) -> Result<LocalServer, Failure> {
    let program = server_program::of(app)?;
    own_the_keys(app)?;
    let own = ServerSettings { listen: None, tls: false, tls_verify: false, ..app.settings().server.clone() };
    launch_with(app, own, 0, program).await.map_err(|error| bus_failure(error.into()))
}

/// Starts the server as the settings say.
async fn launch(app: &App, port: u16, program: Option<PathBuf>) -> Result<LocalServer, ServerError> {
    launch_with(app, app.settings().server.clone(), port, program).await
}

/// Starts the server. One whose supervisor was killed ends by itself, and is waited for.
async fn launch_with(
    app: &App,
    settings: ServerSettings,
    port: u16,
    program: Option<PathBuf>,
) -> Result<LocalServer, ServerError> {
    let mut settings = settings;
    settings.store_dir = app.beside_fleet(&settings.store_dir);
    settings.partitions = Some(app.settings().bus.partitions);
    settings.binary = program;
    if port != 0 {
        settings.port = port;
    }
    let until = Instant::now() + PATIENCE;
    loop {
        // Large, and soon over: kept by itself, it does not stay on the stack.
        match Box::pin(LocalServer::start(&settings)).await {
            Err(ServerError::StoreInUse { .. }) if Instant::now() < until => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            started => return started,
        }
    }
}

/// Waits until the server ends, and says how; for ever where there is none.
pub(super) async fn server_ended(server: &mut Option<LocalServer>) -> String {
    match server {
        Some(server) => match server.wait().await {
            Ok(status) => format!("ended ({status})"),
            Err(error) => error.to_string(),
        },
        None => std::future::pending().await,
    }
}

/// Stops a server, in good order if it can.
pub(super) async fn stop_server(server: LocalServer) {
    if let Err(error) = server.stop().await {
        tracing::warn!(%error, "the NATS server could not be stopped in good order");
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
        let server = start_to_read(app).await?;
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
        if let Some((server, _lock)) = self.server {
            stop_server(server).await;
        }
    }
}
