//! Lending: a tool server whose tools are those of an agent, called under leases alone. What a lease is stands in [`lease`];
//! here it is asked for, given, used and ended.

mod lease;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use muster_bus::Bus;
use muster_bus::tool_servers::{LendingRequest, ToolAsker, ToolCaller};
use muster_shared::ids::Role;
use muster_shared::secret::Redactor;
use muster_shared::text::beginning;
use muster_shared::time::millis;
use muster_shared::wire::lending::{
    LeaseReply, LeaseRequest, LentCall, LentReply, Revocation, ToolLeases, lender_name,
};
use muster_shared::wire::tool_server::{ServedResult, ServedStatus};

pub use self::lease::LeaseRules;
use self::lease::{Answer, Leases};
use crate::serve::{ToolServer, told};
use muster_shared::sync::lock;
use muster_tools::ToolServerSettings;

/// What a lender has beside what every tool server has.
pub(crate) struct Lending {
    pub(crate) role: Role,
    leases: Mutex<Leases>,
}

impl Lending {
    fn leases(&self) -> MutexGuard<'_, Leases> {
        lock(&self.leases)
    }

    /// Takes note that a call is carried out under a lease.
    pub(crate) fn uses(&self, lease: &str, ticket: &str) {
        self.leases().uses(lease, ticket);
    }

    /// Takes note that a call has ended. `true` when its lease was revoked meanwhile.
    pub(crate) fn ended(&self, ticket: &str) -> bool {
        self.leases().ended(ticket, Instant::now())
    }
}

/// What is told of a call that ended because its lease was revoked.
pub(crate) fn revoked(tool: &str) -> ServedResult {
    let content = format!(
        "The lease of `{tool}` was revoked while the call ran, and the call was ended: what it had done by then stands. It is \
         not lent again; go on without it."
    );
    ServedResult { status: ServedStatus::Refused, content, data: None }
}

impl ToolServer {
    /// A lender: serves tools of an agent of this role to others that have a lease.
    #[must_use]
    pub fn lending(
        bus: Bus,
        role: Role,
        rules: LeaseRules,
        settings: ToolServerSettings,
        redactor: Arc<Redactor>,
    ) -> Arc<Self> {
        let leases = Mutex::new(Leases::new(bus.who().clone(), rules));
        let name = lender_name(&role);
        Self::made(bus, name, settings, redactor, Some(Lending { role, leases }))
    }

    /// Does what a lender is asked.
    pub(crate) async fn take_lending(self: &Arc<Self>, lending: &Lending, request: LendingRequest) {
        match request {
            LendingRequest::Lease { from, request, reply } => {
                let said = match request {
                    Ok(request) => self.lease(lending, request, &from),
                    Err(why) => LeaseReply::Refused { why: format!("the request cannot be read: {why}") },
                };
                told(reply.tell(&said).await);
            }
            LendingRequest::Use { from, call, reply } => self.take_use(lending, from, call, reply).await,
            LendingRequest::Return { from, lease } => {
                if lending.leases().give_back(&lease, &from) {
                    tracing::debug!(lease, borrower = %from.agent, "a lease is given back");
                }
            }
            LendingRequest::Leases(reply) => {
                let leases = lending.leases().list(Instant::now());
                told(reply.tell(&ToolLeases { leases }).await);
            }
            LendingRequest::Revoke { which, reply } => {
                let ended = self.revoke(lending, &which);
                told(reply.tell(&ended).await);
            }
        }
    }

    fn lease(&self, lending: &Lending, request: LeaseRequest, from: &ToolCaller) -> LeaseReply {
        if self.offering().is_current(&request.tool, &request.spec).is_none() {
            return LeaseReply::Changed;
        }
        let shown = request.clone();
        let mut leases = lending.leases();
        let answer = leases.ask(request, from, Instant::now());
        let lasts_ms = millis(leases.lasts());
        drop(leases);
        let LeaseRequest { run, task, tool, .. } = shown;
        match answer {
            Answer::Granted(lease) => {
                tracing::info!(lease, tool, run, task, role = %from.role, borrower = %from.agent, "a tool is lent");
                LeaseReply::Granted { lease, lasts_ms }
            }
            Answer::Refused(why) => {
                let (run, task) = (beginning(&run, 64), beginning(&task, 64));
                tracing::warn!(tool, run, task, role = %from.role, borrower = %from.agent, why, "a tool is not lent");
                LeaseReply::Refused { why }
            }
            Answer::Full => {
                tracing::warn!(tool, run, task, borrower = %from.agent, "a tool is not lent: there are as many leases as may be");
                LeaseReply::Full
            }
        }
    }

    async fn take_use(
        self: &Arc<Self>,
        lending: &Lending,
        from: ToolCaller,
        call: Result<Box<LentCall>, String>,
        reply: ToolAsker,
    ) {
        let (call, lease) = match call {
            Ok(call) => {
                let LentCall { lease, call } = *call;
                let held = lending.leases().renew(&lease, &call, &from, Instant::now());
                if let Err(why) = held {
                    let lease = beginning(&lease, 64);
                    tracing::warn!(lease, borrower = %from.agent, why, "a call of a lent tool is refused");
                    return told(reply.tell(&LentReply::NoLease(why)).await);
                }
                // Who had what done here stands in the lender's log; in the record it stands with the borrower's step.
                tracing::info!(lease, tool = call.tool, run = call.run, task = call.task, key = beginning(&call.key, 128),
                    borrower = %from.agent, "a lent tool is called");
                (Ok(Box::new(call)), Some(lease))
            }
            Err(why) => (Err(why), None),
        };
        self.take_call(from, call, lease.as_deref(), reply.of_lender()).await;
    }

    fn revoke(&self, lending: &Lending, which: &Revocation) -> ToolLeases {
        let revoked = lending.leases().revoke(which, Instant::now());
        for lease in &revoked.leases {
            tracing::warn!(lease = lease.lease, tool = lease.tool, run = lease.run, task = lease.task,
                borrower = %lease.borrower, "a lease is revoked");
        }
        let answers = self.answers();
        revoked.calls.iter().for_each(|ticket| answers.give_up(ticket));
        ToolLeases { leases: revoked.leases }
    }
}

#[cfg(test)]
#[path = "lending_tests.rs"]
mod tests;
