//! Two more tools for the files of a run's workspace: `workspace.edit` and `workspace.search`.

mod edit;
mod patch;
mod search;

use std::sync::Arc;

use muster_tools::Tool;

/// The tools `workspace.edit` and `workspace.search`.
#[must_use]
pub fn workspace_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(edit::Edit::default()), Arc::new(search::Search)]
}
