//! How a test connects to a server that a fleet started: in the name of the fleet's owner.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_nats::{Client, ConnectOptions};
use muster_bus::BusSettings;
use muster_bus::credentials::rights::inbox;
use muster_bus::credentials::tls::ca_file;
use muster_bus::credentials::{FleetKeys, Holder, operator_file};
use muster_shared::ids::{AgentId, Role};
use uuid::Uuid;

/// The credentials for each URL that is known.
static KNOWN: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

/// Takes note of the server whose data is in a folder.
pub fn remember(url: &str, store: &Path) {
    let credentials = operator_file(&store.join("keys"));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|(of, _)| of != url);
    known.push((url.to_owned(), credentials));
}

/// The owner's credentials for a server; nothing for one that wants none.
#[must_use]
pub fn credentials(url: &str) -> Option<PathBuf> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // A binary of before there were credentials is measured beside one of now.
    known.iter().find(|(of, _)| of == url).map(|(_, file)| file.clone()).filter(|file| file.exists())
}

/// The authority of a server whose connections are encrypted.
#[must_use]
pub fn authority(url: &str) -> Option<PathBuf> {
    let owner = credentials(url).filter(|_| url.starts_with("tls://"))?;
    owner.parent().map(ca_file)
}

/// Settings by which the owner connects.
#[must_use]
pub fn settings(url: &str) -> BusSettings {
    let (credentials, tls_ca) = (credentials(url), authority(url));
    BusSettings { url: Some(url.to_owned()), credentials, tls_ca, ..BusSettings::default() }
}

/// A plain NATS client of the owner's.
///
/// # Errors
/// When nothing answers there.
pub async fn client(url: &str) -> io::Result<Client> {
    client_with(ConnectOptions::new(), url).await
}

/// The same with options.
///
/// # Errors
/// When nothing answers there.
pub async fn client_with(options: ConnectOptions, url: &str) -> io::Result<Client> {
    let options = match credentials(url) {
        Some(file) => options.credentials_file(file).await?,
        None => options,
    };
    let options = match authority(url) {
        Some(file) => options.add_root_certificates(file).require_tls(true),
        None => options,
    };
    options.connect(url).await.map_err(io::Error::other)
}

/// Environment variables for a program of a role: its name, and its credentials for the task gateway.
///
/// # Errors
/// If no fleet with keys is known at this URL, or the credentials cannot be created.
pub fn program(url: &str, role: &str) -> io::Result<Vec<(String, String)>> {
    let of: Role = role.parse().map_err(io::Error::other)?;
    issue(url, role, |id| Holder::Program { role: of, id })
}

/// The same for an agent, which writes to the event log.
///
/// # Errors
/// As [`program`].
pub fn agent(url: &str, role: &str) -> io::Result<Vec<(String, String)>> {
    let of: Role = role.parse().map_err(io::Error::other)?;
    issue(url, role, |id| Holder::Agent { role: of, id })
}

/// The same for a guard.
///
/// # Errors
/// As [`program`].
pub fn guard(url: &str, name: &str) -> io::Result<Vec<(String, String)>> {
    issue(url, &format!("guard-{name}"), |id| Holder::Guard { guard: name.to_owned(), id })
}

fn issue(
    url: &str,
    called: &str,
    holder: impl FnOnce(AgentId) -> Holder,
) -> io::Result<Vec<(String, String)>> {
    let owner = credentials(url).ok_or_else(|| io::Error::other(format!("no keys are known for {url}")))?;
    let folder = owner.parent().unwrap_or(Path::new("."));
    let keys = FleetKeys::open(folder).map_err(io::Error::other)?;
    let keys = keys.ok_or_else(|| io::Error::other("the fleet has no keys"))?;
    let random = &Uuid::new_v4().simple().to_string()[..8];
    let id: AgentId = format!("{called}-{random}").parse().map_err(io::Error::other)?;
    let file = folder.join(format!("{id}.creds"));
    keys.issue_to(&file, &holder(id.clone()), None).map_err(io::Error::other)?;
    let authority = authority(url).map(|file| ("NATS_CA", file.display().to_string()));
    let told = [
        ("NATS_URL", url.to_owned()),
        ("NATS_CREDS", file.display().to_string()),
        ("MUSTER_AGENT_ID", id.to_string()),
        ("NATS_INBOX_PREFIX", inbox(&id)),
    ];
    Ok(told.into_iter().chain(authority).map(|(name, value)| (name.to_owned(), value)).collect())
}
