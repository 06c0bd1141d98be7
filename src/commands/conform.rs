//! `muster conform`: checks an agent against the protocol.

use std::process::Stdio;
use std::time::Duration;

use muster_bus::Bus;
use muster_bus::server::{LocalServer, ServerSettings};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::app::{App, bus_failure, no_fleet};
use crate::args::ConformArgs;
use crate::conform::check;
use crate::conform::drive::Listener;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::render::checks::{Check, Verdict, list};

/// Time for the agent to join.
const JOIN_LIMIT: Duration = Duration::from_secs(15);

/// Gives an agent tasks, and says what it does wrong.
pub(super) async fn conform(app: &App, args: &ConformArgs) -> Result<Exit, Failure> {
    let (url, scratch) = match args.command.is_empty() {
        true => (app.url().ok_or_else(no_fleet)?, None),
        false => {
            let scratch = Scratch::start(app, &args.command).await?;
            (scratch.server.url(), Some(scratch))
        }
    };
    let bus = app.connect_to(&url, "conform").await?;
    let checks = checks(bus, args).await;
    if let Some(scratch) = scratch {
        scratch.end().await;
    }
    let checks = checks?;
    let failed = checks.iter().any(|check| check.verdict == Verdict::Fail);
    if args.json {
        output::json(&json!({ "conforms": !failed, "checks": checks }))?;
    } else {
        output::line(&list(&checks, app.paint()))?;
    }
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

async fn checks(bus: Bus, args: &ConformArgs) -> Result<Vec<Check>, Failure> {
    let (agent, role) = (args.agent.as_ref(), args.role.as_deref());
    let listener = Listener::new(bus).await.map_err(bus_failure)?;
    let found = listener.find(agent, role, JOIN_LIMIT).await.map_err(bus_failure)?;
    let Some(profile) = found else { return Ok(vec![check::nobody(agent, role)]) };
    let watch = listener.watch(&profile, args.limit).await.map_err(bus_failure)?;
    Ok(check::check(&watch))
}

/// A bus for one agent alone.
struct Scratch {
    server: LocalServer,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Scratch {
    async fn start(app: &App, command: &[String]) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()
            .map_err(|error| Failure::failed(format!("cannot make a folder for a scratch bus: {error}")))?;
        let settings = ServerSettings {
            store_dir: folder.path().join("nats"),
            port: 0,
            detached: false,
            ..app.settings().server.clone()
        };
        let server = LocalServer::start(&settings).await.map_err(|error| bus_failure(error.into()))?;
        let bus = app.connect_to(&server.url(), "conform").await?;
        bus.provision().await.map_err(bus_failure)?;
        let (program, arguments) = command.split_first().ok_or_else(no_fleet)?;
        let mut agent = Command::new(program);
        agent.args(arguments).env("NATS_URL", server.url()).env("MUSTER_BUS_URL", server.url());
        // What it says is for whoever reads our errors; our own output may be read by a program.
        agent.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let child = agent.spawn().map_err(|error| {
            Failure::usage(format!("cannot start {program}: {error}"))
                .help("after --, give the command that starts the agent; it finds the bus in NATS_URL")
        })?;
        Ok(Self { server, child, _folder: folder })
    }

    async fn end(mut self) {
        // A failure means that it has ended already.
        let _ = self.child.kill().await;
        if let Err(error) = self.server.stop().await {
            tracing::debug!(%error, "the scratch server could not be stopped in good order");
        }
    }
}
