//! A workspace in memory, as the tests of the tools need it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::flow::Artifact;
use muster_tools::workspace::{Workspace, WorkspaceError, WorkspacePath, version_of};
use muster_tools::{EngineRules, Permission, Tool, ToolContext, ToolEngine, ToolPatterns, ToolRegistry};
use sha2::{Digest, Sha256};

/// Files with who wrote them; what is written is written by task `1-2`.
#[derive(Default)]
pub(crate) struct Held(Mutex<BTreeMap<String, (Bytes, String)>>);

pub(crate) const TASK: &str = "1-2";

impl Held {
    pub(crate) fn with(files: &[(&str, &[u8])]) -> Arc<Self> {
        let held = Self::default();
        for (path, bytes) in files {
            held.put(path, bytes, TASK);
        }
        Arc::new(held)
    }

    pub(crate) fn put(&self, path: &str, bytes: &[u8], task: &str) {
        self.0.lock().unwrap().insert(path.to_owned(), (Bytes::copy_from_slice(bytes), task.to_owned()));
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.0.lock().unwrap().get(path).map(|(bytes, _)| String::from_utf8(bytes.to_vec()).unwrap())
    }

    pub(crate) fn version(&self, path: &str) -> String {
        version_of(self.artifacts().iter().find(|file| file.path == path).unwrap()).to_owned()
    }

    fn artifacts(&self) -> Vec<Artifact> {
        let files = self.0.lock().unwrap();
        let artifact = |(path, (bytes, task)): (&String, &(Bytes, String))| Artifact {
            path: path.clone(),
            bytes: bytes.len() as u64,
            hash: hex::encode(Sha256::digest(bytes)),
            task: task.clone(),
        };
        files.iter().map(artifact).collect()
    }

    fn change(&self, path: &WorkspacePath, bytes: Bytes, over: Option<&str>) -> Result<(), WorkspaceError> {
        let taken = self.artifacts().into_iter().find(|file| file.path == path.as_str() && file.task != TASK);
        if let Some(file) = taken.filter(|file| over != Some(version_of(file))) {
            let version = version_of(&file).to_owned();
            return Err(WorkspaceError::Taken { path: file.path, by: file.task, bytes: file.bytes, version });
        }
        self.0.lock().unwrap().insert(path.to_string(), (bytes, TASK.to_owned()));
        Ok(())
    }
}

#[async_trait]
impl Workspace for Held {
    async fn read(&self, path: &WorkspacePath) -> Result<String, WorkspaceError> {
        let bytes = self.read_bytes(path).await?;
        String::from_utf8(bytes.to_vec()).map_err(|_| WorkspaceError::NotText(path.to_string()))
    }

    async fn read_bytes(&self, path: &WorkspacePath) -> Result<Bytes, WorkspaceError> {
        let found = self.0.lock().unwrap().get(path.as_str()).map(|(bytes, _)| bytes.clone());
        found.ok_or_else(|| WorkspaceError::NotFound(path.to_string()))
    }

    async fn write_bytes(&self, path: &WorkspacePath, bytes: Bytes) -> Result<(), WorkspaceError> {
        self.change(path, bytes, None)
    }

    async fn write(&self, path: &WorkspacePath, text: &str) -> Result<(), WorkspaceError> {
        self.change(path, Bytes::copy_from_slice(text.as_bytes()), None)
    }

    async fn replace(&self, path: &WorkspacePath, text: &str, version: &str) -> Result<(), WorkspaceError> {
        self.change(path, Bytes::copy_from_slice(text.as_bytes()), Some(version))
    }

    async fn append(&self, path: &WorkspacePath, text: &str) -> Result<u64, WorkspaceError> {
        let old = self.read(path).await.unwrap_or_default();
        let new = format!("{old}{text}");
        self.change(path, Bytes::copy_from_slice(new.as_bytes()), None)?;
        Ok(new.len() as u64)
    }

    async fn list(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(self.artifacts())
    }

    async fn glance(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(self.artifacts())
    }
}

/// An engine over these tools.
pub(crate) fn engine(tools: Vec<Arc<dyn Tool>>) -> ToolEngine {
    let registry = ToolRegistry::new();
    for tool in tools {
        registry.register(tool).unwrap();
    }
    // Some are off until settings allow them.
    let allow = ToolPatterns::new(vec!["*".to_owned()]);
    ToolEngine::with_rules(Arc::new(registry), EngineRules { allow, ..EngineRules::default() })
}

/// What a task has that may do everything.
pub(crate) fn context(workspace: &Arc<Held>) -> ToolContext {
    let workspace: Arc<dyn Workspace> = Arc::<Held>::clone(workspace);
    ToolContext::new("run", TASK).with_workspace(workspace).granting(Permission::ALL)
}
