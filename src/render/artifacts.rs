//! `muster artifacts`.

use muster_shared::flow::Artifact;
use muster_shared::ids::RunId;

use super::{figures, table};

/// Digits of a hash that are shown.
const HASH_SHOWN: usize = 12;

/// The files of a run.
pub(crate) fn list(files: &[Artifact], run: RunId) -> String {
    if files.is_empty() {
        return format!("run {} has made no files", run.short());
    }
    let rows = files.iter().map(row).collect();
    table::plain(&["PATH", "SIZE", "TASK", "SHA-256"], rows, &[1])
}

fn row(file: &Artifact) -> Vec<String> {
    vec![
        figures::harmless(&file.path),
        figures::bytes(file.bytes),
        figures::harmless(&file.task),
        file.hash.chars().take(HASH_SHOWN).collect(),
    ]
}
