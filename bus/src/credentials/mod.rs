//! Who may connect, and what for: the fleet's keys, credentials made with them, and the rights that these carry.
//!
//! The keys are NATS's own (Ed25519 NKeys), and credentials are `.creds` files that every NATS tool reads. An operator
//! key vouches for three accounts: the fleet's, in which all are who connect, that in which all is stored, and the server's own.
//! The fleet's has a signing key for each kind of holder, which vouches for users of that kind alone. A server knows the accounts, with the signing keys and what their users may
//! do, and not the users: whoever has a signing key can let somebody in without telling any server.

mod accounts;
mod claims;
mod files;
mod holder;
mod invite;
mod joining;
mod keys;
mod ledger;
mod line;
pub mod rights;
mod rotation;
mod scope;
mod signers;
pub mod signing;
#[cfg(test)]
mod signing_tests;
#[cfg(test)]
mod tests;
pub mod tls;
mod token;

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_shared::ids::AgentId;
use muster_shared::time::Millis;
use secrecy::{ExposeSecret, SecretString};

use claims::{Claims, Said};
pub use holder::{Holder, HolderKind};
pub use invite::Invited;
pub use joining::{Equipping, Joined, Joining, MOST_OF_A_HOST, Refusal};
pub use keys::{FleetKeys, is_person_name, operator_file, presence_file, signing_key_file};
pub use ledger::{Issued, Place, Revoked, Unread};
pub use line::{Fingerprint, Invitation, LineError, MOST_ADDRESSES};
pub use rights::Rights;
pub use rotation::{Retired, is_grace_over};
pub use scope::Scope;
use signing::Trust;
pub use tls::{ClientFiles, FleetTls};
pub use token::{DashboardRole, Token, TokenError, TokenHolder};

/// What the part of a credentials file with the fleet's public keys is called.
const FLEET: &str = "MUSTER FLEET KEYS";
/// Largest credentials file, in bytes.
const MOST_BYTES: u64 = 1024 * 1024;

/// Why keys or credentials are of no use.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CredentialsError {
    /// Others can read what nobody else may.
    #[error("{} can be read by others: close it with `chmod go= {}`", path.display(), path.display())]
    Open {
        /// The file or folder.
        path: PathBuf,
    },
    /// A key that was there is gone, and others hang on it.
    #[error("{} is missing: put it back; without it nobody is let in who was, and the record is nobody's", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said, or what is wrong with it.
        reason: String,
    },
    /// Their time is over.
    #[error("the credentials in {} ended at {} UTC: ask whoever runs the fleet for new ones (`muster keys issue`)", path.display(), date(*until))]
    Expired {
        /// The file.
        path: PathBuf,
        /// When they ended.
        until: Millis,
    },
    /// A person would be taken for somebody else.
    #[error(
        "no person may be called {name}: it is the name of somebody else in policies and records. Give him another one"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A key cannot be used.
    #[error("a key cannot be used: {reason}")]
    Key {
        /// What is wrong.
        reason: String,
    },
}

impl CredentialsError {
    fn key(error: impl std::fmt::Display) -> Self {
        Self::Key { reason: error.to_string() }
    }

    fn file(path: &Path, error: impl std::fmt::Display) -> Self {
        Self::File { path: path.to_owned(), reason: error.to_string() }
    }
}

/// By which a process proves who it is.
#[derive(Debug, Clone)]
pub struct Credentials {
    jwt: String,
    seed: SecretString,
    /// By what the holder tells who else is of the fleet.
    fleet: Option<Trust>,
}

impl Credentials {
    /// As `.creds` files have it, and the fleet's public keys after that: NATS clients read the first two parts.
    #[must_use]
    pub fn to_file(&self) -> SecretString {
        let (jwt, seed) = (&self.jwt, self.seed.expose_secret());
        let fleet = self.fleet.as_ref().and_then(|fleet| serde_json::to_vec(fleet).ok());
        let fleet = fleet.map(|fleet| {
            let fleet = STANDARD.encode(fleet);
            format!("\n-----BEGIN {FLEET}-----\n{fleet}\n------END {FLEET}------\n")
        });
        SecretString::from(format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             The seed below is secret: whoever has it is who it names.\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n{}",
            fleet.unwrap_or_default()
        ))
    }

    /// Credentials of somebody who made the key himself: what the fleet says of it, the seed, and by what he tells who else is of
    /// the fleet.
    ///
    /// # Errors
    /// When what is said is of another key.
    pub fn of_own(key: &OwnKey, jwt: String, fleet: Option<Trust>) -> Result<Self, CredentialsError> {
        let said = Claims::read(&jwt).map_err(CredentialsError::key)?;
        if said.sub != key.0.public_key() {
            return Err(CredentialsError::key("what was said of it is said of another key"));
        }
        Ok(Self { jwt, seed: key.seed()?, fleet })
    }

    /// Writes a `.creds` file that nobody but its owner reads.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), CredentialsError> {
        files::replace(path, self.to_file().expose_secret())
    }
}

/// A key that somebody makes for himself: the fleet is told the public one alone.
pub struct OwnKey(nkeys::KeyPair);

impl std::fmt::Debug for OwnKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OwnKey").field(&self.0.public_key()).finish()
    }
}

impl OwnKey {
    /// A new one.
    #[must_use]
    pub fn new() -> Self {
        Self(nkeys::KeyPair::new_user())
    }

    /// The one in a file, made where there is none.
    ///
    /// # Errors
    /// When it cannot be read or made, or others can read it.
    pub fn in_file(path: &Path) -> Result<Self, CredentialsError> {
        files::make(path, nkeys::KeyPairType::User)?;
        let found = files::read(path, &nkeys::KeyPairType::User)?;
        found.map(Self).ok_or_else(|| CredentialsError::file(path, "it was taken away again"))
    }

    /// What others may know of it.
    #[must_use]
    pub fn public(&self) -> String {
        self.0.public_key()
    }

    fn seed(&self) -> Result<SecretString, CredentialsError> {
        self.0.seed().map(SecretString::from).map_err(CredentialsError::key)
    }
}

impl Default for OwnKey {
    fn default() -> Self {
        Self::new()
    }
}

/// Who credentials say that somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What the process is called on the bus.
    pub name: AgentId,
    /// What the credentials are for.
    pub kind: HolderKind,
}

/// Reads who a `.creds` file is for; nothing where it was not made by Muster. Whether it counts is for the server to say.
///
/// # Errors
/// When it cannot be read, holds no credentials, or its time is over.
pub fn identity(path: &Path) -> Result<Option<Identity>, CredentialsError> {
    let claims = claims_in(path)?;
    if let Some(until) = claims.exp.filter(|until| *until <= crate::bus::now().0 / 1000) {
        return Err(CredentialsError::Expired { path: path.to_owned(), until: Millis(until * 1000) });
    }
    if !matches!(claims.nats, Said::User { .. }) {
        return Err(CredentialsError::file(path, "it is no credentials file of a user"));
    }
    Ok(identity_of(&claims))
}

/// When the time of what is in a `.creds` file was over, in words, if it is by this machine's clock.
pub(crate) fn ended_at(path: &Path) -> Option<String> {
    let until = Millis(claims_in(path).ok()?.exp?.saturating_mul(1000));
    (until <= crate::bus::now()).then(|| date(until))
}

/// A time for people, in UTC.
fn date(at: Millis) -> String {
    let time = i64::try_from(at.0).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    time.map_or_else(|| "?".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Who claims say that somebody is; nothing where Muster did not make them.
fn identity_of(claims: &Claims) -> Option<Identity> {
    let Said::User { tags, .. } = &claims.nats else { return None };
    let kind = tags.iter().find_map(|tag| tag.strip_prefix(keys::KIND))?.parse().ok()?;
    Some(Identity { name: claims.name.parse().ok()?, kind })
}

/// What a `.creds` file says of its holder.
fn claims_in(path: &Path) -> Result<Claims, CredentialsError> {
    let (jwt, _) = parts_of(path)?;
    Claims::read(&jwt).map_err(|reason| CredentialsError::file(path, reason))
}

/// The public keys of the fleet that a `.creds` file is of; nothing where they do not stand in it, as in files of earlier
/// versions and of others.
///
/// # Errors
/// When it cannot be read, or what stands there is no such keys.
pub fn fleet_in(path: &Path) -> Result<Option<Trust>, CredentialsError> {
    let text = text_of(path)?;
    let mut lines = text.expose_secret().lines();
    let begin = format!("BEGIN {FLEET}");
    let Some(fleet) = lines.by_ref().find(|line| line.contains(&begin)).and_then(|_| lines.next()) else {
        return Ok(None);
    };
    let wrong = |error: String| CredentialsError::file(path, format!("the fleet's keys in it: {error}"));
    let fleet = STANDARD.decode(fleet.trim()).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_slice(&fleet).map(Some).map_err(|error| wrong(error.to_string()))
}

/// What stands in a `.creds` file.
fn text_of(path: &Path) -> Result<SecretString, CredentialsError> {
    let found = std::fs::metadata(path).map_err(|error| CredentialsError::file(path, error))?;
    if !found.is_file() || found.len() > MOST_BYTES {
        return Err(CredentialsError::file(path, "it is no credentials file"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| CredentialsError::file(path, error))?;
    Ok(SecretString::from(text))
}

/// The JWT in a `.creds` file, and the seed of its key.
fn parts_of(path: &Path) -> Result<(String, Option<SecretString>), CredentialsError> {
    let text = text_of(path)?;
    let jwt = jwt_of(text.expose_secret());
    let jwt = jwt.ok_or_else(|| CredentialsError::file(path, "it holds no NATS credentials"))?;
    Ok((jwt.to_owned(), seed_in(text.expose_secret())))
}

/// What was vouched for in a `.creds` file.
pub(crate) fn jwt_in(path: &Path) -> Result<String, CredentialsError> {
    parts_of(path).map(|(jwt, _)| jwt)
}

/// The JWT in the text of a credentials file.
fn jwt_of(text: &str) -> Option<&str> {
    let mut lines = text.lines();
    lines.by_ref().find(|line| line.contains("BEGIN NATS USER JWT"))?;
    lines.next().map(str::trim)
}

/// The seed in the text of a credentials file.
fn seed_in(text: &str) -> Option<SecretString> {
    let mut lines = text.lines();
    lines.by_ref().find(|line| line.contains("BEGIN USER NKEY SEED"))?;
    lines.next().map(|seed| SecretString::from(seed.trim()))
}

/// What a server takes for a proof of who somebody is.
pub(crate) struct Proof {
    /// What was vouched for.
    pub(crate) jwt: String,
    /// What the server asked to be signed, signed.
    pub(crate) signature: Vec<u8>,
}

/// Signs what a server asks for by the credentials in a file.
pub(crate) fn proof(path: &Path, nonce: &[u8]) -> Result<Proof, CredentialsError> {
    let (jwt, seed) = parts_of(path)?;
    let seed = seed.ok_or_else(|| CredentialsError::file(path, "it holds no seed"))?;
    let key = nkeys::KeyPair::from_seed(seed.expose_secret())
        .map_err(|error| CredentialsError::file(path, error))?;
    let signature = key.sign(nonce).map_err(|error| CredentialsError::file(path, error))?;
    Ok(Proof { jwt, signature })
}
