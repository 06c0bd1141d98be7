//! Where what was fetched lies: folders by the hash of what is in them, which are written whole and changed never.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::trust::digest;

/// What was not used for so long goes.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);
/// Most folders that are kept, the newest ones.
const MOST: usize = 64;

/// The folder of what was fetched, in the cache of this host.
#[derive(Debug, Clone)]
pub(super) struct Kept(PathBuf);

impl Kept {
    pub(super) fn of(cache: &Path) -> Self {
        Self(cache.join("sources"))
    }

    /// The hash of these parts, as the name of a folder.
    pub(super) fn name(parts: &[&[u8]]) -> String {
        digest(parts.iter().copied())
    }

    /// The folder of this name, if it is there; it counts as used now.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        let folder = self.0.join(name);
        let is_here = folder.is_dir();
        if is_here {
            // A note that fails costs fetching it again, later.
            let _ = fs::File::open(&folder).and_then(|folder| folder.set_modified(SystemTime::now()));
        }
        is_here.then_some(folder)
    }

    /// A folder to write into, beside the others.
    pub(super) fn begin(&self) -> io::Result<tempfile::TempDir> {
        fs::create_dir_all(&self.0)?;
        tempfile::Builder::new().prefix("new-").tempdir_in(&self.0)
    }

    /// Puts what was written under its name. Where somebody else was faster, his is as good.
    pub(super) fn put(&self, written: tempfile::TempDir, name: &str) -> io::Result<PathBuf> {
        let folder = self.0.join(name);
        match fs::rename(written.path(), &folder) {
            Ok(()) => {
                // It is not there any more under the name by which it would be removed.
                let _ = written.keep();
            }
            Err(_) if folder.is_dir() => {}
            Err(error) => return Err(error),
        }
        Ok(folder)
    }

    /// Takes away what was not used for long, and what is more than is kept.
    pub(super) fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.0) else { return };
        let mut folders: Vec<(SystemTime, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        folders.sort_by(|one, other| other.cmp(one));
        let now = SystemTime::now();
        let goes = |(at, (used, _)): &(usize, (SystemTime, PathBuf))| {
            *at >= MOST || now.duration_since(*used).is_ok_and(|unused| unused > UNUSED)
        };
        for (_, (_, folder)) in folders.into_iter().enumerate().filter(goes) {
            // What is in use by another is complete again when it is fetched anew.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// One folder with all that lies in these, by links where the file system has them.
pub(super) fn joined(kept: &Kept, folders: &[PathBuf]) -> io::Result<PathBuf> {
    if let [one] = folders {
        return Ok(one.clone());
    }
    let names: Vec<&[u8]> = folders.iter().map(|folder| folder.as_os_str().as_encoded_bytes()).collect();
    let name = Kept::name(&names);
    if let Some(folder) = kept.find(&name) {
        return Ok(folder);
    }
    let written = kept.begin()?;
    for folder in folders {
        link_all(folder, written.path())?;
    }
    kept.put(written, &name)
}

/// Links all files below one folder into another, at the same paths; what is there already stays.
fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            link_all(&entry.path(), &target)?;
        } else if kind.is_file() && !target.exists() && fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kept: &Kept, name: &str, path: &str) -> PathBuf {
        let folder = kept.begin().unwrap();
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, name).unwrap();
        kept.put(folder, name).unwrap()
    }

    #[test]
    fn what_was_fetched_is_found_by_its_name_and_joined_by_paths() {
        let cache = tempfile::tempdir().unwrap();
        let kept = Kept::of(cache.path());
        assert_eq!(kept.find("one"), None);
        let (one, two) = (written(&kept, "one", "h/a/x.md"), written(&kept, "two", "h/b.md"));
        assert_eq!(kept.find("one").as_ref(), Some(&one));
        assert_eq!(written(&kept, "one", "h/other.md"), one, "the first counts");
        assert!(!one.join("h/other.md").exists());
        assert_eq!(joined(&kept, std::slice::from_ref(&one)).unwrap(), one);
        let both = joined(&kept, &[one.clone(), two.clone()]).unwrap();
        assert_eq!(fs::read_to_string(both.join("h/a/x.md")).unwrap(), "one");
        assert_eq!(fs::read_to_string(both.join("h/b.md")).unwrap(), "two");
        assert_eq!(joined(&kept, &[one, two]).unwrap(), both);
    }

    #[test]
    fn what_is_old_or_too_much_goes() {
        let cache = tempfile::tempdir().unwrap();
        let kept = Kept::of(cache.path());
        let old = written(&kept, "old", "h/a.md");
        let long_ago = SystemTime::now() - UNUSED - Duration::from_secs(60);
        fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
        for number in 0..MOST + 3 {
            written(&kept, &format!("n{number}"), "h/a.md");
        }
        kept.prune();
        assert!(!old.exists());
        assert_eq!(fs::read_dir(cache.path().join("sources")).unwrap().count(), MOST);
    }
}
