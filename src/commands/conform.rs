//! `muster conform`: checks an agent against the protocol.

use std::process::Stdio;
use std::time::Duration;

use muster_bus::Bus;
use muster_bus::server::{LocalServer, ServerSettings};
use muster_shared::ids::AgentId;
use muster_shared::text::counted;
use muster_shared::wire::Profile;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::plan_file;
use crate::app::{App, bus_failure, no_fleet};
use crate::args::ConformArgs;
use crate::conform::Given;
use crate::conform::check::{self, Absence};
use crate::conform::drive::{Listener, Tried};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::render::checks::{Check, CheckResult, list_with};

/// Time for the command to join.
const START_LIMIT: Duration = Duration::from_secs(15);
/// Time for an agent of a fleet to join.
const JOIN_LIMIT: Duration = Duration::from_secs(3);
/// How often is looked who has joined.
const LOOK: Duration = Duration::from_millis(100);

/// Gives an agent tasks, and says what it does wrong.
pub(super) async fn conform(app: &App, args: &ConformArgs) -> Result<Exit, Failure> {
    let given = match &args.task {
        Some(file) => Given::task(plan_file::read_task(file)?),
        None => Given::goal(args.goal.as_deref()),
    };
    let (bus, mut scratch) = match args.command.is_empty() {
        true => (app.connect("conform").await?, None),
        false => {
            let scratch = Scratch::start(app, &args.command).await?;
            (app.connect_to_server(&scratch.server, "conform").await?, Some(scratch))
        }
    };
    let found = checks(bus, args, &given, scratch.as_mut().map(|scratch| &mut scratch.child)).await;
    if let Some(scratch) = scratch {
        scratch.end().await;
    }
    let ConformFindings { agent, checks } = found?;
    let failed = checks.iter().any(|check| match check.verdict {
        CheckResult::Fail => true,
        CheckResult::Warn => args.strict,
        CheckResult::Ok => false,
    });
    if args.json {
        let told: Vec<Value> = checks.iter().map(told).collect();
        output::json(&json!({ "conforms": !failed, "agent": agent, "checks": told }))?;
    } else {
        output::line(&list_with(&checks, app.paint(), check::word))?;
        output::line(&in_a_word(agent.as_ref(), &checks))?;
    }
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

/// A check as programs are told it: `verdict` is pass, fail or not_seen.
fn told(check: &Check) -> Value {
    let verdict = check::word(check.verdict).replace(' ', "_");
    json!({ "what": check.what, "verdict": verdict, "found": check.found, "mend": check.mend })
}

fn in_a_word(agent: Option<&AgentId>, checks: &[Check]) -> String {
    let of = |verdict: CheckResult| checks.iter().filter(|check| check.verdict == verdict).count();
    match (agent, of(CheckResult::Fail)) {
        (None, _) => "no agent could be checked".to_owned(),
        (Some(agent), 0) if of(CheckResult::Warn) > 0 => {
            let unseen = counted(of(CheckResult::Warn), "point was", "points were");
            format!("{agent} keeps the protocol, as far as was seen: {unseen} not")
        }
        (Some(agent), 0) => format!("{agent} keeps the protocol"),
        (Some(agent), 1) => format!("{agent} breaks the protocol in one point"),
        (Some(agent), faults) => format!("{agent} breaks the protocol in {faults} points"),
    }
}

/// What was found of an agent.
struct ConformFindings {
    /// The agent, if there was one.
    agent: Option<AgentId>,
    checks: Vec<Check>,
}

async fn checks(
    bus: Bus,
    args: &ConformArgs,
    given: &Given,
    mut child: Option<&mut Child>,
) -> Result<ConformFindings, Failure> {
    let listener = Listener::new(bus).await.map_err(bus_failure)?;
    match find(&listener, args, child.as_deref_mut()).await? {
        Ok(profile) => {
            let tried = Tried { profile: &profile, given, limit: args.limit, child };
            let watch = listener.watch(tried).await.map_err(bus_failure)?;
            Ok(ConformFindings { agent: Some(profile.agent), checks: check::check(&watch) })
        }
        Err(absence) => {
            let nobody = check::nobody(args.agent.as_ref(), args.role.as_deref(), &absence);
            Ok(ConformFindings { agent: None, checks: vec![nobody] })
        }
    }
}

/// Waits for the agent to join, or for the command that was to start it to end.
async fn find(
    listener: &Listener,
    args: &ConformArgs,
    mut child: Option<&mut Child>,
) -> Result<Result<Profile, Absence>, Failure> {
    let until = Instant::now() + if child.is_some() { START_LIMIT } else { JOIN_LIMIT };
    loop {
        let others =
            match listener.find(args.agent.as_ref(), args.role.as_deref()).await.map_err(bus_failure)? {
                Ok(profile) => return Ok(Ok(profile)),
                Err(others) => others,
            };
        if let Some(status) = child.as_mut().and_then(|child| child.try_wait().ok().flatten()) {
            return Ok(Err(Absence::Ended(status.to_string())));
        }
        if Instant::now() > until {
            return Ok(Err(Absence::NotThere(others)));
        }
        sleep(LOOK).await;
    }
}

/// A bus for one agent alone.
struct Scratch {
    server: LocalServer,
    child: Child,
    /// Serves an agent that works by the task gateway.
    gateway: tokio::task::JoinHandle<()>,
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
            listen: None,
            tls: false,
            tls_verify: false,
            binary: crate::fleet::server_program::of(app)?,
            ..app.settings().server.clone()
        };
        let server = LocalServer::start(&settings).await.map_err(|error| bus_failure(error.into()))?;
        let bus = app.connect_to_server(&server, "conform").await?;
        bus.provision().await.map_err(bus_failure)?;
        let (app_of_gateway, tasks) = (app.clone(), bus.tasks());
        let gateway = tokio::spawn(async move {
            let gateway = super::orchestrator::gateway(app_of_gateway, bus, CancellationToken::new());
            // No orchestrator is there that would make the queues of an agent.
            let (_, made) = tokio::join!(gateway, tasks.make_for_agents());
            if let Err(error) = made {
                tracing::debug!(%error, "no more queues are made here");
            }
        });
        let (program, arguments) = command.split_first().ok_or_else(no_fleet)?;
        let mut agent = Command::new(program);
        agent.args(arguments).env("NATS_URL", server.url()).env("MUSTER_BUS_URL", server.url());
        // Its role is not known yet, and the bus is for it alone: it may do all.
        let credentials = server.keys().operator_file();
        agent.env("NATS_CREDS", &credentials).env("MUSTER_BUS_CREDENTIALS", &credentials);
        // What it says is for whoever reads our errors; our own output may be read by a program.
        agent.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let child = agent.spawn().map_err(|error| {
            Failure::usage(format!("cannot start {program}: {error}"))
                .help("after --, give the command that starts the agent; it finds the bus in NATS_URL")
        })?;
        Ok(Self { server, child, gateway, _folder: folder })
    }

    async fn end(mut self) {
        // A failure means that it has ended already.
        let _ = self.child.kill().await;
        self.gateway.abort();
        if let Err(error) = self.server.stop().await {
            tracing::debug!(%error, "the scratch server could not be stopped in good order");
        }
    }
}
