//! The credentials of each process of the fleet: new ones at every start, for its role and one name.

use std::path::PathBuf;
use std::sync::Arc;

use muster_bus::credentials::rights::inbox;
use muster_bus::credentials::{FleetKeys, Holder};
use muster_shared::ids::{AgentId, Role};

use crate::app::new_id;

/// Where a process finds its credentials; the names that NATS programs know come after our own.
const CREDENTIALS: [&str; 2] = ["MUSTER_BUS_CREDENTIALS", "NATS_CREDS"];
/// What the process is called on the bus.
const ID: &str = "MUSTER_AGENT_ID";
/// Under what its answers come in.
const INBOX_PREFIX: &str = "NATS_INBOX_PREFIX";
/// Where an orchestrator finds the credentials of the system account.
const SYSTEM_CREDENTIALS: &str = "MUSTER_BUS_SYSTEM_CREDENTIALS";

/// What a process of the fleet may do on the bus.
#[derive(Debug, Clone)]
pub(crate) enum Duty {
    /// It orchestrates.
    Orchestrator,
    /// It works by itself on queues and record.
    Agent(Role),
    /// It works by a task gateway.
    Program(Role),
}

/// By what a fleet lets its processes in.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    /// The keys of the fleet.
    pub(crate) keys: Arc<FleetKeys>,
}

/// By what one process is let in.
#[derive(Debug, Clone)]
pub(crate) struct Pass {
    /// Who issues it.
    pub(crate) desk: Desk,
    /// What it is for.
    pub(crate) duty: Duty,
    /// The process' name in the fleet.
    pub(crate) member: String,
}

impl Pass {
    /// Makes new credentials, and says how the process is told of them. Those of the start before are gone with this.
    ///
    /// # Errors
    /// Says why they could not be made.
    pub(crate) fn issue(&self) -> Result<Vec<(String, String)>, String> {
        let Desk { keys } = &self.desk;
        let (id, holder) = self.holder();
        let file = self.file();
        keys.issue_to(&file, &holder, None)
            .map_err(|error| format!("no credentials could be made for it: {error}"))?;
        let told = |name: &str, value: String| (name.to_owned(), value);
        let file = file.display().to_string();
        let mut told: Vec<_> = CREDENTIALS
            .map(|name| told(name, file.clone()))
            .into_iter()
            .chain([told(ID, id.to_string()), told(INBOX_PREFIX, inbox(&id))])
            .collect();
        if matches!(self.duty, Duty::Orchestrator) {
            told.push((SYSTEM_CREDENTIALS.to_owned(), keys.presence_file().display().to_string()));
        }
        Ok(told)
    }

    fn holder(&self) -> (AgentId, Holder) {
        match &self.duty {
            Duty::Orchestrator => {
                let id = new_id("orchestrator");
                (id.clone(), Holder::Orchestrator { id })
            }
            Duty::Agent(role) => {
                let id = new_id(&role.to_string());
                (id.clone(), Holder::Agent { role: role.clone(), id })
            }
            Duty::Program(role) => {
                let id = new_id(&role.to_string());
                (id.clone(), Holder::Program { role: role.clone(), id })
            }
        }
    }

    fn file(&self) -> PathBuf {
        self.desk.keys.folder().join(format!("{}.creds", self.member))
    }
}
