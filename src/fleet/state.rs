//! The state file of a local fleet, `.muster/fleet.json`, and the lock that says whether somebody watches over it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::process::ProcessRef;

/// Where a local fleet keeps what it needs, under the folder it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FleetFolder {
    root: PathBuf,
}

impl FleetFolder {
    /// The fleet folder of a project folder.
    pub(crate) fn of(folder: &Path) -> Self {
        Self { root: folder.join(".muster") }
    }

    /// The nearest folder upward that has one, else the one to be made in `folder`.
    pub(crate) fn nearest(folder: &Path) -> Self {
        let found = folder
            .ancestors()
            .map(Self::of)
            .find(|fleet| fleet.state_file().is_file() || fleet.store().is_dir());
        found.unwrap_or_else(|| Self::of(folder))
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// The store of the fleet's NATS server.
    pub(crate) fn store(&self) -> PathBuf {
        self.root.join("nats")
    }

    /// The log file of a process.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.root.join("log").join(format!("{name}.log"))
    }

    fn state_file(&self) -> PathBuf {
        self.root.join("fleet.json")
    }

    fn lock_file(&self) -> PathBuf {
        self.root.join("fleet.lock")
    }

    /// Makes the folders.
    pub(crate) fn create(&self) -> io::Result<()> {
        std::fs::create_dir_all(self.root.join("log"))?;
        std::fs::create_dir_all(self.store())
    }

    /// Takes the lock, which the system gives back when the process ends, however it ends.
    pub(crate) fn lock(&self) -> io::Result<Option<FleetLock>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(self.lock_file())?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => Ok(Some(FleetLock { _held: held })),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// The state of the fleet that is up here, if one is. A state file that a killed supervisor left behind does
    /// not count: the lock is free, or the process is another one.
    pub(crate) fn live(&self) -> Option<FleetState> {
        let state = self.read()?;
        state.supervisor.is_alive().then_some(state)
    }

    /// The state file as it stands, true or not.
    pub(crate) fn read(&self) -> Option<FleetState> {
        let text = std::fs::read(self.state_file()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes the state in one move: a reader sees the old or the new, never half.
    pub(crate) fn write(&self, state: &FleetState) -> io::Result<()> {
        let next = self.root.join("fleet.json.new");
        std::fs::write(&next, serde_json::to_vec_pretty(state)?)?;
        std::fs::rename(next, self.state_file())
    }

    /// Takes the state file away.
    pub(crate) fn clear(&self) {
        let _ = std::fs::remove_file(self.state_file());
    }
}

/// Held by the process that watches over the fleet of a folder.
#[derive(Debug)]
pub(crate) struct FleetLock {
    _held: Flock<File>,
}

/// A local fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FleetState {
    /// Where its bus listens.
    pub(crate) url: String,
    /// Who watches over it.
    pub(crate) supervisor: ProcessRef,
    /// When it came up, in UTC milliseconds.
    pub(crate) since: u64,
    /// Whether every process has been started once and the fleet takes goals.
    pub(crate) up: bool,
    /// The team that it was brought up as, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) team: Option<String>,
    /// Its processes.
    pub(crate) members: Vec<MemberState>,
    /// Files that define no specialist, and why.
    #[serde(default)]
    pub(crate) refused: Vec<RefusedFile>,
}

/// A file in the folder of specialists that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusedFile {
    /// The file.
    pub(crate) path: PathBuf,
    /// What is wrong, and where.
    pub(crate) reason: String,
}

/// One process of a local fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberState {
    /// Its name in the fleet, such as `worker-2`.
    pub(crate) name: String,
    /// The process; nothing while it waits to be started again.
    pub(crate) process: Option<ProcessRef>,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// Whether it was given up.
    pub(crate) given_up: bool,
    /// Resident memory when it was last looked at, in bytes.
    pub(crate) resident_bytes: u64,
    /// The file that defines it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn state(supervisor: ProcessRef) -> FleetState {
        FleetState {
            url: "nats://127.0.0.1:1".into(),
            supervisor,
            since: 1,
            up: true,
            team: None,
            members: Vec::new(),
            refused: Vec::new(),
        }
    }

    #[test]
    fn a_state_file_counts_while_its_supervisor_lives() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        fleet.create().unwrap();
        assert_eq!(fleet.live(), None);

        let mine = state(ProcessRef::of(std::process::id()));
        fleet.write(&mine).unwrap();
        assert_eq!(fleet.live(), Some(mine.clone()));

        let mut reused = mine;
        reused.supervisor.started += 1;
        fleet.write(&reused).unwrap();
        assert_eq!(fleet.live(), None, "another process with the same number is not the supervisor");
        assert!(fleet.read().is_some());

        std::fs::write(fleet.state_file(), "half a f").unwrap();
        assert_eq!(fleet.live(), None);
    }

    #[test]
    fn one_lock_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        fleet.create().unwrap();
        let held = fleet.lock().unwrap();
        assert!(held.is_some());
        assert!(fleet.lock().unwrap().is_none());
        drop(held);
        assert!(fleet.lock().unwrap().is_some());
    }

    #[test]
    fn the_nearest_fleet_upward_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        fleet.create().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(FleetFolder::nearest(&deep), fleet);
    }
}
