//! The tools of tool servers that are there, and who may use them: plans may name these as well.

use std::collections::BTreeMap;

use muster_shared::flow::Specialty;
use muster_shared::ids::AgentId;
use muster_shared::plan::tools::means;
use muster_shared::text::beginning;
use muster_shared::wire::Profile;

/// Most processes of tool servers that are known.
const MOST_SERVERS: usize = 256;
/// Most tools of one of them: plans could name no more.
const MOST_TOOLS: usize = Specialty::MAX_TOOLS;
/// Most patterns of one agent.
const MOST_PATTERNS: usize = Specialty::MAX_TOOLS;

/// What tool servers have, and what agents say they may use. Agents come to know such tools by themselves; here is only
/// what planners are told.
#[derive(Debug, Default)]
pub(super) struct Served {
    tools: BTreeMap<AgentId, Vec<String>>,
    /// Of each agent, the patterns among the tools that it says it has.
    patterns: BTreeMap<AgentId, Vec<String>>,
}

impl Served {
    /// Takes note of what a process says of itself.
    pub(super) fn admit(&mut self, profile: &Profile) {
        let agent = profile.agent.clone();
        match profile.tool_server() {
            Some(server) => {
                let is_known = self.tools.contains_key(&agent);
                if is_known || self.tools.len() < MOST_SERVERS {
                    let is_own =
                        |tool: &&String| tool.split_once('.').is_some_and(|(name, _)| name == server);
                    let tools = profile.tools.iter().filter(is_own).take(MOST_TOOLS);
                    self.tools.insert(agent, tools.map(|tool| within(tool)).collect());
                }
            }
            None => {
                let patterns = profile.tools.iter().filter(|tool| tool.ends_with('*')).take(MOST_PATTERNS);
                self.patterns.insert(agent, patterns.map(|pattern| within(pattern)).collect());
            }
        }
    }

    /// A process is gone.
    pub(super) fn dismiss(&mut self, agent: &AgentId) {
        self.tools.remove(agent);
        self.patterns.remove(agent);
    }

    /// Each agent that may use tools of servers that are there, with these.
    pub(super) fn to_agents(&self) -> Vec<(&AgentId, Vec<String>)> {
        if self.tools.is_empty() {
            return Vec::new();
        }
        let of_agent = |patterns: &[String]| -> Vec<String> {
            let may = |tool: &str| patterns.iter().any(|pattern| means(pattern, tool));
            self.tools.values().flatten().filter(|tool| may(tool)).cloned().collect()
        };
        let all = self.patterns.iter().map(|(agent, patterns)| (agent, of_agent(patterns)));
        all.filter(|(_, tools)| !tools.is_empty()).collect()
    }
}

fn within(name: &str) -> String {
    beginning(name, Specialty::MAX_CAPABILITY)
}
