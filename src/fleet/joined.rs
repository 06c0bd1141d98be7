//! What a machine that joined a fleet keeps of it, in `.muster/joined` of its folder: who it is there, and its credentials.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use muster_bus::BusSettings;
use muster_bus::credentials::{Credentials, OwnKey};
use muster_shared::ids::{AgentId, Role};
use serde::{Deserialize, Serialize};

use super::private;
use super::state::FleetFolder;
use crate::trust::Item;

/// Agents of a role that are started unless told otherwise, at most.
const MOST_AGENTS: u16 = 8;

/// What a machine is in a fleet that is elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Membership {
    /// What it is called there.
    pub(crate) host: AgentId,
    /// The invitation that it joined by.
    pub(crate) invitation: AgentId,
    /// Of which roles it may start agents.
    pub(crate) roles: Vec<Role>,
    /// Where the fleet is.
    pub(crate) url: String,
    /// Whether connections are encrypted: the fleet's own authority is in a file beside this.
    pub(crate) is_encrypted: bool,
    /// Settings that all processes of the fleet share.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    /// How many agents were asked for last, by role.
    #[serde(default)]
    pub(crate) scale: BTreeMap<Role, u16>,
}

impl Membership {
    /// How many agents of each role are started: as many as are asked for, else as many as the last time, else as suits so
    /// many processors.
    ///
    /// # Errors
    /// Names a role that the machine was not invited for.
    pub(crate) fn scaled(
        &self,
        asked: &[(String, u16)],
        processors: usize,
    ) -> Result<BTreeMap<Role, u16>, String> {
        let share = processors / self.roles.len().max(1);
        let usual = u16::try_from(share).unwrap_or(MOST_AGENTS).clamp(1, MOST_AGENTS);
        let mut scale: BTreeMap<Role, u16> = self.roles.iter().map(|role| (role.clone(), usual)).collect();
        scale.extend(self.scale.iter().map(|(role, count)| (role.clone(), *count)));
        for (name, count) in asked {
            match name.parse::<Role>().ok().filter(|role| self.roles.contains(role)) {
                Some(role) => scale.insert(role, *count),
                None => return Err(name.clone()),
            };
        }
        scale.retain(|role, _| self.roles.contains(role));
        Ok(scale)
    }
}

/// Where it is kept.
#[derive(Debug, Clone)]
pub(crate) struct JoinedFolder {
    root: PathBuf,
}

impl JoinedFolder {
    pub(crate) fn of(fleet: &FleetFolder) -> Self {
        Self { root: fleet.path().join("joined") }
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// Makes it, for the user alone.
    pub(crate) fn create(&self, fleet: &FleetFolder) -> io::Result<()> {
        fleet.make()?;
        private::folder(&self.root)
    }

    /// The key of the machine, by the invitation that it joins by: whoever tries again is known again.
    pub(crate) fn key_file(&self, invitation: &AgentId) -> PathBuf {
        self.root.join(format!("{invitation}.nk"))
    }

    /// The credentials of the invitation, while they are used.
    pub(crate) fn guest_file(&self, invitation: &AgentId) -> PathBuf {
        self.root.join(format!("{invitation}.creds"))
    }

    /// The credentials of the machine.
    pub(crate) fn host_file(&self) -> PathBuf {
        self.root.join("host.creds")
    }

    fn authority_file(&self) -> PathBuf {
        self.root.join("ca.pem")
    }

    fn membership_file(&self) -> PathBuf {
        self.root.join("joined.json")
    }

    /// What is kept, if anything is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(&self) -> io::Result<Option<Membership>> {
        match std::fs::read(self.membership_file()) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// By what it is told whether the user joined here; nothing without the machine's key.
    pub(crate) fn item(&self, joined: &Membership) -> Option<Item> {
        let file = Some(self.key_file(&joined.invitation)).filter(|file| file.is_file())?;
        let key = OwnKey::in_file(&file).ok()?.public();
        Some(Item::joined(&self.root, &joined.url, &key))
    }

    /// Keeps what the machine is and by what it proves that; what only the invitation needed goes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn keep(
        &self,
        joined: &Membership,
        credentials: &Credentials,
        authority: Option<&str>,
    ) -> io::Result<()> {
        if let Some(authority) = authority {
            private::write(&self.authority_file(), authority.as_bytes())?;
        }
        credentials.write(&self.host_file()).map_err(io::Error::other)?;
        self.write(joined)?;
        // The key of the machine stays: asked again by the same line, it is the same machine.
        let _ = std::fs::remove_file(self.guest_file(&joined.invitation));
        Ok(())
    }

    /// Writes what the machine is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, joined: &Membership) -> io::Result<()> {
        private::replace(&self.membership_file(), &serde_json::to_vec_pretty(joined)?)
    }

    /// The fleet's own authority, where connections are encrypted.
    pub(crate) fn authority(&self, joined: &Membership) -> Option<PathBuf> {
        joined.is_encrypted.then(|| self.authority_file())
    }

    /// How the machine connects.
    pub(crate) fn way(&self, joined: &Membership, settings: &BusSettings) -> BusSettings {
        let credentials = Some(self.host_file());
        by_credentials(settings, &joined.url, credentials, self.authority(joined))
    }
}

/// Settings of a connection by a credentials file, and by nothing else.
pub(crate) fn by_credentials(
    settings: &BusSettings,
    url: &str,
    credentials: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
) -> BusSettings {
    let url = Some(url.to_owned());
    BusSettings {
        url,
        user: None,
        password: None,
        token: None,
        credentials,
        tls_ca,
        tls_cert: None,
        tls_key: None,
        ..settings.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(roles: &[&str]) -> Membership {
        Membership {
            host: "mill".parse().unwrap(),
            invitation: "guest-1".parse().unwrap(),
            roles: roles.iter().map(|role| role.parse().unwrap()).collect(),
            url: "tls://192.0.2.7:4222".to_owned(),
            is_encrypted: true,
            settings: BTreeMap::new(),
            scale: BTreeMap::new(),
        }
    }

    fn counts(member: &Membership, asked: &[(&str, u16)], processors: usize) -> Vec<(String, u16)> {
        let asked: Vec<_> = asked.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let scale = member.scaled(&asked, processors).unwrap();
        scale.into_iter().map(|(role, count)| (role.to_string(), count)).collect()
    }

    fn one(role: &str, count: u16) -> (String, u16) {
        (role.to_owned(), count)
    }

    #[test]
    fn as_many_agents_are_started_as_suit_the_machine_or_are_asked_for() {
        let workers = member(&["worker"]);
        assert_eq!(counts(&workers, &[], 2), [one("worker", 2)]);
        assert_eq!(counts(&workers, &[], 0), [one("worker", 1)]);
        assert_eq!(counts(&workers, &[], 128), [one("worker", 8)]);
        assert_eq!(counts(&workers, &[("worker", 30)], 4), [one("worker", 30)]);
        let mut both = member(&["worker", "researcher"]);
        assert_eq!(counts(&both, &[], 4), [one("worker", 2), one("researcher", 2)]);
        both.scale = [("worker".parse().unwrap(), 5)].into();
        assert_eq!(counts(&both, &[("researcher", 0)], 4), [one("worker", 5), one("researcher", 0)]);
        assert_eq!(workers.scaled(&[("planner".to_owned(), 1)], 4), Err("planner".to_owned()));
    }

    #[test]
    fn what_is_kept_is_found_again_and_is_nobody_elses() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        let joined = JoinedFolder::of(&fleet);
        assert_eq!(joined.read().unwrap(), None);
        joined.create(&fleet).unwrap();
        let member = member(&["worker"]);
        joined.write(&member).unwrap();
        assert_eq!(joined.read().unwrap(), Some(member));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(joined.path()), mode(&joined.membership_file())), (0o700, 0o600));
    }
}
