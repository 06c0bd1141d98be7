//! Artifacts: files that tasks of a run made.

use serde::{Deserialize, Serialize};

/// A file that a task of a run made (R9).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Artifact {
    /// Where it lies in the run's workspace, such as `notes/findings.md`.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of what stands in it, in hexadecimal.
    pub hash: String,
    /// The task that wrote it last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
}
