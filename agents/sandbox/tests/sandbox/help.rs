//! What the tests need: a workspace in memory, sandboxes, programs.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use muster_sandbox::Sandbox;
use muster_shared::flow::Artifact;
use muster_tools::settings::SandboxSettings;
use muster_tools::workspace::{Workspace, WorkspaceError, WorkspacePath};
use muster_tools::{Program, ProgramEnd, ProgramLimits, ProgramNetwork, ProgramRunner, ToolFailure};
use tokio_util::sync::CancellationToken;

/// The program whose `main` is a stage.
pub const STAGE: &str = env!("CARGO_BIN_EXE_muster-sandbox-stage");

/// A workspace in memory.
#[derive(Default)]
pub struct Files(pub Mutex<BTreeMap<String, Bytes>>);

impl Files {
    pub fn with(files: &[(&str, &str)]) -> Arc<Self> {
        let files =
            files.iter().map(|(path, text)| ((*path).to_owned(), Bytes::copy_from_slice(text.as_bytes())));
        Arc::new(Self(Mutex::new(files.collect())))
    }

    pub fn get(&self, path: &str) -> Option<Bytes> {
        self.0.lock().unwrap().get(path).cloned()
    }

    pub fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().keys().cloned().collect()
    }
}

#[async_trait]
impl Workspace for Files {
    async fn read(&self, path: &WorkspacePath) -> Result<String, WorkspaceError> {
        let bytes = self.read_bytes(path).await?;
        String::from_utf8(bytes.to_vec()).map_err(|_| WorkspaceError::NotText(path.to_string()))
    }

    async fn read_bytes(&self, path: &WorkspacePath) -> Result<Bytes, WorkspaceError> {
        self.get(path.as_str()).ok_or_else(|| WorkspaceError::NotFound(path.to_string()))
    }

    async fn write_bytes(&self, path: &WorkspacePath, bytes: Bytes) -> Result<(), WorkspaceError> {
        self.0.lock().unwrap().insert(path.to_string(), bytes);
        Ok(())
    }

    async fn write(&self, path: &WorkspacePath, text: &str) -> Result<(), WorkspaceError> {
        self.write_bytes(path, Bytes::copy_from_slice(text.as_bytes())).await
    }

    async fn replace(&self, path: &WorkspacePath, text: &str, _version: &str) -> Result<(), WorkspaceError> {
        self.write(path, text).await
    }

    async fn append(&self, _path: &WorkspacePath, _text: &str) -> Result<u64, WorkspaceError> {
        unreachable!("programs append to nothing")
    }

    async fn list(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        let files = self.0.lock().unwrap();
        let artifact = |(path, bytes): (&String, &Bytes)| Artifact {
            path: path.clone(),
            bytes: bytes.len() as u64,
            ..Artifact::default()
        };
        Ok(files.iter().map(artifact).collect())
    }

    async fn glance(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        self.list().await
    }
}

/// How a program is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// With all there is.
    Whole,
    /// Without namespaces.
    Plain,
}

pub const BOTH: [How; 2] = [How::Whole, How::Plain];

pub fn settings(how: How) -> SandboxSettings {
    SandboxSettings { namespaces: how == How::Whole, pool: 0, ..SandboxSettings::default() }
}

pub fn sandbox(how: How) -> Sandbox {
    Sandbox::with_stage(settings(how), STAGE)
}

pub fn limits() -> ProgramLimits {
    ProgramLimits { time: Duration::from_secs(20), ..ProgramLimits::default() }
}

pub fn program(command: &[&str]) -> Program {
    Program {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        input: Bytes::new(),
        environment: BTreeMap::new(),
        workspace: None,
        reads: Vec::new(),
        network: ProgramNetwork::Nothing,
        limits: limits(),
    }
}

pub fn shell(script: &str) -> Program {
    program(&["/bin/sh", "-c", script])
}

/// Python without what the user installed.
pub fn python(code: &str) -> Program {
    program(&["/usr/bin/python3", "-I", "-c", code])
}

pub async fn run(how: How, program: Program) -> ProgramEnd {
    try_run(how, program).await.unwrap_or_else(|failure| panic!("{how:?}: {failure:?}"))
}

pub async fn try_run(how: How, program: Program) -> Result<ProgramEnd, ToolFailure> {
    sandbox(how).run(program, &CancellationToken::new()).await
}

pub fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of the machine that anybody may read.
pub fn outside_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    folder
}

/// Lets anybody read and write a folder and what is in it: what is not reached is not reached for want of rights.
pub fn open_to_all(path: &Path) {
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        std::fs::set_permissions(entry, Permissions::from_mode(0o666)).unwrap();
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
}

/// Waits for something that has to come.
pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
