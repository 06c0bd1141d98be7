//! A folder with a NATS client for Node, for agents that are written for it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};

/// The version of the client that tests are run with.
const TRANSPORT: &str = "@nats-io/transport-node@3.4.0";
/// Set to anything, tests that need Node are passed over: for machines that cannot install it.
pub const SKIP: &str = "MUSTER_SKIP_NODE";

/// A copy of a program beside an installed client, in a folder under `target/`; made by the first test that asks. Nothing when
/// [`SKIP`] is set, or where there is no `node` or `npm` at all.
///
/// # Errors
/// Says what to do when the client cannot be had.
pub fn with_nats(program: &Path) -> Result<Option<PathBuf>, String> {
    if std::env::var_os(SKIP).is_some() {
        return Ok(None);
    }
    if run(Path::new("."), "node", &["--version"])
        .and_then(|()| run(Path::new("."), "npm", &["--version"]))
        .is_err()
    {
        return Ok(None);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let folder = target.join("node");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // Tests run side by side: one makes it, the others wait.
    let lock = File::create(target.join("node.lock")).map_err(|error| error.to_string())?;
    let held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, error)| error.to_string())?;
    if !folder.join("node_modules/@nats-io/transport-node").is_dir() {
        let install = ["install", "--no-audit", "--no-fund", "--silent", "--prefix", ".", TRANSPORT];
        run(&folder, "npm", &install).map_err(|error| {
            format!("{error}\nthis test needs npm to install {TRANSPORT}; {SKIP}=1 passes it over")
        })?;
    }
    let name = program.file_name().ok_or("the program has no name")?;
    let copy = folder.join(name);
    std::fs::copy(program, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    drop(held);
    Ok(Some(copy))
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let shown = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| format!("{}: {error}", shown()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{} ended with {}: {}", shown(), output.status, String::from_utf8_lossy(&output.stderr)))
}
