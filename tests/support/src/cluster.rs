//! Three nats-servers that form a cluster on this machine, each with its own store.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::fleet::wait_until;

/// Members of a cluster.
const MEMBERS: usize = 3;
/// The user of the system account.
pub const SYSTEM_USER: &str = "sys";
/// Its password. The servers listen on this machine only.
pub const SYSTEM_PASSWORD: &str = "for-orchestrators";
/// Time for a cluster to find together on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A cluster that is up. Dropped, its servers end.
pub struct Cluster {
    program: String,
    folder: TempDir,
    ports: Vec<u16>,
    servers: Vec<Option<Child>>,
}

impl Cluster {
    /// Starts the servers and waits until they have chosen a leader.
    ///
    /// # Errors
    /// When a server cannot be started, or they do not find together.
    pub fn start() -> io::Result<Self> {
        let program = std::env::var("MUSTER_NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
        Self::of(program)
    }

    /// As [`Cluster::start`], with this `nats-server` program.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn of(program: String) -> io::Result<Self> {
        let folder = TempDir::new()?;
        let ports = free_ports(2 * MEMBERS)?;
        let (clients, routes) = ports.split_at(MEMBERS);
        for (at, port) in clients.iter().enumerate() {
            fs::write(folder.path().join(format!("{at}.conf")), config(at, *port, routes, &folder))?;
        }
        let mut cluster = Self { program, folder, ports: clients.to_vec(), servers: Vec::new() };
        for at in 0..MEMBERS {
            let server = cluster.spawn(at)?;
            cluster.servers.push(Some(server));
        }
        wait_until("the servers have a leader", LIMIT, || cluster.has_leader()).map_err(io::Error::other)?;
        Ok(cluster)
    }

    /// Where its servers listen, separated by commas.
    #[must_use]
    pub fn url(&self) -> String {
        let urls: Vec<String> = self.ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        urls.join(",")
    }

    /// The pid of a server that runs.
    #[must_use]
    pub fn pid(&self, at: usize) -> Option<u32> {
        self.servers.get(at)?.as_ref().map(Child::id)
    }

    /// Number of servers, running or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether there are no servers; there always are.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Kills a server on the spot.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill(&mut self, at: usize) -> io::Result<()> {
        if let Some(mut server) = self.servers.get_mut(at).and_then(Option::take) {
            server.kill()?;
            server.wait()?;
        }
        Ok(())
    }

    /// Starts a killed server again, on its own store.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn revive(&mut self, at: usize) -> io::Result<()> {
        if self.servers.get(at).is_some_and(Option::is_none) {
            let server = self.spawn(at)?;
            self.servers[at] = Some(server);
        }
        Ok(())
    }

    fn spawn(&self, at: usize) -> io::Result<Child> {
        let config = self.folder.path().join(format!("{at}.conf"));
        Command::new(&self.program).arg("-c").arg(config).stdin(Stdio::null()).stdout(Stdio::null()).spawn()
    }

    /// Whether a server's log says that it follows or is the leader of what the cluster agrees upon.
    fn has_leader(&self) -> bool {
        (0..MEMBERS).any(|at| {
            let log = fs::read_to_string(self.folder.path().join(format!("{at}.log"))).unwrap_or_default();
            log.contains("JetStream cluster new metadata leader")
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for at in 0..self.servers.len() {
            let _ = self.kill(at);
        }
    }
}

fn config(at: usize, port: u16, routes: &[u16], folder: &TempDir) -> String {
    let store = folder.path().join(at.to_string());
    let log = folder.path().join(format!("{at}.log"));
    let listed: Vec<String> = routes.iter().map(|port| format!("nats-route://127.0.0.1:{port}")).collect();
    format!(
        "server_name: n{at}\n\
         listen: \"127.0.0.1:{port}\"\n\
         logfile: {log:?}\n\
         max_payload: 1048576\n\
         jetstream {{ store_dir: {store:?}, max_memory_store: 64MB, max_file_store: 256GB }}\n\
         no_auth_user: anybody\n\
         system_account: SYS\n\
         accounts {{\n  \
           FLEET {{ jetstream: enabled, users: [ {{ user: anybody, password: \"{SYSTEM_PASSWORD}\" }} ] }}\n  \
           SYS {{ users: [ {{ user: {SYSTEM_USER}, password: \"{SYSTEM_PASSWORD}\" }} ] }}\n\
         }}\n\
         cluster {{ name: muster, listen: \"127.0.0.1:{}\", routes: [{}] }}\n",
        routes[at],
        listed.join(", "),
    )
}

/// Ports that nobody listens on at this moment.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let held: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<io::Result<_>>()?;
    held.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}
