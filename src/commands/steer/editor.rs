//! The editor of a person who changes a text.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::exit::{Failure, failed, usage};

/// Largest text that comes back from an editor, in bytes.
const MAX_EDITED: u64 = 1024 * 1024;

/// A text as a person leaves it in their editor.
///
/// # Errors
/// When no editor is set, it fails, or what it leaves cannot be read.
pub(super) async fn edited(text: String, ending: &str) -> Result<String, Failure> {
    let editor = std::env::var("VISUAL").or_else(|_| std::env::var("EDITOR")).map_err(|_| {
        usage!("no editor is set").help("set EDITOR, or give the text on the command line: see --help")
    })?;
    let file = std::env::temp_dir().join(format!("muster-{}.{ending}", Uuid::new_v4()));
    let edited = tokio::task::spawn_blocking(move || change(&editor, &EditorFile::write(file, &text)?));
    edited.await.map_err(|error| failed!("the editor failed: {error}"))?
}

/// The file that an editor works on. It is removed when it is no longer needed.
struct EditorFile(PathBuf);

impl EditorFile {
    fn write(file: PathBuf, text: &str) -> Result<Self, Failure> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
        written.map_err(|error| cannot("write", &file, &error))?;
        Ok(Self(file))
    }
}

impl Drop for EditorFile {
    fn drop(&mut self) {
        // Left behind, it does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn change(editor: &str, file: &EditorFile) -> Result<String, Failure> {
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let status = std::process::Command::new(program).args(words).arg(&file.0).status();
    let status = status.map_err(|error| {
        usage!("cannot start the editor {program}: {error}")
            .help("set EDITOR to one that is installed, or give the text on the command line: see --help")
    })?;
    if !status.success() {
        return Err(usage!("the editor ended with {status}: nothing was changed"));
    }
    muster_agents::input::text(&file.0, MAX_EDITED)
        .map_err(|why| cannot("read", &file.0, &std::io::Error::other(why)))
}

fn cannot(what: &str, file: &Path, error: &std::io::Error) -> Failure {
    failed!("cannot {what} {}: {error}", file.display())
        .help("give the text on the command line instead: see --help")
}
