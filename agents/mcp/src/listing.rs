//! What a server has, page by page, up to our limits.

use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerCapabilities, ServerResult,
    Tool as ServerTool,
};
use serde_json::{Map, Value};

use crate::definition::{Hints, ListedTool, ToolDefinition};
use crate::doing::Doing;
use crate::pins::ToolNews;
use crate::plain::{cut, visible};
use crate::request::{Answered, Asking, NoAnswer};

/// Most pages of a list.
const MAX_PAGES: usize = 100;
/// Longest reason why a tool is refused, in bytes.
const MAX_REASON: usize = 300;

/// What a server has.
pub(crate) struct Listed {
    /// Its tools.
    pub(crate) tools: Vec<ListedTool>,
    /// What can be asked of it beside them.
    pub(crate) beside: Vec<Doing>,
    /// Tools that cannot be read, and the first of those that are too many.
    pub(crate) refused: Vec<ToolNews>,
}

/// What a server has, with no more tools than this.
pub(crate) async fn all(
    asking: &Asking<'_>,
    capabilities: &ServerCapabilities,
    most: usize,
) -> Result<Listed, NoAnswer> {
    let (mut tools, mut beside, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    if capabilities.tools.is_some() {
        (tools, refused) = self::tools(asking, most).await?;
    }
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
    Ok(Listed { tools, beside, refused })
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

/// The tools of a server, and those that are refused; no more than this, whatever it says.
async fn tools(asking: &Asking<'_>, most: usize) -> Result<(Vec<ListedTool>, Vec<ToolNews>), NoAnswer> {
    let (mut tools, mut refused) = (Vec::new(), Vec::new());
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ListToolsRequest::with_param(params);
        let answer = asking.ask(|_| ClientRequest::ListToolsRequest(request.clone())).await?;
        // Read one by one: a list with a malformed tool is not a list of tools for `rmcp`.
        let mut page = serde_json::to_value(answer).unwrap_or_default();
        let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
            return Err(NoAnswer::Odd("it answered something else than a list of tools".to_owned()));
        };
        for tool in listed {
            let name = visible(&cut(tool["name"].as_str().unwrap_or_default(), MAX_REASON));
            let mut refuse = |reason: String| refused.push(ToolNews::Refused { tool: name.clone(), reason });
            if tools.len() == most {
                refuse(format!("the server has more than {most} tools, and the others are not used"));
                return Ok((tools, refused));
            }
            match serde_json::from_value(tool) {
                Ok(tool) => tools.push(self::listed(tool)),
                Err(error) => refuse(cut(&format!("its definition cannot be read: {error}"), MAX_REASON)),
            }
        }
        // The same place again would be the same page for ever.
        let next = page["nextCursor"].as_str().map(str::to_owned);
        if next.is_none() || next == cursor || refused.len() > most {
            break;
        }
        cursor = next;
    }
    Ok((tools, refused))
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
