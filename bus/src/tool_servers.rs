//! Tool servers: processes that carry calls of tools out for agents. What is said, and where, stands in
//! [`muster_shared::wire::tool_server`]. Any process of any language may be one; of several with one name, one is called.

mod lent;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use muster_shared::ids::{AgentId, Role};
use muster_shared::wire::Encoding;
use muster_shared::wire::codec::MAX_MESSAGE_BYTES;
use muster_shared::wire::lending::{LentReply, serves_tools};
use muster_shared::wire::tool_question::{QuestionAnswer, ToolAnswer};
use muster_shared::wire::tool_server::{
    MOST_TOOLS, ToolCall, ToolReply, ToolServerNotice, ToolSpecs, ToolTicket, is_tool_server_name,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::backend::{Headers, INBOX, Incoming, Message};
use crate::bus::{Core, now};
use crate::error::BusError;
use crate::seal::CONTENT_TYPE;
use crate::subject::{TOOL_WHO, tool_subject};

pub use self::lent::{Lender, LendingRequest};

/// Largest notice that is read, in bytes.
const MOST_NOTICE: usize = 2 * 1024;
/// Largest answer that is read, in bytes: in one message there is no room for more.
const MOST_REPLY: usize = MAX_MESSAGE_BYTES;
/// How long the description of the tools is waited for.
const SPECS: Duration = Duration::from_secs(2);

/// Why a tool server gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolServerFailure {
    /// No process of that name is there: nothing was begun.
    #[error("no process serves the tools of `{0}` now")]
    Nobody(String),
    /// No answer came in time: what was asked may have been begun.
    #[error("the tool server `{server}` did not answer within {millis} ms")]
    Silent {
        /// The server.
        server: String,
        /// How long it was waited for, in milliseconds.
        millis: u128,
    },
    /// It answered what is no answer.
    #[error("the tool server `{server}` answered what is no answer: {why}")]
    Garbage {
        /// The server.
        server: String,
        /// What is wrong with it.
        why: String,
    },
    /// It could not be asked.
    #[error("the tool server `{server}` could not be asked: {why}")]
    NotAsked {
        /// The server.
        server: String,
        /// Why.
        why: String,
    },
}

/// The door to tool servers.
#[derive(Clone)]
pub struct ToolServerDoor {
    pub(crate) core: Arc<Core>,
}

impl ToolServerDoor {
    /// What tool servers say of themselves from now on. What cannot be read, or speaks in another's name, is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn notices(&self) -> Result<BoxStream<'static, ToolServerNotice>, BusError> {
        let heard = self.core.backend.subscribe(&tool_subject("*", "here")).await?;
        Ok(heard.filter_map(|message| std::future::ready(notice(&message))).boxed())
    }

    /// Asks all tool servers to say that they are there.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn who(&self) -> Result<(), BusError> {
        self.tell(TOOL_WHO.to_owned(), &()).await
    }

    /// The tools of a process that is there.
    ///
    /// # Errors
    /// When there is no answer, or it is none.
    pub async fn specs(&self, of: &ToolServerNotice) -> Result<ToolSpecs, ToolServerFailure> {
        let subject = tool_subject(&of.server, &format!("specs.{}", of.process));
        let specs: ToolSpecs = self.ask(&of.server, subject, &(), SPECS).await?;
        let garbage = |why: String| ToolServerFailure::Garbage { server: of.server.clone(), why };
        if specs.tools.len() > MOST_TOOLS {
            return Err(garbage(format!("it has {} tools, {MOST_TOOLS} are the most", specs.tools.len())));
        }
        Ok(specs)
    }

    /// Calls a tool of a server in the name of this agent.
    ///
    /// # Errors
    /// When there is no answer, or it is none.
    pub async fn call(
        &self,
        server: &str,
        role: &Role,
        call: &ToolCall,
        patience: Duration,
    ) -> Result<ToolReply, ToolServerFailure> {
        let subject = tool_subject(server, &format!("call.{role}.{}", self.core.who));
        self.ask(server, subject, call, patience).await
    }

    /// Asks the process that is at a call for what came of it.
    ///
    /// # Errors
    /// When there is no answer, or it is none. [`ToolServerFailure::Nobody`] when the process has ended.
    pub async fn wait(
        &self,
        server: &str,
        process: &AgentId,
        role: &Role,
        ticket: &ToolTicket,
        patience: Duration,
    ) -> Result<ToolReply, ToolServerFailure> {
        let subject = tool_subject(server, &format!("wait.{process}.{role}.{}", self.core.who));
        self.ask(server, subject, ticket, patience).await
    }

    /// Answers what a call asks of the process that is at it, and asks on.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub async fn answer(
        &self,
        server: &str,
        process: &AgentId,
        role: &Role,
        answer: &ToolAnswer,
        patience: Duration,
    ) -> Result<ToolReply, ToolServerFailure> {
        let subject = tool_subject(server, &format!("answer.{process}.{role}.{}", self.core.who));
        self.ask(server, subject, answer, patience).await
    }

    /// Says that a call of this agent is not waited for any more.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn cancel(&self, server: &str, role: &Role, ticket: &ToolTicket) -> Result<(), BusError> {
        self.tell(tool_subject(server, &format!("cancel.{role}.{}", self.core.who)), ticket).await
    }

    /// Whether whoever may decide vouches for the rights that a call says its task has. Without keys of a fleet nothing is
    /// demanded. To be asked before a call is carried out, or what came of it is told: an agent could say that its task may
    /// use anything.
    ///
    /// It counts who may decide now: the caller says when the offer was written, and could name a time when a key that
    /// was revoked since did count.
    ///
    /// # Errors
    /// Says why the call may not be carried out.
    pub fn vouched(&self, call: &ToolCall) -> Result<(), String> {
        self.core.vouched_call(call, now())
    }

    /// Says that this process is there, or leaves.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn announce(&self, notice: &ToolServerNotice) -> Result<(), BusError> {
        self.tell(tool_subject(&notice.server, "here"), notice).await
    }

    /// What this process is asked from now on as a server of this name.
    ///
    /// # Errors
    /// When the name is none, or the bus fails.
    pub async fn serve(&self, server: &str) -> Result<BoxStream<'static, ToolRequest>, BusError> {
        if !is_tool_server_name(server) {
            let rule = muster_shared::wire::tool_server::SERVER_NAME_RULE;
            return Err(BusError::BadName { name: server.chars().take(80).collect(), rule });
        }
        let (backend, own) = (&self.core.backend, self.core.who.as_str());
        // Calls go to one of all processes of this name; the rest to each of them.
        let asked = |rest: &str| tool_subject(server, &rest.replace("OWN", own));
        let calls = backend.serve(&asked("call.*.*"), server).await?;
        let mut all = futures::stream::SelectAll::new();
        all.push(self.read_as(calls, Self::call_of));
        all.push(self.read_as(backend.serve(&asked("wait.OWN.*.*"), own).await?, Self::wait_of));
        all.push(self.read_as(backend.serve(&asked("answer.OWN.*.*"), own).await?, Self::answer_of));
        all.push(self.read_as(backend.serve(&asked("specs.OWN"), own).await?, Self::specs_of));
        all.push(self.read_as(backend.serve(&asked("cancel.*.*"), own).await?, Self::cancel_of));
        all.push(self.read_as(backend.serve(TOOL_WHO, own).await?, |_, _| Some(ToolRequest::Who)));
        Ok(all.boxed())
    }

    fn read_as(
        &self,
        requests: impl Stream<Item = Incoming> + Send + 'static,
        read: impl Fn(&Self, &Incoming) -> Option<ToolRequest> + Send + 'static,
    ) -> BoxStream<'static, ToolRequest> {
        let door = self.clone();
        requests.filter_map(move |incoming| std::future::ready(read(&door, &incoming))).boxed()
    }

    fn call_of(&self, incoming: &Incoming) -> Option<ToolRequest> {
        let (from, reply) = (caller(&incoming.message.subject)?, self.open(incoming)?);
        Some(ToolRequest::Call { from, call: body(incoming).map(Box::new), reply })
    }

    fn specs_of(&self, incoming: &Incoming) -> Option<ToolRequest> {
        self.open(incoming).map(ToolRequest::Specs)
    }

    fn cancel_of(&self, incoming: &Incoming) -> Option<ToolRequest> {
        let from = caller(&incoming.message.subject)?;
        let ticket: ToolTicket = body(incoming).ok()?;
        Some(ToolRequest::Cancel { from, ticket: ticket.ticket })
    }

    fn wait_of(&self, incoming: &Incoming) -> Option<ToolRequest> {
        let (from, reply) = (caller(&incoming.message.subject)?, self.open(incoming)?);
        let ticket: ToolTicket = body(incoming).ok()?;
        Some(ToolRequest::Wait { from, ticket: ticket.ticket, reply })
    }

    fn answer_of(&self, incoming: &Incoming) -> Option<ToolRequest> {
        let (from, reply) = (caller(&incoming.message.subject)?, self.open(incoming)?);
        let ToolAnswer { ticket, answered } = body(incoming).ok()?;
        Some(ToolRequest::Answer { from, ticket, answered: Box::new(answered), reply })
    }

    /// Nothing where an answer would do harm.
    fn open(&self, incoming: &Incoming) -> Option<ToolAsker> {
        let reply = incoming.reply.clone().filter(|reply| reply.starts_with(INBOX))?;
        Some(ToolAsker { core: Arc::clone(&self.core), reply, of_lender: false })
    }

    async fn tell<T: Serialize + Sync>(&self, subject: String, body: &T) -> Result<(), BusError> {
        self.core.backend.publish(message(subject, body)?).await
    }

    async fn ask<R: DeserializeOwned>(
        &self,
        server: &str,
        subject: String,
        body: &(impl Serialize + Sync),
        patience: Duration,
    ) -> Result<R, ToolServerFailure> {
        let not_asked = |error: BusError| ToolServerFailure::NotAsked {
            server: server.to_owned(),
            why: error.to_string(),
        };
        let message = message(subject, body).map_err(not_asked)?;
        match self.core.backend.request(message, patience).await {
            Ok(answer) => read(server, &answer),
            Err(BusError::TimedOut { .. }) => {
                Err(ToolServerFailure::Silent { server: server.to_owned(), millis: patience.as_millis() })
            }
            Err(error) if error.is_nobody() => Err(ToolServerFailure::Nobody(server.to_owned())),
            Err(error) => Err(not_asked(error)),
        }
    }
}

fn message<T: Serialize>(subject: String, body: &T) -> Result<Message, BusError> {
    let mut headers = Headers::default();
    headers.add(CONTENT_TYPE, Encoding::Json.content_type());
    let payload = serde_json::to_vec(body)?;
    if payload.len() > MAX_MESSAGE_BYTES {
        let what = "what is said to a tool server".to_owned();
        return Err(BusError::TooLarge { what, bytes: payload.len(), most: MAX_MESSAGE_BYTES });
    }
    Ok(Message { subject, headers, payload: payload.into() })
}

fn read<T: DeserializeOwned>(server: &str, message: &Message) -> Result<T, ToolServerFailure> {
    let garbage = |why: String| ToolServerFailure::Garbage { server: server.to_owned(), why };
    let bytes = message.payload.len();
    if bytes > MOST_REPLY {
        return Err(garbage(format!("it has {bytes} bytes, {MOST_REPLY} is the most")));
    }
    serde_json::from_slice(&message.payload).map_err(|error| garbage(error.to_string()))
}

fn body<T: DeserializeOwned>(incoming: &Incoming) -> Result<T, String> {
    serde_json::from_slice(&incoming.message.payload).map_err(|error| error.to_string())
}

fn notice(message: &Message) -> Option<ToolServerNotice> {
    if message.payload.len() > MOST_NOTICE {
        return None;
    }
    let notice: ToolServerNotice = serde_json::from_slice(&message.payload).ok()?;
    let is_own = message.subject == tool_subject(&notice.server, "here");
    (is_own && serves_tools(&notice.server)).then_some(notice)
}

/// Role and name of the agent that speaks, which the bus sees to: the last two tokens.
fn caller(subject: &str) -> Option<ToolCaller> {
    let mut tokens = subject.rsplit('.');
    let agent = tokens.next()?.parse().ok()?;
    let role = tokens.next()?.parse().ok()?;
    Some(ToolCaller { role, agent })
}

/// The agent that calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCaller {
    /// Its role.
    pub role: Role,
    /// Its name.
    pub agent: AgentId,
}

/// What a tool server is asked.
pub enum ToolRequest {
    /// To call a tool.
    Call {
        /// Who asks.
        from: ToolCaller,
        /// What, or what is wrong with it.
        call: Result<Box<ToolCall>, String>,
        /// Who waits for the answer.
        reply: ToolAsker,
    },
    /// What came of a call.
    Wait {
        /// Who asks.
        from: ToolCaller,
        /// The call.
        ticket: String,
        /// Who waits for the answer.
        reply: ToolAsker,
    },
    /// To go on with a call, with an answer to what it asked.
    Answer {
        /// Who answers.
        from: ToolCaller,
        /// The call.
        ticket: String,
        /// The answer.
        answered: Box<QuestionAnswer>,
        /// Who waits for what comes of it.
        reply: ToolAsker,
    },
    /// To give a call up.
    Cancel {
        /// Who asks.
        from: ToolCaller,
        /// The call.
        ticket: String,
    },
    /// What tools it has.
    Specs(ToolAsker),
    /// To say that it is there.
    Who,
    /// What lenders alone are asked.
    Lending(LendingRequest),
}

/// Somebody who waits for an answer.
pub struct ToolAsker {
    core: Arc<Core>,
    reply: String,
    /// Whether it asks a lender, which says more than other tool servers.
    of_lender: bool,
}

impl ToolAsker {
    /// Answers a call.
    ///
    /// # Errors
    /// When the answer is too large, or the bus fails.
    pub async fn answer(&self, reply: &ToolReply) -> Result<(), BusError> {
        if self.of_lender {
            return self.tell(&LentReply::Reply(reply.clone())).await;
        }
        self.core.backend.publish(message(self.reply.clone(), reply)?).await
    }

    /// Says what tools there are.
    ///
    /// # Errors
    /// When the answer is too large, or the bus fails.
    pub async fn describe(&self, specs: &ToolSpecs) -> Result<(), BusError> {
        self.core.backend.publish(message(self.reply.clone(), specs)?).await
    }
}

#[cfg(test)]
#[path = "tool_servers_tests.rs"]
mod tests;
