//! The credentials of each process of the fleet: new ones at every start, for its role and one name.

use std::path::PathBuf;
use std::sync::Arc;

use muster_bus::credentials::rights::inbox;
use muster_bus::credentials::{ClientFiles, CredentialsError, FleetKeys, FleetTls, Holder};
use muster_bus::server::LocalServer;
use muster_shared::ids::Role;

use super::far::FarDesk;
use crate::app::new_id;
use crate::commands::agent::tools::role_of as role_of_tools;
use crate::commands::guard::role_of;

/// Where a process of ours finds its credentials.
pub(super) const CREDENTIALS: &str = "MUSTER_BUS_CREDENTIALS";
/// Where a program of others finds them, what it is called on the bus, and under what its answers come in.
const OF_PROGRAMS: [&str; 3] = ["NATS_CREDS", "MUSTER_AGENT_ID", "NATS_INBOX_PREFIX"];
/// Where a process of ours finds the authority of the server's certificate, and a certificate of its own.
pub(crate) const TLS: [&str; 3] = ["MUSTER_BUS_TLS_CA", "MUSTER_BUS_TLS_CERT", "MUSTER_BUS_TLS_KEY"];
/// Where a program of others finds them: what the `nats` command calls them.
const TLS_OF_PROGRAMS: [&str; 3] = ["NATS_CA", "NATS_CERT", "NATS_KEY"];
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
    /// It serves tools under a name.
    ToolServer(String),
}

/// By what a fleet lets its processes in.
#[derive(Debug, Clone)]
pub(crate) enum Desk {
    /// By the keys of the fleet, which are here.
    Own(OwnDesk),
    /// By asking whoever has them, on another machine.
    Far(Arc<FarDesk>),
}

/// The keys of a fleet that are here.
#[derive(Debug, Clone)]
pub(crate) struct OwnDesk {
    /// The keys of the fleet.
    pub(crate) keys: Arc<FleetKeys>,
    /// The files by which connections to its server are encrypted, where they are: the authority's certificate, and one to show with its key
    /// where the server wants that.
    tls: Vec<PathBuf>,
}

impl OwnDesk {
    /// That of a server of the fleet's own.
    ///
    /// # Errors
    /// When there is no certificate to show, and none can be made.
    pub(crate) fn of(server: &LocalServer) -> Result<Self, CredentialsError> {
        let mut files: Vec<PathBuf> = server.tls().map(FleetTls::ca_file).into_iter().collect();
        if let Some(tls) = server.tls().filter(|_| server.wants_certificates()) {
            let ClientFiles { certificate, key } = tls.client()?;
            files.extend([certificate, key]);
        }
        Ok(Self { keys: Arc::clone(server.keys()), tls: files })
    }
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
            Desk::Own(desk) => self.issue_by(desk, is_foreign),
            Desk::Far(desk) => {
                let Duty::Agent(role) = &self.duty else {
                    return Err("a machine that joined starts agents and nothing else".to_owned());
                };
                desk.issue(role, &self.member).await
            }
        }
    }

    fn issue_by(&self, desk: &OwnDesk, is_foreign: bool) -> Result<Vec<(String, String)>, String> {
        let OwnDesk { keys, tls } = desk;
        let holder = self.holder();
        let file = self.file(keys);
        let wrong = |error: CredentialsError| format!("no credentials could be made for it: {error}");
        // Read anew: `muster keys rotate` puts others in their place.
        let current = FleetKeys::open(keys.folder()).map_err(wrong)?;
        let current = current.as_ref().unwrap_or(keys);
        current.issue_to(&file, &holder, None).map_err(wrong)?;
        let file = file.display().to_string();
        let mut told = vec![(CREDENTIALS, file.clone())];
        if is_foreign {
            told.extend(OF_PROGRAMS.into_iter().zip([file, holder.name().to_string(), inbox(holder.name())]));
        }
        let files = tls.iter().map(|file| file.display().to_string());
        told.extend(TLS.into_iter().zip(files.clone()));
        if is_foreign {
            told.extend(TLS_OF_PROGRAMS.into_iter().zip(files));
        }
        if matches!(self.duty, Duty::Orchestrator) {
            told.push((SYSTEM_CREDENTIALS, keys.presence_file().display().to_string()));
        }
        Ok(told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn holder(&self) -> Holder {
        match &self.duty {
            Duty::Orchestrator => Holder::Orchestrator { id: new_id("orchestrator") },
            Duty::Agent(role) => Holder::Agent { role: role.clone(), id: new_id(&role.to_string()) },
            Duty::Guard(guard) => Holder::Guard { guard: guard.clone(), id: new_id(&role_of(guard)) },
            Duty::ToolServer(server) => {
                Holder::ToolServer { server: server.clone(), id: new_id(&role_of_tools(server)) }
            }
            Duty::Program(role) => Holder::Program { role: role.clone(), id: new_id(&role.to_string()) },
        }
    }

    fn file(&self, keys: &FleetKeys) -> PathBuf {
        keys.folder().join(format!("{}.creds", self.member))
    }
}
