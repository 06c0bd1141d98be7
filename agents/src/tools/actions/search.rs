//! `search`: looks through the documents and the results of other tasks at once.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::known::look;
use super::text_of;
use crate::tools::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

/// Statements given when nothing else is asked for.
const USUAL: u64 = 8;

pub(super) struct Search;

#[async_trait]
impl Tool for Search {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "search",
            "Looks for statements in the results of the tasks before yours and in the documents, and says where each stands.",
            json!({
                "query": {"type": "string", "minLength": 1, "maxLength": 2000},
                "most": {"type": "integer", "minimum": 1, "maximum": 30, "default": USUAL}
            }),
            &["query"],
        )
    }

    async fn call(&self, ctx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let most = arguments["most"].as_u64().unwrap_or(USUAL);
        let found = look(ctx, text_of(&arguments, "query"), usize::try_from(most).unwrap_or(1)).await?;
        if found.is_empty() {
            return Ok(ToolOutput::text(
                "Neither the results of other tasks nor the documents say anything of it.",
            ));
        }
        let lines: Vec<String> =
            found.iter().map(|found| format!("- {} [{}]", found.text, found.source)).collect();
        Ok(ToolOutput::text(lines.join("\n")))
    }
}
