//! The lock of a fleet's folder: the system gives it back however its holder ends, so it says who watches over the fleet.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// Held by the process that watches over the fleet of a folder.
#[derive(Debug)]
pub(crate) struct FleetLock {
    _held: Flock<File>,
}

/// Takes the lock; nothing when somebody else has it.
pub(super) fn take(path: &Path) -> io::Result<Option<FleetLock>> {
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(Some(FleetLock { _held: held })),
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, errno)) => Err(errno.into()),
    }
}

/// Whether the process with this number has the lock: a folder can be copied, and what is locked cannot. Where the system
/// does not say who has it, whether anybody has.
pub(super) fn is_held_by(path: &Path, pid: u32) -> bool {
    // A link would lead to the lock of another fleet.
    let Ok(known) = fs::symlink_metadata(path) else { return false };
    if !known.is_file() {
        return false;
    }
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    match &holders(&table, known.ino())[..] {
        // Some file systems number their files otherwise for the kernel.
        [] => is_held(path),
        found => found.contains(&pid),
    }
}

/// Which processes have a file locked for themselves, by the kernel's table of locks. Files of several file systems may
/// have one number; that one process locks two such files as a whole is not to be expected. Pure.
fn holders(table: &str, inode: u64) -> Vec<u32> {
    let holder = |line: &str| {
        // `1: FLOCK  ADVISORY  WRITE 2345 fe:00:67890 0 EOF`; who waits for one has `->` after the number.
        let mut words = line.split_whitespace().skip(1);
        let is_whole = words.next()? == "FLOCK" && words.nth(1)? == "WRITE";
        let pid = words.next()?.parse().ok()?;
        let number: u64 = words.next()?.rsplit(':').next()?.parse().ok()?;
        (is_whole && number == inode).then_some(pid)
    };
    table.lines().filter_map(holder).collect()
}

/// Whether anybody has the lock. Whoever looks shares it for a moment with all others who look.
pub(super) fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(Flock::lock(file, FlockArg::LockSharedNonblock), Err((_, Errno::EWOULDBLOCK)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "1: FLOCK  ADVISORY  WRITE 2345 fe:00:67890 0 EOF\n\
                         2: POSIX  ADVISORY  WRITE 11 fe:00:67890 0 EOF\n\
                         3: FLOCK  ADVISORY  READ 12 fe:00:67890 0 EOF\n\
                         3: -> FLOCK  ADVISORY  WRITE 13 fe:00:67890 0 EOF\n\
                         4: FLOCK  ADVISORY  WRITE 14 fe:00:1 0 EOF\n\
                         5: LEASE";

    #[test]
    fn who_has_a_file_for_himself_is_read_from_the_kernels_table() {
        assert_eq!(holders(TABLE, 67890), [2345]);
        assert_eq!(holders(TABLE, 1), [14]);
        assert_eq!(holders(TABLE, 2), Vec::<u32>::new());
        assert_eq!(holders("", 1), Vec::<u32>::new());
    }

    #[test]
    fn one_at_a_time_has_it_and_nobody_by_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("fleet.lock"), folder.path().join("link"));
        let me = std::process::id();
        assert!(!is_held_by(&path, me), "it is not there");
        let held = take(&path).unwrap();
        assert!(held.is_some() && take(&path).unwrap().is_none());
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(is_held_by(&path, me) && !is_held_by(&link, me));
        if cfg!(target_os = "linux") {
            assert!(!is_held_by(&path, me + 1));
        }
        drop(held);
        assert!(!is_held_by(&path, me) && !is_held(&path));
        assert!(take(&path).unwrap().is_some());
    }
}
