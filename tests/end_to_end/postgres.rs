//! An agent queries PostgreSQL through an MCP server from PyPI. `tests/support/install-postgres-mcp.sh` installs both.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use muster_support::fleet::wait_until;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use muster_support::skip::skipped;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use serde_json::json;

use super::help::{act, done, plan_and_report};
use super::support::{of_kind, with_model};

const LIMIT: Duration = Duration::from_secs(60);
/// If this variable is 1, the test fails where it would be skipped.
const NEEDED: &str = "MUSTER_NEED_POSTGRES";
const PASSWORD: &str = "correct horse";

/// A PostgreSQL server on a Unix socket in its own directory.
struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
    process: Child,
}

/// A command of PostgreSQL, which refuses to run as root.
fn command(programs: &Path, program: &str) -> Command {
    let mut command = Command::new(programs.join(program));
    if let Some(user) = user() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command.env_clear().env("LC_ALL", "C").current_dir("/");
    command
}

/// The user who runs PostgreSQL if the test runs as root.
fn user() -> Option<User> {
    let find =
        || User::from_name("postgres").ok().flatten().or_else(|| User::from_name("nobody").ok().flatten());
    if geteuid().is_root() { find() } else { None }
}

impl Postgres {
    fn start(programs: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let password = folder.path().join("password");
        fs::write(&password, PASSWORD).unwrap();
        for path in [folder.path(), &password] {
            user().map_or(Ok(()), |user| chown(path, Some(user.uid.as_raw()), None)).unwrap();
        }
        let data = folder.path().join("data");
        let mut initdb = command(&programs, "initdb");
        initdb.args(["--auth=scram-sha-256", "--username=owner", "--no-sync", "--encoding=UTF8"]);
        let made = initdb.arg("--pwfile").arg(&password).arg("--pgdata").arg(&data).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut postgres = command(&programs, "postgres");
        postgres.args(["-c", "listen_addresses=", "-c", "fsync=off"]).arg("-D").arg(&data);
        let log = File::create(folder.path().join("log")).unwrap();
        let process = postgres.arg("-k").arg(folder.path()).stderr(log).spawn().unwrap();
        let server = Self { programs, folder, process };
        wait_until("PostgreSQL accepts connections", LIMIT, || server.try_sql("SELECT 1").is_some()).unwrap();
        server
    }

    fn try_sql(&self, sql: &str) -> Option<String> {
        let mut psql = command(&self.programs, "psql");
        psql.env("PGPASSWORD", PASSWORD).args(["-U", "owner", "-d", "postgres", "-tAc", sql]);
        let output =
            psql.arg("-h").arg(self.folder.path()).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap_or_else(|| panic!("{sql} failed"))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.process.id().cast_signed());
        let _ = kill(pid, Signal::SIGINT);
        let _ = self.process.wait();
    }
}

/// The directory with PostgreSQL's programs, and the MCP server. `None`: the test is skipped, with a message.
fn installed() -> Option<(PathBuf, PathBuf)> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let programs =
        versions.map(|version| version.path().join("bin")).filter(|bin| bin.join("initdb").exists()).max();
    let server =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("target/mcp-servers/postgres/bin/database-mcp-postgres");
    let found = programs.zip(server.exists().then_some(server));
    if found.is_none() {
        let help = "PostgreSQL or its MCP server is not installed: tests/support/install-postgres-mcp.sh";
        assert!(std::env::var(NEEDED).as_deref() != Ok("1"), "{help}");
        skipped("PostgreSQL by an MCP server", help);
    }
    found
}

fn answer(request: &CapturedRequest) -> Reply {
    let task = json!({ "name": "orders", "goal": "Sum the orders.", "role": "worker" });
    let query = |sql: &str| act("sales_execute_sql", json!({ "sql": sql }));
    plan_and_report(request, &[task], "# Orders\n\nThey amount to 42.").unwrap_or_else(|| {
        match request.turns() {
            0 => query("SELECT sum(amount) AS total FROM orders"),
            1 => query("DELETE FROM orders"),
            _ => done("It is 42."),
        }
    })
}

#[test]
fn an_agent_reads_postgresql_through_an_mcp_server_and_cannot_write() {
    let Some((programs, server)) = installed() else { return };
    let postgres = Postgres::start(programs);
    postgres.sql("CREATE TABLE orders (region text, amount integer)");
    postgres.sql("INSERT INTO orders VALUES ('north', 40), ('south', 2)");
    postgres.sql(&format!("CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'"));
    postgres.sql("GRANT SELECT ON orders TO reader");

    let model = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = with_model(&model).with("SALES_DB_PASSWORD", PASSWORD);
    let env = json!({
        "POSTGRES_HOST": postgres.folder.path(), "POSTGRES_USER": "reader", "POSTGRES_DATABASE": "postgres",
        "POSTGRES_PASSWORD": "${SALES_DB_PASSWORD}",
    });
    let servers = json!({ "mcpServers": { "sales": { "command": server, "env": env } } });
    folder.write("mcp.json", servers.to_string()).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    let fleet =
        folder.up(&["--set", "agent.model=openai/scripted", "--set", "agent.tools.worker=[\"*\"]"]).unwrap();
    let is_served = || {
        let processes = fleet.folder().json(&["ps", "--json"]).unwrap_or_default().to_string();
        processes.contains("execute_sql")
    };
    wait_until("the tools of the MCP server are served", LIMIT, is_served).unwrap();

    let run = ["run", "Sum the orders.", "--planning", "always", "--json", "--deadline", "90s"];
    let summary = fleet.folder().json(&run).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", fleet.folder().logs());
    let trace = fleet.folder().json_lines(&["trace", "last", "--json", "--full"]).unwrap();
    let observations: Vec<String> = of_kind(&trace, "step")
        .filter(|entry| {
            entry["event"]["action"]["name"].as_str().is_some_and(|name| name.contains("execute_sql"))
        })
        .map(|entry| entry["event"]["observation"].to_string())
        .collect();
    let [total, refused] = observations.as_slice() else { panic!("{trace:#?}") };
    assert!(total.contains("42"), "{total}");
    assert!(refused.contains("read-only"), "{refused}");
    assert_eq!(postgres.sql("SELECT count(*) FROM orders"), "2");
}
