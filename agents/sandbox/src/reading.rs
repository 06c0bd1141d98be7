//! A workspace for a task that may write no files.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::flow::Artifact;
use muster_tools::workspace::{Workspace, WorkspaceError, WorkspacePath};

/// Reads what another workspace has, and refuses what would change it.
pub(crate) struct Reading(pub(crate) Arc<dyn Workspace>);

fn refused<T>(path: &WorkspacePath) -> Result<T, WorkspaceError> {
    let reason = "the task has no right to write files";
    Err(WorkspaceError::BadPath { path: path.to_string(), reason })
}

#[async_trait]
impl Workspace for Reading {
    async fn read_bytes(&self, path: &WorkspacePath) -> Result<Bytes, WorkspaceError> {
        self.0.read_bytes(path).await
    }

    async fn write_bytes(&self, path: &WorkspacePath, _bytes: Bytes) -> Result<(), WorkspaceError> {
        refused(path)
    }

    async fn replace(&self, path: &WorkspacePath, _text: &str, _version: &str) -> Result<(), WorkspaceError> {
        refused(path)
    }

    async fn append(&self, path: &WorkspacePath, _text: &str) -> Result<u64, WorkspaceError> {
        refused(path)
    }

    async fn list(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        self.0.list().await
    }

    async fn glance(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        self.0.glance().await
    }
}
