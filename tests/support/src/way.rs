//! How a test connects to a server that a fleet started: in the name of the fleet's owner.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_nats::{Client, ConnectOptions};
use muster_bus::BusSettings;
use muster_bus::credentials::operator_file;

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
    known.iter().find(|(of, _)| of == url).map(|(_, file)| file.clone())
}

/// Settings by which the owner connects.
#[must_use]
pub fn settings(url: &str) -> BusSettings {
    BusSettings { url: Some(url.to_owned()), credentials: credentials(url), ..BusSettings::default() }
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
    options.connect(url).await.map_err(io::Error::other)
}
