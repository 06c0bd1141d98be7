//! The keys of a fleet: made once, kept in a folder that nobody else reads.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use muster_shared::ids::{AgentId, Role};
use muster_shared::time::Millis;
use nkeys::{KeyPair, KeyPairType};
use secrecy::SecretString;

use super::accounts::{self, store_of};
use super::claims::{Claims, Said, Statement};
use super::files::{closed, make, read, whole};
use super::holder::{Holder, HolderKind};
use super::ledger::{Issued, Ledger, Unread};
use super::rights::consumer_names;
use super::rotation::Retired;
use super::scope::Scope;
use super::signers::Signers;
use super::signing::{SigningKeyOf, Trust};
use super::{Credentials, CredentialsError};
use crate::partition::Partitions;

/// Under which tag credentials say what kind of holder they are for.
pub(super) const KIND: &str = "muster:";
/// Under which tag they say his role, for the templates of what he may do.
pub(super) const ROLE: &str = "role:";

/// When what never changes was said: a server that runs takes no other word of the operator, and forgets what is under way in an
/// account that it is told of anew.
const ALWAYS: Millis = Millis(1_000);

/// Tag of the name of a consumer that the holder may create, for the templates of rights.
const CONSUMER: &str = "consumer:";

/// What the accounts are called for people.
const FLEET_ACCOUNT: &str = "MUSTER";
const STORE_ACCOUNT: &str = "MUSTER_STORE";
const SYSTEM_ACCOUNT: &str = "SYSTEM";

/// What the owner of the keys is called in credentials for himself, and what orchestrators are called by the server's account.
const OPERATOR: &str = "operator";
const PRESENCE: &str = "presence";

/// The keys of a fleet.
pub struct FleetKeys {
    pub(super) folder: PathBuf,
    operator: KeyPair,
    account: KeyPair,
    store: KeyPair,
    system: KeyPair,
    pub(super) signers: Signers,
}

impl std::fmt::Debug for FleetKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetKeys").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// What a person may not be called, besides the names of roles: policies and records mean somebody else by it.
const NO_PERSONS: [&str; 12] = [
    OPERATOR,
    PRESENCE,
    "person",
    "observer",
    "orchestrator",
    "agent",
    "program",
    "guard",
    "host",
    "guest",
    "anonymous",
    "somebody",
];

/// Returns false for a name by which a person would be taken for another holder: `limits.people.approve_by` means the
/// fleet's owner by `operator`.
#[must_use]
pub fn is_person_name(name: &AgentId) -> bool {
    let roles = Role::BUILT_IN.iter().map(Role::as_str);
    !NO_PERSONS.into_iter().chain(roles).any(|other| name.as_str().eq_ignore_ascii_case(other))
}

pub(super) fn check_name(holder: &Holder) -> Result<(), CredentialsError> {
    match holder {
        Holder::Person { name } if !is_person_name(name) => {
            Err(CredentialsError::Name { name: name.to_string() })
        }
        _ => Ok(()),
    }
}

/// The keys that all others hang on, by the names of their files.
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
            // Made anew, it would be another fleet's, and the record of this one nobody's.
            let signers = Scope::ALL.map(|scope| super::signers::file_of(folder, scope));
            let made: Vec<PathBuf> =
                FILES.map(|(name, _)| folder.join(name)).into_iter().chain(signers).collect();
            return whole(&made).map(|()| None);
        };
        let account = account?;
        Ok(Some(Self {
            folder: folder.to_owned(),
            operator: operator?,
            store: store_of(&account)?,
            account,
            system: system?,
            signers: Signers::open_or_make(folder)?,
        }))
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
            // One that was made before the others could be is kept.
            make(&folder.join(name), kind)?;
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

    /// Writes the credentials that the owner of the keys has by them, where they are missing, of other keys or revoked, or do not
    /// tell the fleet's keys.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_own(&self) -> Result<(), CredentialsError> {
        let name = |name: &str| name.parse::<AgentId>().map_err(CredentialsError::key);
        let revoked = Ledger::of(&self.folder).revoked()?;
        let own = [
            (self.operator_file(), Holder::Operator { name: name(OPERATOR)? }),
            (self.presence_file(), Holder::Presence { id: name(PRESENCE)? }),
        ];
        for (path, holder) in own {
            let by = self.signer(&holder.kind()).public_key();
            let counts = |claims: Claims| claims.iss == by && !revoked.contains_key(&claims.sub);
            let fleet = Scope::of(&holder.kind()).map(|_| self.trust()).transpose()?;
            let told = || super::fleet_in(&path).is_ok_and(|found| found == fleet);
            if super::claims_in(&path).is_ok_and(counts) && told() {
                continue;
            }
            self.issue_to(&path, &holder, None)?;
        }
        Ok(())
    }

    /// Where they are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What servers call the fleet's account, in which all are who connect.
    #[must_use]
    pub fn account(&self) -> String {
        self.account.public_key()
    }

    /// What servers call the account in which all is stored.
    #[must_use]
    pub fn store_account(&self) -> String {
        self.store.public_key()
    }

    /// The public keys, by which anybody can tell who belongs to the fleet, and who does no more.
    ///
    /// # Errors
    /// When the list of the revoked cannot be read.
    pub fn public(&self) -> Result<Trust, CredentialsError> {
        let revoked = Ledger::of(&self.folder).revoked()?;
        let revoked = revoked.into_iter().map(|(key, revoked)| (key, revoked.at)).collect();
        Ok(Trust { revoked, ..self.trust()? })
    }

    /// The public keys, those of before among them with their ends, without who was revoked, which changes.
    ///
    /// # Errors
    /// When their list cannot be read.
    pub fn trust(&self) -> Result<Trust, CredentialsError> {
        let current = Scope::ALL.map(|kind| SigningKeyOf {
            kind,
            key: self.signers.of(kind).public_key(),
            until: None,
        });
        let before = self.former()?.into_iter();
        let before =
            before.map(|Retired { kind, key, until, .. }| SigningKeyOf { kind, key, until: Some(until) });
        let signing_keys = current.into_iter().chain(before).collect();
        Ok(Trust { account: self.account(), signing_keys, revoked: BTreeMap::new() })
    }

    /// Credentials for somebody; for ever, or until a time. What they allow is in the server's configuration, except for the
    /// server's own account.
    ///
    /// # Errors
    /// When a key cannot be used.
    pub fn issue(&self, holder: &Holder, until: Option<Millis>) -> Result<Credentials, CredentialsError> {
        check_name(holder)?;
        self.issue_with(holder, until, None, Vec::new())
    }

    /// The same, written to a file. What was made before for a file in the folder of keys is not kept in mind any more.
    ///
    /// # Errors
    /// When a key cannot be used, the name is none for a person, or the file cannot be written.
    pub fn issue_to(
        &self,
        file: &Path,
        holder: &Holder,
        until: Option<Millis>,
    ) -> Result<(), CredentialsError> {
        check_name(holder)?;
        self.issue_with(holder, until, Some(file), Vec::new())?.write(file)
    }

    /// The same for any name, such as that of a holder who had credentials before, with tags besides the usual ones.
    pub(super) fn issue_with(
        &self,
        holder: &Holder,
        until: Option<Millis>,
        file: Option<&Path>,
        more: Vec<String>,
    ) -> Result<Credentials, CredentialsError> {
        let (user, kind, now) = (KeyPair::new_user(), holder.kind(), crate::bus::now());
        let jwt = self.vouch(&user, holder, (now, until), more)?;
        if Scope::of(&kind).is_some() {
            let (name, key) = (holder.name().clone(), user.public_key());
            let file = file.map(Path::to_owned);
            let issued = Issued { name, kind, key, issued: now, until, file, place: None };
            Ledger::of(&self.folder).note(issued, now)?;
        }
        let fleet = Scope::of(&holder.kind()).map(|_| self.trust()).transpose()?;
        let seed = user.seed().map_err(CredentialsError::key)?;
        Ok(Credentials { jwt, seed: SecretString::from(seed), fleet })
    }

    /// Signs that a key is that of a holder, from one time until another, with tags besides the usual ones.
    pub(super) fn vouch(
        &self,
        user: &KeyPair,
        holder: &Holder,
        (at, until): (Millis, Option<Millis>),
        more: Vec<String>,
    ) -> Result<String, CredentialsError> {
        let kind = holder.kind();
        let tags = tags(holder).into_iter().chain(more).collect();
        let said = match Scope::of(&kind) {
            Some(_) => Said::scoped_user(&self.account, tags),
            // The record's parts are nothing to the server's own account.
            None => Said::user(holder.rights(Partitions::default()), tags),
        };
        let by = self.signer(&kind);
        Statement { of: user, by, name: holder.name().to_string(), said, at, until }.sign()
    }

    /// What credentials were made by [`Self::issue`] and [`Self::issue_to`] that count still, except for those of the server's
    /// own account.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn issued(&self) -> Result<Vec<Issued>, CredentialsError> {
        let now = crate::bus::now();
        let mut issued = Ledger::of(&self.folder).issued()?;
        issued.retain(|one| one.until.is_none_or(|until| until > now));
        Ok(issued)
    }

    /// The same of what a later version made, of a kind that this one does not know.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn unread(&self) -> Result<Vec<Unread>, CredentialsError> {
        Ledger::of(&self.folder).unread()
    }

    /// Revokes all credentials that holders of this name have, those of a machine that joined with all that it was given; says how many. A server that runs learns of it by
    /// [`crate::server::reload`].
    ///
    /// # Errors
    /// When the lists cannot be read or written.
    pub fn revoke(&self, name: &AgentId) -> Result<usize, CredentialsError> {
        Ledger::of(&self.folder).revoke(name, crate::bus::now())
    }

    /// The key that vouches for holders of a kind.
    pub(super) fn signer(&self, kind: &HolderKind) -> &KeyPair {
        Scope::of(kind).map_or(&self.system, |scope| self.signers.of(scope))
    }

    /// The part of a server's configuration by which it knows the fleet: whom it trusts, and the accounts. Nobody connects
    /// without credentials. Users are not named: their credentials say which signing key vouches for them, and what its users
    /// may do on a record that is parted in one of these ways stands here.
    ///
    /// # Errors
    /// When a key cannot be used.
    pub fn server_configuration(&self, ways: &[Partitions]) -> Result<String, CredentialsError> {
        let now = crate::bus::now();
        let sign = |of: &KeyPair, name: &str, said: Said| {
            let at = if std::ptr::eq(of, &self.account) { now } else { ALWAYS };
            Statement { of, by: &self.operator, name: name.to_owned(), said, at, until: None }.sign()
        };
        let revoked = Ledger::of(&self.folder).revoked()?;
        let revoked = revoked.into_iter().map(|(key, revoked)| (key, revoked.at.0 / 1000)).collect();
        let signing_keys = self.signers.scoped(&self.retired()?, ways)?;
        let fleet = Said::account(signing_keys, revoked, accounts::imports(&self.store));
        let operator = sign(&self.operator, "muster", Said::operator(&self.system))?;
        let system_key = self.system.public_key();
        let accounts = [
            (&self.account, FLEET_ACCOUNT, fleet),
            (&self.store, STORE_ACCOUNT, Said::store(accounts::exports())),
            (&self.system, SYSTEM_ACCOUNT, Said::system()),
        ];
        let mut preloaded = String::new();
        for (key, name, said) in accounts {
            preloaded += &format!("  {}: \"{}\"\n", key.public_key(), sign(key, name, said)?);
        }
        Ok(format!(
            "operator: \"{operator}\"\n\
             system_account: {system_key}\n\
             resolver: MEMORY\n\
             resolver_preload {{\n{preloaded}}}\n"
        ))
    }
}

/// Where the keys of a folder have the one that vouches for agents: written anew, when keys are rotated.
#[must_use]
pub fn signing_key_file(folder: &Path) -> PathBuf {
    super::signers::file_of(folder, Scope::Agent)
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

/// Tags of the credentials of a holder. Only those that read streams name consumers: a JWT must be small.
pub(super) fn tags(holder: &Holder) -> Vec<String> {
    let kind = holder.kind();
    let role = kind.role().map(|role| format!("{ROLE}{role}"));
    let rights = holder.rights(Partitions::default());
    let reads = rights.publish.iter().any(|subject| subject.contains("CONSUMER.CREATE"));
    let consumers = consumer_names(holder.name()).filter(|_| reads).map(|name| format!("{CONSUMER}{name}"));
    std::iter::once(format!("{KIND}{kind}")).chain(role).chain(consumers).collect()
}
