//! A program in Go with the NATS client of Debian's packages (`golang-go`, `golang-github-nats-io-go-nats-dev`): where these are
//! installed, agents that are written in it are tried too.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian's packages have the sources of libraries.
const LIBRARIES: &str = "/usr/share/gocode";

/// The program, built under `target/`. Nothing where there is no Go or no client.
///
/// # Errors
/// What the compiler says.
pub fn with_nats(program: &Path) -> Result<Option<PathBuf>, String> {
    let client = Path::new(LIBRARIES).join("src/github.com/nats-io/nats.go");
    if !client.is_dir() || Command::new("go").arg("version").output().is_err() {
        return Ok(None);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let built = target.join("go").join(program.file_stem().ok_or("the program has no name")?);
    let mut command = Command::new("go");
    command
        .arg("build")
        .arg("-o")
        .arg(&built)
        .arg(program)
        .env("GO111MODULE", "off")
        .env("GOPATH", LIBRARIES);
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(Some(built));
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}
