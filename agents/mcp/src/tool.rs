//! Tools of a server as agents call them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use muster_shared::flow::Use;
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSource, ToolSpec, Uncertain};
use rmcp::model::{ErrorCode, ServerResult};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::callbacks::CallPlace;
use crate::config::Reached;
use crate::connect::Connection;
use crate::doing::Doing;
use crate::host::Host;
use crate::pins::ServedTool;
use crate::plain::{cut, visible};
use crate::request::{Asking, NoAnswer, next_number};
use crate::result::{self, Told};

/// How often a call that may be repeated is made again.
const REPEATS: u32 = 2;
/// Longest complaint of a server that is passed on, in bytes.
const MAX_COMPLAINT: usize = 2_000;

/// A tool of a server.
pub struct McpTool {
    host: Arc<Host>,
    doing: Doing,
    spec: ToolSpec,
}

impl McpTool {
    pub(crate) fn of(host: &Arc<Host>, served: &ServedTool) -> Self {
        let limits = host.definition_limits();
        let server = &host.config.name;
        let definition = &served.definition;
        let description = definition.shown_description(server, limits);
        let hints = definition.hints;
        let trusted = host.settings.trusts(server);
        let spec = host.spec(&served.name, description, definition.shown_schema());
        let spec = match (trusted && hints.read_only, trusted && hints.idempotent) {
            (true, _) => spec,
            (false, true) => spec.with_side_effects().when_uncertain(Uncertain::Repeat),
            (false, false) => spec.with_side_effects(),
        };
        let doing = Doing::Call { tool: served.tool.clone(), digest: served.digest.clone() };
        Self { host: Arc::clone(host), doing, spec }
    }

    /// A tool of ours, for what a server has beside tools.
    pub(crate) fn beside(host: &Arc<Host>, doing: Doing) -> Self {
        let (name, words, parameters) = doing.described();
        let server = visible(&host.config.name);
        let spec = host.spec(name, format!("[MCP server {server}] {words}"), parameters);
        let spec = if host.settings.trusts(&host.config.name) { spec } else { spec.with_side_effects() };
        Self { host: Arc::clone(host), doing, spec }
    }

    fn may(&self, ctx: &ToolContext) -> Result<(), ToolFailure> {
        if let Reached::Http(endpoint) = &self.host.config.reached {
            let host = endpoint.host();
            ctx.rights.allows(&Use::Host(&host))?;
        }
        Ok(())
    }

    fn may_repeat(&self) -> bool {
        self.spec.pure || self.spec.uncertain == Uncertain::Repeat
    }

    async fn once(&self, connection: &Arc<Connection>, call: &Call<'_>) -> Result<Told, NoAnswer> {
        let busy = || NoAnswer::NotSent("it takes one call at a time, and is at another".to_owned());
        let _alone = tokio::select! {
            biased;
            alone = connection.desk.alone() => alone,
            () = call.ctx.cancel.cancelled() => return Err(NoAnswer::Stopped),
            () = tokio::time::sleep_until(call.deadline) => return Err(busy()),
        };
        let _under_way = connection.desk.under_way(next_number(), call.place.clone());
        let asking = Asking {
            connection,
            deadline: call.deadline,
            cancel: &call.ctx.cancel,
            place: Some(&call.place),
        };
        let answer: ServerResult = asking.ask(|answered| self.doing.request(call.args, answered)).await?;
        self.doing.told(answer, self.host.result_limits())
    }
}

/// A call that is being made.
struct Call<'a> {
    ctx: &'a ToolContext,
    args: &'a Map<String, Value>,
    place: CallPlace,
    deadline: Instant,
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        self.may(ctx)?;
        let Value::Object(args) = args else {
            return Err(ToolFailure::InvalidArguments("The arguments must be an object.".to_owned()));
        };
        let deadline = Instant::now() + self.host.settings.call_limit;
        let place = CallPlace { rights: Arc::clone(&ctx.rights), asker: ctx.asker.clone() };
        let call = Call { ctx, args: &args, place, deadline };
        let _turn = self.host.turn(deadline, &ctx.cancel).await?;
        let mut repeats = if self.may_repeat() { REPEATS } else { 0 };
        let mut pause = self.host.settings.restart_pause;
        let told = loop {
            let connection = self.host.connection(deadline, &ctx.cancel).await?;
            self.host.still_serves(&self.doing)?;
            match self.once(&connection, &call).await {
                Ok(told) => break told,
                Err(why) if repeats > 0 && why.may_pass() && Instant::now() + pause < deadline => {
                    repeats -= 1;
                    tokio::time::sleep(pause).await;
                    pause = pause.saturating_mul(2);
                }
                Err(why) => return Err(self.failure(why, &connection)),
            }
        };
        let failed = told.failed;
        let output = result::keep(told, &self.host.config.namespace, self.host.result_limits(), ctx).await;
        if failed {
            let said =
                if output.content.is_empty() { "It failed, and does not say why." } else { &output.content };
            return Err(ToolFailure::Failed(said.to_owned()));
        }
        Ok(output)
    }
}

impl McpTool {
    fn failure(&self, why: NoAnswer, connection: &Connection) -> ToolFailure {
        let name = &self.spec.name;
        let look = if self.spec.pure {
            "Try again later, or use another way."
        } else {
            "Whether it took effect is not known: look before you call it again."
        };
        match why {
            NoAnswer::Refused(error) => refused(name, error.code, &error.message),
            NoAnswer::Died => ToolFailure::Failed(format!(
                "The server of `{name}` died in the middle of the call{}. {look}",
                connection.last_words()
            )),
            NoAnswer::Lost(reason) => {
                ToolFailure::Failed(format!("The way to the server of `{name}` broke: {reason}. {look}"))
            }
            NoAnswer::NotSent(reason) => ToolFailure::Unavailable(format!(
                "The server of `{name}` cannot be reached: {reason}. Nothing was done. Try again later, or use \
                 another way."
            )),
            NoAnswer::Stopped => {
                ToolFailure::Refused(format!("`{name}` was given up because the task was stopped."))
            }
            NoAnswer::TimedOut => ToolFailure::Failed(format!(
                "`{name}` did not answer within {} s, its time limit. {look}",
                self.host.settings.call_limit.as_secs_f32()
            )),
            NoAnswer::NeedsAuthorization => ToolFailure::Unavailable(format!(
                "The server of `{name}` wants an authorization that a person has to give. Go on without it."
            )),
            NoAnswer::Odd(reason) => {
                ToolFailure::Failed(format!("The server of `{name}` answered nonsense: {reason}. {look}"))
            }
        }
    }
}

impl NoAnswer {
    /// Whether the same request may be answered when it is made again.
    const fn may_pass(&self) -> bool {
        matches!(self, Self::Died | Self::Lost(_) | Self::NotSent(_))
    }
}

fn refused(name: &str, code: ErrorCode, message: &str) -> ToolFailure {
    let said = format!("The server of `{name}` refused: {}", cut(&visible(message), MAX_COMPLAINT));
    match code {
        ErrorCode::INVALID_PARAMS => ToolFailure::InvalidArguments(said),
        ErrorCode::METHOD_NOT_FOUND | ErrorCode::RESOURCE_NOT_FOUND => ToolFailure::NotFound(said),
        _ => ToolFailure::Failed(said),
    }
}

impl Host {
    /// The specification of a tool without effects.
    fn spec(&self, name: &str, description: String, parameters: Value) -> ToolSpec {
        let needs = match self.config.reached {
            Reached::Child(_) => Permission::Execute,
            Reached::Http(_) => Permission::Network,
        };
        // A moment more than a call may take: it says better itself what happened.
        let limit = self.settings.call_limit + Duration::from_secs(1);
        ToolSpec::new(format!("{}.{name}", self.config.namespace), description, parameters)
            .needing(needs)
            .from_source(ToolSource::Server(self.config.namespace.clone()))
            .with_timeout(limit)
    }
}

/// The schema of arguments that are all texts.
pub(crate) fn texts(fields: &[(&str, &str)], required: &[&str]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, description)| {
            ((*name).to_owned(), json!({"type": "string", "description": description}))
        })
        .collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
