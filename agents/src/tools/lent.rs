//! The tools that this agent lends: which of its own they are, and a call of one in the name of another agent's task.

use std::sync::Arc;

use async_trait::async_trait;
use muster_bus::Bus;
use muster_shared::flow::{RolePermission, RolePermissions};
use muster_shared::ids::RunId;
use muster_tools::patterns::means;
use muster_tools::{Repetition, ToolSource};
use serde_json::Value;

use super::workspace::{SharedWorkspace, WorkspaceLimits};
use super::{
    DOCUMENTS, FILES, Tool, ToolContext, ToolEngine, ToolFailure, ToolOutput, ToolResult, ToolSpec,
    ToolStatus, granted_by_name,
};

/// What an agent that lends may do itself, and what of it it lends.
pub struct LenderRules<'a> {
    /// Which tools it lends.
    pub lends: &'a [String],
    /// Whether its own role may use a tool.
    pub may_use: &'a dyn Fn(&str) -> bool,
    /// What its role may do.
    pub permissions: RolePermissions,
}

/// The tools that an agent lends: those that it may use itself, and that make sense for somebody else's task. What others have
/// is not lent on; who needs the documents of the goal reads them himself; what is not a tool in the narrow sense (peers,
/// people, runs) belongs to the task.
#[must_use]
pub fn lent_tools(engine: &ToolEngine, bus: &Bus, rules: &LenderRules<'_>) -> Vec<Arc<dyn Tool>> {
    let is_lent = |spec: &ToolSpec| {
        rules.lends.iter().any(|pattern| means(pattern, &spec.name))
            && (rules.may_use)(&spec.name)
            && engine.is_on(spec)
            && can_be_lent(spec)
            && rules.permissions.is_open(spec.permission)
    };
    let lent = engine.registry().list().into_iter().filter(|spec| is_lent(spec));
    let lend = |spec: Arc<ToolSpec>| {
        let (engine, bus, permissions) = (engine.clone(), bus.clone(), rules.permissions);
        Arc::new(LentTool { spec, engine, bus, permissions }) as Arc<dyn Tool>
    };
    lent.map(lend).collect()
}

/// Whether a tool can be of use to another agent.
fn can_be_lent(spec: &ToolSpec) -> bool {
    let is_own = matches!(spec.source, ToolSource::BuiltIn | ToolSource::File(_));
    is_own
        && spec.permission == RolePermission::Tools
        && !DOCUMENTS.iter().any(|permission| spec.grants.contains(permission))
}

/// A tool of this agent, called for somebody else by the engine of this agent: with its rules, limits and quotas, counted as
/// its own calls.
struct LentTool {
    spec: Arc<ToolSpec>,
    engine: ToolEngine,
    bus: Bus,
    permissions: RolePermissions,
}

impl LentTool {
    /// What the call may use: no more than the task, whose rights came with it, and no more than this agent.
    fn context(&self, ctx: &ToolContext) -> Result<ToolContext, ToolFailure> {
        let context = ToolContext {
            permissions: self.permissions,
            idempotency_key: ctx.idempotency_key.clone(),
            cancel: ctx.cancel.clone(),
            approved: ctx.approved,
            ..ToolContext::new(ctx.run.clone(), ctx.task.clone())
        };
        let context = context.within(Arc::clone(&ctx.rights));
        let context = context.granting(granted_by_name(std::slice::from_ref(&self.spec)));
        if !FILES.iter().any(|permission| self.spec.grants.contains(permission)) {
            return Ok(context);
        }
        let run: RunId = ctx.run.parse().map_err(|_| {
            ToolFailure::Refused("The call is for no run, so it has no files to work on.".to_owned())
        })?;
        let limits = WorkspaceLimits::default();
        let files = SharedWorkspace::new(self.bus.files(), run, ctx.task.clone(), limits);
        Ok(context.with_workspace(Arc::new(files)))
    }
}

#[async_trait]
impl Tool for LentTool {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::clone(&self.spec);
        // Whether it is on was seen to, and the engine that carries it out tries again by itself.
        // A person whom this agent's settings want asked is asked by whoever calls it.
        let approve = self.engine.approval(&spec.name, &ToolContext::default()).is_some();
        // What is lent is asked of its owner each time: the lease may have ended.
        let (repetition, sample, cache) = (Repetition::Never, None, None);
        ToolSpec { off_until_allowed: false, approve, repetition, sample, cache, ..spec }
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let result = self.engine.call(&self.spec.name, args, &self.context(ctx)?).await;
        output(result)
    }
}

/// What came of a call, for whoever serves it.
fn output(result: ToolResult) -> Result<ToolOutput, ToolFailure> {
    let ToolResult { status, content, data, transient, wait, .. } = result;
    match status {
        ToolStatus::Success => Ok(ToolOutput { content, data, wait }),
        ToolStatus::Refused => Err(ToolFailure::Refused(content)),
        ToolStatus::Error if transient => Err(ToolFailure::Unavailable(content)),
        ToolStatus::Error | ToolStatus::Timeout => Err(ToolFailure::Failed(content)),
    }
}

#[cfg(test)]
#[path = "lent_tests.rs"]
mod tests;
