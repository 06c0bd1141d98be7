//! The tools of tool servers, as an agent comes to know them: what a tool is stays fixed from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::tool_servers::ToolServerDoor;
use muster_bus::{Bus, BusError};
use muster_shared::ids::{AgentId, Role};
use muster_shared::plan::tools::STANDARD;
use muster_shared::sync::lock;
use muster_shared::text::beginning;
use muster_shared::wire::lending::lender_role;
use muster_shared::wire::tool_server::{ServedTool, ToolServerNotice, ToolSpecs};
use tokio_util::sync::CancellationToken;

use super::ToolRegistry;
use super::asked::AskRules;
use super::borrowing::Borrowing;
use super::lenders::Lenders;
use super::remote::RemoteTool;

/// After how long without a word a process is taken for gone: three of its beats.
pub(super) const GONE: Duration = Duration::from_secs(95);
/// Most servers that an agent knows.
const MOST_SERVERS: usize = 64;
/// Most processes of one server that it knows.
const MOST_PROCESSES: usize = 64;
/// Most tools of all servers that it knows.
const MOST_KNOWN: usize = 512;
/// The least time between two looks at the tools of one server, however often it says that they are others.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// Most tools of servers that a model is told of at once; of more it learns by asking.
pub const MOST_DECLARED: usize = 12;

/// Whether a role with these patterns of tools may use tools of any server.
#[must_use]
pub fn may_use_served(patterns: &[String]) -> bool {
    let is_ours = |namespace: &str| STANDARD.iter().any(|name| name.split('.').next() == Some(namespace));
    patterns.iter().any(|pattern| match pattern.split_once('.') {
        Some((namespace, _)) => !is_ours(namespace),
        None => pattern.ends_with('*'),
    })
}

/// What an agent knows of the tools of one server.
#[derive(Debug, Default)]
struct Server {
    /// What each process announced last, and when it was heard.
    processes: BTreeMap<AgentId, (String, Instant)>,
    /// The sets of tools that were looked at.
    seen: BTreeSet<String>,
    looked: Option<Instant>,
    tools: BTreeMap<String, Fixed>,
}

/// A tool that an agent knows.
#[derive(Debug)]
struct Fixed {
    tool: ServedTool,
    digest: String,
    is_registered: bool,
    /// Whether the server has it as it is known, by what it said last.
    is_current: bool,
}

/// What an agent knows of tool servers. Pure: the time comes in.
#[derive(Debug, Default)]
struct Roster {
    servers: BTreeMap<String, Server>,
    /// What was told once.
    told: BTreeSet<String>,
}

impl Roster {
    /// Takes note of what a process says. `true` when its tools are to be looked at.
    fn hear(&mut self, notice: &ToolServerNotice, now: Instant) -> bool {
        if !self.servers.contains_key(&notice.server) && self.servers.len() >= MOST_SERVERS {
            return false;
        }
        let server = self.servers.entry(notice.server.clone()).or_default();
        let Some(digest) = &notice.digest else {
            server.processes.remove(&notice.process);
            return false;
        };
        server.processes.retain(|_, (_, heard)| now.saturating_duration_since(*heard) <= GONE);
        if !server.processes.contains_key(&notice.process) && server.processes.len() >= MOST_PROCESSES {
            return false;
        }
        let before = server.processes.insert(notice.process.clone(), (digest.clone(), now));
        let is_news = before.is_none_or(|(before, _)| before != *digest) || !server.seen.contains(digest);
        let is_soon =
            server.looked.is_some_and(|looked| now.saturating_duration_since(looked) < BETWEEN_LOOKS);
        if is_news && is_soon {
            // It is looked at with a later notice: as if it had not been heard.
            server.processes.remove(&notice.process);
        }
        is_news && !is_soon
    }

    /// Takes note of the tools of a server. Says what is refused, one line each, each of them once.
    fn learn(&mut self, notice: &ToolServerNotice, specs: ToolSpecs, now: Instant) -> Vec<String> {
        let mut known: usize = self.servers.values().map(|server| server.tools.len()).sum();
        let Some(server) = self.servers.get_mut(&notice.server) else { return Vec::new() };
        server.looked = Some(now);
        if server.seen.len() >= MOST_PROCESSES {
            server.seen.clear();
        }
        server.seen.extend(notice.digest.clone());
        let mut refused = Vec::new();
        let mut named: BTreeSet<String> = BTreeSet::new();
        for tool in specs.tools {
            let (digest, name) = (tool.digest(), tool.full_name(&notice.server));
            if !named.insert(tool.name.clone()) {
                let shown = beginning(&name, 80);
                refused.push(format!("a second tool `{shown}` of {} is left out", notice.process));
                continue;
            }
            match server.tools.get_mut(&tool.name) {
                Some(fixed) => {
                    fixed.is_current = fixed.digest == digest;
                    if !fixed.is_current {
                        refused.push(format!(
                            "`{name}` of the tool server {} is not what it was any more, and is not used: start the agents \
                             anew if it is to count as it is now",
                            notice.process
                        ));
                    }
                }
                None => match tool.fault(&notice.server) {
                    Some(fault) => refused.push(format!("a tool of {} is left out: {fault}", notice.process)),
                    None if known >= MOST_KNOWN => {
                        refused.push(format!(
                            "`{name}` is left out: {MOST_KNOWN} tools of servers are the most"
                        ));
                    }
                    None => {
                        known += 1;
                        let fixed = Fixed { tool, digest, is_registered: false, is_current: true };
                        server.tools.insert(fixed.tool.name.clone(), fixed);
                    }
                },
            }
        }
        for (name, fixed) in &mut server.tools {
            fixed.is_current &= named.contains(name);
        }
        refused.retain(|line| self.told.len() < MOST_KNOWN && self.told.insert(line.clone()));
        refused
    }

    /// The tools that are to be registered, which from now on they are.
    fn take_new(&mut self) -> Vec<(String, ServedTool)> {
        let mut new = Vec::new();
        for (name, server) in &mut self.servers {
            for fixed in server.tools.values_mut().filter(|fixed| !fixed.is_registered) {
                fixed.is_registered = true;
                new.push((name.clone(), fixed.tool.clone()));
            }
        }
        new
    }

    /// Whether a tool can be called now, if it is one of a server.
    fn is_there(&self, name: &str, now: Instant) -> Option<bool> {
        let (server, tool) = name.split_once('.')?;
        let server = self.servers.get(server)?;
        let fixed = server.tools.get(tool)?;
        let is_heard = |(_, heard): &(String, Instant)| now.saturating_duration_since(*heard) <= GONE;
        Some(fixed.is_current && server.processes.values().any(is_heard))
    }
}

/// The tools of tool servers, as this agent knows them.
pub struct ServedTools {
    door: ToolServerDoor,
    role: Role,
    /// What their tools may ask.
    rules: Arc<AskRules>,
    roster: Mutex<Roster>,
    /// The leases of what others lend; nothing where nothing is borrowed.
    borrowing: Option<Arc<Borrowing>>,
}

impl ServedTools {
    /// Nothing known yet, to an agent that borrows these tools of others; by these rules for what tools ask.
    #[must_use]
    pub fn new(bus: &Bus, role: Role, borrows: &[String], rules: AskRules) -> Self {
        let door = bus.tool_servers();
        let lenders = || Lenders::new(bus.who().clone(), borrows.to_vec());
        let borrowing =
            (!borrows.is_empty()).then(|| Arc::new(Borrowing::new(door.clone(), role.clone(), lenders())));
        Self { door, role, rules: Arc::new(rules), roster: Mutex::default(), borrowing }
    }

    /// Gives back what a task had borrowed, which ends here.
    pub fn task_ended(&self, run: &str, task: &str) {
        if let Some(borrowing) = &self.borrowing {
            borrowing.task_ended(run, task);
        }
    }

    fn roster(&self) -> MutexGuard<'_, Roster> {
        lock(&self.roster)
    }

    /// Listens to tool servers from now on, and asks those that are there to say so. Where there are none, nothing
    /// more is ever heard or said.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn follow(self: &Arc<Self>, stop: CancellationToken) -> Result<(), BusError> {
        let mut notices = self.door.notices().await?;
        self.door.who().await?;
        let own = Arc::clone(self);
        tokio::spawn(async move {
            while let Some(Some(notice)) = stop.run_until_cancelled(notices.next()).await {
                own.hear(&notice).await;
            }
        });
        Ok(())
    }

    async fn hear(&self, notice: &ToolServerNotice) {
        let lender = lender_role(&notice.server).map(|_| &self.borrowing);
        let is_news = match lender {
            // What is not borrowed is not listened to.
            Some(None) => false,
            Some(Some(borrowing)) => borrowing.lenders().hear(notice, Instant::now()),
            None => self.roster().hear(notice, Instant::now()),
        };
        if !is_news {
            return;
        }
        match self.door.specs(notice).await {
            Ok(specs) => {
                let refused = match lender.and_then(Option::as_ref) {
                    Some(borrowing) => borrowing.lenders().learn(notice, specs),
                    None => self.roster().learn(notice, specs, Instant::now()),
                };
                for line in refused {
                    tracing::warn!("{line}");
                }
            }
            Err(error) => {
                tracing::warn!(server = notice.server, %error, "the tools of a server are not known")
            }
        }
    }

    /// Registers the tools that were learnt since the last time.
    pub fn register(&self, registry: &ToolRegistry) {
        let new = self.roster().take_new();
        let new = new.into_iter().map(|new| (new, None));
        let lent = self.borrowing.iter().flat_map(|borrowing| {
            let new = borrowing.lenders().take_new();
            new.into_iter().map(move |new| (new, Some(Arc::clone(borrowing))))
        });
        for ((server, tool), borrowing) in new.chain(lent) {
            let tool = RemoteTool::new(server, tool, self.role.clone(), self.door.clone());
            // What others lend asks nobody: only what a server says for itself is set.
            let tool = match borrowing {
                Some(borrowing) => tool.borrowed(borrowing),
                None => tool.asking(Arc::clone(&self.rules)),
            };
            if let Err(error) = registry.register(Arc::new(tool)) {
                tracing::warn!(why = beginning(&error.to_string(), 400), "a tool of a server is left out");
            }
        }
    }

    /// Whether a tool can be called now, if it is one of a server; nothing for others.
    #[must_use]
    pub fn is_there(&self, name: &str) -> Option<bool> {
        let lent = self.borrowing.as_ref().and_then(|all| all.lenders().is_there(name, Instant::now()));
        lent.or_else(|| self.roster().is_there(name, Instant::now()))
    }
}

#[cfg(test)]
#[path = "served_tests.rs"]
mod tests;
