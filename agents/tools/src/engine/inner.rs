//! Tools that call others: whatever keeps one of those from being called is found before anything is done, and not half way.

use std::borrow::Cow;

use muster_shared::flow::{Refusal, Use};

use super::ToolEngine;
use crate::spec::{ToolContext, ToolSpec};

/// Whether the task may make a call of the tool that changes something. What a tool says of itself is held against this, not
/// what its name sounds like.
pub(super) fn may_have_effect(spec: &ToolSpec, ctx: &ToolContext) -> Result<(), Refusal> {
    if spec.pure { Ok(()) } else { ctx.rights.allows(&Use::Effect(&spec.name)) }
}

impl ToolEngine {
    /// Which of a tool and those that it calls is off.
    pub(super) fn off_of<'a>(&self, spec: &'a ToolSpec) -> Option<&'a str> {
        if !self.is_on(spec) {
            return Some(&spec.name);
        }
        let is_off = |name: &&String| self.registry.get(name).is_some_and(|inner| !self.is_on(inner.spec()));
        spec.inner.iter().find(is_off).map(String::as_str)
    }

    /// Whether the task may use the tools that a tool calls.
    pub(super) fn may_begin(&self, spec: &ToolSpec, ctx: &ToolContext) -> Result<(), Refusal> {
        spec.inner.iter().try_for_each(|inner| ctx.rights.allow_all(&Use::of_tool(inner)))
    }

    /// Why a person has to approve a call of a tool: for itself, or for one that it calls.
    pub(super) fn approval_of(&self, spec: &ToolSpec, ctx: &ToolContext) -> Option<&'static str> {
        let of_inner = |name: &String| {
            self.registry.get(name).and_then(|inner| self.rules.approval(inner.spec(), &ctx.to_approve))
        };
        self.rules.approval(spec, &ctx.to_approve).or_else(|| spec.inner.iter().find_map(of_inner))
    }

    /// What a tool is given to work with. One that calls others does so by this engine.
    pub(super) fn given<'a>(&self, spec: &ToolSpec, ctx: &'a ToolContext) -> Cow<'a, ToolContext> {
        match spec.inner.is_empty() {
            true => Cow::Borrowed(ctx),
            // What waits for a person is made again from its beginning, with all that was done before.
            false => Cow::Owned(ToolContext { engine: Some(self.clone()), people: None, ..ctx.clone() }),
        }
    }
}
