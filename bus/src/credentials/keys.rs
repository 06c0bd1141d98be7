//! The keys of a fleet: made once, kept in a folder that nobody else reads.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use muster_shared::ids::AgentId;
use muster_shared::time::Millis;
use nkeys::{KeyPair, KeyPairType};
use secrecy::{ExposeSecret, SecretString};

use super::claims::{Said, Statement};
use super::rights::Holder;
use super::{Credentials, CredentialsError};
use crate::partition::Partitions;
use crate::server::write_private;

/// Under which tag credentials say what kind of holder they are for.
pub(super) const KIND: &str = "muster:";

/// What the accounts are called for people.
const FLEET_ACCOUNT: &str = "MUSTER";
const SYSTEM_ACCOUNT: &str = "SYSTEM";

/// What the owner of the keys is called in credentials for himself, and what orchestrators are called by the server's account.
const OPERATOR: &str = "operator";
const PRESENCE: &str = "presence";

/// Bits of a file's mode that let others in.
const OTHERS: u32 = 0o077;

/// The keys of a fleet.
pub struct FleetKeys {
    folder: PathBuf,
    operator: KeyPair,
    account: KeyPair,
    system: KeyPair,
}

impl std::fmt::Debug for FleetKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetKeys").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The three keys, by the names of their files.
const FILES: [(&str, KeyPairType); 3] = [
    ("operator.nk", KeyPairType::Operator),
    ("account.nk", KeyPairType::Account),
    ("system.nk", KeyPairType::Account),
];

impl FleetKeys {
    /// The keys of a folder; nothing where there are none.
    ///
    /// # Errors
    /// [`CredentialsError::Open`] when others can read them; else when they cannot be read.
    pub fn open(folder: &Path) -> Result<Option<Self>, CredentialsError> {
        match fs::metadata(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CredentialsError::file(folder, error)),
            Ok(found) => closed(folder, &found)?,
        }
        let [Some(operator), Some(account), Some(system)] = FILES
            .map(|(name, kind)| (folder.join(name), kind))
            .map(|(path, kind)| read(&path, &kind).transpose())
        else {
            return Ok(None);
        };
        Ok(Some(Self { folder: folder.to_owned(), operator: operator?, account: account?, system: system? }))
    }

    /// The keys of a folder, made where there are none.
    ///
    /// # Errors
    /// When they cannot be read or written.
    pub fn open_or_make(folder: &Path) -> Result<Self, CredentialsError> {
        if let Some(known) = Self::open(folder)? {
            return Ok(known);
        }
        let wrong = |error| CredentialsError::file(folder, error);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(wrong)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(wrong)?;
        for (name, kind) in FILES {
            let path = folder.join(name);
            // One that was made before the others could be is kept.
            if !path.exists() {
                let seed = SecretString::from(KeyPair::new(kind).seed().map_err(CredentialsError::key)?);
                write_private(&path, seed.expose_secret().as_bytes())
                    .map_err(|error| CredentialsError::file(&path, error))?;
            }
        }
        Self::open(folder)?.ok_or_else(|| CredentialsError::file(folder, "the keys were taken away again"))
    }

    /// A credentials file of these keys for whoever runs the fleet on this machine, and is its owner.
    #[must_use]
    pub fn operator_file(&self) -> PathBuf {
        operator_file(&self.folder)
    }

    /// A credentials file of these keys for orchestrators of this machine, by which they are told who comes and goes.
    #[must_use]
    pub fn presence_file(&self) -> PathBuf {
        presence_file(&self.folder)
    }

    /// Writes the credentials that the owner of the keys has by them, where they are missing or of other keys.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_own(&self) -> Result<(), CredentialsError> {
        let name = |name: &str| name.parse::<AgentId>().map_err(CredentialsError::key);
        let own = [
            (self.operator_file(), Holder::Operator { name: name(OPERATOR)? }, &self.account),
            (self.presence_file(), Holder::Presence { id: name(PRESENCE)? }, &self.system),
        ];
        for (path, holder, by) in own {
            if super::issuer(&path).is_ok_and(|issuer| issuer == by.public_key()) {
                continue;
            }
            self.issue(&holder, Partitions::default(), None)?.write(&path)?;
        }
        Ok(())
    }

    /// Where they are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What servers call the fleet's account.
    #[must_use]
    pub fn account(&self) -> String {
        self.account.public_key()
    }

    /// Credentials for somebody, on a bus whose record is in these parts; for ever, or until a time.
    ///
    /// # Errors
    /// When a key cannot be used.
    pub fn issue(
        &self,
        holder: &Holder,
        parts: Partitions,
        until: Option<Millis>,
    ) -> Result<Credentials, CredentialsError> {
        let user = KeyPair::new_user();
        let by = match holder {
            Holder::Presence { .. } => &self.system,
            Holder::Operator { .. }
            | Holder::Observer { .. }
            | Holder::Orchestrator { .. }
            | Holder::Agent { .. }
            | Holder::Program { .. } => &self.account,
        };
        let tags = vec![format!("{KIND}{}", holder.kind())];
        let statement = Statement {
            of: &user,
            by,
            name: holder.name().to_string(),
            said: Said::user(holder.rights(parts), tags),
            at: crate::bus::now(),
            until,
        };
        let seed = user.seed().map_err(CredentialsError::key)?;
        Ok(Credentials { jwt: statement.sign()?, seed: SecretString::from(seed) })
    }

    /// The part of a server's configuration by which it knows the fleet: whom it trusts, and the accounts. Nobody connects
    /// without credentials. Users are not named: their credentials say that the account vouches for them.
    ///
    /// # Errors
    /// When a key cannot be used.
    pub fn server_configuration(&self) -> Result<String, CredentialsError> {
        let at = crate::bus::now();
        let sign = |of: &KeyPair, name: &str, said: Said| {
            Statement { of, by: &self.operator, name: name.to_owned(), said, at, until: None }.sign()
        };
        let operator = sign(&self.operator, "muster", Said::operator(&self.system))?;
        let account = sign(&self.account, FLEET_ACCOUNT, Said::account(true, BTreeMap::new()))?;
        let system = sign(&self.system, SYSTEM_ACCOUNT, Said::account(false, BTreeMap::new()))?;
        let (account_key, system_key) = (self.account.public_key(), self.system.public_key());
        Ok(format!(
            "operator: \"{operator}\"\n\
             system_account: {system_key}\n\
             resolver: MEMORY\n\
             resolver_preload {{\n  {account_key}: \"{account}\"\n  {system_key}: \"{system}\"\n}}\n"
        ))
    }
}

/// Where the keys of a folder have the credentials of their owner.
#[must_use]
pub fn operator_file(folder: &Path) -> PathBuf {
    folder.join("operator.creds")
}

/// Where the keys of a folder have the credentials by which orchestrators are told who comes and goes.
#[must_use]
pub fn presence_file(folder: &Path) -> PathBuf {
    folder.join("presence.creds")
}

fn closed(path: &Path, found: &fs::Metadata) -> Result<(), CredentialsError> {
    if found.permissions().mode() & OTHERS != 0 {
        return Err(CredentialsError::Open { path: path.to_owned() });
    }
    Ok(())
}

fn read(path: &Path, kind: &KeyPairType) -> Result<Option<KeyPair>, CredentialsError> {
    let wrong = |reason: String| CredentialsError::file(path, reason);
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
        Ok(found) => closed(path, &found)?,
    }
    let seed = SecretString::from(fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?);
    let pair = KeyPair::from_seed(seed.expose_secret().trim()).map_err(|error| wrong(error.to_string()))?;
    if pair.key_pair_type() != *kind {
        return Err(wrong("it is a key of another kind".to_owned()));
    }
    Ok(Some(pair))
}
