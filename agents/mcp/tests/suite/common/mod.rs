//! What the tests with servers share.
#![allow(dead_code, unreachable_pub, reason = "the benchmark uses a part of it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use muster_mcp::{Callbacks, ChildCommand, McpError, McpServer, Reached, ServerConfig};
use muster_shared::flow::Artifact;
use muster_tools::settings::McpSettings;
use muster_tools::workspace::{Workspace, WorkspaceError, WorkspacePath};
use muster_tools::{Asker, Permission, Tool, ToolContext, ToolFailure, ToolOutput};
use serde_json::Value;

/// How long anything is waited for.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server that does what its words say.
pub struct Scripted {
    pub folder: tempfile::TempDir,
    pub config: ServerConfig,
    pub settings: McpSettings,
    pub callbacks: Callbacks,
}

impl Scripted {
    /// Nothing where there is no Python.
    pub fn new(words: &[&str]) -> Option<Self> {
        if std::process::Command::new("python3").arg("--version").output().is_err() {
            skipped("a server in Python", "there is no python3");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/scripted.py");
        let mut args = vec![script.display().to_string(), folder.path().display().to_string()];
        args.extend(words.iter().map(|word| (*word).to_owned()));
        let config = child("scripted", "python3", args);
        let settings = McpSettings {
            restart_pause: Duration::from_millis(20),
            end_limit: Duration::from_millis(500),
            ..McpSettings::default()
        };
        Some(Self { folder, config, settings, callbacks: Callbacks::default() })
    }

    pub async fn try_start(&self) -> Result<McpServer, McpError> {
        McpServer::start(self.config.clone(), &self.settings, &self.callbacks).await
    }

    pub async fn start(&self) -> McpServer {
        self.try_start().await.expect("the server starts")
    }

    /// Lines of a file that the server writes.
    pub fn noted(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

pub fn child(name: &str, command: &str, args: Vec<String>) -> ServerConfig {
    ServerConfig {
        name: name.to_owned(),
        namespace: name.to_owned(),
        reached: Reached::Child(ChildCommand {
            command: command.to_owned(),
            args,
            env: BTreeMap::new(),
            cwd: None,
        }),
    }
}

/// A context of a task that may run programs and reach machines.
pub fn context() -> ToolContext {
    ToolContext::new("run-1", "1-2").granting([Permission::Execute, Permission::Network])
}

pub fn tool(server: &McpServer, name: &str) -> Arc<dyn Tool> {
    let whole = format!("{}.{name}", server.name());
    let found = server.tools().into_iter().find(|tool| tool.spec().name == whole);
    found.unwrap_or_else(|| panic!("no tool {whole} among {:?}", names(server)))
}

pub fn names(server: &McpServer) -> Vec<String> {
    server.tools().iter().map(|tool| tool.spec().name).collect()
}

pub async fn call(server: &McpServer, name: &str, args: Value) -> Result<ToolOutput, ToolFailure> {
    tool(server, name).call(&context(), args).await
}

/// The words of a call that works.
pub async fn said(server: &McpServer, name: &str, args: Value) -> String {
    call(server, name, args).await.unwrap_or_else(|failure| panic!("{name}: {failure}")).content
}

/// The same for a call that may ask a person.
pub async fn said_asking(server: &McpServer, name: &str, args: Value, asker: &Arc<dyn Asker>) -> String {
    let ctx = ToolContext { asker: Some(Arc::clone(asker)), ..context() };
    let called = tool(server, name).call(&ctx, args).await;
    called.unwrap_or_else(|failure| panic!("{name}: {failure}")).content
}

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process is there and no zombie.
pub fn is_alive(process: u32) -> bool {
    let about = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    about.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Says that a test cannot be made here, and why.
pub fn skipped(what: &str, why: &str) {
    assert!(std::env::var("MUSTER_NO_SKIP").as_deref() != Ok("1"), "{what}: {why}");
    eprintln!("SKIPPED: {what}: {why}");
}

/// The folder in which builds lie.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from)
}

/// A workspace in memory.
#[derive(Default)]
pub struct InMemory(pub Mutex<BTreeMap<String, Bytes>>);

#[async_trait]
impl Workspace for InMemory {
    async fn read(&self, path: &WorkspacePath) -> Result<String, WorkspaceError> {
        let bytes = self.read_bytes(path).await?;
        String::from_utf8(bytes.to_vec()).map_err(|_| WorkspaceError::NotText(path.to_string()))
    }

    async fn read_bytes(&self, path: &WorkspacePath) -> Result<Bytes, WorkspaceError> {
        let files = self.0.lock().expect("no panic");
        files.get(path.as_str()).cloned().ok_or_else(|| WorkspaceError::NotFound(path.to_string()))
    }

    async fn write_bytes(&self, path: &WorkspacePath, bytes: Bytes) -> Result<(), WorkspaceError> {
        self.0.lock().expect("no panic").insert(path.to_string(), bytes);
        Ok(())
    }

    async fn write(&self, path: &WorkspacePath, text: &str) -> Result<(), WorkspaceError> {
        self.write_bytes(path, Bytes::from(text.to_owned())).await
    }

    async fn replace(&self, path: &WorkspacePath, text: &str, _: &str) -> Result<(), WorkspaceError> {
        self.write(path, text).await
    }

    async fn append(&self, _: &WorkspacePath, _: &str) -> Result<u64, WorkspaceError> {
        Err(WorkspaceError::Bus("not in these tests".to_owned()))
    }

    async fn list(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(Vec::new())
    }

    async fn glance(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(Vec::new())
    }
}
