//! Answers on disk: one file each, named by a hash of what was asked for, written beside and put in place at once. Whoever
//! uses one marks it as used; when there is too much, what was used least recently goes. A file that is not whole is none.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Head, Kept};
use crate::guard::Reach;

/// The form of files. Those of another form are not read.
const FORM: u32 = 1;

/// Longest first line, in bytes.
const LONGEST_HEAD: u64 = 64 * 1024;

/// Most files that are kept, however small.
const MOST_FILES: usize = 8192;

/// The ending of files that are whole.
const ENDING: &str = "answer";

/// What is being written by one that died is cleared away after this time.
const ABANDONED: Duration = Duration::from_secs(3600);

/// When too much is kept, so much goes, in percent of what may be kept: so that not each new answer looks for old ones.
const CLEARED_TO_PERCENT: u64 = 90;

pub(crate) struct Store {
    folder: PathBuf,
    /// Most bytes of all files.
    most: u64,
    /// Largest body.
    max_body: u64,
}

#[derive(Serialize, Deserialize)]
struct FirstLine {
    form: u32,
    bytes: u64,
    sha256: String,
    head: Head,
}

impl Store {
    pub(crate) fn new(folder: PathBuf, most: u64, max_body: u64) -> Self {
        Self { folder, most, max_body }
    }

    /// What is kept of this URL, for whoever may reach hosts so: what was found at a private address is not given to those
    /// who may only reach public ones, whose name it may be by another look-up.
    pub(crate) fn find(&self, url: &str, reach: Reach) -> Option<Kept> {
        let path = self.path(url, reach);
        let kept = self.read(&path, url)?;
        // When it was used is all that is told by this time.
        let _ =
            File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(kept)
    }

    fn read(&self, path: &PathBuf, url: &str) -> Option<Kept> {
        let file = File::open(path).ok()?;
        if file.metadata().ok()?.len() > self.max_body.saturating_add(LONGEST_HEAD) {
            return None;
        }
        let mut file = BufReader::new(file);
        let mut line = Vec::new();
        (&mut file).take(LONGEST_HEAD).read_until(b'\n', &mut line).ok()?;
        let first: FirstLine = serde_json::from_slice(&line).ok()?;
        let mut body = Vec::with_capacity(usize::try_from(first.bytes.min(self.max_body)).ok()?);
        file.take(self.max_body.saturating_add(1)).read_to_end(&mut body).ok()?;
        let is_whole = first.form == FORM
            && first.head.url == url
            && first.bytes == body.len() as u64
            && first.sha256 == hex::encode(Sha256::digest(&body));
        is_whole.then(|| Kept { head: first.head, body: Bytes::from(body) })
    }

    /// Keeps an answer in place of an older one.
    pub(crate) fn keep(&self, kept: &Kept, reach: Reach) -> io::Result<()> {
        let bytes = kept.body.len() as u64;
        if bytes > self.max_body || bytes > self.most / 4 {
            return Ok(());
        }
        create_private(&self.folder)?;
        let first = FirstLine {
            form: FORM,
            bytes,
            sha256: hex::encode(Sha256::digest(&kept.body)),
            head: kept.head.clone(),
        };
        let mut line = serde_json::to_vec(&first)?;
        line.push(b'\n');
        if line.len() as u64 > LONGEST_HEAD {
            return Ok(());
        }
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(&self.folder)?;
        file.write_all(&line)?;
        file.write_all(&kept.body)?;
        file.persist(self.path(&kept.head.url, reach))?;
        self.clear()
    }

    /// Removes what was used least recently, if there is too much.
    fn clear(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let is_whole = entry.path().extension().is_some_and(|ending| ending == ENDING);
            if is_whole {
                files.push((used, about.len(), entry.path()));
            } else if used.elapsed().is_ok_and(|since| since > ABANDONED) {
                let _ = fs::remove_file(entry.path());
            }
        }
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if bytes <= self.most && files.len() <= MOST_FILES {
            return Ok(());
        }
        files.sort();
        let (enough, mut left) = (self.most / 100 * CLEARED_TO_PERCENT, files.len());
        for (_, size, path) in files {
            if bytes <= enough && left <= MOST_FILES {
                break;
            }
            // Another process may have been faster.
            let _ = fs::remove_file(path);
            (bytes, left) = (bytes.saturating_sub(size), left - 1);
        }
        Ok(())
    }

    fn path(&self, url: &str, reach: Reach) -> PathBuf {
        let kind = match reach {
            Reach::Public => "public",
            Reach::Named => "named",
        };
        let mut hash = Sha256::new();
        hash.update(kind);
        hash.update([0]);
        hash.update(url);
        self.folder.join(format!("{}.{ENDING}", hex::encode(hash.finalize())))
    }
}

/// A folder that nobody else reads.
fn create_private(folder: &PathBuf) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
