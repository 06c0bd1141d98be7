//! Tools that one agent lends and another borrows: see [`muster_shared::wire::lending`]. A lender is a tool server of which
//! each process is asked by its name.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use muster_shared::ids::{AgentId, Role};
use muster_shared::wire::lending::{
    LeaseName, LeaseReply, LeaseRequest, LentCall, LentReply, MOST_LEASE_NAME, Revocation, ToolLeases,
    lender_name,
};
use serde::Serialize;

use super::{ToolAsker, ToolCaller, ToolRequest, ToolServerDoor, ToolServerFailure, body, caller, message};
use crate::backend::Incoming;
use crate::error::BusError;
use crate::subject::{TOOL_WHO, tool_subject};

/// How long a word about leases is waited for: it is given at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// A process that lends tools.
#[derive(Debug, Clone, Copy)]
pub struct Lender<'a> {
    /// The name under which it lends.
    pub server: &'a str,
    /// The process.
    pub process: &'a AgentId,
}

impl Lender<'_> {
    fn subject(&self, rest: &str) -> String {
        tool_subject(self.server, rest)
    }
}

/// What a lender is asked besides what every tool server is.
pub enum LendingRequest {
    /// For a lease.
    Lease {
        /// Who asks.
        from: ToolCaller,
        /// For what, or what is wrong with it.
        request: Result<LeaseRequest, String>,
        /// Who waits for the answer.
        reply: ToolAsker,
    },
    /// To carry out a call under a lease.
    Use {
        /// Who asks.
        from: ToolCaller,
        /// What, or what is wrong with it.
        call: Result<Box<LentCall>, String>,
        /// Who waits for the answer.
        reply: ToolAsker,
    },
    /// To take a lease back.
    Return {
        /// Who gives it back.
        from: ToolCaller,
        /// The lease.
        lease: String,
    },
    /// Which leases it has given.
    Leases(ToolAsker),
    /// To end leases.
    Revoke {
        /// Which.
        which: Revocation,
        /// Who waits for the answer.
        reply: ToolAsker,
    },
}

impl ToolServerDoor {
    /// Asks a lender for a lease, in the name of this agent.
    ///
    /// # Errors
    /// When there is no answer, or it is none.
    pub async fn lease(
        &self,
        of: Lender<'_>,
        role: &Role,
        request: &LeaseRequest,
    ) -> Result<LeaseReply, ToolServerFailure> {
        let subject = of.subject(&format!("lease.{}.{role}.{}", of.process, self.core.who));
        let reply: LeaseReply = self.ask(of.server, subject, request, PATIENCE).await?;
        if let LeaseReply::Granted { lease, .. } = &reply
            && lease.len() > MOST_LEASE_NAME
        {
            let why = format!("the name of its lease has more than {MOST_LEASE_NAME} bytes");
            return Err(ToolServerFailure::Garbage { server: of.server.to_owned(), why });
        }
        Ok(reply)
    }

    /// Calls a tool that is lent, in the name of this agent.
    ///
    /// # Errors
    /// When there is no answer, or it is none.
    pub async fn use_lent(
        &self,
        of: Lender<'_>,
        role: &Role,
        call: &LentCall,
        patience: Duration,
    ) -> Result<LentReply, ToolServerFailure> {
        let subject = of.subject(&format!("use.{}.{role}.{}", of.process, self.core.who));
        self.ask(of.server, subject, call, patience).await
    }

    /// Gives a lease of this agent back.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn give_back(&self, of: Lender<'_>, role: &Role, lease: &LeaseName) -> Result<(), BusError> {
        self.tell(of.subject(&format!("return.{}.{role}.{}", of.process, self.core.who)), lease).await
    }

    /// The leases that a process has given.
    ///
    /// # Errors
    /// When there is no answer, or it is none. [`ToolServerFailure::Nobody`] when the process lends nothing.
    pub async fn leases(&self, of: Lender<'_>) -> Result<ToolLeases, ToolServerFailure> {
        let subject = of.subject(&format!("leases.{}", of.process));
        self.ask(of.server, subject, &(), PATIENCE).await
    }

    /// Ends leases that a process has given; gives those that were ended.
    ///
    /// # Errors
    /// As [`Self::leases`].
    pub async fn revoke(&self, of: Lender<'_>, which: &Revocation) -> Result<ToolLeases, ToolServerFailure> {
        let subject = of.subject(&format!("revoke.{}", of.process));
        self.ask(of.server, subject, which, PATIENCE).await
    }

    /// What this process is asked from now on as a lender of its role.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn serve_lent(&self, role: &Role) -> Result<BoxStream<'static, ToolRequest>, BusError> {
        let server = lender_name(role);
        let asked =
            |rest: &str| self.asked(tool_subject(&server, &rest.replace("OWN", self.core.who.as_str())));
        let mut all = SelectAll::new();
        all.push(self.read_as(asked("lease.OWN.*.*").await?, |door, incoming| {
            let (from, reply) = (caller(&incoming.message.subject)?, door.open(incoming)?);
            Some(lending(LendingRequest::Lease { from, request: body(incoming), reply }))
        }));
        all.push(self.read_as(asked("use.OWN.*.*").await?, |door, incoming| {
            let (from, reply) = (caller(&incoming.message.subject)?, door.open(incoming)?);
            Some(lending(LendingRequest::Use { from, call: body(incoming).map(Box::new), reply }))
        }));
        all.push(self.read_as(asked("return.OWN.*.*").await?, |_, incoming| {
            let named: LeaseName = body(incoming).ok()?;
            let from = caller(&incoming.message.subject)?;
            Some(lending(LendingRequest::Return { from, lease: named.lease }))
        }));
        all.push(self.read_as(asked("leases.OWN").await?, |door, incoming| {
            Some(lending(LendingRequest::Leases(door.open(incoming)?)))
        }));
        all.push(self.read_as(asked("revoke.OWN").await?, |door, incoming| {
            let (which, reply) = (body(incoming).ok()?, door.open(incoming)?);
            Some(lending(LendingRequest::Revoke { which, reply }))
        }));
        all.push(self.read_as(asked("wait.OWN.*.*").await?, Self::wait_of));
        all.push(self.read_as(asked("specs.OWN").await?, Self::specs_of));
        all.push(self.read_as(asked("cancel.*.*").await?, Self::cancel_of));
        all.push(self.read_as(self.asked(TOOL_WHO.to_owned()).await?, |_, _| Some(ToolRequest::Who)));
        Ok(all.boxed())
    }

    async fn asked(&self, subject: String) -> Result<BoxStream<'static, Incoming>, BusError> {
        self.core.backend.serve(&subject, self.core.who.as_str()).await
    }
}

impl ToolAsker {
    /// Somebody who asked a lender.
    #[must_use]
    pub fn of_lender(self) -> Self {
        Self { of_lender: true, ..self }
    }

    /// Says something about leases.
    ///
    /// # Errors
    /// When the answer is too large, or the bus fails.
    pub async fn tell<T: Serialize + Sync>(&self, said: &T) -> Result<(), BusError> {
        self.core.backend.publish(message(self.reply.clone(), said)?).await
    }
}

const fn lending(request: LendingRequest) -> ToolRequest {
    ToolRequest::Lending(request)
}

#[cfg(test)]
#[path = "lent_tests.rs"]
mod tests;
