//! Who uses a local fleet that was brought up for a run: it stays as long as anybody does.
//!
//! Each user holds a lock on a file of its own, which the system gives back however the process ends. Whoever comes or
//! ends the fleet passes one gate, so that nobody comes to a fleet that is just ending.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use super::lock::{self, FleetLock, is_held};
use super::private;
use super::state::FleetFolder;

/// How often the gate is tried, and users are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Most users that are counted: whether there is one is all that matters.
const MOST: usize = 10_000;

/// Held by whoever comes to a fleet, begins one or ends one.
#[derive(Debug)]
pub(crate) struct Gate {
    _held: FleetLock,
}

/// A place among the users of a fleet, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Using {
    path: PathBuf,
    _held: Flock<File>,
}

impl Drop for Using {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Passes the gate; nothing when somebody else held it for as long as `limit`.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) async fn pass(folder: &FleetFolder, limit: Duration) -> io::Result<Option<Gate>> {
    let until = Instant::now() + limit;
    folder.make()?;
    private::folder(&users(folder))?;
    loop {
        match lock::take(&gate(folder))? {
            Some(held) => return Ok(Some(Gate { _held: held })),
            None if Instant::now() < until => sleep(LOOK).await,
            None => return Ok(None),
        }
    }
}

/// Becomes a user. Takes the gate, so that it cannot be forgotten.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) fn enter(folder: &FleetFolder, _gate: &Gate) -> io::Result<Using> {
    let name = format!("{}-{}", std::process::id(), uuid::Uuid::new_v4().simple());
    let path = users(folder).join(name);
    let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?;
    // Whoever counts holds it for a moment at most.
    let held = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| io::Error::from(errno))?;
    Ok(Using { path, _held: held })
}

/// By which a user that leaves has the supervisor look at once. Whoever does not listen for it takes no harm.
pub(crate) const NUDGE: Signal = Signal::SIGURG;

/// Waits until nobody uses the fleet any more. Nobody can come as long as what it gives is kept.
pub(crate) async fn none_left(folder: &FleetFolder) -> Option<Gate> {
    none_left_by_looks(folder, LOOK * 2).await
}

async fn none_left_by_looks(folder: &FleetFolder, look: Duration) -> Option<Gate> {
    // Without it the looks alone find out.
    let mut nudges = signal(SignalKind::from_raw(NUDGE as i32)).ok();
    loop {
        let nudge = async {
            match &mut nudges {
                Some(nudges) => nudges.recv().await,
                None => std::future::pending().await,
            }
        };
        let _ = tokio::time::timeout(look, nudge).await;
        if anybody(folder, false) {
            continue;
        }
        match pass(folder, LOOK).await {
            Ok(Some(gate)) if !anybody(folder, true) => return Some(gate),
            Ok(_) => {}
            // The folder is gone, and with it everybody who could come.
            Err(_) => return None,
        }
    }
}

/// Whether anybody but `me` uses the fleet.
pub(crate) fn anybody_besides(folder: &FleetFolder, me: &Using) -> bool {
    files(folder).any(|path| path != me.path && is_held(&path))
}

/// Whether anybody uses the fleet.
pub(crate) fn anybody_at_all(folder: &FleetFolder) -> bool {
    anybody(folder, false)
}

/// Whether anybody uses the fleet. Files that nobody holds any more are taken away by whoever has the gate.
fn anybody(folder: &FleetFolder, tidy: bool) -> bool {
    let (held, left): (Vec<PathBuf>, Vec<PathBuf>) = files(folder).partition(|path| is_held(path));
    if tidy {
        for path in left {
            let _ = fs::remove_file(path);
        }
    }
    !held.is_empty()
}

fn files(folder: &FleetFolder) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(users(folder)).into_iter().flatten().flatten().take(MOST).map(|entry| entry.path())
}

fn users(folder: &FleetFolder) -> PathBuf {
    folder.path().join("users")
}

fn gate(folder: &FleetFolder) -> PathBuf {
    folder.path().join("users.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn a_fleet_is_used_until_the_last_one_leaves_and_dead_users_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        fleet.create().unwrap();
        let gate = pass(&fleet, SHORT).await.unwrap().unwrap();
        assert!(!anybody(&fleet, false));
        let (one, other) = (enter(&fleet, &gate).unwrap(), enter(&fleet, &gate).unwrap());
        // What a killed process leaves behind: a file that nobody holds.
        fs::write(users(&fleet).join("1-dead"), "").unwrap();
        drop(gate);
        assert!(anybody_besides(&fleet, &one));
        drop(other);
        assert!(!anybody_besides(&fleet, &one));
        assert!(anybody(&fleet, false));
        let waits = tokio::time::timeout(LOOK * 6, none_left(&fleet)).await;
        assert!(waits.is_err(), "one is left");
        drop(one);
        let gate = tokio::time::timeout(Duration::from_secs(10), none_left(&fleet)).await.unwrap();
        assert!(gate.is_some());
        assert_eq!(files(&fleet).count(), 0, "what the dead left is taken away");
    }

    #[tokio::test]
    async fn who_says_that_it_leaves_is_noticed_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        fleet.create().unwrap();
        let gate = pass(&fleet, SHORT).await.unwrap().unwrap();
        let one = enter(&fleet, &gate).unwrap();
        drop(gate);
        let day = Duration::from_secs(24 * 3600);
        let mut leaving = std::pin::pin!(none_left_by_looks(&fleet, day));
        // From now on it listens.
        assert!(futures::poll!(&mut leaving).is_pending());
        drop(one);
        crate::fleet::process::ProcessRef::of(std::process::id()).signal(NUDGE);
        let gate = tokio::time::timeout(Duration::from_secs(10), leaving).await.unwrap();
        assert!(gate.is_some());
    }

    #[tokio::test]
    async fn nobody_comes_while_the_fleet_ends() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetFolder::of(folder.path());
        fleet.create().unwrap();
        let ending = none_left(&fleet).await;
        assert!(pass(&fleet, SHORT).await.unwrap().is_none());
        drop(ending);
        assert!(pass(&fleet, SHORT).await.unwrap().is_some());
    }
}
