//! Tools for data: SQL over files, charts, files of the workspace.

use std::sync::Arc;

use muster_data::DataParts;
use muster_tools::{DocumentReader, Tool};

use crate::AgentSettings;

pub(crate) fn tools(settings: &AgentSettings, reader: Option<Arc<dyn DocumentReader>>) -> Vec<Arc<dyn Tool>> {
    muster_data::tools(DataParts { sql: settings.tool.sql.clone(), reader })
}
