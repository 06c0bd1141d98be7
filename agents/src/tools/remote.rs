//! A tool that a tool server has: called over the bus.

mod asking;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use muster_bus::tool_servers::{ToolServerDoor, ToolServerFailure};
use muster_shared::flow::Wait;
use muster_shared::ids::{AgentId, Role};
use muster_shared::wire::tool_question::{OpenQuestion, ToolAnswer};
use muster_shared::wire::tool_server::{
    MOST_ARGUMENTS, ServedResult, ServedStatus, ServedTool, ToolCall, ToolReply, ToolTicket, WhenUncertain,
};
use muster_tools::ToolSource;
use serde_json::Value;
use uuid::Uuid;

use self::asking::{Asked, Asking};
use super::asked::AskRules;
use super::borrowing::Borrowing;
use super::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec, Uncertain};

/// How long a first answer is waited for: a server says within a second that a call goes on.
const FIRST_ANSWER: Duration = Duration::from_secs(3);
/// How long each further answer is waited for: it is held back for four seconds.
const NEXT_ANSWER: Duration = Duration::from_secs(7);
/// How long a server that is not there is waited for: one that is started again is back within a moment.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// What the engine grants beside the time limit of the tool itself, for the server to answer first.
const MARGIN: Duration = Duration::from_secs(5);

/// A tool of a tool server.
pub struct RemoteTool {
    server: String,
    tool: ServedTool,
    digest: String,
    role: Role,
    door: ToolServerDoor,
    /// By which a tool that another agent lends is borrowed; nothing for those of tool servers.
    borrowing: Option<Arc<Borrowing>>,
    /// What it may ask in the middle of a call; nothing where absent.
    rules: Option<Arc<AskRules>>,
}

impl RemoteTool {
    /// A tool as its server describes it, called by an agent of this role.
    #[must_use]
    pub fn new(server: String, tool: ServedTool, role: Role, door: ToolServerDoor) -> Self {
        let digest = tool.digest();
        Self { server, tool, digest, role, door, borrowing: None, rules: None }
    }

    /// The same of a tool that another agent lends.
    #[must_use]
    pub fn borrowed(self, borrowing: Arc<Borrowing>) -> Self {
        Self { borrowing: Some(borrowing), ..self }
    }

    /// The same where what it asks in the middle of a call is answered by these rules.
    #[must_use]
    pub fn asking(self, rules: Arc<AskRules>) -> Self {
        Self { rules: Some(rules), ..self }
    }

    async fn ask(&self, call: &ToolCall) -> Result<ToolReply, ToolServerFailure> {
        match &self.borrowing {
            Some(borrowing) => borrowing.call(&self.server, call, FIRST_ANSWER).await,
            None => self.door.call(&self.server, &self.role, call, FIRST_ANSWER).await,
        }
    }

    /// Says whose tool it was that was called, where another agent lends it: so it stands in the record.
    fn signed(&self, call: &ToolCall, mut result: ServedResult) -> ServedResult {
        let owner =
            self.borrowing.as_ref().and_then(|all| all.owner(call, &self.tool.full_name(&self.server)));
        if let Some(owner) = owner {
            result.content = format!("[called at {owner}, which lends it]\n{}", result.content);
        }
        result
    }

    /// Whether the call may be made again where nobody knows whether it took effect.
    fn may_repeat(&self) -> bool {
        self.tool.pure || self.tool.uncertain == WhenUncertain::Repeat
    }

    /// What is told of a call that may have taken effect.
    fn unknown(&self, why: &str) -> ToolFailure {
        let name = self.tool.full_name(&self.server);
        let then = match (self.may_repeat(), self.tool.uncertain) {
            (true, _) => {
                return ToolFailure::Unavailable(format!("{why}. Try again later, or use another way."));
            }
            (false, WhenUncertain::Fail) => {
                "it must not be done twice: do not call it again, escalate to a person"
            }
            (false, WhenUncertain::Ask | WhenUncertain::Repeat) => "look before you do it again",
        };
        ToolFailure::Failed(format!("{why}. Whether `{name}` took effect is not known: {then}."))
    }

    fn changed(&self) -> ToolFailure {
        ToolFailure::Unavailable(format!(
            "`{}` is not what it was when this agent came to know it, so it was not called. Go on without it: a person \
             lets it count again by starting the agents anew.",
            self.tool.full_name(&self.server)
        ))
    }

    /// Calls until there is an answer, as far as the tool may be called again.
    async fn carry_out(&self, mut call: ToolCall, ctx: &ToolContext) -> Result<CarriedOut, ToolFailure> {
        let mut asking = Asking::of(ctx);
        let mut away_since: Option<Instant> = None;
        loop {
            let (waited, why) = match self.ask(&call).await {
                Ok(ToolReply::Done { key, result }) if key == call.key => {
                    return Ok(CarriedOut::Ended(result));
                }
                Ok(ToolReply::Running { key, ticket, process }) if key == call.key => {
                    away_since = None;
                    match self.wait_for(&process, ticket, None, &mut asking).await {
                        Ok(carried_out) => return Ok(carried_out),
                        Err(why) => (true, why),
                    }
                }
                Ok(ToolReply::Asks { key, ticket, process, asked }) if key == call.key => {
                    away_since = None;
                    match self.wait_for(&process, ticket, Some(*asked), &mut asking).await {
                        Ok(carried_out) => return Ok(carried_out),
                        Err(why) => (true, why),
                    }
                }
                Ok(ToolReply::Changed) => return Err(self.changed()),
                Ok(ToolReply::Busy) => {
                    (false, format!("the tool server `{}` has its hands full", self.server))
                }
                Ok(
                    ToolReply::Done { .. }
                    | ToolReply::Running { .. }
                    | ToolReply::Asks { .. }
                    | ToolReply::Unknown,
                ) => {
                    let why = format!("the tool server `{}` answered for another call", self.server);
                    return Err(self.unknown(&why));
                }
                Err(failure @ ToolServerFailure::Nobody(_)) => (false, failure.to_string()),
                Err(failure @ ToolServerFailure::NotAsked { .. }) => {
                    return Err(ToolFailure::Unavailable(failure.to_string()));
                }
                Err(failure @ ToolServerFailure::Garbage { .. }) => {
                    return Err(self.unknown(&failure.to_string()));
                }
                Err(failure @ ToolServerFailure::Silent { .. }) => (true, failure.to_string()),
            };
            if waited && !self.may_repeat() {
                return Err(self.unknown(&why));
            }
            if away_since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(ToolFailure::Unavailable(format!("{why}. Try again later, or use another way.")));
            }
            // What it asked is not asked again.
            asking.answered().clone_into(&mut call.answered);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Asks the process that is at the call until it has ended, and answers what it asks.
    ///
    /// # Errors
    /// Says why the call was lost.
    async fn wait_for(
        &self,
        process: &AgentId,
        ticket: String,
        mut asked: Option<OpenQuestion>,
        asking: &mut Asking<'_>,
    ) -> Result<CarriedOut, String> {
        let waited = ToolTicket { ticket: ticket.clone() };
        loop {
            let reply = match asked.take() {
                Some(question) => {
                    let answered = match self.answer(question, asking) {
                        Asked::Answered(answered) => answered,
                        Asked::Waits(wait) => return Ok(CarriedOut::Waits(wait)),
                    };
                    let answer = ToolAnswer { ticket: ticket.clone(), answered };
                    self.door.answer(&self.server, process, &self.role, &answer, NEXT_ANSWER).await
                }
                None => self.door.wait(&self.server, process, &self.role, &waited, NEXT_ANSWER).await,
            };
            match reply {
                Ok(ToolReply::Done { result, .. }) => return Ok(CarriedOut::Ended(result)),
                Ok(ToolReply::Running { .. }) => {}
                Ok(ToolReply::Asks { asked: question, .. }) => asked = Some(*question),
                Ok(ToolReply::Busy | ToolReply::Changed | ToolReply::Unknown) => {
                    let why =
                        format!("the process of `{}` that was at the call knows it no more", self.server);
                    return Err(why);
                }
                Err(failure) => {
                    return Err(format!("the call was lost with its process: {failure}"));
                }
            }
        }
    }
}

/// What came of a call.
enum CarriedOut {
    Ended(ServedResult),
    /// It asks a person something: it is given up, and made again with the answer.
    Waits(Box<Wait>),
}

#[async_trait]
impl Tool for RemoteTool {
    fn spec(&self) -> ToolSpec {
        let ServedTool {
            description, parameters, pure, uncertain, grants, timeout_ms, approve, cache, ..
        } = &self.tool;
        let name = self.tool.full_name(&self.server);
        let mut spec = ToolSpec::new(name, description.clone(), parameters.clone());
        if !pure {
            spec = spec.with_side_effects().when_uncertain(match uncertain {
                WhenUncertain::Repeat => Uncertain::Repeat,
                WhenUncertain::Ask => Uncertain::Ask,
                WhenUncertain::Fail => Uncertain::Fail,
            });
        }
        spec.grants = permissions(grants);
        spec.approve = *approve;
        spec.cache.clone_from(cache);
        // A call that was not answered is asked for again here, where the server knows it by its key.
        let source = match &self.borrowing {
            Some(_) => ToolSource::Agent(self.server.clone()),
            None => ToolSource::Server(self.server.clone()),
        };
        let spec = spec.never_repeated().from_source(source);
        spec.with_timeout(Duration::from_millis(*timeout_ms) + MARGIN)
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        if args.to_string().len() > MOST_ARGUMENTS {
            let most = MOST_ARGUMENTS / 1024;
            return Err(ToolFailure::InvalidArguments(format!(
                "The arguments have more than {most} KiB, which is the most that a tool server takes. Send less."
            )));
        }
        let key = ctx.idempotency_key.clone().unwrap_or_else(|| Uuid::now_v7().to_string());
        let call = ToolCall {
            run: ctx.run.clone(),
            task: ctx.task.clone(),
            tool: self.tool.name.clone(),
            spec: self.digest.clone(),
            arguments: args,
            key: asking::key_of(key, ctx),
            patience_ms: self.tool.timeout_ms.saturating_add(1_000),
            rights: (*ctx.rights).clone(),
            approved: ctx.approved,
            voucher: ctx.voucher.as_deref().cloned(),
            may_ask: self.may_ask(ctx),
            answered: asking::known(ctx),
        };
        let mut given_up = GivenUp { tool: self, ticket: Some(call.ticket()) };
        let result = match self.carry_out(call.clone(), ctx).await {
            // Whoever serves it is told that nobody waits for this one.
            Ok(CarriedOut::Waits(wait)) => return Ok(ToolOutput::waiting(*wait)),
            Ok(CarriedOut::Ended(result)) => Ok(result),
            Err(failure) => Err(failure),
        };
        given_up.ticket = None;
        output(self.signed(&call, result?))
    }
}

/// What a result is for whoever called.
fn output(ServedResult { status, content, data }: ServedResult) -> Result<ToolOutput, ToolFailure> {
    match status {
        ServedStatus::Success => Ok(ToolOutput { data, ..ToolOutput::text(content) }),
        ServedStatus::Error | ServedStatus::Timeout => Err(ToolFailure::Failed(content)),
        ServedStatus::Refused => Err(ToolFailure::Refused(content)),
        ServedStatus::Unavailable => Err(ToolFailure::Unavailable(content)),
    }
}

/// The permissions of these names. One that is not known is one that nobody has: the strictest stands for it.
fn permissions(names: &[String]) -> BTreeSet<Permission> {
    let named = |name: &String| Permission::ALL.into_iter().find(|known| known.as_str() == name);
    names.iter().map(|name| named(name).unwrap_or(Permission::Execute)).collect()
}

/// Tells the server that nobody waits any more, when the call is dropped before it has ended.
struct GivenUp<'a> {
    tool: &'a RemoteTool,
    ticket: Option<String>,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let RemoteTool { server, role, door, .. } = self.tool;
        let (server, role, door) = (server.clone(), role.clone(), door.clone());
        // Without a runtime there is no connection either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = door.cancel(&server, &role, &ToolTicket { ticket }).await {
                    tracing::debug!(%error, "a tool server is not told that a call is given up");
                }
            });
        }
    }
}
