//! Small file operations that either happen wholly or not at all, and the lock between processes.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};

use super::error::CorpusError;

/// Longest wait for another process that builds the same.
const LOCK_TIMEOUT: Duration = Duration::from_secs(300);

/// The beginning of the names of files that are being written.
pub(super) const UNFINISHED: &str = ".unfinished-";

/// Writes a file so that others see all of it or nothing.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// A path for a file that is being built, in the same folder as the finished one.
pub(super) fn unfinished_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!("{UNFINISHED}{}", uuid::Uuid::now_v7()))
}

/// Waits for the lock file. The lock is released when the guard is dropped or the process ends.
/// Blocks: not for async code.
pub(super) fn lock(path: &Path) -> Result<Flock<File>, CorpusError> {
    let what = || format!("locking {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(CorpusError::io(what()))?;
    }
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(CorpusError::io(what()))?;
    let begun = Instant::now();
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(guard) => return Ok(guard),
            Err((_, errno)) if errno != Errno::EAGAIN && errno != Errno::EINTR => {
                return Err(CorpusError::io(what())(errno.into()));
            }
            Err(_) if begun.elapsed() > LOCK_TIMEOUT => {
                return Err(CorpusError::Timeout(
                    "waiting for another process that reads the same documents",
                ));
            }
            Err((file, _)) => file,
        };
        std::thread::sleep(Duration::from_millis(25));
    }
}
