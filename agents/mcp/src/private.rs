//! Files that only their owner reads.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a file as a whole or not at all. It is 0600 from its first byte on.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // Made with 0600; beside the file, since only within one file system a rename takes its place at once.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
