//! Guards and the calls that a tool makes of others: they are asked about each of them, as about a model's own.

use std::sync::Arc;

use async_trait::async_trait;
use muster_bus::GuardDoor;
use muster_shared::flow::{Hook, TaskOffered};
use muster_shared::ids::Role;
use muster_shared::secret::Redactor;
use muster_tools::{CallWatch, ToolEngine, ToolResult, ToolStatus};
use serde_json::{Value, json};

use super::AgentContext;
use crate::guards::{arguments_for, content_fits, thing, withheld};

/// Asks the guards of a task.
struct GuardedCalls {
    role: Role,
    offer: TaskOffered,
    guards: GuardDoor,
    engine: ToolEngine,
    redactor: Arc<Redactor>,
}

impl AgentContext {
    /// Who is asked about calls that the tools of a task make of others; nobody where no tool does, or no guard looks at calls.
    pub(super) fn watch(&self, engine: &ToolEngine, offer: &TaskOffered) -> Option<Arc<dyn CallWatch>> {
        let is_asked = |hook| offer.limits.guards_at(hook, Some(&self.role), None).next().is_some();
        let makes_calls = self.settings.composites.names().next().is_some();
        (makes_calls && (is_asked(Hook::BeforeTool) || is_asked(Hook::AfterObservation))).then(|| {
            Arc::new(GuardedCalls {
                role: self.role.clone(),
                offer: offer.clone(),
                guards: self.bus.guards(),
                engine: engine.clone(),
                redactor: Arc::clone(&self.redactor),
            }) as Arc<dyn CallWatch>
        })
    }
}

#[async_trait]
impl CallWatch for GuardedCalls {
    async fn before(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        let rules = self.offer.limits.guards_at(Hook::BeforeTool, Some(&self.role), Some(tool));
        let payload = json!({ "tool": tool, "arguments": arguments });
        let fits = |changed: &Value| {
            arguments_for(tool, changed).and_then(|arguments| self.engine.fits(tool, arguments))
        };
        let thing = thing(&self.role, &self.offer, Hook::BeforeTool, payload);
        let said = self.guards.ask_all(rules, thing, &fits).await;
        match said.refused() {
            Some(why) => Err(format!("not done: {why}")),
            None => Ok(said.changed.map_or(arguments, |changed| changed["arguments"].clone())),
        }
    }

    async fn after(&self, tool: &str, arguments: &Value, mut result: ToolResult) -> ToolResult {
        let rules: Vec<_> =
            self.offer.limits.guards_at(Hook::AfterObservation, Some(&self.role), Some(tool)).collect();
        if rules.is_empty() {
            return result;
        }
        result.content = self.redactor.redact(&result.content).into_owned();
        if let Some(data) = &mut result.data {
            self.redactor.redact_value(data);
        }
        // Steps may be made of the data: whoever judges the words sees it too.
        let payload = json!({
            "tool": tool, "arguments": arguments, "status": result.status, "content": result.content, "data": result.data,
        });
        let thing = thing(&self.role, &self.offer, Hook::AfterObservation, payload);
        let said = self.guards.ask_all(rules, thing, &content_fits).await;
        if let Some(why) = said.refused() {
            let (status, content) = (ToolStatus::Error, withheld(tool, &why));
            return ToolResult { status, content, data: None, ..result };
        }
        match said.changed.as_ref().and_then(|changed| changed["content"].as_str()) {
            Some(changed) => ToolResult { content: changed.to_owned(), data: None, ..result },
            None => result,
        }
    }
}
