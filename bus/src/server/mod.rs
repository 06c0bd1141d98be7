//! A NATS server of one's own: found, checked, configured, started and stopped.

mod config;
mod find;
mod listen;
mod memory;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use muster_shared::settings;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::credentials::{CredentialsError, FleetKeys, FleetTls};

pub(crate) use config::write_private;
pub use find::{find_binary, version_of};
pub(crate) use find::{is_recent, least};
pub use listen::{Listen, Machine};

/// Longest wait until the server accepts connections. With a store of some gigabytes it takes a few seconds.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for an orderly end, before the server is killed. A full store is written within a second or two.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The oldest server that Muster works with: it is not tested with older ones.
pub const MIN_SERVER_VERSION: (u64, u64, u64) = (2, 14, 0);

/// How often it is looked whether a server that comes up has named its port.
const LOOK: Duration = Duration::from_millis(1);
/// Garbage is collected once it is so much of what is in use, in per cent, unless `GOGC` says otherwise. Go's own 100
/// takes 30 MB more after workload W, and no less time.
const GARBAGE_PERCENT: &str = "50";
/// How late the system may wake the server from a sleep that it limited itself, in place of its own 50 µs. While a write waits for
/// the disk, the watcher of Go's scheduler wakes every 20 µs to look whether it is done, which is of no use to anybody. Connections,
/// the disk, and what its threads tell each other wake it at once all the same. Measured with 200 µs on workload W: a seventh less
/// of the server's CPU per run, and no later an end of a run.
#[cfg(target_os = "linux")]
const MAY_SLEEP_LONGER: Duration = Duration::from_micros(200);

settings! {
    /// How the local server runs.
    pub struct ServerSettings {
        /// The program; searched for when absent.
        pub binary: Option<PathBuf> = None => text().example("\"/usr/local/bin/nats-server\""); Fleet Trust,
        /// Where it keeps its data, configuration and log. Belongs to this server alone.
        pub store_dir: PathBuf = PathBuf::from(".muster/nats") => text(); Fleet Trust,
        /// Port to listen on; 0 means any.
        pub port: u16 = 0 => whole(0, 65_535); Fleet Harmless,
        /// Connections are encrypted (TLS), by an authority of the fleet's own in the keys' folder (`ca.pem`). Commands and
        /// processes of the fleet's folder know it; others name it with bus.tls_ca.
        pub tls: bool = false => flag(); Fleet Higher,
        /// Address to listen on, so that other machines can join: `0.0.0.0:4222`, or one address of this machine. With TLS
        /// always. Without it, only this machine can connect.
        pub listen: Option<String> = None => text().example("\"0.0.0.0:4222\""); Fleet Trust,
        /// Further names and addresses by which other machines reach this server, such as that of a router before it.
        pub names: Vec<String> = Vec::new() => list(); Fleet Trust,
        /// The server takes only clients that show a certificate of the fleet's authority (bus.tls_cert, bus.tls_key), beside
        /// their credentials. Processes of a local fleet have one.
        pub tls_verify: bool = false => flag(); Fleet Higher,
        /// Every write is on disk before it is acknowledged. Without it, a crash of the machine (not of the server)
        /// can lose what was acknowledged in the last two minutes.
        pub sync_always: bool = true => flag(); Fleet Harmless,
        /// How often it asks each connection for a sign of life. A process that is frozen is cut off after three times as long.
        /// Longer for fleets of hundreds: most of what idle agents cost the server is this.
        #[serde(with = "muster_shared::span")]
        pub ping: Duration = Duration::from_secs(2) => span(SECOND, HOUR); Fleet Harmless,
        /// Memory that the server tries to stay below, in MiB. A quarter of what it has stored when it starts is added.
        pub memory_mib: u64 = 256 => whole(16, 1_048_576).unit("MiB"); Fleet Harmless,
        /// Most bytes on disk, in GiB, over all streams.
        pub disk_gib: u64 = 256 => whole(1, 1_048_576).unit("GiB"); Fleet Harmless,
        /// In how many parts the record will be, where none is there yet; any number when absent. Decided by whoever lays out
        /// the bus, so no setting.
        #[serde(skip)]
        pub partitions: Option<u8> = None => internal(),
    }
}

/// Why the local server could not be started or stopped.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServerError {
    /// There is no server program.
    #[error(
        "no nats-server was found in MUSTER_NATS_SERVER, PATH, .muster/bin or next to this program: install it with deploy/install-nats.sh (or `make nats`)"
    )]
    NotFound,
    /// The program is too old.
    #[error("{} has version {found}, Muster needs {least} or newer: install one with deploy/install-nats.sh", path.display())]
    TooOld {
        /// The program.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that is needed.
        least: String,
    },
    /// Another program listens on the port.
    #[error("port {port} on {host} is taken: choose another, or 0 for any")]
    PortTaken {
        /// The address.
        host: String,
        /// The port.
        port: u16,
    },
    /// What is to be listened on is no address of this machine.
    #[error(
        "cannot listen on {listen} ({reason}): name an address of this machine, or 0.0.0.0 for all of them (server.listen, --listen)"
    )]
    NoAddress {
        /// What was asked for.
        listen: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A server works in this directory already.
    #[error("{} belongs to a NATS server that runs (process {pid}): stop it (`muster down`), or use another store directory", store_dir.display())]
    StoreInUse {
        /// The directory.
        store_dir: PathBuf,
        /// The server's process.
        pid: u32,
    },
    /// The server ended before it took connections, or did not take them in time.
    #[error("nats-server did not come up ({reason}); its log is {}", log.display())]
    NotReady {
        /// What happened.
        reason: String,
        /// Where it logs.
        log: PathBuf,
    },
    /// The keys of the fleet are of no use.
    #[error(transparent)]
    Keys(#[from] CredentialsError),
    /// A file or process could not be dealt with.
    #[error("{what}: {reason}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        reason: String,
    },
}

impl ServerSettings {
    /// Where to listen: the port of an address goes before the one that is set by itself.
    ///
    /// # Errors
    /// When the address is none.
    pub fn listens_on(&self) -> Result<Listen, ServerError> {
        let listen = match &self.listen {
            None => Listen::default(),
            Some(text) => {
                text.parse().map_err(|reason| ServerError::NoAddress { listen: text.clone(), reason })?
            }
        };
        let port = listen.port.or_else(|| Some(self.port).filter(|port| *port != 0));
        Ok(Listen { port, ..listen })
    }

    /// Whether connections are encrypted.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.tls || self.tls_verify || self.listen.is_some()
    }

    /// The names that the server's certificate is to bear.
    ///
    /// # Errors
    /// When the address to listen on is none.
    pub fn certificate_names(&self) -> Result<Vec<String>, ServerError> {
        if let Some(wrong) = self.names.iter().find(|name| !listen::is_certifiable(name)) {
            let reason = "server.names holds IP addresses and names".to_owned();
            return Err(ServerError::NoAddress { listen: wrong.clone(), reason });
        }
        Ok(self.listens_on()?.names(&Machine::here(), &self.names))
    }
}

impl ServerError {
    fn io(what: impl Into<String>, error: impl std::fmt::Display) -> Self {
        Self::Io { what: what.into(), reason: error.to_string() }
    }
}

/// A running server. It is killed on drop; prefer [`LocalServer::stop`].
#[derive(Debug)]
pub struct LocalServer {
    child: Child,
    pid: u32,
    port: u16,
    settings: ServerSettings,
    keys: Arc<FleetKeys>,
    listen: Listen,
    tls: Option<FleetTls>,
}

impl LocalServer {
    /// Finds, checks, configures and starts a server, and waits until it takes connections.
    ///
    /// On Linux the server dies with the thread that starts it, so call this from a worker of the runtime or the
    /// main thread, not from `spawn_blocking`.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub async fn start(settings: &ServerSettings) -> Result<Self, ServerError> {
        let binary = match &settings.binary {
            Some(path) => path.clone(),
            None => find_binary()?,
        };
        config::check_address(&settings.listens_on()?)?;
        // Large, and soon over: kept by themselves, they do not stay on the stack.
        let mut check = Box::pin(find::check_version(&binary));
        let mut launch = Box::pin(Self::launch(&binary, settings));
        if config::holds_data(settings)? {
            check.await?;
            return launch.await;
        }
        // A store without data takes no harm from a server that is too old: it comes up while that is found out.
        tokio::select! {
            biased;
            checked = &mut check => match checked {
                Ok(()) => launch.await,
                Err(error) => Err(error),
            },
            launched = &mut launch => match check.await {
                Ok(()) => launched,
                Err(error) => Err(error),
            },
        }
    }

    /// Starts a server whose version is known to do, or is found out meanwhile: dropped, it ends.
    async fn launch(binary: &Path, settings: &ServerSettings) -> Result<Self, ServerError> {
        let keys = FleetKeys::open_or_make(&keys_folder(&settings.store_dir)?)?;
        keys.write_own()?;
        let listen = settings.listens_on()?;
        let tls = match settings.is_encrypted() {
            true => Some(FleetTls::open_or_make(keys.folder(), &settings.certificate_names()?)?.0),
            false => None,
        };
        let files = config::write(&config::Wanted { settings, listen: &listen, tls: tls.as_ref() }, &keys)?;
        let memory =
            memory::limit(settings.memory_mib, memory::stored(&settings.store_dir.join("jetstream")));
        let mut command = Command::new(binary);
        command
            .arg("-c")
            .arg(&files.config)
            .env("GOMEMLIMIT", format!("{memory}B"))
            .env("GOGC", std::env::var_os("GOGC").unwrap_or_else(|| GARBAGE_PERCENT.into()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal goes to the whole group; the server must outlive the fleet's orderly end.
            .process_group(0)
            .kill_on_drop(true);
        // Its log and what it says of its ports are for the user alone.
        close_files(&mut command, &files.log);
        sleep_longer(&mut command);
        die_with_parent(&mut command);
        let child =
            command.spawn().map_err(|e| ServerError::io(format!("starting {}", binary.display()), e))?;
        let pid = child.id().unwrap_or_default();
        let (port, settings, keys) = (listen.port.unwrap_or(0), settings.clone(), Arc::new(keys));
        let mut server = Self { child, pid, port, settings, keys, listen, tls };
        server.port = server.wait_until_ready(&files).await?;
        Ok(server)
    }

    /// Where clients on this machine find it.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "tls" } else { "nats" };
        format!("{scheme}://{}:{}", listen::bracketed(&self.listen.from_here()), self.port)
    }

    /// Where it listens, where that is not for this machine alone.
    #[must_use]
    pub fn listens_on(&self) -> Option<Listen> {
        self.settings.listen.as_ref().map(|_| Listen { port: Some(self.port), ..self.listen.clone() })
    }

    /// The authority and certificate by which its connections are encrypted, where they are.
    #[must_use]
    pub const fn tls(&self) -> Option<&FleetTls> {
        self.tls.as_ref()
    }

    /// Whether it wants a certificate of whoever connects.
    #[must_use]
    pub const fn wants_certificates(&self) -> bool {
        self.settings.tls_verify
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The keys by which it lets anybody in.
    #[must_use]
    pub const fn keys(&self) -> &Arc<FleetKeys> {
        &self.keys
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub async fn wait(&mut self) -> Result<std::process::ExitStatus, ServerError> {
        self.child.wait().await.map_err(|e| ServerError::io("waiting for nats-server", e))
    }

    /// Ends the server: in good order, and by force when it takes too long.
    ///
    /// # Errors
    /// When the process cannot be signalled.
    pub async fn stop(mut self) -> Result<(), ServerError> {
        if !self.is_running() {
            return Ok(());
        }
        signal(self.pid, Signal::SIGTERM)?;
        if timeout(STOP_TIMEOUT, self.child.wait()).await.is_err() {
            tracing::warn!(pid = self.pid, "nats-server does not end in good order and is killed");
            self.child.kill().await.map_err(|e| ServerError::io("killing nats-server", e))?;
        }
        Ok(())
    }

    /// Waits for the file in which the server names its port.
    async fn wait_until_ready(&mut self, files: &config::ServerFiles) -> Result<u16, ServerError> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(port) = files.ports(self.pid).and_then(|ports| config::port_in(&ports)) {
                return Ok(port);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(config::why_it_ended(files, &self.listen, &status.to_string()));
            }
            if Instant::now() > until {
                let reason = format!("no connection within {START_TIMEOUT:?}");
                return Err(ServerError::NotReady { reason, log: files.log.clone() });
            }
            sleep(LOOK).await;
        }
    }
}

/// Tells the server that keeps its data in this directory of what has changed with the fleet's keys: it cuts off whose
/// credentials were revoked, and nobody else. Says whether there is one.
///
/// # Errors
/// When the keys cannot be read, the configuration not be written, or the process not be signalled.
pub fn reload(store_dir: &Path) -> Result<bool, ServerError> {
    let Some(keys) = FleetKeys::open(&keys_folder(store_dir)?)? else { return Ok(false) };
    let Some(pid) = config::rewrite_accounts(store_dir, &keys)? else { return Ok(false) };
    signal(pid, Signal::SIGHUP)?;
    Ok(true)
}

fn signal(pid: u32, signal: Signal) -> Result<(), ServerError> {
    let pid = i32::try_from(pid).map_err(|e| ServerError::io("signalling nats-server", e))?;
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(ServerError::io(format!("signalling process {pid}"), error)),
    }
}

/// Has the system end a child when the thread that spawned it ends, so that nothing is left behind when this
/// process is killed. Does nothing where the system cannot do it.
pub fn die_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "between fork and exec only prctl is called, which is async-signal-safe")]
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| {
            nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)
                .map_err(|errno| std::io::Error::from_raw_os_error(errno as i32))
        });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Lets the system wake a child later from sleeps that it limits itself. Does nothing where the system cannot do it.
fn sleep_longer(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        let longer = std::ffi::c_ulong::try_from(MAY_SLEEP_LONGER.as_nanos()).unwrap_or(0);
        #[expect(
            unsafe_code,
            reason = "between fork and exec only prctl is called, which is async-signal-safe"
        )]
        // SAFETY: the closure allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                // A server that wakes too often serves all the same.
                let _ = nix::sys::prctl::set_timerslack(longer);
                Ok(())
            });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Has what a child writes be for the user alone, and a log that was open to others before.
fn close_files(command: &mut Command, log: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = std::fs::set_permissions(log, std::fs::Permissions::from_mode(0o600));
    #[expect(unsafe_code, reason = "between fork and exec only umask is called, which is async-signal-safe")]
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| {
            nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
            Ok(())
        });
    }
}

/// Whether a process with this id runs. One that has ended and that nobody has waited for yet does not.
fn is_alive(pid: u32) -> bool {
    let exists = i32::try_from(pid).is_ok_and(|pid| pid > 0 && kill(Pid::from_raw(pid), None).is_ok());
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    exists && !state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// Where the server that keeps its data in this directory has the fleet's keys.
///
/// # Errors
/// When the working folder cannot be found.
pub fn keys_folder(store_dir: &Path) -> Result<PathBuf, ServerError> {
    Ok(absolute(store_dir)?.join("keys"))
}

/// The folder of the keys of the server that keeps its data in this directory, if it is the one at this address of this machine.
#[must_use]
pub fn keys_of_server(store_dir: &Path, host: &str, port: u16) -> Option<PathBuf> {
    config::is_named(store_dir, host, port).then(|| keys_folder(store_dir).ok()).flatten()
}

/// An absolute path, without asking the file system.
fn absolute(path: &Path) -> Result<PathBuf, ServerError> {
    std::path::absolute(path).map_err(|e| ServerError::io(path.display().to_string(), e))
}
