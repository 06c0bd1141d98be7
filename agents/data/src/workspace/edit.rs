//! `workspace.edit`: changes a part of a file.

use async_trait::async_trait;
use muster_shared::flow::Use;
use muster_tools::workspace::{MAX_PATH, WorkspacePath};
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::patch;

/// Letters of a version, as the workspace shows them.
const VERSION: usize = 12;

/// Edits of one process are made one after another: two of the same file would else lose one of the two.
#[derive(Default)]
pub(super) struct Edit {
    turn: Mutex<()>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old: Option<String>,
    new: Option<String>,
    diff: Option<String>,
    replaces: Option<String>,
}

#[async_trait]
impl Tool for Edit {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "workspace.edit",
            "Changes a part of a text file of the run's workspace: puts `new` in the place of `old`, which must stand in the \
             file exactly once, or applies `diff`, a unified diff. Nothing is changed where it does not fit.",
            json!({
                    "path": {"type": "string", "minLength": 1, "maxLength": MAX_PATH, "description": "such as notes/findings.md"},
                    "old": {"type": "string", "description": "the very text, with its spaces and line ends"},
                    "new": {"type": "string"},
                    "diff": {"type": "string", "description": "instead of old and new"},
                    "replaces": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 64,
                        "description": "of another task's file: the version that is changed"
                    }
                }), &["path"],
        )
        .needing(Permission::ReadWorkspace)
        .needing(Permission::WriteWorkspace)
        .with_side_effects()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let args: Arguments = crate::arguments(args)?;
        let path = WorkspacePath::parse(&args.path)?;
        ctx.rights.allows(&Use::WriteFile)?;
        let workspace = ctx.workspace()?;
        let _turn = self.turn.lock().await;
        let text = workspace.read(&path).await?;
        let version = version_of(&text);
        if let Some(replaces) =
            args.replaces.as_deref().map(str::trim).filter(|wanted| !wanted.eq_ignore_ascii_case(&version))
        {
            return Err(ToolFailure::Refused(format!(
                "`{path}` is version {version} now and no longer {replaces}; nothing was changed. Read it again."
            )));
        }
        let changed = changed(&text, &args).map_err(|reason| {
            ToolFailure::InvalidArguments(format!("`{path}` was not changed: {reason}."))
        })?;
        match &args.replaces {
            Some(_) => workspace.replace(&path, &changed, &version).await?,
            None => workspace.write(&path, &changed).await?,
        }
        let now = version_of(&changed);
        let said = format!(
            "Changed {path}: {}; it has {} bytes now, version {now}.",
            lines_changed(&text, &changed),
            changed.len()
        );
        Ok(ToolOutput::text(said)
            .with_data(json!({"path": path.as_str(), "bytes": changed.len(), "version": now})))
    }
}

fn changed(text: &str, args: &Arguments) -> Result<String, String> {
    match (&args.old, &args.new, &args.diff) {
        (Some(old), Some(new), None) => patch::replaced(text, old, new),
        (None, None, Some(diff)) => patch::patched(text, diff),
        (Some(_), None, None) => Err("`new` is missing; it is empty where text is to go".to_owned()),
        (None, Some(_), None) => Err("`old` is missing".to_owned()),
        (None, None, None) | (Some(_), _, Some(_)) | (None, Some(_), Some(_)) => {
            Err("give either `old` and `new`, or `diff`".to_owned())
        }
    }
}

/// How a text is called by what stands in it, as the workspace does.
fn version_of(text: &str) -> String {
    let mut hash = hex::encode(Sha256::digest(text));
    hash.truncate(VERSION);
    hash
}

/// Which lines are different, in words.
fn lines_changed(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let most = old.len().min(new.len()) - before;
    let after =
        old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(one, other)| one == other).count();
    let (removed, added) = (old.len() - before - after, new.len() - before - after);
    format!("from line {}, {removed} lines became {added}", before + 1)
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
