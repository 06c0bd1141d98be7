//! What a server has, page by page, up to our limits.

use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool as ServerTool,
};
use serde_json::Value;

use crate::definition::{Hints, ListedTool, ToolDefinition};
use crate::request::{Asking, NoAnswer};

/// Most pages of a list.
const MAX_PAGES: usize = 100;

/// The tools of a server; no more than this, whatever it says.
pub(crate) async fn tools(asking: &Asking<'_>, most: usize) -> Result<Vec<ListedTool>, NoAnswer> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ListToolsRequest::with_param(params);
        let answer = asking.ask(|_| ClientRequest::ListToolsRequest(request.clone())).await?;
        let ServerResult::ListToolsResult(page) = answer else {
            return Err(NoAnswer::Odd("it answered something else than a list of tools".to_owned()));
        };
        let room = most.saturating_sub(tools.len());
        let is_full = page.tools.len() > room;
        tools.extend(page.tools.into_iter().take(room).map(listed));
        if is_full {
            tracing::warn!(most, "an MCP server has more tools than are used (tool.mcp.max_tools)");
            break;
        }
        // The same place again would be the same page for ever.
        if page.next_cursor.is_none() || page.next_cursor == cursor {
            break;
        }
        cursor = page.next_cursor;
    }
    Ok(tools)
}

fn listed(tool: ServerTool) -> ListedTool {
    let hints = tool.annotations.as_ref().map_or_else(Hints::default, |said| Hints {
        read_only: said.read_only_hint.unwrap_or(false),
        destructive: said.is_destructive(),
        idempotent: said.is_idempotent(),
    });
    ListedTool {
        name: tool.name.into_owned(),
        definition: ToolDefinition {
            description: tool.description.unwrap_or_default().into_owned(),
            schema: Value::Object((*tool.input_schema).clone()),
            hints,
        },
    }
}
