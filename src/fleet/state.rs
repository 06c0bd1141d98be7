//! The state file of a local fleet, `.muster/fleet.json`, and the lock that says whether somebody watches over it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use muster_shared::ids::AgentId;
use serde::{Deserialize, Serialize};

use super::lock::{self, FleetLock};
use super::private;
use super::process::ProcessRef;
use super::wish::Wish;
use crate::settings::RunsWith;
use crate::trust::{self, Fault, Me};

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

    /// The nearest folder upward that has one, else the one to be made in `folder`; and why one that is nearer does not
    /// count.
    pub(crate) fn nearest(folder: &Path) -> (Self, Option<String>) {
        let mut why = None;
        for fleet in folder.ancestors().map(Self::of) {
            if !fleet.state_file().is_file() && !fleet.store().is_dir() {
                continue;
            }
            let Some(fault) = fleet.disbelief() else { return (fleet, why) };
            if fleet.root.parent() == Some(folder) {
                return (fleet, Some(fault));
            }
            why.get_or_insert(fault);
        }
        let fleet = Self::of(folder);
        let fault = fleet.disbelief();
        (fleet, fault.or(why))
    }

    /// Why nothing is read or written here: it is not the user's own, or a link in it leads elsewhere.
    pub(crate) fn disbelief(&self) -> Option<String> {
        let fault = self.fault().or_else(|| trust::link_in(&self.root, 3))?;
        Some(format!("what stands in {} is not believed: {fault}", self.root.display()))
    }

    /// Why what this folder says is not believed: it, or its state file, is not the user's own.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let me = Me::of_process();
        trust::of_own(me, &self.root).or_else(|| trust::of_own(me, &self.state_file()))
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

    fn port_file(&self) -> PathBuf {
        self.root.join("port")
    }

    /// The port that the fleet of this folder had last: whoever still looks for it there finds it again.
    pub(crate) fn port(&self) -> Option<u16> {
        std::fs::read_to_string(self.port_file()).ok()?.trim().parse().ok().filter(|port| *port != 0)
    }

    /// Keeps the port for the next time.
    pub(crate) fn keep_port(&self, port: u16) -> io::Result<()> {
        private::write(&self.port_file(), format!("{port}\n").as_bytes())
    }

    fn wish_file(&self) -> PathBuf {
        self.root.join("wish.json")
    }

    /// What is wished of the fleet that is up here, as far as its owner said it.
    pub(crate) fn wish(&self) -> Option<Wish> {
        let file = self.wish_file();
        if trust::of_own(Me::of_process(), &file).is_some() {
            return None;
        }
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }

    /// Says what is wished of it, in one move.
    pub(crate) fn leave_wish(&self, wish: &Wish) -> io::Result<()> {
        private::replace(&self.wish_file(), &serde_json::to_vec(wish)?)
    }

    /// Forgets what was wished of a fleet that is gone.
    pub(crate) fn forget_wish(&self) {
        let _ = std::fs::remove_file(self.wish_file());
    }

    /// Where a supervisor in the background says why it could not bring the fleet up.
    pub(crate) fn word(&self) -> PathBuf {
        self.root.join("supervisor.word")
    }

    /// Makes the folder itself, for the user alone.
    pub(crate) fn make(&self) -> io::Result<()> {
        private::folder(&self.root)
    }

    /// Makes the folders, for the user alone.
    pub(crate) fn create(&self) -> io::Result<()> {
        self.make()?;
        private::folder(&self.root.join("log"))?;
        private::folder(&self.store())
    }

    /// Takes the lock, which the system gives back when the process ends, however it ends.
    pub(crate) fn lock(&self) -> io::Result<Option<FleetLock>> {
        lock::take(&self.lock_file())
    }

    /// The state of the fleet that is up here, if one is. A state file that a killed supervisor left behind does
    /// not count, nor one that came with a copy of the folder: the lock is free, or another process has it.
    pub(crate) fn live(&self) -> Option<FleetState> {
        self.read().filter(|state| state.supervisor.is_ours() && self.is_watched_by(&state.supervisor))
    }

    /// Why the state file does not count, where it names a supervisor that runs.
    pub(crate) fn pretended(&self) -> Option<String> {
        let state = self.read().filter(|state| state.supervisor.is_ours())?;
        let pid = state.supervisor.pid;
        (!self.is_watched_by(&state.supervisor)).then(|| {
            format!(
                "what {} says is not believed: process {pid} does not watch over this folder ({} is not locked by it)",
                self.state_file().display(),
                self.lock_file().display()
            )
        })
    }

    fn is_watched_by(&self, supervisor: &ProcessRef) -> bool {
        lock::is_held_by(&self.lock_file(), supervisor.pid)
    }

    /// The state file as it stands, true or not. One that somebody else can write is not believed.
    pub(crate) fn read(&self) -> Option<FleetState> {
        if self.fault().is_some() {
            return None;
        }
        let text = std::fs::read(self.state_file()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes the state in one move: a reader sees the old or the new, never half.
    pub(crate) fn write(&self, state: &FleetState) -> io::Result<()> {
        let next = self.root.join("fleet.json.new");
        let _ = std::fs::remove_file(&next);
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&next)?;
        file.write_all(&serde_json::to_vec_pretty(state)?)?;
        std::fs::rename(next, self.state_file())
    }

    /// Takes the state file away.
    pub(crate) fn clear(&self) {
        let _ = std::fs::remove_file(self.state_file());
    }
}

/// A local fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FleetState {
    /// Where its bus listens.
    pub(crate) url: String,
    /// The address that its server listens on for other machines, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) listen: Option<String>,
    /// Who watches over it.
    pub(crate) supervisor: ProcessRef,
    /// When it came up, in UTC milliseconds.
    pub(crate) since: u64,
    /// Whether every process has been started once and the fleet takes goals.
    pub(crate) up: bool,
    /// Whether everybody has joined, so that it takes work of every kind.
    #[serde(default)]
    pub(crate) ready: bool,
    /// Processes that were started and have not joined yet, while it is not ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) awaited: Vec<String>,
    /// Whether it was brought up for a run, and ends when no run uses it any more.
    #[serde(default)]
    pub(crate) for_runs: bool,
    /// What this machine is called in a fleet that is elsewhere, where its processes are those of a machine that joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<AgentId>,
    /// The team that it was brought up as, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) team: Option<String>,
    /// What it was brought up with, as far as it was set.
    #[serde(default)]
    pub(crate) settings: RunsWith,
    /// Which keys and addresses of models were set where it was brought up, each with a mark of its value.
    pub(crate) keys: Option<BTreeMap<String, String>>,
    /// Its processes.
    pub(crate) members: Vec<MemberState>,
    /// Files that define no specialist, and why.
    #[serde(default)]
    pub(crate) refused: Vec<RefusedFile>,
}

impl FleetState {
    /// A fleet of which nothing is started yet.
    pub(crate) fn new(url: String, supervisor: ProcessRef, since: u64) -> Self {
        Self { url, supervisor, since, ..Self::default() }
    }
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberState {
    /// Its name in the fleet, such as `worker-2`.
    pub(crate) name: String,
    /// The process; nothing while it waits to be started again.
    pub(crate) process: Option<ProcessRef>,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// Whether it was given up.
    pub(crate) given_up: bool,
    /// How it died last, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) how: Option<String>,
    /// When and why, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gave_up: Option<GaveUp>,
    /// Resident memory when it was last looked at, in bytes.
    pub(crate) resident_bytes: u64,
    /// The file that defines it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    /// Whether it is a program of the user's: whether and when that joins is its own affair.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_foreign: bool,
}

impl MemberState {
    /// A process, or one that is still to be started.
    pub(crate) fn new(name: String, process: Option<ProcessRef>) -> Self {
        Self { name, process, ..Self::default() }
    }

    /// The role in its name; for the server, its kind.
    pub(crate) fn role(&self) -> &str {
        role_in(&self.name)
    }
}

/// The role in a member's name: `worker` in `worker-2`.
pub(crate) fn role_in(name: &str) -> &str {
    name.rsplit_once('-').filter(|(_, n)| n.parse::<u32>().is_ok()).map_or(name, |(role, _)| role)
}

/// When and why a process was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GaveUp {
    /// In UTC milliseconds.
    pub(crate) at: u64,
    /// How it died last.
    pub(crate) how: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(supervisor: ProcessRef) -> FleetState {
        FleetState { up: true, ..FleetState::new("nats://127.0.0.1:1".into(), supervisor, 1) }
    }

    #[test]
    fn the_port_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        fleet.create().unwrap();
        assert_eq!(fleet.port(), None);
        fleet.keep_port(4321).unwrap();
        assert_eq!(fleet.port(), Some(4321));
        std::fs::write(fleet.port_file(), "half a p").unwrap();
        assert_eq!(fleet.port(), None);
    }

    #[test]
    fn roles_are_read_from_names() {
        let role = |name: &str| MemberState::new(name.to_owned(), None).role().to_owned();
        assert_eq!(
            ["worker-2", "nats-server", "fact-checker-12"].map(role),
            ["worker", "nats-server", "fact-checker"]
        );
    }

    #[test]
    fn a_state_file_counts_while_its_supervisor_lives_and_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        fleet.create().unwrap();
        assert_eq!(fleet.live(), None);

        let mine = state(ProcessRef::of(std::process::id()));
        fleet.write(&mine).unwrap();
        assert_eq!(fleet.live(), None, "the file alone may have come from anywhere");
        assert!(fleet.pretended().is_some());
        let _held = fleet.lock().unwrap().unwrap();
        assert_eq!((fleet.live(), fleet.pretended()), (Some(mine.clone()), None));

        let mut reused = mine;
        reused.supervisor.started += 1;
        fleet.write(&reused).unwrap();
        assert_eq!(fleet.live(), None, "another process with the same number is not the supervisor");
        assert!(fleet.read().is_some() && fleet.pretended().is_none());

        std::fs::write(fleet.state_file(), "half a f").unwrap();
        assert_eq!(fleet.live(), None);
    }

    #[test]
    fn the_nearest_fleet_upward_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        fleet.create().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(FleetFolder::nearest(&deep), (fleet, None));
    }

    #[test]
    fn everything_is_for_the_user_alone_and_what_others_can_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        // One that was there before is mended.
        std::fs::create_dir(fleet.path()).unwrap();
        set(fleet.path(), 0o777);
        fleet.create().unwrap();
        let mine = state(ProcessRef::of(std::process::id()));
        fleet.write(&mine).unwrap();
        let _held = fleet.lock().unwrap().unwrap();
        fleet.keep_port(4321).unwrap();
        let modes = [fleet.path(), &fleet.store(), &fleet.state_file(), &fleet.port_file()].map(mode);
        assert_eq!(modes, [0o700, 0o700, 0o600, 0o600]);
        assert_eq!(fleet.live(), Some(mine));

        let deep = folder.path().join("deep");
        std::fs::create_dir(&deep).unwrap();
        for (path, open, closed) in [(fleet.path(), 0o777, 0o700), (&fleet.state_file(), 0o666, 0o600)] {
            set(path, open);
            assert_eq!(fleet.live(), None, "{}", path.display());
            let (here, why) = FleetFolder::nearest(folder.path());
            assert!(here == fleet && why.unwrap().contains("can be written by others"));
            let (below, why) = FleetFolder::nearest(&deep);
            assert!(below == FleetFolder::of(&deep) && why.is_some(), "one above is passed by");
            set(path, closed);
            assert!(fleet.live().is_some());
        }
    }
}
