//! Borrowing: the leases that this agent has of others, and calls under them. A lease that has run out is asked for anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use muster_bus::tool_servers::{Lender, ToolServerDoor, ToolServerFailure};
use muster_shared::ids::{AgentId, Role};
use muster_shared::sync::lock;
use muster_shared::text::beginning;
use muster_shared::wire::lending::{LeaseName, LeaseReply, LeaseRequest, LentCall, LentReply};
use muster_shared::wire::tool_server::{ServedResult, ServedStatus, ToolCall, ToolReply};

use super::lenders::Lenders;

/// Most leases that are remembered; beyond, they run out by themselves.
const MOST_HELD: usize = 1_024;
/// How often a call asks for a lease before it is told that there is none: a lease may run out between two words.
const TRIES: u32 = 3;

/// A lease that this agent has.
#[derive(Debug, Clone)]
struct Held {
    server: String,
    process: AgentId,
    lease: String,
}

/// What a lease is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    run: String,
    task: String,
    /// By its full name.
    tool: String,
}

/// What came of asking for a lease.
enum Asked {
    Held(Held),
    /// There is none, and this is what is said of the call.
    Reply(ToolReply),
}

/// The leases of an agent.
pub struct Borrowing {
    door: ToolServerDoor,
    role: Role,
    lenders: Mutex<Lenders>,
    held: Mutex<BTreeMap<Place, Held>>,
}

impl Borrowing {
    /// No lease yet.
    #[must_use]
    pub fn new(door: ToolServerDoor, role: Role, lenders: Lenders) -> Self {
        Self { door, role, lenders: Mutex::new(lenders), held: Mutex::default() }
    }

    /// Who lends what.
    pub fn lenders(&self) -> MutexGuard<'_, Lenders> {
        lock(&self.lenders)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Place, Held>> {
        lock(&self.held)
    }

    /// Who carries the calls of a task out.
    #[must_use]
    pub fn owner(&self, call: &ToolCall, name: &str) -> Option<AgentId> {
        self.held().get(&place(call, name)).map(|held| held.process.clone())
    }

    /// Makes a call under a lease, which is asked for where there is none.
    ///
    /// # Errors
    /// As of any tool server. [`ToolServerFailure::Nobody`]: nothing was begun.
    pub async fn call(
        &self,
        server: &str,
        call: &ToolCall,
        patience: Duration,
    ) -> Result<ToolReply, ToolServerFailure> {
        let name = format!("{server}.{}", call.tool);
        let place = place(call, &name);
        let mut ended = Err(ToolServerFailure::Nobody(server.to_owned()));
        for _ in 0..TRIES {
            let known = self.held().get(&place).cloned();
            let held = match known {
                Some(held) => held,
                None => match self.lease(server, &name, call).await? {
                    Asked::Held(held) => held,
                    Asked::Reply(reply) => return Ok(reply),
                },
            };
            let asked = LentCall { lease: held.lease.clone(), call: call.clone() };
            let of = Lender { server, process: &held.process };
            match self.door.use_lent(of, &self.role, &asked, patience).await {
                Ok(LentReply::Reply(reply)) => return Ok(reply),
                Ok(LentReply::NoLease(said)) => {
                    self.forget(&place, &held);
                    let said = beginning(&said, 200);
                    ended = Ok(refused(call, &format!("no lease of `{name}` holds: {said}")));
                }
                // The next one is asked; where there is none, that is what is said of the call.
                Err(ToolServerFailure::Nobody(_)) => {
                    self.forget(&place, &held);
                    self.lenders().is_gone(&held.process);
                }
                Err(failure) => return Err(failure),
            }
        }
        ended
    }

    /// Asks those who lend a tool for a lease, one after the other until one gives it or refuses it: what one refuses is not
    /// had from another.
    async fn lease(&self, server: &str, name: &str, call: &ToolCall) -> Result<Asked, ToolServerFailure> {
        let ToolCall { run, task, tool, spec, .. } = call.clone();
        let request = LeaseRequest { run, task, tool, spec };
        let lenders = self.lenders().in_turn(name, &call.run, &call.task, Instant::now());
        let mut ended = Err(ToolServerFailure::Nobody(server.to_owned()));
        for process in lenders {
            let of = Lender { server, process: &process };
            match self.door.lease(of, &self.role, &request).await {
                Ok(LeaseReply::Granted { lease, .. }) => {
                    let held = Held { server: server.to_owned(), process, lease };
                    let mut all = self.held();
                    if all.len() < MOST_HELD {
                        all.insert(place(call, name), held.clone());
                    }
                    return Ok(Asked::Held(held));
                }
                Ok(LeaseReply::Refused { why }) => {
                    let why = format!("{process} does not lend it: {}", beginning(&why, 400));
                    return Ok(Asked::Reply(refused(call, &why)));
                }
                Ok(LeaseReply::Full) => ended = Ok(Asked::Reply(ToolReply::Busy)),
                Ok(LeaseReply::Changed) => ended = Ok(Asked::Reply(ToolReply::Changed)),
                Err(ToolServerFailure::Nobody(_)) => self.lenders().is_gone(&process),
                // To ask for a lease does nothing that could be done twice: who does not answer, or answers nonsense, is as
                // good as not there.
                Err(failure) => {
                    tracing::warn!(lender = %process, %failure, "a lender gives no lease");
                    self.lenders().is_gone(&process);
                }
            }
        }
        ended
    }

    fn forget(&self, place: &Place, held: &Held) {
        let mut all = self.held();
        if all.get(place).is_some_and(|now| now.lease == held.lease) {
            all.remove(place);
        }
    }

    /// Gives back what a task had, which ends here.
    pub fn task_ended(self: &Arc<Self>, run: &str, task: &str) {
        let mut ended = Vec::new();
        self.held().retain(|place, held| {
            let is_of = place.run == run && place.task == task;
            if is_of {
                ended.push(held.clone());
            }
            !is_of
        });
        // Without a runtime there is no connection either; then they run out.
        let (false, Ok(runtime)) = (ended.is_empty(), tokio::runtime::Handle::try_current()) else { return };
        let own = Arc::clone(self);
        runtime.spawn(async move {
            for Held { server, process, lease } in ended {
                let of = Lender { server: &server, process: &process };
                if let Err(error) = own.door.give_back(of, &own.role, &LeaseName { lease }).await {
                    tracing::debug!(%error, "a lease is not given back, and runs out");
                }
            }
        });
    }
}

fn place(call: &ToolCall, name: &str) -> Place {
    Place { run: call.run.clone(), task: call.task.clone(), tool: name.to_owned() }
}

fn refused(call: &ToolCall, why: &str) -> ToolReply {
    let content = format!("Not done: {why}. Go on without it.");
    let result = ServedResult { status: ServedStatus::Refused, content, data: None };
    ToolReply::Done { key: call.key.clone(), result }
}

#[cfg(test)]
#[path = "borrowing_tests.rs"]
mod tests;
