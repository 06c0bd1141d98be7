//! What an agent knows of others that lend: which processes there are, and what each of them lends. Unlike the processes of a
//! tool server, those of one role may lend different tools. Pure: the time comes in.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use muster_shared::ids::AgentId;
use muster_shared::text::beginning;
use muster_shared::wire::tool_server::{ServedTool, ToolServerNotice, ToolSpecs};
use muster_tools::ToolPatterns;

use super::served::{BETWEEN_LOOKS, GONE};

/// Most processes that an agent knows.
const MOST_PROCESSES: usize = 256;
/// Most tools that it knows.
const MOST_KNOWN: usize = 256;

/// A process that lends.
#[derive(Debug)]
struct Process {
    digest: String,
    heard: Instant,
    looked: Option<Instant>,
    /// The digest of each tool that it lends, by its full name.
    lends: BTreeMap<String, String>,
}

/// A tool as the agent came to know it; it stays so.
#[derive(Debug)]
struct Known {
    server: String,
    tool: ServedTool,
    digest: String,
    is_registered: bool,
}

/// What an agent knows of lenders.
#[derive(Debug)]
pub struct Lenders {
    own: AgentId,
    /// What it borrows.
    borrows: ToolPatterns,
    processes: BTreeMap<AgentId, Process>,
    tools: BTreeMap<String, Known>,
    told: BTreeSet<String>,
}

impl Lenders {
    /// Nobody known yet to an agent of this name that borrows these tools.
    #[must_use]
    pub fn new(own: AgentId, borrows: Vec<String>) -> Self {
        let borrows = ToolPatterns::new(borrows);
        let (processes, tools, told) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { own, borrows, processes, tools, told }
    }

    /// Takes note of what a process says. `true` when its tools are to be looked at. What this agent lends itself is no news.
    pub fn hear(&mut self, notice: &ToolServerNotice, now: Instant) -> bool {
        let Some(digest) = notice.digest.clone().filter(|_| notice.process != self.own) else {
            self.processes.remove(&notice.process);
            return false;
        };
        self.processes.retain(|_, process| now.saturating_duration_since(process.heard) <= GONE);
        if !self.processes.contains_key(&notice.process) && self.processes.len() >= MOST_PROCESSES {
            return false;
        }
        let new = || Process { digest: String::new(), heard: now, looked: None, lends: BTreeMap::new() };
        let process = self.processes.entry(notice.process.clone()).or_insert_with(new);
        process.heard = now;
        let is_soon =
            process.looked.is_some_and(|looked| now.saturating_duration_since(looked) < BETWEEN_LOOKS);
        let is_news = process.digest != digest && !is_soon;
        if is_news {
            process.looked = Some(now);
        }
        is_news
    }

    /// Takes note of the tools of a process. Says what is refused, one line each, each of them once.
    pub fn learn(&mut self, notice: &ToolServerNotice, specs: ToolSpecs) -> Vec<String> {
        let (server, mut lends, mut refused) = (&notice.server, BTreeMap::new(), Vec::new());
        for tool in specs.tools {
            let (name, digest) = (tool.full_name(server), tool.digest());
            if lends.contains_key(&name) || !self.borrows.mean(&name) {
                continue;
            }
            if let Some(fault) = tool.fault(server) {
                refused.push(format!("a tool that {} lends is left out: {fault}", notice.process));
                continue;
            }
            match self.tools.get(&name) {
                Some(known) if known.digest != digest => refused.push(format!(
                    "`{name}` as {} lends it is not what it was when this agent came to know it, and is not used: start the \
                     agents anew if it is to count as it is now",
                    notice.process
                )),
                None if self.tools.len() >= MOST_KNOWN => {
                    refused.push(format!("`{name}` is left out: {MOST_KNOWN} borrowed tools are the most"));
                }
                known => {
                    if known.is_none() {
                        let (server, digest) = (server.clone(), digest.clone());
                        let known = Known { server, tool, digest, is_registered: false };
                        self.tools.insert(name.clone(), known);
                    }
                    lends.insert(name, digest);
                }
            }
        }
        if let Some(process) = self.processes.get_mut(&notice.process) {
            process.digest = notice.digest.clone().unwrap_or_default();
            process.lends = lends;
        }
        let told = &mut self.told;
        refused.retain(|line| told.len() < MOST_KNOWN && told.insert(beginning(line, 400)));
        refused
    }

    /// The tools that are to be registered, which from now on they are, each with the name of its lenders.
    pub fn take_new(&mut self) -> Vec<(String, ServedTool)> {
        let new = self.tools.values_mut().filter(|known| !known.is_registered);
        let taken = new.map(|known| {
            known.is_registered = true;
            (known.server.clone(), known.tool.clone())
        });
        taken.collect()
    }

    /// Whether a tool can be called now, if it is one that was lent.
    #[must_use]
    pub fn is_there(&self, name: &str, now: Instant) -> Option<bool> {
        self.tools.contains_key(name).then(|| self.holders(name, now).next().is_some())
    }

    fn holders(&self, name: &str, now: Instant) -> impl Iterator<Item = &AgentId> {
        let known = self.tools.get_key_value(name);
        let has = move |process: &Process| {
            let is_heard = now.saturating_duration_since(process.heard) <= GONE;
            is_heard && known.is_some_and(|(name, known)| process.lends.get(name) == Some(&known.digest))
        };
        self.processes.iter().filter(move |(_, process)| has(process)).map(|(id, _)| id)
    }

    /// Those who lend a tool now, in the order in which one task asks them: whoever takes the task over asks the same first,
    /// who knows what was asked for before.
    #[must_use]
    pub fn in_turn(&self, name: &str, run: &str, task: &str, now: Instant) -> Vec<AgentId> {
        let mut holders: Vec<AgentId> = self.holders(name, now).cloned().collect();
        holders.sort_by_cached_key(|process| {
            let mut hasher = DefaultHasher::new();
            (run, task, process.as_str()).hash(&mut hasher);
            hasher.finish()
        });
        holders
    }

    /// A process is not there any more, until it says that it is.
    pub fn is_gone(&mut self, process: &AgentId) {
        self.processes.remove(process);
    }
}

#[cfg(test)]
#[path = "lenders_tests.rs"]
mod tests;
