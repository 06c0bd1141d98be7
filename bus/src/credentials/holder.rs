//! Whom credentials are for.

use std::str::FromStr;

use muster_shared::flow::is_guard_name;
use muster_shared::ids::{AgentId, Role};
use muster_shared::wire::tool_server::is_tool_server_name;

/// Whom credentials are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Whoever runs the fleet: lays out the bus, asks, steers, reads and removes.
    Operator {
        /// What the person or program is called.
        name: AgentId,
    },
    /// A person who has a say in runs: asks, steers, answers, reads.
    Person {
        /// What the person is called.
        name: AgentId,
    },
    /// Whoever watches and changes nothing.
    Observer {
        /// What the person or program is called.
        name: AgentId,
    },
    /// An orchestrator.
    Orchestrator {
        /// Its id.
        id: AgentId,
    },
    /// An agent that works by itself on queues and record.
    Agent {
        /// Its role.
        role: Role,
        /// Its id.
        id: AgentId,
    },
    /// A program in any language that works by a task gateway.
    Program {
        /// Its role.
        role: Role,
        /// Its name.
        id: AgentId,
    },
    /// A guard: whoever is asked before something is done.
    Guard {
        /// The guard's name.
        guard: String,
        /// The process.
        id: AgentId,
    },
    /// A tool server: whoever carries calls of tools out, under one name.
    ToolServer {
        /// The server's name.
        server: String,
        /// The process.
        id: AgentId,
    },
    /// A machine that joined: it asks for credentials for the agents that it starts.
    Host {
        /// What the machine is called.
        name: AgentId,
    },
    /// Whoever holds an invitation.
    Guest {
        /// What the invitation is called.
        name: AgentId,
    },
    /// Whoever is told by the server who comes and goes.
    Presence {
        /// The orchestrator that it is told.
        id: AgentId,
    },
}

impl Holder {
    /// What the holder is called on the bus.
    #[must_use]
    pub const fn name(&self) -> &AgentId {
        match self {
            Self::Operator { name }
            | Self::Person { name }
            | Self::Observer { name }
            | Self::Host { name }
            | Self::Guest { name } => name,
            Self::Orchestrator { id }
            | Self::Agent { id, .. }
            | Self::Program { id, .. }
            | Self::Guard { id, .. }
            | Self::ToolServer { id, .. }
            | Self::Presence { id } => id,
        }
    }

    /// What kind of holder it is.
    #[must_use]
    pub fn kind(&self) -> HolderKind {
        match self {
            Self::Operator { .. } => HolderKind::Operator,
            Self::Person { .. } => HolderKind::Person,
            Self::Observer { .. } => HolderKind::Observer,
            Self::Orchestrator { .. } => HolderKind::Orchestrator,
            Self::Agent { role, .. } => HolderKind::Agent(role.clone()),
            Self::Program { role, .. } => HolderKind::Program(role.clone()),
            Self::Guard { guard, .. } => HolderKind::Guard(guard.clone()),
            Self::ToolServer { server, .. } => HolderKind::ToolServer(server.clone()),
            Self::Host { .. } => HolderKind::Host,
            Self::Guest { .. } => HolderKind::Guest,
            Self::Presence { .. } => HolderKind::Presence,
        }
    }
}

/// What credentials are for, whoever holds them.
#[derive(Debug, Clone, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum HolderKind {
    /// Whoever runs the fleet.
    Operator,
    /// A person who has a say in runs.
    Person,
    /// Whoever watches.
    Observer,
    /// An orchestrator.
    Orchestrator,
    /// An agent of a role.
    #[strum(to_string = "agent:{0}")]
    Agent(Role),
    /// A program of a role.
    #[strum(to_string = "program:{0}")]
    Program(Role),
    /// A guard of a name.
    #[strum(to_string = "guard:{0}")]
    Guard(String),
    /// A tool server of a name.
    #[strum(to_string = "tools:{0}")]
    ToolServer(String),
    /// A machine that joined.
    Host,
    /// Whoever holds an invitation.
    Guest,
    /// Whoever is told who comes and goes.
    Presence,
}

impl HolderKind {
    /// Whether it may lay out the bus: streams, buckets and queues.
    #[must_use]
    pub const fn may_provision(&self) -> bool {
        matches!(self, Self::Operator | Self::Orchestrator)
    }

    /// The role, of those that have one.
    #[must_use]
    pub fn role(&self) -> Option<String> {
        match self {
            Self::Agent(role) | Self::Program(role) => Some(role.to_string()),
            Self::Guard(guard) => Some(guard.clone()),
            Self::ToolServer(server) => Some(server.clone()),
            Self::Operator
            | Self::Person
            | Self::Observer
            | Self::Orchestrator
            | Self::Host
            | Self::Guest
            | Self::Presence => None,
        }
    }

    /// The holder of this kind who has a name; nobody of the server's own account, which is not the fleet's.
    #[must_use]
    pub fn holder(&self, name: &AgentId) -> Option<Holder> {
        let id = name.clone();
        Some(match self {
            Self::Operator => Holder::Operator { name: id },
            Self::Person => Holder::Person { name: id },
            Self::Observer => Holder::Observer { name: id },
            Self::Orchestrator => Holder::Orchestrator { id },
            Self::Agent(role) => Holder::Agent { role: role.clone(), id },
            Self::Program(role) => Holder::Program { role: role.clone(), id },
            Self::Guard(guard) => Holder::Guard { guard: guard.clone(), id },
            Self::ToolServer(server) => Holder::ToolServer { server: server.clone(), id },
            Self::Host => Holder::Host { name: id },
            Self::Guest => Holder::Guest { name: id },
            Self::Presence => return None,
        })
    }

    /// Whether the process must bear the name in its credentials: its rights hang on it.
    #[must_use]
    pub const fn binds_the_name(&self) -> bool {
        // Each program of an operator has a name of its own.
        !matches!(self, Self::Operator)
    }
}

impl FromStr for HolderKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let role = |role: &str| role.parse::<Role>().map_err(|error| error.to_string());
        let wrong = || format!("{text:?} is no kind of holder");
        match text.split_once(':') {
            Some(("agent", of)) => role(of).map(Self::Agent),
            Some(("program", of)) => role(of).map(Self::Program),
            Some(("guard", of)) if is_guard_name(of) => Ok(Self::Guard(of.to_owned())),
            Some(("tools", of)) if is_tool_server_name(of) => Ok(Self::ToolServer(of.to_owned())),
            Some(_) => Err(wrong()),
            None => {
                let plain = [
                    Self::Operator,
                    Self::Person,
                    Self::Observer,
                    Self::Orchestrator,
                    Self::Host,
                    Self::Guest,
                    Self::Presence,
                ];
                plain.into_iter().find(|kind| kind.to_string() == text).ok_or_else(wrong)
            }
        }
    }
}
