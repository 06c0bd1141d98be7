//! TLS of a fleet: its own authority, and the certificates that this vouches for, as files beside the keys.
//!
//! `ca.key` and `ca.pem` are the authority. `server.pem` has the server's certificate and then the authority's, so that
//! whoever knows the authority's fingerprint alone finds it there; `client.pem` is for processes of the fleet where the
//! server wants certificates of those who connect.

mod certificate;
#[cfg(test)]
mod tests;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use secrecy::{ExposeSecret, SecretString};

use super::CredentialsError;
use super::files::{closed, replace};
use certificate::{Use, Wanted};

const SERVER: &str = "server";
const CLIENT: &str = "client";
/// The names of the server's certificate, a line each.
const NAMES: &str = "server.names";

/// Largest file of certificates or keys, in bytes.
const MOST_BYTES: u64 = 1024 * 1024;

/// A fleet's own authority and what it vouches for.
#[derive(Debug, Clone)]
pub struct FleetTls {
    folder: PathBuf,
    authority: CertificateDer<'static>,
}

/// The certificate that a client shows, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Where the keys of a folder have the certificate of their authority.
#[must_use]
pub fn ca_file(folder: &Path) -> PathBuf {
    folder.join("ca.pem")
}

/// Where the keys of a folder have the certificate of processes of the fleet, where the server wants one.
#[must_use]
pub fn client_files(folder: &Path) -> ClientFiles {
    ClientFiles { certificate: folder.join("client.pem"), key: folder.join("client.key") }
}

impl FleetTls {
    /// The authority of a folder of keys; nothing where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(folder: &Path) -> Result<Option<Self>, CredentialsError> {
        let found = certificates(&ca_file(folder))?;
        Ok(found.into_iter().next().map(|authority| Self { folder: folder.to_owned(), authority }))
    }

    /// The authority of a folder of keys and the certificate of a server with these names and addresses; each made where it is missing, and
    /// the certificate also where it is near its end or has not all of the names. Says whether the certificate is a new one.
    ///
    /// # Errors
    /// When they cannot be read or written, or others can read the keys.
    pub fn open_or_make(folder: &Path, names: &[String]) -> Result<(Self, bool), CredentialsError> {
        let (key, authority) = authority(folder)?;
        let tls = Self { folder: folder.to_owned(), authority };
        let is_new = tls.leaf(&key, &of_server(names), false)?;
        Ok((tls, is_new))
    }

    /// Makes the certificates of a folder anew, whatever their age, for the names that they had; nothing where there are none.
    ///
    /// # Errors
    /// As [`Self::open_or_make`].
    pub fn renew(folder: &Path) -> Result<Option<Self>, CredentialsError> {
        let Some(names) = text_of(&folder.join(NAMES))? else { return Ok(None) };
        let names: Vec<String> = names.expose_secret().lines().map(str::to_owned).collect();
        let (key, authority) = authority(folder)?;
        let tls = Self { folder: folder.to_owned(), authority };
        tls.leaf(&key, &of_server(&names), true)?;
        if tls.part(CLIENT, "pem").exists() {
            tls.leaf(&key, &of_client(), true)?;
        }
        Ok(Some(tls))
    }

    /// Makes a certificate for a server of one's own with these names and addresses, by the authority of a folder of keys, which is made
    /// where there is none. It goes into a folder to be copied to that server: `server.pem`, `server.key` and `ca.pem`. Servers of a
    /// cluster show it to each other as well.
    ///
    /// # Errors
    /// As [`Self::open_or_make`], and when the folder cannot be written.
    pub fn for_server(folder: &Path, names: &[String], out: &Path) -> Result<Self, CredentialsError> {
        let (key, authority) = authority(folder)?;
        let tls = Self { folder: folder.to_owned(), authority };
        let (chain, key) = tls.made(&key, &of_member(names))?;
        let into = Self { folder: out.to_owned(), authority: tls.authority.clone() };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(out)
            .map_err(|error| CredentialsError::file(out, error))?;
        replace(&into.key_file(), key.expose_secret())?;
        replace(&into.certificate_file(), chain.expose_secret())?;
        replace(&into.ca_file(), armoured("CERTIFICATE", into.authority.as_ref()).expose_secret())?;
        Ok(into)
    }

    /// The certificate of the authority, for whoever connects.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        ca_file(&self.folder)
    }

    /// The server's certificate, followed by the authority's.
    #[must_use]
    pub fn certificate_file(&self) -> PathBuf {
        self.part(SERVER, "pem")
    }

    /// The key of the server's certificate.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.part(SERVER, "key")
    }

    /// SHA-256 of the authority's certificate (DER), in lower-case hex.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        certificate::fingerprint(&self.authority)
    }

    /// The certificate by which processes of the fleet show that they belong to it; made where it is missing or near its end.
    ///
    /// # Errors
    /// As [`Self::open_or_make`].
    pub fn client(&self) -> Result<ClientFiles, CredentialsError> {
        let (key, _) = authority(&self.folder)?;
        self.leaf(&key, &of_client(), false)?;
        Ok(client_files(&self.folder))
    }

    fn part(&self, of: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{of}.{kind}"))
    }

    /// Makes a certificate with a new key where the one that is there will not do, or `always`. Says whether it did.
    fn leaf(&self, ca: &KeyPair, wanted: &Wanted<'_>, always: bool) -> Result<bool, CredentialsError> {
        let of = match wanted.purpose {
            Use::Server | Use::Member => SERVER,
            Use::Client => CLIENT,
        };
        let (file, key_file) = (self.part(of, "pem"), self.part(of, "key"));
        if !always && self.is_usable(&file, &key_file, wanted)? {
            return Ok(false);
        }
        let (chain, key) = self.made(ca, wanted)?;
        if wanted.purpose == Use::Server {
            replace(&self.folder.join(NAMES), &wanted.names.join("\n"))?;
        }
        replace(&key_file, key.expose_secret())?;
        replace(&file, chain.expose_secret())?;
        Ok(true)
    }

    /// A new certificate with the authority's after it, and its key, as PEM files have them.
    fn made(
        &self,
        ca: &KeyPair,
        wanted: &Wanted<'_>,
    ) -> Result<(SecretString, SecretString), CredentialsError> {
        let key = KeyPair::generate().map_err(CredentialsError::key)?;
        let made = certificate::leaf(ca, &key, wanted)?;
        certificate::holds(&self.authority, &made, wanted, wanted.now).map_err(|why| {
            let ca = self.ca_file();
            CredentialsError::file(&ca, format!(
                "certificates of this authority do not hold ({why}): set this machine's clock, or take ca.pem and ca.key \
                 away to have another authority made, of which everybody who connects must be told"
            ))
        })?;
        let chain = [&made, &self.authority].map(|one| armoured("CERTIFICATE", one.as_ref()));
        let chain = chain.iter().map(ExposeSecret::expose_secret).collect::<String>();
        Ok((SecretString::from(chain), armoured("PRIVATE KEY", key.serialized_der())))
    }

    fn is_usable(&self, file: &Path, key_file: &Path, wanted: &Wanted<'_>) -> Result<bool, CredentialsError> {
        let Some(key) = key_in(key_file)? else { return Ok(false) };
        let found = certificates(file)?;
        let chain_is_whole = found.get(1).is_some_and(|second| *second == self.authority);
        Ok(found.first().is_some_and(|leaf| {
            chain_is_whole
                && certificate::is_of(leaf, &key)
                && certificate::will_do(&self.authority, leaf, wanted)
        }))
    }
}

fn of_server(names: &[String]) -> Wanted<'_> {
    Wanted { purpose: Use::Server, called: "muster", names, now: crate::bus::now() }
}

fn of_member(names: &[String]) -> Wanted<'_> {
    Wanted { purpose: Use::Member, ..of_server(names) }
}

fn of_client() -> Wanted<'static> {
    Wanted { purpose: Use::Client, called: "muster client", names: &[], now: crate::bus::now() }
}

/// The authority of a folder: its key and its certificate, made where there is neither, or no certificate yet.
fn authority(folder: &Path) -> Result<(KeyPair, CertificateDer<'static>), CredentialsError> {
    let (path, key_file) = (ca_file(folder), folder.join("ca.key"));
    let found = certificates(&path)?.into_iter().next();
    let key = match (key_in(&key_file)?, &found) {
        (Some(key), Some(found)) if certificate::is_of(found, &key) => key,
        (Some(key), None) => key,
        (None, None) => {
            let key = KeyPair::generate().map_err(CredentialsError::key)?;
            replace(&key_file, armoured("PRIVATE KEY", key.serialized_der()).expose_secret())?;
            key
        }
        (Some(_) | None, Some(_)) => {
            return Err(CredentialsError::file(
                &path,
                "its key is not in ca.key: put back the one that is, or take both away to have another authority made, of which \
                 everybody who connects must be told",
            ));
        }
    };
    if let Some(found) = found {
        return Ok((key, found));
    }
    let made = certificate::authority(&key, crate::bus::now())?;
    replace(&path, armoured("CERTIFICATE", made.as_ref()).expose_secret())?;
    Ok((key, made))
}

/// The certificates in a file; none where there is no file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let Some(text) = text_of(path)? else { return Ok(Vec::new()) };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.expose_secret().as_bytes()).collect();
    match all {
        Ok(all) if all.is_empty() => Err(CredentialsError::file(path, "there is no certificate in it")),
        Ok(all) => Ok(all),
        Err(error) => Err(CredentialsError::file(path, error)),
    }
}

fn key_in(path: &Path) -> Result<Option<KeyPair>, CredentialsError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CredentialsError::file(path, error)),
        Ok(found) => closed(path, &found)?,
    }
    let Some(text) = text_of(path)? else { return Ok(None) };
    let key = PrivatePkcs8KeyDer::from_pem_slice(text.expose_secret().as_bytes());
    let key = key.map_err(|error| CredentialsError::file(path, error))?;
    KeyPair::try_from(&key).map(Some).map_err(|error| CredentialsError::file(path, error))
}

/// The text of a file of reasonable size; nothing where there is none.
fn text_of(path: &Path) -> Result<Option<SecretString>, CredentialsError> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|error| CredentialsError::file(path, error))?,
    };
    if !found.is_file() || found.len() > MOST_BYTES {
        return Err(CredentialsError::file(path, "it is no file of certificates"));
    }
    let text = fs::read_to_string(path).map_err(|error| CredentialsError::file(path, error))?;
    Ok(Some(SecretString::from(text)))
}

/// Bytes as PEM files have them.
fn armoured(what: &str, bytes: &[u8]) -> SecretString {
    let encoded = STANDARD.encode(bytes);
    let mut text = format!("-----BEGIN {what}-----\n");
    for line in encoded.as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text.push_str(&format!("-----END {what}-----\n"));
    SecretString::from(text)
}
