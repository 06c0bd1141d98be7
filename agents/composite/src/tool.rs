//! A composite as a tool: carries out what its course says, by the engine of the agent that calls it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use muster_tools::{Tool, ToolContext, ToolEngine, ToolFailure, ToolOutput, ToolResult, ToolSpec};
use serde_json::Value;
use tokio::time::Instant;

use crate::course::{Call, CallId, Course, Ended};
use crate::file::Composite;
use crate::spec::UNDO_TIME;

/// A composite as a tool.
pub(crate) struct CompositeTool {
    pub(crate) spec: ToolSpec,
    pub(crate) composite: Arc<Composite>,
}

#[async_trait]
impl Tool for CompositeTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let Some(engine) = &ctx.engine else {
            return Err(ToolFailure::Failed("a composite tool is called by an engine alone".to_owned()));
        };
        let caller = Caller { engine, ctx, composite: &self.composite };
        let mut course = Course::new(Arc::clone(&self.composite), args);
        let mut running = FuturesUnordered::new();
        let (mut until, mut undoing) = (Instant::now() + self.composite.time, false);
        loop {
            running.extend(course.next().into_iter().map(|call| caller.make(call)));
            if course.is_over() || running.is_empty() {
                return course.told().map_err(ToolFailure::Failed);
            }
            if course.is_undoing() && !undoing {
                (until, undoing) = (Instant::now() + UNDO_TIME, true);
            }
            tokio::select! {
                Some((id, ended)) = running.next() => course.ended(id, ended),
                () = tokio::time::sleep_until(until) => {
                    running.clear();
                    course.stop("its time was up");
                }
            }
        }
    }
}

/// Makes calls.
struct Caller<'a> {
    engine: &'a ToolEngine,
    ctx: &'a ToolContext,
    composite: &'a Composite,
}

impl Caller<'_> {
    async fn make(&self, call: Call) -> (CallId, Ended) {
        if call.wait > Duration::ZERO {
            tokio::time::sleep(call.wait).await;
        }
        let context = self.context(&call);
        let Call { id, tool, arguments, .. } = call;
        let Some(watch) = &self.ctx.watch else {
            return (id, ended(self.engine.call(&tool, arguments, &context).await));
        };
        match watch.before(&tool, arguments).await {
            Ok(arguments) => {
                let result = self.engine.call(&tool, arguments.clone(), &context).await;
                (id, ended(watch.after(&tool, &arguments, result).await))
            }
            Err(why) => (id, Ended { failed: Some(why), content: String::new(), data: None }),
        }
    }

    /// What a call is given: what the composite was given, without what the model was shown before, and under a key of its own.
    fn context(&self, call: &Call) -> ToolContext {
        let is_pure = self.engine.registry().get(&call.tool).is_none_or(|tool| tool.spec().pure);
        let key = self.ctx.idempotency_key.as_ref().filter(|_| !is_pure);
        let key = key.map(|key| key_of(key, self.composite, call.id));
        ToolContext { idempotency_key: key, keeper: None, shown: None, engine: None, ..self.ctx.clone() }
    }
}

/// The key of a call: the same whoever makes it and however often. Names of steps begin with a letter and have no `!`, so that
/// no two calls have the same.
fn key_of(key: &str, composite: &Composite, CallId { step, index, undo }: CallId) -> String {
    use crate::file::Calls;
    let step = &composite.steps[step];
    let index = match step.calls {
        Calls::Once => String::new(),
        Calls::Each { .. } | Calls::Until { .. } => format!("/{index}"),
    };
    let undo = if undo { "!undo" } else { "" };
    format!("{key}/{}{index}{undo}", step.name)
}

fn ended(result: ToolResult) -> Ended {
    if result.wait.is_some() {
        let why = "it waits for somebody, which no step of a composite can".to_owned();
        return Ended { failed: Some(why), content: String::new(), data: None };
    }
    if result.is_success() {
        Ended { failed: None, content: result.content, data: result.data }
    } else {
        Ended { failed: Some(result.content), content: String::new(), data: None }
    }
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
