//! What the user has allowed, one file for each project, in the user's own state: nobody else may write there.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use muster_shared::claim::TrustClaim;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::danger::Danger;
use super::owner::{self, Me};

/// Most projects that are kept.
const MOST: usize = 10_000;

/// The largest record that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// One thing that a project would do, and that needs the user's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    /// What it would do.
    pub(crate) what: Danger,
    /// The setting, or the path of the file.
    pub(crate) name: String,
    /// Where it stands: file and line.
    pub(crate) place: String,
    /// Its value, without passwords; of a file, why it needs the user's word.
    pub(crate) shown: String,
    /// Tells one value or content from another.
    digest: String,
}

impl Item {
    /// A setting with its value.
    pub(crate) fn setting(what: Danger, key: &str, value: &str, place: String) -> Self {
        let shown = muster_shared::secret::without_passwords(value).into_owned();
        let digest = digest([key.as_bytes(), value.as_bytes()]);
        Self { what, name: key.to_owned(), place, shown, digest }
    }

    /// A file with its content.
    pub(crate) fn file(what: Danger, path: &Path, content: &[u8], shown: &str) -> Self {
        let name = real(path).display().to_string();
        Self { what, place: name.clone(), digest: digest([content]), name, shown: shown.to_owned() }
    }

    /// A claim of a file.
    pub(crate) fn claim(path: &Path, TrustClaim { what, key, value }: &TrustClaim) -> Self {
        let place = real(path).display().to_string();
        Self { name: format!("{key} of {place}"), ..Self::setting(*what, key, value, place) }
    }

    /// The keys of a fleet, by its account.
    pub(crate) fn keys(folder: &Path, account: &str) -> Self {
        let name = "the fleet's account".to_owned();
        Self { name, ..Self::file(Danger::Keys, folder, account.as_bytes(), account) }
    }

    /// What a machine is in a fleet elsewhere, by the public key that it made for itself.
    pub(crate) fn joined(folder: &Path, url: &str, key: &str) -> Self {
        let digest = digest([url.as_bytes(), key.as_bytes()]);
        Self { digest, ..Self::setting(Danger::Bus, "joined", url, real(folder).display().to_string()) }
    }

    /// Value and place; for a file, its digest.
    fn value_and_place(&self) -> String {
        let Self { name, place, shown, digest, .. } = self;
        if name == place {
            return format!("{name} ({shown}; SHA-256 {})", short(digest));
        }
        let place = if name.ends_with(place.as_str()) { String::new() } else { format!(" ({place})") };
        format!("{name} = {shown}{place}")
    }

    /// Whether the other is the same thing, whatever its value.
    fn is_of(&self, other: &Self) -> bool {
        self.name == other.name && self.what == other.what
    }

    /// Returns true if others contain this thing with the same value.
    fn is_in(&self, others: &[Self]) -> bool {
        others.iter().any(|other| other.is_of(self) && other.digest == self.digest)
    }
}

/// Effect, value and place of the item.
impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what.words(), self.value_and_place())
    }
}

/// The beginning of a digest, for people.
pub(crate) fn short(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}

/// Items that no grant allows; and a line for each, or the difference if another value was allowed. Pure.
pub(crate) fn untrusted_lines(grants: &[Grant], wanted: Vec<Item>) -> (Vec<Item>, String) {
    let is_allowed = |item: &Item| grants.iter().any(|grant| grant.allows(item));
    let held_back: Vec<Item> = wanted.into_iter().filter(|item| !is_allowed(item)).collect();
    let known = grants.iter().flat_map(|grant| &grant.items);
    let before: Vec<Item> =
        known.filter(|known| held_back.iter().any(|item| item.is_of(known))).cloned().collect();
    let mut lines: Vec<String> = held_back.iter().map(Item::to_string).collect();
    if !before.is_empty() {
        lines = difference(&before, &held_back);
        lines.insert(0, "(changed since you trusted it)".to_owned());
    }
    let lines = lines.iter().map(|line| format!("\n  {line}")).collect();
    (held_back, lines)
}

/// What was allowed to a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// The folder of the project.
    pub(crate) folder: PathBuf,
    /// When, in UTC milliseconds.
    pub(crate) at: u64,
    /// What.
    pub(crate) items: Vec<Item>,
}

impl Grant {
    /// Whether this very thing was allowed.
    pub(crate) fn allows(&self, item: &Item) -> bool {
        item.is_in(&self.items)
    }
}

/// Tells one set of things from another, in whatever order.
pub(crate) fn fingerprint(items: &[Item]) -> String {
    let mut parts: Vec<String> = items.iter().map(|item| format!("{}\0{}", item.name, item.digest)).collect();
    parts.sort();
    digest(parts.iter().map(String::as_bytes))
}

/// What differs between what was allowed and what is there now, a line each. Pure.
pub(crate) fn difference(before: &[Item], now: &[Item]) -> Vec<String> {
    let line = |sign: char, item: &Item| format!("{sign} {}", item.value_and_place());
    let gone = before.iter().filter(|item| !item.is_in(now)).map(|item| line('-', item));
    let new = now.iter().filter(|item| !item.is_in(before)).map(|item| line('+', item));
    gone.chain(new).collect()
}

/// Why what is kept cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// There is no place for it.
    #[error("there is no folder for what you trust: neither XDG_STATE_HOME nor HOME is set")]
    NoPlace,
    /// The place is not the user's own.
    #[error("what you trust is not believed: {0}")]
    NotOwn(owner::Fault),
    /// A file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

/// Where it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    me: Me,
    folder: Option<PathBuf>,
}

impl Records {
    /// Records in the directory `name` of the user's state directory.
    pub(crate) fn new(me: Me, state: Option<&Path>, name: &str) -> Self {
        Self { me, folder: state.map(|state| state.join("muster").join(name)) }
    }

    /// What was allowed to a project.
    ///
    /// # Errors
    /// When what is kept is not the user's own, or cannot be read.
    pub(crate) fn of(&self, project: &Path) -> Result<Option<Grant>, RecordError> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let path = folder.join(file_name(project));
        let grant = self.read(&path)?;
        Ok(grant.filter(|grant| grant.folder == real(project)))
    }

    /// What was allowed, to all projects, by their folders.
    ///
    /// # Errors
    /// As for one.
    pub(crate) fn all(&self) -> Result<Vec<Grant>, RecordError> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
        let paths = entries.flatten().take(MOST).map(|entry| entry.path());
        let mut grants = Vec::new();
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            grants.extend(self.read(&path)?);
        }
        grants.sort_by_cached_key(|grant| grant.folder.clone());
        Ok(grants)
    }

    /// Keeps what is allowed, in one move.
    ///
    /// # Errors
    /// When there is no place for it that is the user's own.
    pub(crate) fn keep(&self, grant: &Grant) -> Result<PathBuf, RecordError> {
        let folder = self.folder.as_ref().ok_or(RecordError::NoPlace)?;
        let failed = |path: &Path, error: io::Error| RecordError::Io {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder).map_err(|error| failed(folder, error))?;
        self.check(folder)?;
        let path = folder.join(file_name(&grant.folder));
        let next = path.with_extension(format!("new-{}", std::process::id()));
        let text = serde_json::to_vec_pretty(grant).map_err(|error| failed(&path, error.into()))?;
        let _ = fs::remove_file(&next);
        let written = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&next)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&next, &path));
        written.map_err(|error| failed(&path, error))?;
        Ok(path)
    }

    /// Takes back what was allowed; whether anything was.
    ///
    /// # Errors
    /// When it cannot be taken away.
    pub(crate) fn revoke(&self, project: &Path) -> Result<bool, RecordError> {
        let Some(folder) = &self.folder else { return Ok(false) };
        let path = folder.join(file_name(project));
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(RecordError::Io { path, reason: error.to_string() }),
        }
    }

    fn read(&self, path: &Path) -> Result<Option<Grant>, RecordError> {
        if !path.is_file() {
            return Ok(None);
        }
        path.parent().map_or(Ok(()), |folder| self.check(folder))?;
        self.check(path)?;
        let failed = |reason: String| RecordError::Io { path: path.to_owned(), reason };
        let text = muster_agents::input::text(path, MAX_BYTES).map_err(failed)?;
        serde_json::from_str(&text).map(Some).map_err(|error| failed(error.to_string()))
    }

    fn check(&self, path: &Path) -> Result<(), RecordError> {
        owner::of_own(self.me, path).map_or(Ok(()), |fault| Err(RecordError::NotOwn(fault)))
    }
}

fn file_name(project: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let name = digest([real(project).as_os_str().as_bytes()]);
    format!("{}.json", &name[..32])
}

/// The same path however one came there.
pub(crate) fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| absolute(path))
}

/// An absolute path, with links as they are.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The hash of these parts.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(value: &str) -> Item {
        Item::setting(Danger::Program, "server.binary", value, "muster.toml:2".into())
    }

    #[test]
    fn a_change_is_told_and_changes_the_fingerprint() {
        let (one, two) = (item("./one"), item("./two"));
        assert_ne!(fingerprint(std::slice::from_ref(&one)), fingerprint(std::slice::from_ref(&two)));
        assert_eq!(
            difference(&[one], &[two]),
            ["- server.binary = ./one (muster.toml:2)", "+ server.binary = ./two (muster.toml:2)"]
        );
        assert_eq!(difference(&[item("x")], &[item("x")]), Vec::<String>::new());
    }

    #[test]
    fn passwords_are_not_shown_and_count_all_the_same() {
        let url = |password: &str| {
            Item::setting(Danger::Bus, "bus.url", &format!("nats://me:{password}@host"), String::new())
        };
        let (one, other) = (url("hunter2-hunter2"), url("other-password"));
        assert!(!one.shown.contains("hunter2"), "{one:?}");
        assert_ne!(one.digest, other.digest);
    }
}
