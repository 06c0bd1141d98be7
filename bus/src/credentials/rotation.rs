//! Rotation: new signing keys in the place of those that are there, which vouch for a while for those who were let in by them.
//!
//! The seeds of the keys of before are gone at once; what is kept of them is what a server has to know.

use std::fs;
use std::path::{Path, PathBuf};

use muster_shared::time::Millis;
use nkeys::{KeyPair, KeyPairType};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::files::replace;
use super::ledger::{Issued, Ledger};
use super::scope::Scope;
use super::signers;
use super::{CredentialsError, FleetKeys, HolderKind, claims_in};

/// A signing key of before: whom it vouched for is let in for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    /// For which kind of holders.
    pub kind: Scope,
    /// The public key.
    pub key: String,
    /// Until when.
    pub until: Millis,
    /// Whether servers were told that it has ended. It is kept all the same: what was signed before was signed by somebody.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

/// Which keys of before count still.
fn in_grace(known: Vec<Retired>, now: Millis) -> Vec<Retired> {
    known.into_iter().filter(|one| one.until > now).collect()
}

/// Those of before, and those that are replaced now.
fn with(known: Vec<Retired>, current: Vec<Retired>) -> Vec<Retired> {
    let mut all = known;
    // One that was written down by a rotation that did not come to its end has its time from this one.
    all.retain(|old| current.iter().all(|one| one.key != old.key));
    all.extend(current);
    all
}

fn file_of(folder: &Path) -> PathBuf {
    folder.join("retired.json")
}

/// Ends those whose time is over, or all that have not ended.
fn ended(known: Vec<Retired>, all: bool, now: Millis) -> Vec<Retired> {
    let end = |one: Retired| match !one.dropped && (all || one.until <= now) {
        true => Retired { until: one.until.min(now), dropped: true, ..one },
        false => one,
    };
    known.into_iter().map(end).collect()
}

/// The keys of before of a folder, in grace or not.
pub(super) fn retired(folder: &Path) -> Result<Vec<Retired>, CredentialsError> {
    let path = file_of(folder);
    match fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(CredentialsError::file(&path, error)),
        Ok(text) => serde_json::from_slice(&text).map_err(|error| CredentialsError::file(&path, error)),
    }
}

/// Whether keys of before have come to their end and are to be dropped by [`FleetKeys::drop_retired`].
#[must_use]
pub fn is_grace_over(folder: &Path, now: Millis) -> bool {
    retired(folder).is_ok_and(|known| known.iter().any(|one| !one.dropped && one.until <= now))
}

impl FleetKeys {
    /// Makes new signing keys. Whoever was let in by those of before still is until a time; credentials in files that are known
    /// are to be made anew by [`Self::reissue`], once the server was told of the new keys by [`crate::server::reload`].
    ///
    /// # Errors
    /// When keys cannot be read or written.
    pub fn rotate(folder: &Path, until: Millis) -> Result<Self, CredentialsError> {
        let missing = || CredentialsError::file(folder, "there are no keys");
        let before = Self::open(folder)?.ok_or_else(missing)?;
        let lock = Ledger::of(folder).lock()?;
        let current = Scope::ALL.map(|kind| Retired {
            kind,
            key: before.signers.of(kind).public_key(),
            until,
            dropped: false,
        });
        // Written down first: whoever is killed after this leaves keys that vouch until then, and none that is forgotten.
        let all = with(retired(folder)?, current.to_vec());
        write(folder, &all)?;
        for scope in Scope::ALL {
            let seed = KeyPair::new(KeyPairType::Account).seed().map_err(CredentialsError::key)?;
            replace(&signers::file_of(folder, scope), SecretString::from(seed).expose_secret())?;
        }
        drop(lock);
        Self::open(folder)?.ok_or_else(missing)
    }

    /// The keys of before that still count.
    ///
    /// # Errors
    /// When their list cannot be read.
    pub fn retired(&self) -> Result<Vec<Retired>, CredentialsError> {
        Ok(in_grace(self.former()?, crate::bus::now()))
    }

    /// All keys of before that there ever were, with their ends: what was signed in their time is told by them.
    ///
    /// # Errors
    /// When their list cannot be read.
    pub fn former(&self) -> Result<Vec<Retired>, CredentialsError> {
        let mut known = retired(self.folder())?;
        known.retain(|one| self.signers.of(one.kind).public_key() != one.key);
        Ok(known)
    }

    /// Makes credentials anew, in their files, that keys of before vouch for; says how many. Connections that are there stay, and the next
    /// that is made uses the new ones.
    ///
    /// # Errors
    /// When the list of what was issued cannot be read, or a file not be written.
    pub fn reissue(&self) -> Result<usize, CredentialsError> {
        let grace = self.retired()?.into_iter().map(|one| one.until).max();
        let mut renewed = 0;
        let mut issued = self.issued()?;
        // Those who are told something by others' keys know these before the others use them: owners, who give orders, last.
        issued.sort_by_key(|one| matches!(one.kind, HolderKind::Operator | HolderKind::Person));
        for one in issued {
            renewed += usize::from(self.reissue_one(&one, grace.unwrap_or_else(crate::bus::now))?);
        }
        Ok(renewed)
    }

    fn reissue_one(&self, one: &Issued, grace: Millis) -> Result<bool, CredentialsError> {
        let Some(file) = &one.file else { return Ok(false) };
        // A file that is gone, or holds what somebody else was given, is nobody's to write.
        let Ok(claims) = claims_in(file) else { return Ok(false) };
        if claims.sub != one.key || claims.iss == self.signer(&one.kind).public_key() {
            return Ok(false);
        }
        let Some(holder) = one.kind.holder(&one.name) else { return Ok(false) };
        Ledger::of(self.folder()).outlive(&one.key, grace)?;
        self.issue_with(&holder, one.until, Some(file), Vec::new())?.write(file)?;
        Ok(true)
    }

    /// Drops keys of before: those whose time is over, or all at once. What is to be kept was made anew before. A server that runs learns
    /// of it by [`crate::server::reload`].
    ///
    /// # Errors
    /// When lists or files cannot be read or written.
    pub fn drop_retired(&self, all: bool) -> Result<usize, CredentialsError> {
        // Whatever a process was given by a key of before while the keys were made.
        self.reissue()?;
        let _alone = Ledger::of(self.folder()).lock()?;
        let known = self.former()?;
        let then = ended(known.clone(), all, crate::bus::now());
        write(self.folder(), &then)?;
        Ok(known.iter().zip(&then).filter(|(before, after)| before.dropped != after.dropped).count())
    }
}

fn write(folder: &Path, all: &[Retired]) -> Result<(), CredentialsError> {
    replace(&file_of(folder), &serde_json::to_string_pretty(all).map_err(CredentialsError::key)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Holder;

    fn old(key: &str, until: u64) -> Retired {
        Retired { kind: Scope::Agent, key: key.to_owned(), until: Millis(until), dropped: false }
    }

    #[test]
    fn keys_of_before_count_until_their_time_and_no_key_counts_twice() {
        let known = vec![old("ended", 10), old("lasts", 11), old("again", 12)];
        let all = with(known, vec![old("again", 30), old("now", 30)]);
        let keys = |all: &[Retired]| all.iter().map(|one| (one.key.clone(), one.until.0)).collect::<Vec<_>>();
        let named = |all: &[(&str, u64)]| {
            all.iter().map(|(key, until)| ((*key).to_owned(), *until)).collect::<Vec<_>>()
        };
        assert_eq!(keys(&all), named(&[("ended", 10), ("lasts", 11), ("again", 30), ("now", 30)]));
        let counts = in_grace(all.clone(), Millis(10));
        assert_eq!(keys(&counts), named(&[("lasts", 11), ("again", 30), ("now", 30)]));
        let then = ended(all.clone(), false, Millis(11));
        assert_eq!(then.iter().map(|one| one.dropped).collect::<Vec<_>>(), [true, true, false, false]);
        let then = ended(then, true, Millis(20));
        assert_eq!(keys(&then), named(&[("ended", 10), ("lasts", 11), ("again", 20), ("now", 20)]));
    }

    fn worker() -> Holder {
        Holder::Agent { role: "worker".parse().unwrap(), id: "worker-1".parse().unwrap() }
    }

    #[test]
    fn what_is_known_is_made_anew_for_the_same_holder_and_what_was_before_can_be_revoked_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("keys");
        let keys = FleetKeys::open_or_make(&folder).unwrap();
        keys.write_own().unwrap();
        let file = folder.join("worker-1.creds");
        let ends = Millis(crate::bus::now().0 + 50_000_000);
        keys.issue_to(&file, &worker(), Some(ends)).unwrap();
        let (before, seed) = (claims_in(&file).unwrap(), fs::read_to_string(&file).unwrap());
        let public = keys.public().unwrap().signing_keys;

        let until = Millis(crate::bus::now().0 + 3_600_000);
        let keys = FleetKeys::rotate(&folder, until).unwrap();
        assert_eq!(keys.retired().unwrap().len(), Scope::ALL.len());
        let both = keys.public().unwrap().signing_keys;
        let is_told = |key: &String| both.iter().any(|one| one.key == *key && one.until == Some(until));
        assert!(both.len() == 2 * public.len() && public.iter().all(|one| is_told(&one.key)));
        assert_eq!(keys.reissue().unwrap(), 2, "the worker's and the owner's");
        let after = claims_in(&file).unwrap();
        assert_eq!((&after.name, after.exp), (&before.name, before.exp));
        assert!(after.iss != before.iss && after.sub != before.sub);
        assert_ne!(fs::read_to_string(&file).unwrap(), seed);
        assert_eq!(keys.reissue().unwrap(), 0);
        let known = keys.issued().unwrap();
        let of_before = known.iter().find(|one| one.key == before.sub).unwrap();
        assert_eq!((of_before.until, &of_before.file), (Some(until), &None));
        assert_eq!(keys.revoke(&"worker-1".parse().unwrap()).unwrap(), 2);

        assert!(
            !is_grace_over(&folder, until.max(Millis(1)).min(Millis(until.0 - 1)))
                && is_grace_over(&folder, until)
        );
        assert_eq!(keys.drop_retired(false).unwrap(), 0);
        assert_eq!(keys.drop_retired(true).unwrap(), Scope::ALL.len());
        assert!(keys.retired().unwrap().is_empty() && !is_grace_over(&folder, until));
        assert_eq!(keys.drop_retired(true).unwrap(), 0);
        assert_eq!(keys.former().unwrap().len(), Scope::ALL.len(), "what they signed is told by them still");
    }

    #[test]
    fn a_rotation_that_was_killed_leaves_no_key_that_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("keys");
        let keys = FleetKeys::open_or_make(&folder).unwrap();
        let before = keys.signers.of(Scope::Agent).public_key();
        let until = Millis(crate::bus::now().0 + 3_600_000);
        // Killed after the first step: all that is there was written down as of before.
        let current = Scope::ALL.map(|kind| Retired {
            kind,
            key: keys.signers.of(kind).public_key(),
            until,
            dropped: false,
        });
        write(&folder, &current).unwrap();
        assert!(keys.retired().unwrap().is_empty(), "what is current is not of before");
        assert_eq!(keys.public().unwrap().signing_keys.len(), Scope::ALL.len());
        let keys = FleetKeys::rotate(&folder, Millis(until.0 + 1)).unwrap();
        let retired = keys.retired().unwrap();
        assert_eq!(retired.len(), Scope::ALL.len());
        assert!(retired.iter().any(|one| one.key == before && one.until.0 == until.0 + 1));
        assert!(FleetKeys::rotate(&folder.join("nowhere"), until).is_err());
    }
}
