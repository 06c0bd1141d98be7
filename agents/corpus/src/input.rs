//! Files that people name: only ordinary ones are read, never more of one than may be, and none is waited for.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens an ordinary file. What is something else (a pipe, a device, a folder) is refused with what it is.
///
/// # Errors
/// When it cannot be opened, or is no ordinary file.
pub fn open(path: &Path) -> io::Result<File> {
    // Looked at before: to open some devices does something by itself.
    ordinary(std::fs::metadata(path)?.file_type())?;
    // What changed meanwhile must not be waited for: a pipe that nobody writes to would hold us for ever.
    let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    ordinary(file.metadata()?.file_type())?;
    Ok(file)
}

/// The text of an ordinary file of at most so many bytes.
///
/// # Errors
/// When it cannot be read, is no ordinary file, is larger, or is no UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String, String> {
    let mut file = open(path).map_err(|error| error.to_string())?;
    let known = file.metadata().map_err(|error| error.to_string())?.len();
    if known > most {
        return Err(format!("it has {known} bytes, {most} is the most"));
    }
    let mut bytes = Vec::new();
    // One byte more than may be, so that too much is noticed and never gathered.
    file.by_ref().take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("it has more than {most} bytes, which is the most"));
    }
    String::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())
}

fn ordinary(kind: FileType) -> io::Result<()> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        kind if kind.is_socket() => "a socket",
        _ => "no file",
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it is {what}, and only ordinary files are read"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ordinary_files_of_some_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("plain"), "four").unwrap();
        std::os::unix::fs::symlink(path("plain"), path("link")).unwrap();
        std::fs::write(path("bytes"), [0xff, 0xfe]).unwrap();
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for name in ["plain", "link"] {
            assert_eq!(text(&path(name), 4).as_deref(), Ok("four"), "{name}");
        }
        for (file, part) in [
            (path("plain"), "it has 4 bytes, 3 is the most"),
            (path("bytes"), "no UTF-8"),
            (path("pipe"), "it is a pipe"),
            (folder.path().to_owned(), "it is a folder"),
            ("/dev/zero".into(), "it is a device"),
            // Has no length of its own.
            ("/proc/self/status".into(), "more than 3 bytes"),
            (path("missing"), "No such file"),
        ] {
            let said = text(&file, 3).unwrap_err();
            assert!(said.contains(part), "{}: {said}", file.display());
        }
    }
}
