//! Files and folders for the user alone.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::trust::{self, Fault, Me};

/// Makes a folder, or closes one that is there to others.
///
/// # Errors
/// When it cannot be made, or belongs to somebody else.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    if let Some(fault @ Fault::Foreign { .. }) = trust::of_own(Me::of_process(), path) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, fault.to_string()));
    }
    close(path, 0o700)
}

/// Writes a file anew.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    create(path)?.write_all(content)
}

/// Writes a file in one move: readers find the old content or the new.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let next = path.with_extension("new");
    write(&next, content)?;
    fs::rename(next, path)
}

/// A file that is begun anew.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().write(true).truncate(true))
}

/// A file to append to.
///
/// # Errors
/// When it cannot be made or opened.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().append(true))
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.create(true).mode(0o600).open(path)?;
    close(path, 0o600)?;
    Ok(file)
}

/// What was there before keeps its permissions until they are set.
fn close(path: &Path, mode: u32) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_to_others_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        fs::write(&path, "before\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        append(&path).unwrap().write_all(b"after\n").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode()), ("before\nafter\n", 0o600));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode()), ("new", 0o600));
    }
}
