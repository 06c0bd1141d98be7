//! Which leases a lender has given, and what follows from a request, a call, the clock and a revocation. Pure: the time comes in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use muster_bus::tool_servers::ToolCaller;
use muster_shared::ids::AgentId;
use muster_shared::wire::lending::{LeaseRequest, Revocation, ToolLease};
use muster_shared::wire::tool_server::ToolCall;
use muster_tools::patterns::means;

use muster_tools::LeaseSettings;

/// Most of what was revoked that is remembered; the oldest gives way.
const MOST_BARS: usize = 1_000;

/// To whom a lender lends, for how long, and how much at the same time.
#[derive(Debug, Clone, Default)]
pub struct LeaseRules {
    /// The roles whose agents may borrow: names, `prefix*`, or `*`.
    pub to: Vec<String>,
    /// Time and number.
    pub leases: LeaseSettings,
}

/// What a lender says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This lease holds from now on, or goes on to.
    Granted(String),
    /// It does not lend: why, in words.
    Refused(String),
    /// There are as many as there may be.
    Full,
}

/// What came of a revocation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Revoked {
    /// The leases that were ended.
    pub(crate) leases: Vec<ToolLease>,
    /// The calls that are to end with them: no other lease is behind them.
    pub(crate) calls: Vec<String>,
}

#[derive(Debug)]
struct Lease {
    request: LeaseRequest,
    borrower: ToolCaller,
    until: Instant,
    calls: u64,
    /// Calls that are being carried out, by their tickets.
    running: BTreeSet<String>,
}

impl Lease {
    /// A lease that is in use holds, however long a call takes.
    fn holds(&self, now: Instant) -> bool {
        !self.running.is_empty() || now < self.until
    }
}

/// What is not lent again.
#[derive(Debug, PartialEq, Eq)]
enum Bar {
    Task { run: String, task: String, tool: String },
    Tool(String),
    Agent(AgentId),
    ToolOfAgent(String, AgentId),
}

impl Bar {
    fn bars(&self, request: &LeaseRequest, borrower: &AgentId) -> bool {
        match self {
            Self::Task { run, task, tool } => {
                (run, task, tool) == (&request.run, &request.task, &request.tool)
            }
            Self::Tool(tool) => *tool == request.tool,
            Self::Agent(agent) => agent == borrower,
            Self::ToolOfAgent(tool, agent) => *tool == request.tool && agent == borrower,
        }
    }
}

/// The leases of a process that lends.
#[derive(Debug)]
pub(crate) struct Leases {
    lender: AgentId,
    rules: LeaseRules,
    /// By number: the oldest first.
    leases: BTreeMap<u64, Lease>,
    given: u64,
    bars: VecDeque<Bar>,
    /// Calls that were begun under leases that are revoked, until they have ended.
    revoked: BTreeSet<String>,
}

impl Leases {
    pub(crate) fn new(lender: AgentId, rules: LeaseRules) -> Self {
        let (leases, bars, revoked) = (BTreeMap::new(), VecDeque::new(), BTreeSet::new());
        Self { lender, rules, leases, given: 0, bars, revoked }
    }

    /// How long a lease holds.
    pub(crate) const fn lasts(&self) -> Duration {
        self.rules.leases.lasts
    }

    /// Gives a lease, or the same again to whoever has it.
    pub(crate) fn ask(&mut self, request: LeaseRequest, borrower: &ToolCaller, now: Instant) -> Answer {
        self.expire(now);
        if !request.is_short() {
            return Answer::Refused("the names in the request are too long".to_owned());
        }
        let (tool, role) = (&request.tool, borrower.role.as_str());
        if !self.rules.to.iter().any(|pattern| means(pattern, role)) {
            return Answer::Refused(format!(
                "`{tool}` is not lent to agents of the role {role}: `tool.lend_to` of its owner does not name it"
            ));
        }
        if self.bars.iter().any(|bar| bar.bars(&request, &borrower.agent)) {
            return Answer::Refused(format!("the lease of `{tool}` was revoked"));
        }
        let until = now + self.lasts();
        let is_it = |lease: &Lease| lease.request == request && lease.borrower == *borrower;
        if let Some((number, lease)) = self.leases.iter_mut().find(|(_, lease)| is_it(lease)) {
            lease.until = until;
            return Answer::Granted(format!("{}.{number}", self.lender));
        }
        let most = |setting: u32| usize::try_from(setting).unwrap_or(usize::MAX);
        let own = self.leases.values().filter(|lease| lease.borrower.agent == borrower.agent).count();
        let settings = &self.rules.leases;
        if self.leases.len() >= most(settings.most) || own >= most(settings.per_borrower) {
            return Answer::Full;
        }
        self.given += 1;
        let lease = Lease { request, borrower: borrower.clone(), until, calls: 0, running: BTreeSet::new() };
        self.leases.insert(self.given, lease);
        Answer::Granted(format!("{}.{}", self.lender, self.given))
    }

    /// Whether a call may be made under a lease, which is renewed by it.
    ///
    /// # Errors
    /// Says why it does not hold.
    pub(crate) fn renew(
        &mut self,
        lease: &str,
        call: &ToolCall,
        borrower: &ToolCaller,
        now: Instant,
    ) -> Result<(), String> {
        self.expire(now);
        let until = now + self.lasts();
        let held =
            self.held(lease).ok_or("there is no such lease: it has run out, was revoked, or never was")?;
        let LeaseRequest { run, task, tool, .. } = &held.request;
        if held.borrower != *borrower {
            return Err("the lease is another agent's".to_owned());
        }
        if (run, task, tool) != (&call.run, &call.task, &call.tool) {
            return Err(format!("the lease is for `{tool}` in another task or of another name"));
        }
        held.until = until;
        held.calls = held.calls.saturating_add(1);
        Ok(())
    }

    /// Takes note that a call is carried out under a lease.
    pub(crate) fn uses(&mut self, lease: &str, ticket: &str) {
        if let Some(held) = self.held(lease) {
            held.running.insert(ticket.to_owned());
        }
    }

    /// Takes note that a call has ended, which renews the leases behind it. `true` when they were revoked meanwhile.
    pub(crate) fn ended(&mut self, ticket: &str, now: Instant) -> bool {
        let until = now + self.lasts();
        for lease in self.leases.values_mut() {
            if lease.running.remove(ticket) {
                lease.until = until;
            }
        }
        self.revoked.remove(ticket)
    }

    /// Takes a lease back from whoever has it. `true` if it is his.
    pub(crate) fn give_back(&mut self, lease: &str, borrower: &ToolCaller) -> bool {
        let Some(number) = self.number(lease) else { return false };
        let is_his = self.leases.get(&number).is_some_and(|held| held.borrower == *borrower);
        if is_his {
            self.leases.remove(&number);
        }
        is_his
    }

    /// Ends the leases that fit all that is named, and gives none like them again.
    pub(crate) fn revoke(&mut self, which: &Revocation, now: Instant) -> Revoked {
        self.expire(now);
        let number = which.lease.as_deref().map(|lease| self.number(lease));
        if *which == Revocation::default() {
            return Revoked::default();
        }
        let fits = |(at, lease): (&u64, &Lease)| {
            number.is_none_or(|wanted| wanted == Some(*at))
                && which.tool.as_ref().is_none_or(|tool| *tool == lease.request.tool)
                && which.agent.as_ref().is_none_or(|agent| *agent == lease.borrower.agent)
        };
        let fitting: Vec<u64> =
            self.leases.iter().filter(|entry| fits(*entry)).map(|(number, _)| *number).collect();
        if number.is_none() {
            self.bar_all(which);
        }
        let mut revoked = Revoked::default();
        for at in fitting {
            let Some(lease) = self.leases.remove(&at) else { continue };
            revoked.leases.push(self.shown(at, &lease, now));
            let Lease { request: LeaseRequest { run, task, tool, .. }, running, .. } = lease;
            revoked.calls.extend(running);
            if number.is_some() {
                self.bar(Bar::Task { run, task, tool });
            }
        }
        let is_used = |ticket: &String| self.leases.values().any(|lease| lease.running.contains(ticket));
        revoked.calls.retain(|ticket| !is_used(ticket));
        self.revoked.extend(revoked.calls.iter().cloned());
        revoked
    }

    fn bar_all(&mut self, which: &Revocation) {
        match (which.tool.clone(), which.agent.clone()) {
            (Some(tool), Some(agent)) => self.bar(Bar::ToolOfAgent(tool, agent)),
            (Some(tool), None) => self.bar(Bar::Tool(tool)),
            (None, Some(agent)) => self.bar(Bar::Agent(agent)),
            (None, None) => {}
        }
    }

    fn bar(&mut self, bar: Bar) {
        if self.bars.contains(&bar) {
            return;
        }
        if self.bars.len() >= MOST_BARS {
            self.bars.pop_front();
        }
        self.bars.push_back(bar);
    }

    /// The leases that hold, the oldest first.
    pub(crate) fn list(&mut self, now: Instant) -> Vec<ToolLease> {
        self.expire(now);
        self.leases.iter().map(|(number, lease)| self.shown(*number, lease, now)).collect()
    }

    fn shown(&self, number: u64, lease: &Lease, now: Instant) -> ToolLease {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let left = lease.until.saturating_duration_since(now).as_millis();
        ToolLease {
            lease: format!("{}.{number}", self.lender),
            tool: lease.request.tool.clone(),
            lender: self.lender.clone(),
            borrower: lease.borrower.agent.clone(),
            role: lease.borrower.role.clone(),
            run: lease.request.run.clone(),
            task: lease.request.task.clone(),
            left_ms: u64::try_from(left).unwrap_or(u64::MAX),
            calls: lease.calls,
            running: count(lease.running.len()),
        }
    }

    fn number(&self, lease: &str) -> Option<u64> {
        lease.strip_prefix(self.lender.as_str())?.strip_prefix('.')?.parse().ok()
    }

    fn held(&mut self, lease: &str) -> Option<&mut Lease> {
        let number = self.number(lease)?;
        self.leases.get_mut(&number)
    }

    fn expire(&mut self, now: Instant) {
        self.leases.retain(|_, lease| lease.holds(now));
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
