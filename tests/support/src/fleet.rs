//! A fleet of real processes in a folder of its own, as a user would have it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Time for a fleet to come up on a busy machine.
const UP_LIMIT: Duration = Duration::from_secs(60);

/// How much is done for a goal that says nothing of it.
pub const EFFORT: &str = "MUSTER_ASK_EFFORT";

/// Variables that would let the outside reach into a test.
const FOREIGN: [&str; 23] = [
    "OPENAI_API_KEY",
    "OPENAI_API_KEY_FILE",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_API_KEY_FILE",
    "ANTHROPIC_BASE_URL",
    "GEMINI_API_KEY",
    "GEMINI_API_KEY_FILE",
    "GOOGLE_API_KEY",
    "OLLAMA_HOST",
    "MUSTER_CONFIG",
    "MUSTER_BUS_URL",
    "MUSTER_LOG",
    "MUSTER_TRUST",
    "MUSTER_FOUND",
    "NATS_URL",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SERVICE_NAME",
    "TRACEPARENT",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
];

/// A folder with everything that `muster` keeps, and a way to call it there.
pub struct Folder {
    folder: TempDir,
    program: PathBuf,
    variables: Vec<(String, String)>,
}

impl Folder {
    /// An empty folder for `program` (the `muster` binary under test).
    ///
    /// # Errors
    /// When no temporary folder can be made.
    pub fn new(program: &str) -> io::Result<Self> {
        // Most of what is tested and measured is the full sequence; `with` another effort where it is something else.
        let variables = vec![(EFFORT.to_owned(), "thorough".to_owned())];
        Ok(Self { folder: TempDir::new()?, program: program.into(), variables })
    }

    /// Sets an environment variable for everything started here.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Writes a file here, folders included.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let path = self.path().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, content)?;
        Ok(path)
    }

    /// Leaves the folder there for a look at it, and says where it is.
    pub fn keep(&mut self) -> &Path {
        self.folder.disable_cleanup(true);
        self.path()
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `muster` with these arguments, to be started here.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        for name in FOREIGN {
            command.env_remove(name);
        }
        command.env("HOME", self.path()).env("NO_COLOR", "1");
        command.envs(self.variables.iter().cloned());
        command
    }

    /// Runs `muster` to its end.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, arguments: &[&str]) -> io::Result<Output> {
        self.command(arguments).output()
    }

    /// Runs `muster` to its end, which must be a good one, and gives what it wrote to standard output.
    ///
    /// # Errors
    /// With all that it said, when it ended otherwise.
    pub fn output(&self, arguments: &[&str]) -> io::Result<String> {
        let output = self.run(arguments)?;
        if output.status.success() {
            return String::from_utf8(output.stdout).map_err(io::Error::other);
        }
        Err(io::Error::other(format!(
            "muster {arguments:?} ended with {}:\n{}",
            output.status,
            both(&output)
        )))
    }

    /// As [`Folder::output`], read as one JSON value.
    ///
    /// # Errors
    /// When it ended otherwise, or did not print JSON.
    pub fn json(&self, arguments: &[&str]) -> io::Result<Value> {
        let text = self.output(arguments)?;
        serde_json::from_str(&text).map_err(|error| io::Error::other(format!("{error} in:\n{text}")))
    }

    /// As [`Folder::output`], read as JSON lines.
    ///
    /// # Errors
    /// When it ended otherwise, or did not print JSON lines.
    pub fn json_lines(&self, arguments: &[&str]) -> io::Result<Vec<Value>> {
        let text = self.output(arguments)?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let parse =
            |line: &str| serde_json::from_str(line).map_err(|e| io::Error::other(format!("{e} in: {line}")));
        lines.map(parse).collect()
    }

    /// Everything that the fleet's processes logged here.
    #[must_use]
    pub fn logs(&self) -> String {
        let Ok(files) = fs::read_dir(self.path().join(".muster/log")) else { return String::new() };
        let read = |file: fs::DirEntry| {
            let text = fs::read(file.path()).unwrap_or_default();
            format!("--- {}\n{}\n", file.file_name().display(), String::from_utf8_lossy(&text))
        };
        files.flatten().map(read).collect()
    }

    /// The state of the fleet that is up here, if one is.
    #[must_use]
    pub fn state(&self) -> Option<Value> {
        let text = fs::read(self.path().join(".muster/fleet.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Brings a fleet up here in the background.
    ///
    /// # Errors
    /// With all that it said, when it did not come up.
    pub fn up(self, arguments: &[&str]) -> io::Result<Fleet> {
        self.output(&[&["up", "--detach"], arguments].concat())?;
        let fleet = Fleet { folder: self };
        wait_until("every role has joined", UP_LIMIT, || fleet.roles_up(arguments))
            .map_err(|late| io::Error::other(format!("{late}\n{}", fleet.folder.logs())))?;
        Ok(fleet)
    }
}

/// A fleet that is up. Dropped, it is taken down.
pub struct Fleet {
    folder: Folder,
}

impl Fleet {
    /// Where it lives.
    #[must_use]
    pub const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Leaves its folder there when it is taken down, with what `muster ps` says of it now, and says where it is.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn keep(&mut self) -> io::Result<PathBuf> {
        let listed = self.folder.run(&["ps"])?;
        self.folder.write("ps.txt", both(&listed))?;
        Ok(self.folder.keep().to_path_buf())
    }

    /// Where its bus listens.
    #[must_use]
    pub fn url(&self) -> String {
        let url = self.folder.state().and_then(|state| Some(state.get("url")?.as_str()?.to_owned()));
        let url = url.unwrap_or_default();
        crate::way::remember(&url, &self.folder.path().join(".muster/nats"));
        url
    }

    /// Names and pids of its processes, the server and the supervisor included.
    #[must_use]
    pub fn pids(&self) -> Vec<(String, u32)> {
        let Some(state) = self.folder.state() else { return Vec::new() };
        let pid = |value: &Value| value.get("pid")?.as_u64().and_then(|pid| u32::try_from(pid).ok());
        let supervisor = state.get("supervisor").and_then(pid).map(|pid| ("supervisor".to_owned(), pid));
        let members = state.get("members").and_then(Value::as_array).cloned().unwrap_or_default();
        let members = members.into_iter().filter_map(|member| {
            Some((member.get("name")?.as_str()?.to_owned(), pid(member.get("process")?)?))
        });
        members.chain(supervisor).collect()
    }

    /// The pid of one process by its name, such as `worker-1`.
    #[must_use]
    pub fn pid(&self, name: &str) -> Option<u32> {
        self.pids().into_iter().find(|(found, _)| found == name).map(|(_, pid)| pid)
    }

    /// Whether every role has an agent, except for those that are started without one.
    fn roles_up(&self, arguments: &[&str]) -> bool {
        let Ok(listed) = self.folder.json(&["ps", "--json"]) else { return false };
        let text = listed.to_string();
        let roles = ["planner", "researcher", "worker", "reflector", "refiner", "writer", "orchestrator"];
        let is_missing = |role: &str| arguments.contains(&format!("{role}=0").as_str());
        roles.iter().all(|role| is_missing(role) || text.contains(&format!("\"{role}\"")))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let pids = self.pids();
        if self.folder.run(&["down"]).is_ok_and(|output| output.status.success()) {
            return;
        }
        // What did not end in good order is ours all the same.
        for (_, pid) in pids {
            let Ok(pid) = i32::try_from(pid) else { continue };
            let _ =
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// Both outputs of a process, for messages.
#[must_use]
pub fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Waits until a condition holds.
///
/// # Errors
/// A text that says what did not happen, after `limit`.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() > limit {
            return Err(format!("not within {limit:?}: {what}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
