//! What a server has, page by page, up to our limits.

use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerCapabilities, ServerResult,
    Tool as ServerTool,
};
use serde_json::{Map, Value};

use crate::definition::{Hints, ListedTool, ToolDefinition};
use crate::doing::Doing;
use crate::request::{Answered, Asking, NoAnswer};

/// Most pages of a list.
const MAX_PAGES: usize = 100;

/// What a server has.
pub(crate) struct Listed {
    /// Its tools.
    pub(crate) tools: Vec<ListedTool>,
    /// What can be asked of it beside them.
    pub(crate) beside: Vec<Doing>,
}

/// What a server has, with no more tools than this.
pub(crate) async fn all(
    asking: &Asking<'_>,
    capabilities: &ServerCapabilities,
    most: usize,
) -> Result<Listed, NoAnswer> {
    let tools = if capabilities.tools.is_some() { tools(asking, most).await? } else { Vec::new() };
    let mut beside = Vec::new();
    // Many servers say that they have resources and prompts, and have none: then no agent need read of them.
    if capabilities.resources.is_some() {
        for list in [Doing::ListResources, Doing::ListTemplates] {
            if has_any(asking, &list).await {
                beside.push(list);
            }
        }
        if !beside.is_empty() {
            beside.push(Doing::ReadResource);
        }
    }
    if capabilities.prompts.is_some() && has_any(asking, &Doing::ListPrompts).await {
        beside.extend([Doing::ListPrompts, Doing::GetPrompt]);
    }
    Ok(Listed { tools, beside })
}

async fn has_any(asking: &Asking<'_>, list: &Doing) -> bool {
    let request = list.request(&Map::new(), Answered::default());
    match asking.ask(|_| request.clone()).await {
        Ok(ServerResult::ListResourcesResult(page)) => !page.resources.is_empty(),
        Ok(ServerResult::ListResourceTemplatesResult(page)) => !page.resource_templates.is_empty(),
        Ok(ServerResult::ListPromptsResult(page)) => !page.prompts.is_empty(),
        _ => false,
    }
}

/// The tools of a server; no more than this, whatever it says.
async fn tools(asking: &Asking<'_>, most: usize) -> Result<Vec<ListedTool>, NoAnswer> {
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
            tracing::warn!(most, "an MCP server has more tools than are used");
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
