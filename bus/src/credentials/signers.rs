//! The signing keys of the fleet's account, as files.

use std::path::{Path, PathBuf};

use nkeys::{KeyPair, KeyPairType};

use super::CredentialsError;
use super::claims::SigningKey;
use super::files::{make, read, whole};
use super::rotation::Retired;
use super::scope::Scope;
use crate::partition::Partitions;

/// One key for each kind of holder.
pub(super) struct Signers {
    operator: KeyPair,
    person: KeyPair,
    observer: KeyPair,
    orchestrator: KeyPair,
    agent: KeyPair,
    program: KeyPair,
    guard: KeyPair,
    tool_server: KeyPair,
    host: KeyPair,
    guest: KeyPair,
}

impl Signers {
    /// The keys of a folder. Those that are missing are made: folders of earlier versions have none. One that was there and is
    /// gone is not: nobody whom it vouched for would be let in.
    ///
    /// # Errors
    /// When they cannot be read or made, or one is gone.
    pub(super) fn open_or_make(folder: &Path) -> Result<Self, CredentialsError> {
        let files = Scope::ALL.map(|scope| file_of(folder, scope));
        whole(&files)?;
        if files.iter().any(|path| path.exists())
            && let Some(gone) =
                told_of(folder).map(|scope| file_of(folder, scope)).find(|path| !path.exists())
        {
            return Err(CredentialsError::Missing { path: gone });
        }
        let key = |scope: Scope| {
            let path = file_of(folder, scope);
            make(&path, KeyPairType::Account)?;
            let found = read(&path, &KeyPairType::Account)?;
            found.ok_or_else(|| CredentialsError::file(&path, "it was taken away again"))
        };
        Ok(Self {
            operator: key(Scope::Operator)?,
            person: key(Scope::Person)?,
            observer: key(Scope::Observer)?,
            orchestrator: key(Scope::Orchestrator)?,
            agent: key(Scope::Agent)?,
            program: key(Scope::Program)?,
            guard: key(Scope::Guard)?,
            tool_server: key(Scope::ToolServer)?,
            host: key(Scope::Host)?,
            guest: key(Scope::Guest)?,
        })
    }

    /// The key for holders of a kind.
    pub(super) const fn of(&self, scope: Scope) -> &KeyPair {
        match scope {
            Scope::Operator => &self.operator,
            Scope::Person => &self.person,
            Scope::Observer => &self.observer,
            Scope::Orchestrator => &self.orchestrator,
            Scope::Agent => &self.agent,
            Scope::Program => &self.program,
            Scope::Guard => &self.guard,
            Scope::ToolServer => &self.tool_server,
            Scope::Host => &self.host,
            Scope::Guest => &self.guest,
        }
    }

    /// As the account names them, each with what its users may do; and with them those of before that count still.
    pub(super) fn scoped(
        &self,
        retired: &[Retired],
        ways: &[Partitions],
    ) -> Result<Vec<SigningKey>, CredentialsError> {
        let current = Scope::ALL.into_iter().map(|scope| (scope, self.of(scope).public_key()));
        let before = retired.iter().map(|one| (one.kind, one.key.clone()));
        let scoped =
            |(scope, key): (Scope, String)| Ok(SigningKey::new(key, scope.name(), scope.template(ways)?));
        current.chain(before).map(scoped).collect()
    }
}

/// The kinds of holders for which there are keys, by what the owner of the keys is told of them.
fn told_of(folder: &Path) -> impl Iterator<Item = Scope> {
    let told = super::fleet_in(&super::operator_file(folder)).ok().flatten();
    let keys = told.into_iter().flat_map(|trust| trust.signing_keys);
    keys.filter(|key| key.until.is_none()).map(|key| key.kind)
}

/// Where a folder has the key for holders of a kind.
pub(super) fn file_of(folder: &Path, scope: Scope) -> PathBuf {
    folder.join(format!("signing-{}.nk", scope.name()))
}
