//! A Python with nats-py, for agents that are written in it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};

/// The version of nats-py that tests are run with.
const NATS_PY: [&str; 2] = ["nats-py==2.16.0", "nkeys==0.2.1"];
/// Set to anything, tests that need Python are passed over: for machines that cannot install nats-py.
pub const SKIP: &str = "MUSTER_SKIP_PYTHON";

/// The interpreter of an environment under `target/` that has nats-py; made by the first test that asks. Nothing when
/// [`SKIP`] is set.
///
/// # Errors
/// Says what to do when Python or nats-py cannot be had.
pub fn with_nats() -> Result<Option<PathBuf>, String> {
    if std::env::var_os(SKIP).is_some() {
        return Ok(None);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    std::fs::create_dir_all(&target).map_err(|error| format!("{}: {error}", target.display()))?;
    let environment = target.join("python");
    // Tests run side by side: one makes it, the others wait.
    let lock = File::create(target.join("python.lock")).map_err(|error| error.to_string())?;
    let held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, error)| error.to_string())?;
    let python = environment.join("bin/python");
    if run(&python, &["-c", "import nats.js.api, nkeys"]).is_err() {
        let folder = environment.display().to_string();
        run(Path::new("python3"), &["-m", "venv", &folder]).map_err(|error| help(&error))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(&python, &[pip.as_slice(), &NATS_PY].concat()).map_err(|error| help(&error))?;
    }
    drop(held);
    Ok(Some(python))
}

fn help(error: &str) -> String {
    let packages = NATS_PY.join(" and ");
    format!(
        "{error}\nthis test needs python3 with venv, and pip to install {packages}; {SKIP}=1 passes it over"
    )
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let shown = || format!("{} {}", program.display(), arguments.join(" "));
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{}: {error}", shown()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{} ended with {}: {}", shown(), output.status, String::from_utf8_lossy(&output.stderr)))
}
