//! Finding the server program and its version.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::{MIN_SERVER_VERSION, ServerError};

const NAME: &str = "nats-server";
const VARIABLE: &str = "MUSTER_NATS_SERVER";

/// The server program: what `MUSTER_NATS_SERVER` names, else the first on `PATH`, in `.muster/bin` of the repository that
/// this program was built in, or next to this program. Never one that merely lies where somebody works.
///
/// # Errors
/// When there is none, or the variable names something that is no program.
pub fn find_binary() -> Result<PathBuf, ServerError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let path = PathBuf::from(named);
        let missing =
            || ServerError::io(format!("{VARIABLE}={}", path.display()), "there is no such program");
        return if is_program(&path) { Ok(path) } else { Err(missing()) };
    }
    candidates().into_iter().find(|path| is_program(path)).ok_or(ServerError::NotFound)
}

fn candidates() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(NAME)).collect::<Vec<_>>();
    let own = std::env::current_exe().unwrap_or_default();
    let above = own.ancestors().skip(1).map(|folder| folder.join(".muster/bin").join(NAME));
    let beside = own.parent().map(|folder| folder.join(NAME));
    on_path.into_iter().chain(above.filter(|path| is_ours(path))).chain(beside).collect()
}

/// Whether a program and the two folders that hold it belong to the user or to root.
fn is_ours(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let me = nix::unistd::geteuid().as_raw();
    let ours = |path: &Path| path.metadata().is_ok_and(|known| [0, me].contains(&known.uid()));
    path.ancestors().take(3).all(ours)
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The version of a server program, such as `2.15.1`.
///
/// # Errors
/// When it cannot be run, or does not say.
pub async fn version_of(binary: &Path) -> Result<String, ServerError> {
    let what = || format!("{} --version", binary.display());
    let mut command = Command::new(binary);
    command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(Duration::from_secs(5), command.output()).await;
    let output = output.map_err(|e| ServerError::io(what(), e))?.map_err(|e| ServerError::io(what(), e))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().find_map(|word| word.strip_prefix('v'));
    version.map(str::to_owned).ok_or_else(|| ServerError::io(what(), "it is no nats-server"))
}

pub(super) async fn check_version(binary: &Path) -> Result<(), ServerError> {
    let found = version_of(binary).await?;
    if is_recent(&found) {
        return Ok(());
    }
    Err(ServerError::TooOld { path: binary.to_owned(), found, least: least() })
}

/// The oldest version that will do, as text.
pub(crate) fn least() -> String {
    let (major, minor, patch) = MIN_SERVER_VERSION;
    format!("{major}.{minor}.{patch}")
}

/// Whether a version is new enough. A pre-release counts as its release.
pub(crate) fn is_recent(version: &str) -> bool {
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    match (next(), next(), next()) {
        (Some(major), Some(minor), patch) => (major, minor, patch.unwrap_or(0)) >= MIN_SERVER_VERSION,
        (None, ..) | (_, None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for version in ["2.14.0", "2.15.1", "2.14.0-RC.1", "3.0.0", "2.100.0", "2.14"] {
            assert!(is_recent(version), "{version}");
        }
        for version in ["2.9.10", "2.13.99", "1.99.0", "", "nonsense"] {
            assert!(!is_recent(version), "{version}");
        }
    }
}
