//! Tools for data: `sql` over files, `chart`, and two more tools for the files of a run's workspace.
//!
//! ```text
//! workspace, documents --files--> tables --sql--> rows --> a table in words, a file, a chart
//! ```
//!
//! Nothing here changes what it reads. What is read is held in memory for one call, within limits; an agent that calls
//! none of these tools holds nothing for them.

mod cell;
pub mod chart;
mod files;
mod shown;
pub mod sql;
#[cfg(test)]
mod testing;
pub mod workspace;

use std::sync::Arc;

use muster_tools::settings::SqlSettings;
use muster_tools::{DocumentReader, Tool, ToolFailure};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use workspace::workspace_tools;

/// Largest cell that a query may create, in bytes. Larger values do not fit into a result.
pub(crate) const MAX_CELL: u64 = 1024 * 1024;

/// Longest query, in bytes. Larger ones contain data, which belongs in a file.
pub(crate) const MAX_QUERY: u64 = 16 * 1024;

/// The arguments of a call.
fn arguments<T: DeserializeOwned>(args: Value) -> Result<T, ToolFailure> {
    serde_json::from_value(args).map_err(|error| ToolFailure::InvalidArguments(error.to_string()))
}

/// What the tools for files are made with.
#[derive(Clone, Default)]
pub struct DataParts {
    /// How much `sql` may use.
    pub sql: SqlSettings,
    /// Reads spreadsheets; without it they are told of as unreadable.
    pub reader: Option<Arc<dyn DocumentReader>>,
}

/// The tools for files: `sql`, `sql.save`, `chart`, `workspace.edit`, `workspace.search`.
#[must_use]
pub fn tools(parts: DataParts) -> Vec<Arc<dyn Tool>> {
    let queries = Arc::new(sql::Queries::new(parts));
    let mut tools = sql::sql_tools(&queries);
    tools.push(chart::chart_tool(queries));
    tools.extend(workspace_tools());
    tools
}
