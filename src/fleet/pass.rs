//! The credentials of each process of the fleet: new ones at every start, for its role and one name.

use std::path::PathBuf;
use std::sync::Arc;

use muster_bus::credentials::rights::inbox;
use muster_bus::credentials::{FleetKeys, Holder};
use muster_shared::ids::{AgentId, Role};

use super::far::FarDesk;
use crate::app::new_id;
use crate::commands::guard::role_of;

/// Where a process of ours finds its credentials.
pub(super) const CREDENTIALS: &str = "MUSTER_BUS_CREDENTIALS";
/// Where a program of others finds them, what it is called on the bus, and under what its answers come in.
const OF_PROGRAMS: [&str; 3] = ["NATS_CREDS", "MUSTER_AGENT_ID", "NATS_INBOX_PREFIX"];
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
    /// It is asked as the guard of a name.
    Guard(String),
}

/// By what a fleet lets its processes in.
#[derive(Debug, Clone)]
pub(crate) enum Desk {
    /// By the keys of the fleet, which are here.
    Own(Arc<FleetKeys>),
    /// By asking whoever has them, on another machine.
    Far(Arc<FarDesk>),
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
    /// Gets new credentials, and says how the process is told of them. Those of the start before are gone with this.
    ///
    /// # Errors
    /// Says why there are none.
    pub(crate) async fn issue(&self, is_foreign: bool) -> Result<Vec<(String, String)>, String> {
        match &self.desk {
            Desk::Own(keys) => self.issue_by(keys, is_foreign),
            Desk::Far(desk) => match &self.duty {
                Duty::Agent(role) => desk.issue(role, &self.member).await,
                Duty::Orchestrator | Duty::Program(_) | Duty::Guard(_) => {
                    Err("a machine that joined starts agents and nothing else".to_owned())
                }
            },
        }
    }

    fn issue_by(&self, keys: &FleetKeys, is_foreign: bool) -> Result<Vec<(String, String)>, String> {
        let (id, holder) = self.holder();
        let file = self.file(keys);
        keys.issue_to(&file, &holder, None)
            .map_err(|error| format!("no credentials could be made for it: {error}"))?;
        let file = file.display().to_string();
        let mut told = vec![(CREDENTIALS, file.clone())];
        if is_foreign {
            told.extend(OF_PROGRAMS.into_iter().zip([file, id.to_string(), inbox(&id)]));
        }
        if matches!(self.duty, Duty::Orchestrator) {
            told.push((SYSTEM_CREDENTIALS, keys.presence_file().display().to_string()));
        }
        Ok(told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
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
            Duty::Guard(guard) => {
                let id = new_id(&role_of(guard));
                (id.clone(), Holder::Guard { guard: guard.clone(), id })
            }
            Duty::Program(role) => {
                let id = new_id(&role.to_string());
                (id.clone(), Holder::Program { role: role.clone(), id })
            }
        }
    }

    fn file(&self, keys: &FleetKeys) -> PathBuf {
        keys.folder().join(format!("{}.creds", self.member))
    }
}
