//! `muster check-agent`: test a program against the task gateway of a private fleet.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use muster_bus::server::{LocalServer, ServerSettings};
use muster_bus::{Bus, BusError, RecordFilter};
use muster_shared::flow::{Ending, Goal, Outcome, PlanDraft, TaskDraft};
use muster_shared::ids::{Role, RunId, Seq};
use muster_shared::run::{AgentEvent, RecordEvent, Request, RequestAction};
use muster_shared::sync::lock;
use muster_shared::wire::{Command as RunCommand, Encoding};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::orchestrator;
use crate::app::App;
use crate::args::CheckAgentArgs;
use crate::exit::{Exit, Failure, failed, usage};
use crate::fleet::pass::{Desk, Duty, OwnDesk, Pass};
use crate::output;
use crate::render::checks::{Check, CheckResult, list};

/// Time for the program to send its first `take`.
const START_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Requests of a task that may be in flight when the program loses the task: a step and a heartbeat.
const MAX_LATE_REQUESTS: usize = 2;
const TOO_FAST: &str = "the task ended before it could be interrupted";
const SLOWER: &str = "give a --goal that takes longer, with a step on the way";

/// Runs all checks and prints the result.
pub(super) async fn check_agent(app: &App, args: &CheckAgentArgs) -> Result<Exit, Failure> {
    let mut bench = TestBench::start(app, args).await?;
    let checks = Box::pin(bench.checks()).await;
    bench.stop().await;
    let checks = checks?;
    let has_failed = checks.iter().any(|check| check.verdict == CheckResult::Fail);
    output::json_or_line(
        args.json,
        || json!({ "passed": !has_failed, "role": args.role, "checks": checks }),
        || list(&checks, app.paint()),
    )?;
    Ok(if has_failed { Exit::Failed } else { Exit::Completed })
}

/// A private fleet without agents, and the program under test.
struct TestBench<'a> {
    args: &'a CheckAgentArgs,
    server: LocalServer,
    bus: Bus,
    pass: Pass,
    program: Child,
    answers: Arc<Mutex<Answers>>,
    orchestrator: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

/// Answers of the gateway to the program.
#[derive(Default)]
struct Answers {
    /// Number of answers about a task that the program no longer has.
    revocations: usize,
    /// Number of requests that were refused as invalid.
    refusals: usize,
    first_refusal: String,
}

impl<'a> TestBench<'a> {
    async fn start(app: &App, args: &'a CheckAgentArgs) -> Result<Self, Failure> {
        let directory =
            tempfile::tempdir().map_err(|error| failed!("cannot create a temporary directory: {error}"))?;
        let settings = ServerSettings {
            store_dir: directory.path().join("nats"),
            port: 0,
            listen: None,
            tls: false,
            tls_verify: false,
            binary: crate::fleet::server_program::of(app)?,
            ..app.settings().server.clone()
        };
        let server = LocalServer::start(&settings).await.map_err(BusError::from)?;
        let bus = app.connect_to_server(&server, "check-agent").await?;
        bus.provision().await?;
        let desk = OwnDesk::of(&server).map_err(Failure::failed)?;
        let member = format!("{}-1", args.role);
        let pass = Pass { desk: Desk::Own(desk), duty: Duty::Program(args.role.clone()), member };
        let answers = Arc::default();
        listen(&bus, &args.role, Arc::clone(&answers)).await?;
        let (orchestrating, its_bus) = (app.clone(), bus.clone());
        let orchestrator = tokio::spawn(async move {
            if let Err(error) = orchestrator::serve(&orchestrating, &its_bus, CancellationToken::new()).await
            {
                tracing::error!(%error, "orchestrator failed");
            }
        });
        let program = start_program(&pass, &server, &args.command).await?;
        Ok(Self { args, server, bus, pass, program, answers, orchestrator, _directory: directory })
    }

    async fn stop(mut self) {
        // An error means that the program has already ended.
        let _ = self.program.kill().await;
        self.orchestrator.abort();
        if let Err(error) = self.server.stop().await {
            tracing::debug!(%error, "the private server did not stop cleanly");
        }
    }

    async fn checks(&mut self) -> Result<Vec<Check>, Failure> {
        let mut checks = vec![self.check_start().await?];
        if checks[0].verdict != CheckResult::Fail {
            let run = self.submit().await?;
            let (task, steps) = self.check_outcome("task", run).await?;
            let is_done = task.verdict != CheckResult::Fail;
            checks.push(task);
            if is_done {
                checks.push(self.check_takeover(steps).await?);
                checks.push(self.check_interruption("cancel", RequestAction::Cancel).await?);
                checks.push(self.check_interruption("suspend", RequestAction::Pause).await?);
            }
        }
        checks.push(self.check_requests());
        Ok(checks)
    }

    async fn check_start(&mut self) -> Result<Check, Failure> {
        let (role, until) = (self.args.role.to_string(), Instant::now() + START_TIMEOUT);
        loop {
            let listed = self.bus.registry().list().await?;
            if let Some(profile) = listed.into_iter().find(|one| one.role == role) {
                let is_described = profile.specialist.is_some_and(|one| !one.description.is_empty());
                return Ok(match is_described {
                    true => Check::ok("start", "the program asks for tasks"),
                    false => {
                        Check::warn("start", "planners cannot choose it", "send `description` with `take`")
                    }
                });
            }
            let ended = self.ended();
            if ended.is_some() || Instant::now() > until {
                let found = ended.unwrap_or_else(|| "no `take` in time".to_owned());
                let fix =
                    format!("connect with NATS_URL, NATS_CREDS, NATS_INBOX_PREFIX; ask agent.{role}.take");
                return Ok(Check::fail("start", found, fix));
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Kills the program during a task and starts it again.
    async fn check_takeover(&mut self, steps: usize) -> Result<Check, Failure> {
        let run = self.submit().await?;
        let is_at_work = |event: &AgentEvent| matches!(event, AgentEvent::Step(_) | AgentEvent::Outcome(_));
        let events = self.wait(run, is_at_work).await?;
        if outcome_in(&events).is_some() {
            return Ok(Check::warn("takeover", TOO_FAST, SLOWER));
        }
        // An error means that the program has already ended.
        let _ = self.program.kill().await;
        self.program = start_program(&self.pass, &self.server, &self.args.command).await?;
        let (check, taken) = self.check_outcome("takeover", run).await?;
        if check.verdict == CheckResult::Ok && taken > steps {
            let found = format!("{taken} steps were recorded, {steps} without a takeover");
            return Ok(Check::warn("takeover", found, "continue at `next_step`: earlier steps are done"));
        }
        Ok(check)
    }

    /// Takes a task from the program while it works, and gives it the next one.
    async fn check_interruption(&mut self, what: &str, action: RequestAction) -> Result<Check, Failure> {
        let (run, before) = (self.submit().await?, self.revocations());
        self.wait(run, |event| matches!(event, AgentEvent::Started(_))).await?;
        self.request(run, action.clone()).await?;
        let is_over = |event: &AgentEvent| matches!(event, AgentEvent::Released(_) | AgentEvent::Outcome(_));
        let events = self.wait(run, is_over).await?;
        if outcome_in(&events).is_some_and(|outcome| outcome.ending == Ending::Done) {
            return Ok(Check::warn(what, TOO_FAST, SLOWER));
        }
        let next = if action == RequestAction::Pause {
            self.request(run, RequestAction::Resume { deadline_ms: None }).await?;
            run
        } else {
            self.submit().await?
        };
        let (check, _) = self.check_outcome(what, next).await?;
        let late = self.revocations() - before;
        if check.verdict == CheckResult::Ok && late > MAX_LATE_REQUESTS {
            let found = format!("{late} requests about a task that was no longer its own");
            let fix = "drop the task when an answer or its error has `over: true`";
            return Ok(Check::fail(what, found, fix));
        }
        Ok(check)
    }

    fn check_requests(&self) -> Check {
        let answers = lock(&self.answers);
        if answers.refusals == 0 {
            return Check::ok("requests", "the gateway refused none");
        }
        let found = format!("the gateway refused {}: {}", answers.refusals, answers.first_refusal);
        Check::fail("requests", found, "docs/gateway.md has the fields of each request")
    }

    /// Waits for the end of a task; also the number of its steps.
    async fn check_outcome(&mut self, what: &str, run: RunId) -> Result<(Check, usize), Failure> {
        let events = self.wait(run, |event| matches!(event, AgentEvent::Outcome(_))).await?;
        let steps = events.iter().filter(|event| matches!(event, AgentEvent::Step(_))).count();
        let check = match outcome_in(&events) {
            Some(Outcome { ending: Ending::Done | Ending::DonePartial, .. }) => match steps {
                0 => Check::warn(what, "done without a step", "send a `step` for each action"),
                _ => Check::ok(what, format!("done after {steps} steps")),
            },
            Some(Outcome { ending, reason, .. }) => {
                Check::fail(what, format!("ended as {ending:?}: {reason}"), "end with `finish` and a result")
            }
            None => {
                let limit = self.args.timeout.as_secs();
                let found = self.ended().unwrap_or_else(|| format!("no valid `finish` within {limit} s"));
                Check::fail(what, found, "send `take`, `step`, `beat` and `finish` as docs/gateway.md says")
            }
        };
        self.request(run, RequestAction::Cancel).await?;
        Ok((check, steps))
    }

    /// Starts a run whose only task is for the program.
    async fn submit(&self) -> Result<RunId, Failure> {
        let (run, goal) = (RunId::from_uuid(Uuid::now_v7()), self.args.goal.clone());
        let role = Some(self.args.role.to_string());
        let task = TaskDraft { name: "check".to_owned(), goal: goal.clone(), role, ..TaskDraft::default() };
        let plan = PlanDraft { tasks: vec![task], ..PlanDraft::default() };
        let goal = Goal { plan: Some(Box::new(plan)), ..Goal::new(goal) };
        self.send(RunCommand::Submit { run, goal: Box::new(goal) }).await?;
        Ok(run)
    }

    async fn request(&self, run: RunId, action: RequestAction) -> Result<(), Failure> {
        self.send(RunCommand::Request(Request::new(run, action))).await
    }

    async fn send(&self, command: RunCommand) -> Result<(), Failure> {
        self.bus.commands().send(&command, Encoding::default()).await?;
        Ok(())
    }

    /// The events of the program's task, once one of them is met, the time limit is over, or the program has ended.
    async fn wait(
        &mut self,
        run: RunId,
        is_met: impl Fn(&AgentEvent) -> bool,
    ) -> Result<Vec<AgentEvent>, Failure> {
        let until = Instant::now() + self.args.timeout;
        loop {
            let entries = self.bus.record().read(&RecordFilter::Run(run), Seq(0)).await?;
            let written = entries.into_iter().filter_map(|entry| match entry.event {
                RecordEvent::Agent(key, event) if key.role == self.args.role => Some(event),
                _ => None,
            });
            let events: Vec<AgentEvent> = written.collect();
            if events.iter().any(&is_met) || self.ended().is_some() || Instant::now() > until {
                return Ok(events);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// The exit status of the program, if it has ended.
    fn ended(&mut self) -> Option<String> {
        let status = self.program.try_wait().ok()??;
        Some(format!("the command ended with {status}"))
    }

    fn revocations(&self) -> usize {
        lock(&self.answers).revocations
    }
}

fn outcome_in(events: &[AgentEvent]) -> Option<&Outcome> {
    events
        .iter()
        .find_map(|event| if let AgentEvent::Outcome(outcome) = event { Some(&**outcome) } else { None })
}

/// Counts the answers that refuse a request or revoke a task.
async fn listen(bus: &Bus, role: &Role, answers: Arc<Mutex<Answers>>) -> Result<(), BusError> {
    let prefix = format!("_INBOX.{role}-");
    let mut messages = bus.tap().raw(&["_INBOX.>"]).await?;
    tokio::spawn(async move {
        while let Some(message) = messages.next().await {
            let Ok(answer) = serde_json::from_slice::<Value>(&message.bytes) else { continue };
            if !message.subject.starts_with(&prefix) {
                continue;
            }
            let error = &answer["error"];
            let mut answers = lock(&answers);
            if answer["over"] == true || error["over"] == true {
                answers.revocations += 1;
            } else if error.is_object() && error["retry"] != true {
                answers.refusals += 1;
                if answers.refusals == 1 {
                    answers.first_refusal = error["message"].as_str().unwrap_or_default().to_owned();
                }
            }
        }
    });
    Ok(())
}

async fn start_program(pass: &Pass, server: &LocalServer, command: &[String]) -> Result<Child, Failure> {
    let variables = pass.issue(true).await.map_err(Failure::failed)?;
    let (program, arguments) = command.split_first().ok_or_else(|| usage!("no command after --"))?;
    let mut started = Command::new(program);
    started.args(arguments).env("NATS_URL", server.url()).envs(variables);
    started.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    started.spawn().map_err(|error| {
        usage!("cannot start {program}: {error}")
            .help("after --, give the command that starts the program; it finds the bus in NATS_URL")
    })
}
