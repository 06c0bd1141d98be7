//! A log file that never grows beyond a limit: when it is full it is put aside, and one older file is kept.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::private;

/// A log file with a limit.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
}

impl LogFile {
    /// Opens a log file to append to.
    pub(crate) fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let file = private::append(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes, max_bytes })
    }

    /// Appends, putting the file aside first when it is full.
    pub(crate) fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + text.len() as u64 > self.max_bytes {
            std::fs::rename(&self.path, older(&self.path))?;
            self.file = private::append(&self.path)?;
            self.bytes = 0;
        }
        self.file.write_all(text)?;
        self.bytes += text.len() as u64;
        Ok(())
    }
}

/// Where a full log file goes.
fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_hold_the_newest_lines_and_no_more_than_the_limit_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("worker.log");
        let mut log = LogFile::open(&path, 40).unwrap();
        for n in 0..100 {
            log.write(format!("line {n:03}\n").as_bytes()).unwrap();
        }
        let (new, old) =
            (std::fs::read_to_string(&path).unwrap(), std::fs::read_to_string(older(&path)).unwrap());
        assert!(new.len() <= 40 && old.len() <= 40, "{} {}", new.len(), old.len());
        assert!(new.ends_with("line 099\n"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_was_written_before_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("worker.log");
        std::fs::write(&path, "0123456789").unwrap();
        LogFile::open(&path, 12).unwrap().write(b"abc\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "abc\n");
    }
}
