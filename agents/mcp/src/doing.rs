//! What a tool asks its server for, and how the answer is told.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, Prompt, ReadResourceRequest, ReadResourceRequestParams, Resource,
    ResourceTemplate, ServerResult,
};
use serde_json::{Map, Value, json};

use crate::plain::{cut, visible};
use crate::request::{Answered, NoAnswer};
use crate::result::{Piece, ResultLimits, Told, of_call, of_prompt, of_resource};
use crate::tool::texts;

/// Longest description of a resource or prompt in a list, in bytes.
const MAX_ABOUT: usize = 200;

/// What a tool does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Calls a tool of the server, as it was accepted.
    Call {
        /// Its name there.
        tool: String,
        /// Names what was accepted of it.
        digest: String,
    },
    /// Lists resources.
    ListResources,
    /// Lists patterns of their addresses.
    ListTemplates,
    /// Reads one.
    ReadResource,
    /// Lists prompts.
    ListPrompts,
    /// Fills one in.
    GetPrompt,
}

impl Doing {
    /// The second part of its name, what it does, and the schema of its arguments.
    pub(crate) fn described(&self) -> (&'static str, &'static str, Value) {
        let page = [("cursor", "Where to go on: what the last list ended with. Absent for the beginning.")];
        match self {
            Self::Call { .. } => ("", "", json!({"type": "object"})),
            Self::ListResources => {
                ("list_resources", "Lists the resources that the server has, by URI.", texts(&page, &[]))
            }
            Self::ListTemplates => (
                "list_resource_templates",
                "Lists the patterns of the URIs of resources that the server makes when they are read.",
                texts(&page, &[]),
            ),
            Self::ReadResource => (
                "read_resource",
                "Reads a resource of the server. What is no text becomes a file of the workspace.",
                texts(&[("uri", "Which resource, as it is listed.")], &["uri"]),
            ),
            Self::ListPrompts => (
                "list_prompts",
                "Lists the prompts that the server has, with their arguments.",
                texts(&page, &[]),
            ),
            Self::GetPrompt => (
                "get_prompt",
                "Has the server fill in one of its prompts.",
                json!({
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "Which prompt, as it is listed."},
                        "arguments": {
                            "type": "object",
                            "additionalProperties": {"type": "string"},
                            "description": "Its arguments.",
                        },
                    },
                    "required": ["name"],
                    "additionalProperties": false,
                }),
            ),
        }
    }

    /// The request, with what was answered to the server's questions.
    pub(crate) fn request(&self, args: &Map<String, Value>, answered: Answered) -> ClientRequest {
        let text = |name: &str| args.get(name).and_then(Value::as_str).map(str::to_owned);
        let page = || PaginatedRequestParams::default().with_cursor(text("cursor"));
        match self {
            Self::Call { tool, .. } => {
                let mut params = CallToolRequestParams::new(tool.clone());
                params.arguments = Some(args.clone());
                (params.input_responses, params.request_state) = (answered.responses, answered.state);
                ClientRequest::CallToolRequest(CallToolRequest::new(params))
            }
            Self::ListResources => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page()))
            }
            Self::ListTemplates => {
                let request = ListResourceTemplatesRequest::with_param(page());
                ClientRequest::ListResourceTemplatesRequest(request)
            }
            Self::ReadResource => {
                let mut params = ReadResourceRequestParams::new(text("uri").unwrap_or_default());
                (params.input_responses, params.request_state) = (answered.responses, answered.state);
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            }
            Self::ListPrompts => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page())),
            Self::GetPrompt => {
                let mut params = GetPromptRequestParams::new(text("name").unwrap_or_default());
                params.arguments = args.get("arguments").and_then(Value::as_object).cloned();
                (params.input_responses, params.request_state) = (answered.responses, answered.state);
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            }
        }
    }

    /// The answer, told.
    pub(crate) fn told(&self, answer: ServerResult, limits: ResultLimits) -> Result<Told, NoAnswer> {
        match (self, answer) {
            (Self::Call { .. }, ServerResult::CallToolResult(result)) => Ok(of_call(result, limits)),
            // A server that has nothing to say of a call may leave its content out.
            (Self::Call { .. }, ServerResult::EmptyResult(_)) => {
                Ok(of_call(CallToolResult::default(), limits))
            }
            (Self::ReadResource, ServerResult::ReadResourceResult(result)) => Ok(of_resource(result, limits)),
            (Self::GetPrompt, ServerResult::GetPromptResult(result)) => Ok(of_prompt(result, limits)),
            (Self::ListResources, ServerResult::ListResourcesResult(page)) => {
                Ok(listed(page.resources.iter().map(resource_line), page.next_cursor))
            }
            (Self::ListTemplates, ServerResult::ListResourceTemplatesResult(page)) => {
                Ok(listed(page.resource_templates.iter().map(template_line), page.next_cursor))
            }
            (Self::ListPrompts, ServerResult::ListPromptsResult(page)) => {
                Ok(listed(page.prompts.iter().map(prompt_line), page.next_cursor))
            }
            (_, other) => {
                let shown = serde_json::to_string(&other).unwrap_or_default();
                Err(NoAnswer::Odd(format!("no answer to this request: {}", cut(&visible(&shown), MAX_ABOUT))))
            }
        }
    }
}

fn listed(lines: impl Iterator<Item = String>, next: Option<String>) -> Told {
    let mut lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        lines.push("There is nothing.".to_owned());
    }
    lines.extend(next.map(|cursor| format!("There is more: cursor {}", visible(&cursor))));
    Told { pieces: lines.into_iter().map(Piece::Text).collect(), ..Told::default() }
}

fn about(text: Option<&str>) -> String {
    let text = visible(text.unwrap_or_default()).replace(['\n', '\t'], " ");
    if text.is_empty() { text } else { format!(": {}", cut(&text, MAX_ABOUT)) }
}

fn resource_line(resource: &Resource) -> String {
    let said = resource.description.as_deref().or(resource.title.as_deref()).unwrap_or(&resource.name);
    format!("{}{}", visible(&resource.uri), about(Some(said)))
}

fn template_line(template: &ResourceTemplate) -> String {
    let said = template.description.as_deref().or(template.title.as_deref()).unwrap_or(&template.name);
    format!("{}{}", visible(&template.uri_template), about(Some(said)))
}

fn prompt_line(prompt: &Prompt) -> String {
    let arguments: Vec<String> = prompt
        .arguments
        .iter()
        .flatten()
        .map(|argument| {
            let mark = if argument.required == Some(true) { "" } else { "?" };
            format!("{}{mark}", visible(&argument.name))
        })
        .collect();
    format!("{}({}){}", visible(&prompt.name), arguments.join(", "), about(prompt.description.as_deref()))
}
