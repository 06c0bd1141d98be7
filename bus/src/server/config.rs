//! The server's configuration file and what it leaves behind.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use muster_shared::wire::codec::MAX_MESSAGE_BYTES;

use super::listen::{Listen, bracketed};
use super::{ServerError, ServerSettings, absolute, is_alive};
use crate::credentials::{FleetKeys, FleetTls};
use crate::partition::Partitions;

/// The part of the configuration that says who is let in.
const ACCOUNTS: &str = "accounts.conf";
/// Where the server says which process it is.
const PID: &str = "nats-server.pid";

/// Where the server's files are.
pub(super) struct ServerFiles {
    pub(super) config: PathBuf,
    pub(super) log: PathBuf,
    store_dir: PathBuf,
}

impl ServerFiles {
    /// Where the server of this process id names its ports, once it does: by what its program is called, and the number.
    pub(super) fn ports(&self, pid: u32) -> Option<PathBuf> {
        let ending = format!("_{pid}.ports");
        ports_files(&self.store_dir).find(|path| path.to_string_lossy().ends_with(&ending))
    }
}

/// What a server is to be.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) settings: &'a ServerSettings,
    pub(super) listen: &'a Listen,
    pub(super) tls: Option<&'a FleetTls>,
}

/// Writes the configuration, in a directory that no other server uses.
pub(super) fn write(wanted: &Wanted<'_>, keys: &FleetKeys) -> Result<ServerFiles, ServerError> {
    let settings = wanted.settings;
    let store_dir = absolute(&settings.store_dir)?;
    fs::create_dir_all(&store_dir)
        .map_err(|e| ServerError::io(format!("creating {}", store_dir.display()), e))?;
    let pid_file = store_dir.join(PID);
    if let Some(pid) = running(&pid_file) {
        return Err(ServerError::StoreInUse { store_dir, pid });
    }
    forget_ports(&store_dir);
    let files = ServerFiles {
        config: store_dir.join("nats-server.conf"),
        log: store_dir.join("nats-server.log"),
        store_dir: store_dir.clone(),
    };
    write_accounts(&store_dir, keys, settings.partitions)?;
    let text = text(wanted, &store_dir, &pid_file, &files.log);
    write_private(&files.config, text.as_bytes())
        .map_err(|e| ServerError::io(format!("writing {}", files.config.display()), e))?;
    Ok(files)
}

/// Writes anew who is let in by the server of a directory, and gives its process id if it runs.
pub(super) fn rewrite_accounts(store_dir: &Path, keys: &FleetKeys) -> Result<Option<u32>, ServerError> {
    let store_dir = absolute(store_dir)?;
    let pid = running(&store_dir.join(PID));
    write_accounts(&store_dir, keys, None)?;
    Ok(pid)
}

/// Where the server keeps what an account stores.
fn stored_by(store_dir: &Path, account: &str) -> PathBuf {
    store_dir.join("jetstream/jetstream").join(account)
}

/// Writes the part of the configuration that says who is let in, and what for.
fn write_accounts(store_dir: &Path, keys: &FleetKeys, wanted: Option<u8>) -> Result<(), ServerError> {
    let path = store_dir.join(ACCOUNTS);
    let text = keys.server_configuration(&ways(store_dir, &keys.store_account(), wanted))?;
    write_private(&path, text.as_bytes())
        .map_err(|e| ServerError::io(format!("writing {}", path.display()), e))
}

/// How the record is parted: as it is on disk, else as it is wanted, else in any way.
fn ways(store_dir: &Path, account: &str, wanted: Option<u8>) -> Vec<Partitions> {
    let streams = stored_by(store_dir, account).join("streams");
    let names = fs::read_dir(streams).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let known = names.filter_map(|name| Partitions::with_stream(name.to_str()?)).next();
    let wanted = wanted.and_then(|count| Partitions::of_count(count.into()));
    known.or(wanted).map_or_else(|| Partitions::every().collect(), |one| vec![one])
}

/// Whether a server has kept data here before.
pub(super) fn holds_data(settings: &ServerSettings) -> Result<bool, ServerError> {
    Ok(absolute(&settings.store_dir)?.join("jetstream").exists())
}

/// Writes a file that nobody but its owner reads.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    // A file that is there keeps its permissions, so it is made anew.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)
}

fn text(wanted: &Wanted<'_>, store_dir: &Path, pid_file: &Path, log: &Path) -> String {
    let Wanted { settings, listen, tls } = wanted;
    let port = listen.port.map_or_else(|| "-1".to_owned(), |port| port.to_string());
    let host = bracketed(&listen.host);
    let tls = tls.map(|tls| tls_text(tls, settings.tls_verify)).unwrap_or_default();
    let ping = settings.ping.as_secs().max(1);
    let sync = if settings.sync_always { "always" } else { "2m" };
    let (jetstream, ports) = (quoted(&store_dir.join("jetstream")), quoted(store_dir));
    let (pid_file, log, disk) = (quoted(pid_file), quoted(log), settings.disk_gib);
    format!(
        "# Written by Muster at every start.\n\
         server_name: muster\n\
         listen: \"{host}:{port}\"\n\
         {tls}\
         ports_file_dir: {ports}\n\
         pid_file: {pid_file}\n\
         logfile: {log}\n\
         logfile_size_limit: 16MB\n\
         logfile_max_num: 2\n\
         max_payload: {MAX_MESSAGE_BYTES}\n\
         # A process that is frozen is cut off, and that is told, after three times this.\n\
         ping_interval: \"{ping}s\"\n\
         ping_max: 2\n\
         # A frozen observer must not slow down those who publish.\n\
         no_fast_producer_stall: true\n\
         include '{ACCOUNTS}'\n\
         jetstream {{\n  store_dir: {jetstream}\n  sync_interval: {sync}\n  max_memory_store: 64MB\n  max_file_store: {disk}GB\n}}\n"
    )
}

/// The part of the configuration by which connections are encrypted. A busy machine may need seconds for a first greeting.
fn tls_text(tls: &FleetTls, verify: bool) -> String {
    let [certificate, key, ca] =
        [tls.certificate_file(), tls.key_file(), tls.ca_file()].map(|file| quoted(&file));
    let verify = if verify { format!("  ca_file: {ca}\n  verify: true\n") } else { String::new() };
    format!("tls {{\n  cert_file: {certificate}\n  key_file: {key}\n{verify}  timeout: 10\n}}\n")
}

fn quoted(path: &Path) -> String {
    format!("{:?}", path.to_string_lossy())
}

/// The process that a pid file names, if it is a server that runs.
fn running(pid_file: &Path) -> Option<u32> {
    let pid = fs::read_to_string(pid_file).ok()?.trim().parse().ok().filter(|&pid| is_alive(pid))?;
    // The id may have passed to another program since.
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.map_or(true, |name| name.trim().starts_with("nats-server")).then_some(pid)
}

/// Ports files of servers that were killed.
fn forget_ports(store_dir: &Path) {
    for path in ports_files(store_dir) {
        let _ = fs::remove_file(path);
    }
}

/// The port in a ports file, once it is written in full.
pub(super) fn port_in(ports: &Path) -> Option<u16> {
    addresses_in(ports).first()?.rsplit(':').next()?.parse().ok()
}

/// The addresses in a ports file, such as `127.0.0.1:4222`.
fn addresses_in(ports: &Path) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Ports {
        nats: Vec<String>,
    }
    let read = fs::read(ports).ok().and_then(|text| serde_json::from_slice::<Ports>(&text).ok());
    let urls = read.map(|ports| ports.nats).unwrap_or_default();
    urls.into_iter().map(|url| url.split_once("://").map_or(url.clone(), |(_, at)| at.to_owned())).collect()
}

/// Whether servers in a directory have named this address as their own: one that runs, or was killed.
pub(super) fn is_named(store_dir: &Path, host: &str, port: u16) -> bool {
    let own: Vec<String> = ports_files(store_dir).flat_map(|path| addresses_in(&path)).collect();
    if !own.iter().any(|address| address.rsplit(':').next() == Some(port.to_string().as_str())) {
        return false;
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = (host, port).to_socket_addrs().into_iter().flatten();
    found.into_iter().any(|address| own.contains(&format!("{}:{port}", bracketed(&address.ip().to_string()))))
}

fn ports_files(store_dir: &Path) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(store_dir).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "ports"))
}

/// Refuses an address that is none of this machine's, or a port that somebody listens on.
pub(super) fn check_address(listen: &Listen) -> Result<(), ServerError> {
    let (host, port) = (listen.host.clone(), listen.port.unwrap_or(0));
    match TcpListener::bind((host.as_str(), port)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Err(ServerError::PortTaken { host, port })
        }
        Err(error) => Err(ServerError::NoAddress { listen: listen.to_string(), reason: error.to_string() }),
    }
}

/// What the end of the log says about a server that ended at once.
pub(super) fn why_it_ended(files: &ServerFiles, listen: &Listen, status: &str) -> ServerError {
    let log = fs::read_to_string(&files.log).unwrap_or_default();
    let tail = log.lines().rev().take(20).collect::<Vec<_>>();
    if let Some(port) = listen.port
        && tail.iter().any(|line| line.contains("address already in use"))
    {
        return ServerError::PortTaken { host: listen.host.clone(), port };
    }
    let complaint = tail.iter().find(|line| line.contains("[FTL]") || line.contains("[ERR]"));
    let reason = complaint.map_or_else(|| status.to_owned(), |line| (*line).to_owned());
    ServerError::NotReady { reason, log: files.log.clone() }
}
