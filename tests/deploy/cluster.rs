//! Three servers by the configuration that is shipped, with what `deploy/credentials.sh` makes, on ports of this machine.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use muster_support::fleet::{Folder, both, wait_until};
use muster_support::process::Running;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::root;

const LIMIT: Duration = Duration::from_secs(60);
const MUSTER: &str = env!("CARGO_BIN_EXE_muster");

/// What `deploy/credentials.sh` makes into a folder.
fn credentials(secrets: &Path, processes: &[&str]) -> Output {
    let script = root("deploy/credentials.sh");
    let mut command = Command::new("sh");
    command.arg(script).args(processes).env("MUSTER", MUSTER).env("SECRETS", secrets).env("HOME", secrets);
    let made = command.output().unwrap();
    assert!(made.status.success(), "{}", both(&made));
    made
}

/// Servers of a fleet, and where its credentials are.
struct Servers {
    folder: Folder,
    running: Vec<Running>,
    clients: Vec<u16>,
}

impl Servers {
    fn start() -> Self {
        let folder = Folder::new(MUSTER).unwrap();
        credentials(&folder.path().join("secrets"), &[]);
        let held: Vec<TcpListener> =
            (0..9).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let ports: Vec<u16> = held.iter().map(|one| one.local_addr().unwrap().port()).collect();
        drop(held);
        let (clients, routes, monitors) = (&ports[..3], &ports[3..6], &ports[6..]);
        let mut servers = Self { folder, running: Vec::new(), clients: clients.to_vec() };
        for at in 0..3 {
            let own = servers.own(at);
            fs::create_dir(&own).unwrap();
            for file in fs::read_dir(servers.secret("nats")).unwrap().flatten() {
                fs::copy(file.path(), own.join(file.file_name())).unwrap();
            }
            // Other ports and names; the rest is as it is shipped.
            let mut config = fs::read_to_string(own.join("nats.conf")).unwrap();
            let mut put = |from: String, to: String| {
                assert!(config.contains(&from), "{from}");
                config = config.replace(&from, &to);
            };
            put("0.0.0.0:4222".to_owned(), format!("127.0.0.1:{}", clients[at]));
            put("0.0.0.0:6222".to_owned(), format!("127.0.0.1:{}", routes[at]));
            for (other, port) in routes.iter().enumerate() {
                put(format!("nats-{other}.nats:6222"), format!("localhost:{port}"));
            }
            fs::write(own.join("nats.conf"), config).unwrap();
            servers.running.push(servers.spawn(at, monitors[at]));
        }
        wait_until("the servers have a leader", LIMIT, || {
            (0..3).any(|at| servers.log(at).contains("JetStream cluster new metadata leader"))
        })
        .unwrap_or_else(|late| panic!("{late}\n{}", servers.log(0)));
        servers
    }

    fn spawn(&self, at: usize, monitor: u16) -> Running {
        let program = std::env::var("MUSTER_NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
        let own = self.own(at);
        let mut server = Command::new(program);
        server.args(["--config", "nats.conf", "--log", "log"]).current_dir(&own).stdin(Stdio::null());
        server
            .env("NATS_NAME", format!("nats-{at}"))
            .env("NATS_STORE", own.join("data"))
            .env("NATS_MONITOR", format!("127.0.0.1:{monitor}"));
        Running(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn own(&self, at: usize) -> PathBuf {
        self.folder.path().join(format!("nats-{at}"))
    }

    fn log(&self, at: usize) -> String {
        fs::read_to_string(self.own(at).join("log")).unwrap_or_default()
    }

    fn secret(&self, name: &str) -> PathBuf {
        self.folder.path().join("secrets").join(name)
    }

    /// `muster`, which is told what the manifests tell it, and who it is.
    fn command(&self, arguments: &[&str], credentials: Option<&Path>) -> Command {
        let mut command = self.folder.command(arguments);
        let urls: Vec<String> = self.clients.iter().map(|port| format!("tls://localhost:{port}")).collect();
        command.env("MUSTER_BUS_URL", urls.join(",")).env("MUSTER_BUS_REPLICAS", "3");
        command.env("MUSTER_BUS_TLS_CA", self.secret("creds/ca.pem"));
        command.env("MUSTER_BUS_SYSTEM_CREDENTIALS", self.secret("creds/presence.creds"));
        if let Some(credentials) = credentials {
            command.env("MUSTER_BUS_CREDENTIALS", credentials);
        }
        command
    }

    fn process(&self, name: &str, arguments: &[&str]) -> Running {
        let credentials = self.secret(&format!("creds/{name}.creds"));
        let log = fs::File::create(self.folder.path().join(format!("{name}.log"))).unwrap();
        let mut command = self.command(arguments, Some(&credentials));
        Running(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    /// What processes said.
    fn logs(&self) -> String {
        let files = fs::read_dir(self.folder.path()).unwrap().flatten();
        let logs = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "log"));
        logs.map(|file| fs::read_to_string(file.path()).unwrap_or_default()).collect()
    }
}

#[test]
fn the_shipped_servers_let_in_whom_the_keys_vouch_for_and_nobody_who_was_revoked() {
    let servers = Servers::start();
    let orchestrator = servers.process("orchestrator-0", &["orchestrator"]);
    let agents = [
        servers.process("planner-0", &["agent", "planner"]),
        servers.process("worker-0", &["agent", "worker"]),
        servers.process("worker-1", &["agent", "worker"]),
    ];
    let person = servers.secret("creds/person-owner.creds");
    let ask = |goal: &str| {
        let run = ["run", goal, "--quiet", "--effort", "quick", "--deadline", "60s"];
        servers.command(&run, Some(&person)).output().unwrap()
    };
    let listed = || both(&servers.command(&["ps", "--json"], Some(&person)).output().unwrap());
    wait_until("the agents have joined, each by its own name", LIMIT, || {
        let listed = listed();
        ["planner-0", "worker-0", "worker-1"].iter().all(|name| listed.contains(&format!("\"{name}\"")))
    })
    .unwrap_or_else(|late| panic!("{late}\n{}\n{}", listed(), servers.logs()));
    let asked = ask("What is 6 times 7?");
    assert!(asked.status.success() && both(&asked).contains("42"), "{}\n{}", both(&asked), servers.logs());

    // Whoever has none is not let in, nor who has those of another fleet, nor is a server believed that others vouch for.
    let elsewhere = servers.folder.path().join("elsewhere");
    credentials(&elsewhere, &["person-eve"]);
    let eve = elsewhere.join("creds/person-eve.creds");
    for (credentials, authority) in [
        (None, None),
        (Some(eve.as_path()), None),
        (Some(person.as_path()), Some(elsewhere.join("creds/ca.pem"))),
    ] {
        let mut command = servers.command(&["runs"], credentials);
        if let Some(authority) = authority {
            command.env("MUSTER_BUS_TLS_CA", authority);
        }
        let refused = command.output().unwrap();
        assert_eq!(refused.status.code(), Some(3), "{}", both(&refused));
    }

    // Revoked, told to the servers, and cut off at once; whoever else is there goes on.
    let [planner, gone, stays] = agents;
    let keys = servers.secret("keys").display().to_string();
    servers.folder.output(&["keys", "revoke", "worker-0", "--keys", &keys]).unwrap();
    credentials(&servers.secret(""), &[]);
    for (at, server) in servers.running.iter().enumerate() {
        fs::copy(servers.secret("nats/accounts.conf"), servers.own(at).join("accounts.conf")).unwrap();
        kill(Pid::from_raw(i32::try_from(server.0.id()).unwrap()), Signal::SIGHUP).unwrap();
    }
    let mut gone = gone;
    wait_until("it has ended", LIMIT, || gone.0.try_wait().unwrap().is_some())
        .unwrap_or_else(|late| panic!("{late}\n{}\n{}", servers.log(0), servers.logs()));
    assert!(!gone.0.wait().unwrap().success(), "{}", servers.logs());
    let asked = ask("What is 6 times 8?");
    assert!(asked.status.success() && both(&asked).contains("48"), "{}\n{}", both(&asked), servers.logs());
    drop((orchestrator, planner, stays));
}
