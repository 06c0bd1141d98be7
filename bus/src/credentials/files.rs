//! Keys as files that nobody but their owner reads.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nkeys::{KeyPair, KeyPairType};
use secrecy::{ExposeSecret, SecretString};

use super::CredentialsError;
use crate::server::write_private;

/// Bits of a file's mode that let others in.
const OTHERS: u32 = 0o077;

/// Refuses what others can read.
pub(super) fn closed(path: &Path, found: &fs::Metadata) -> Result<(), CredentialsError> {
    if found.permissions().mode() & OTHERS != 0 {
        return Err(CredentialsError::Open { path: path.to_owned() });
    }
    Ok(())
}

/// The key in a file; nothing where there is none.
pub(super) fn read(path: &Path, kind: &KeyPairType) -> Result<Option<KeyPair>, CredentialsError> {
    let wrong = |reason: String| CredentialsError::file(path, reason);
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
        Ok(found) => closed(path, &found)?,
    }
    let seed = SecretString::from(fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?);
    let pair = KeyPair::from_seed(seed.expose_secret().trim()).map_err(|error| wrong(error.to_string()))?;
    if pair.key_pair_type() != *kind {
        return Err(wrong("it is a key of another kind".to_owned()));
    }
    Ok(Some(pair))
}

/// Makes a key where there is none.
pub(super) fn make(path: &Path, kind: KeyPairType) -> Result<(), CredentialsError> {
    if path.exists() {
        return Ok(());
    }
    let seed = SecretString::from(KeyPair::new(kind).seed().map_err(CredentialsError::key)?);
    write_private(path, seed.expose_secret().as_bytes()).map_err(|error| CredentialsError::file(path, error))
}

/// Refuses a set of keys, in the order in which they are made, of which one is missing that was there: one that is made after it
/// is. Whoever was killed while he made them left the first of them.
pub(super) fn whole(set: &[PathBuf]) -> Result<(), CredentialsError> {
    let made = set.iter().rposition(|path| path.exists()).unwrap_or(0);
    match set.iter().take(made).find(|path| !path.exists()) {
        Some(missing) => Err(CredentialsError::Missing { path: missing.clone() }),
        None => Ok(()),
    }
}

/// Replaces a file: whoever reads it finds all of one or all of the other.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), CredentialsError> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let written = write_private(new, text.as_bytes()).and_then(|()| fs::rename(new, path));
    written.map_err(|error| CredentialsError::file(path, error))
}
