//! The tools for the files of a run's workspace: what tasks write down for each other and for the person who asked.

use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::flow::Artifact;
use serde_json::{Value, json};

pub use self::shared::{SharedWorkspace, check_place, check_room};
use super::spec::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
pub use muster_tools::workspace::{
    MAX_DEPTH, MAX_PATH, Workspace, WorkspaceError, WorkspaceLimits, WorkspacePath, version_of,
};

#[path = "workspace/shared.rs"]
mod shared;

/// Most characters of a file that one `workspace.read` shows, in bytes.
const MAX_SHOWN: usize = 24 * 1024;

/// The four workspace tools: `workspace.read`, `workspace.list`, `workspace.write`, `workspace.append`.
#[must_use]
pub fn workspace_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Read), Arc::new(List), Arc::new(Write), Arc::new(Append)]
}

struct Read;
struct List;
struct Write;
struct Append;

fn path_schema() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_PATH,
        "description": "such as notes/findings.md"
    })
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "workspace.read",
            "Reads a text file of the run's workspace.",
            json!({"path": path_schema()}),
            &["path"],
        )
        .needing(Permission::ReadWorkspace)
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let path = path_of(&args)?;
        let mut text = ctx.workspace()?.read(&path).await?;
        let bytes = text.len();
        if bytes > MAX_SHOWN {
            text.truncate(text.floor_char_boundary(MAX_SHOWN));
            text.push_str(&format!("\n[cut: the file has {bytes} bytes, the first {MAX_SHOWN} are shown]"));
        }
        Ok(ToolOutput::text(text).with_data(json!({"path": path.as_str(), "bytes": bytes})))
    }
}

#[async_trait]
impl Tool for List {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "workspace.list",
            "Lists the files of the run's workspace with their sizes, who wrote them, and their versions.",
            json!({}),
            &[],
        )
        .needing(Permission::ReadWorkspace)
    }

    async fn call(&self, ctx: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        let files = ctx.workspace()?.list().await?;
        if files.is_empty() {
            return Ok(ToolOutput::text("The workspace is empty.").with_data(json!([])));
        }
        let lines: Vec<String> = files
            .iter()
            .map(|file| format!("{} ({} bytes{})", file.path, file.bytes, author(file)))
            .collect();
        let entry = |file: &Artifact| json!({"path": file.path, "bytes": file.bytes, "task": file.task, "version": version_of(file)});
        let data = files.iter().map(entry).collect();
        Ok(ToolOutput::text(lines.join("\n")).with_data(data))
    }
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "workspace.write",
            "Writes a text file of the run's workspace, over your own if it is there.",
            json!({
                "path": path_schema(),
                "text": {"type": "string"},
                "replaces": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 64,
                    "description": "of another task's file: the version that it replaces"
                }
            }),
            &["path", "text"],
        )
        .needing(Permission::WriteWorkspace)
        // The file is replaced as a whole: writing it twice is as good as once.
        .with_repeatable_effects()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let (path, text) = (path_of(&args)?, text_of(&args));
        match args["replaces"].as_str() {
            Some(version) => ctx.workspace()?.replace(&path, text, version).await?,
            None => ctx.workspace()?.write(&path, text).await?,
        }
        Ok(ToolOutput::text(format!("Wrote {} bytes to {path}.", text.len()))
            .with_data(json!({"path": path.as_str(), "bytes": text.len()})))
    }
}

#[async_trait]
impl Tool for Append {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "workspace.append",
            "Adds text to the end of a file in the run's workspace, which is made when it is not there.",
            json!({"path": path_schema(), "text": {"type": "string"}}),
            &["path", "text"],
        )
        .needing(Permission::WriteWorkspace)
        .with_side_effects()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let (path, text) = (path_of(&args)?, text_of(&args));
        let bytes = ctx.workspace()?.append(&path, text).await?;
        Ok(ToolOutput::text(format!("Added {} bytes to {path}, which now has {bytes}.", text.len()))
            .with_data(json!({"path": path.as_str(), "bytes": bytes})))
    }
}

/// Who wrote a file, and which version it is.
fn author(file: &Artifact) -> String {
    if file.task.is_empty() {
        format!(", version {}", version_of(file))
    } else {
        format!(", by task {}, version {}", file.task, version_of(file))
    }
}

fn path_of(args: &Value) -> Result<WorkspacePath, ToolFailure> {
    Ok(WorkspacePath::parse(args["path"].as_str().unwrap_or_default())?)
}

fn text_of(args: &Value) -> &str {
    args["text"].as_str().unwrap_or_default()
}

#[cfg(test)]
#[path = "workspace/tests.rs"]
mod tests;
