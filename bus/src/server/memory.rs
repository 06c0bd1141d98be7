//! How much memory a server is given, by what it has stored.

use std::path::{Path, PathBuf};

/// Of so many bytes stored, one is given as memory. The server holds some 300 bytes for each message, whatever its size, and
/// as much again until garbage is collected; entries of the record have 1,600 to 3,500 bytes. A limit below what it holds makes it
/// collect garbage all the time.
const STORED_PER_BYTE: u64 = 4;

/// The limit in bytes: what the settings say, and more for what is stored.
pub(super) fn limit(memory_mib: u64, stored: u64) -> u64 {
    memory_mib.saturating_mul(1 << 20).saturating_add(stored / STORED_PER_BYTE)
}

/// Bytes of all files in a folder; what cannot be read counts as none.
pub(super) fn stored(folder: &Path) -> u64 {
    let mut left: Vec<PathBuf> = vec![folder.to_owned()];
    let mut bytes = 0_u64;
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => left.push(entry.path()),
                Ok(found) => bytes = bytes.saturating_add(found.len()),
                Err(_) => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_raises_the_limit() {
        const MIB: u64 = 1 << 20;
        assert_eq!(limit(48, 0), 48 * MIB);
        assert_eq!(limit(48, 400 * MIB), 148 * MIB);
        assert_eq!(limit(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn all_files_in_all_folders_count() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(stored(&folder.path().join("nowhere")), 0);
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("one"), [0; 10]).unwrap();
        std::fs::write(folder.path().join("a/b/two"), [0; 32]).unwrap();
        assert_eq!(stored(folder.path()), 42);
    }
}
