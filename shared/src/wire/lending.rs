//! What agents tell each other of tools that one lends and another borrows. A lender is a tool server of a name of its own,
//! [`lender_name`], of which every process is asked by its name, because a lease holds with the process that gave it. Plain
//! bodies in JSON, as in [`tool_server`](super::tool_server).
//!
//! | subject | who says it | body | answer |
//! |---|---|---|---|
//! | `tool.<lender>.here`, `.specs.<process>`, `.wait.…`, `.cancel.…` | as of every tool server | | |
//! | `tool.<lender>.lease.<process>.<role>.<agent>` | a borrower | [`LeaseRequest`] | [`LeaseReply`] |
//! | `tool.<lender>.use.<process>.<role>.<agent>` | a borrower | [`LentCall`] | [`LentReply`] |
//! | `tool.<lender>.return.<process>.<role>.<agent>` | a borrower | [`LeaseName`] | |
//! | `tool.<lender>.leases.<process>` | whoever looks on | none | [`ToolLeases`] |
//! | `tool.<lender>.revoke.<process>` | an operator | [`Revocation`] | [`ToolLeases`] that were ended |

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tool_server::{ToolCall, ToolReply, is_tool_server_name};
use crate::ids::{AgentId, Role};

/// How the names of lenders begin. No tool server has such a name.
pub const LENDER: &str = "lent-";

/// Longest name of a lease, in bytes.
pub const MOST_LEASE_NAME: usize = 128;

/// Longest name of a run, a task, a tool or a description that a request for a lease may have, in bytes.
pub const MOST_NAME: usize = 128;

/// Under which name agents of a role lend: `lent-researcher`, so that their `sql` is `lent-researcher.sql`.
#[must_use]
pub fn lender_name(role: &Role) -> String {
    format!("{LENDER}{role}")
}

/// The role whose agents lend under this name; nothing when it is no name of a lender.
#[must_use]
pub fn lender_role(server: &str) -> Option<Role> {
    server.strip_prefix(LENDER)?.parse().ok()
}

/// The name that a lent tool has for its owner: `sql` of `lent-researcher.sql`.
#[must_use]
pub fn own_name(tool: &str) -> Option<&str> {
    let (server, own) = tool.split_once('.')?;
    lender_role(server).map(|_| own)
}

/// Whether somebody may serve tools under this name: a tool server, or a lender.
#[must_use]
pub fn serves_tools(name: &str) -> bool {
    is_tool_server_name(name) || lender_role(name).is_some()
}

/// An agent asks for a lease of a tool, for one task. Whoever has one asks for it again, and it is renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LeaseRequest {
    /// The run.
    pub run: String,
    /// The task.
    pub task: String,
    /// The tool, as its owner calls it.
    pub tool: String,
    /// What the agent knows of the tool, by the digest of its description.
    pub spec: String,
}

impl LeaseRequest {
    /// Whether all that it names is short enough to be kept.
    #[must_use]
    pub fn is_short(&self) -> bool {
        let Self { run, task, tool, spec } = self;
        [run, task, tool, spec].iter().all(|name| name.len() <= MOST_NAME)
    }
}

/// What a lender says to that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum LeaseReply {
    /// It lends the tool.
    Granted {
        /// By which every call names it.
        lease: String,
        /// How long it holds unless the tool is used, in milliseconds.
        lasts_ms: u64,
    },
    /// It does not.
    Refused {
        /// Why, in words.
        why: String,
    },
    /// It has given as many leases as it gives; another lender may have one left, or this one later.
    Full,
    /// The tool is not the one that the agent knows.
    Changed,
}

/// A call of a tool that is lent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LentCall {
    /// The lease under which it is made.
    pub lease: String,
    /// The call.
    pub call: ToolCall,
}

/// What a lender says to that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LentReply {
    /// What every tool server says of a call.
    Reply(ToolReply),
    /// The lease does not hold, and nothing was begun: why, in words.
    NoLease(String),
}

/// Names a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LeaseName {
    /// The lease.
    pub lease: String,
}

/// A lease as its lender has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolLease {
    /// Its name.
    pub lease: String,
    /// The tool, as its owner calls it.
    pub tool: String,
    /// Who lends it.
    pub lender: AgentId,
    /// Who borrows it.
    pub borrower: AgentId,
    /// The role of who borrows it.
    pub role: Role,
    /// The run.
    pub run: String,
    /// The task.
    pub task: String,
    /// How long it holds unless the tool is used, in milliseconds.
    pub left_ms: u64,
    /// Calls so far.
    pub calls: u64,
    /// Calls that are being carried out.
    pub running: u64,
}

/// Leases of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolLeases {
    /// The leases, the oldest first.
    pub leases: Vec<ToolLease>,
}

/// Which leases are to end: those that fit all that is named. One that names nothing means none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Revocation {
    /// This lease. Its task is not lent the tool again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Those of this tool, as its owner calls it. It is not lent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Those of this agent. It is lent nothing again, or not that tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_lender_says_its_role_and_no_tool_server_has_one() {
        let long: Role = "x".repeat(32).parse().unwrap();
        for role in [Role::Researcher, "word_counter".parse().unwrap(), long] {
            let name = lender_name(&role);
            assert_eq!(lender_role(&name), Some(role));
            assert!(serves_tools(&name) && !is_tool_server_name(&name), "{name}");
        }
        for none in ["notes", "lent-", "lent", "lent-A", "lent-a.b", "lent->", "lent-a-b", "tools-worker"] {
            assert_eq!(lender_role(none), None, "{none}");
        }
        assert!(serves_tools("notes") && !serves_tools("corpus") && !serves_tools("lent-*"));
    }

    #[test]
    fn a_lent_tool_has_the_name_of_its_owner_behind_that_of_the_lender() {
        let table = [
            ("lent-worker.python", Some("python")),
            ("lent-worker.corpus.read", Some("corpus.read")),
            ("lent-worker", None),
            ("notes.python", None),
            ("lent-.python", None),
        ];
        for (name, own) in table {
            assert_eq!(own_name(name), own, "{name}");
        }
    }
}
