//! Random fleets of real processes: roles are missing, agents are broken, slow or lying, and processes are killed. No run
//! stalls, and none claims more than its log shows. `make fleets` tries 200 of them.
#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use muster_shared::ids::{Role, RunId};
use muster_shared::run::{Entry, RunState, RunStatus, apply, count, is_completed_in_part};
use muster_simulation::{Conduct, NESTED, RandomFleet, SPECIALIST, Victim, unsupported_claims};
use muster_support::chaos::read_log;
use muster_support::fleet::{Fleet, Folder, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use muster_support::process::{Running, is_alive};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::help::act;
use super::scenarios::{asker, done, learnt, plan, submit, written};
use super::support::{folder, signal};

/// Longest time without an event of a run that has not ended. Nothing that a model or a restart takes is as long.
const LONGEST_PAUSE_MILLIS: u64 = 10_000;
/// Fleets at the same time.
const AT_ONCE: usize = 4;
/// Fleets of which a run stalled: a reflector, a worker, a writer, a refiner or a specialist was missing, for plain tasks,
/// committees, redundant pairs and auctions.
const FAILED_ONCE: [u64; 6] = [0, 2, 5, 6, 8, 9];

/// `FLEETS` fleets from the seed `FLEETS_FROM`. Without these variables: those that failed once.
#[test]
fn random_fleets_neither_stall_nor_claim_more_than_their_log_shows() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds: Vec<u64> = match number("FLEETS") {
        Some(fleets) => (0..fleets).map(|n| number("FLEETS_FROM").unwrap_or(0) + n).collect(),
        None => FAILED_ONCE.to_vec(),
    };
    let (next, broken) = (Mutex::new(seeds.into_iter()), Mutex::new(Vec::new()));
    let try_some = || {
        while let Some(seed) = { next.lock().unwrap().next() } {
            let found = std::panic::catch_unwind(|| try_fleet(seed));
            let found = found.unwrap_or_else(|_| vec!["the fleet could not be tried".to_owned()]);
            eprintln!(
                "fleet {seed}: {}",
                if found.is_empty() { "good".to_owned() } else { found.join("; ") }
            );
            broken.lock().unwrap().extend(found.into_iter().map(|how| format!("fleet {seed}: {how}")));
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(try_some))));
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "again: make fleets FLEETS=1 FROM=seed\n{}", broken.join("\n"));
}

/// Everything that is wrong with the runs of a fleet.
fn try_fleet(seed: u64) -> Vec<String> {
    let wanted = RandomFleet::of(seed);
    let begun = Instant::now();
    let server = ModelServer::start(script(&wanted)).unwrap();
    let (fleet, _others) = up(&wanted, &server);
    let folder = fleet.folder();
    let brought = ["run", "Do what the plan states.", "--plan", "plan.json"];
    let planned = ["run", "Find out about all parts.", "--planning", "always"];
    let wait = format!("{}ms", wanted.wait_for_role_ms);
    let runs = [brought, planned].map(|run| {
        let run = [&run[..], &["--json", "--deadline", "60s", "--wait-for-role", &wait]].concat();
        folder.command(&run).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    });
    let started = Instant::now();
    for (at, victim) in &wanted.kills {
        std::thread::sleep(Duration::from_millis(*at).saturating_sub(started.elapsed()));
        let name = match victim {
            Victim::Orchestrator => "orchestrator-1".to_owned(),
            Victim::Agent(role) => format!("{role}-1"),
        };
        fleet
            .pid(&name)
            .into_iter()
            .filter(|pid| is_alive(*pid))
            .for_each(|pid| signal(pid, Signal::SIGKILL));
    }
    let ended = runs.map(|run| run.wait_with_output().unwrap());
    let log = read_log(&fleet.url()).unwrap();
    let mut by_run: BTreeMap<RunId, Vec<&Entry>> = BTreeMap::new();
    log.iter().for_each(|entry| by_run.entry(entry.run).or_default().push(entry));
    let states: BTreeMap<RunId, RunState> =
        by_run.iter().filter_map(|(run, log)| Some((*run, fold(log)?))).collect();
    let mut broken: Vec<String> = by_run.iter().flat_map(|(run, log)| judge(&states[run], log)).collect();
    let mut calls = 0;
    for output in ended {
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let state = summary["run"].as_str().and_then(|run| states.get(&run.parse::<RunId>().unwrap()));
        let Some(state) = state else {
            broken.push(format!("a run was not started: {:?} {summary}", output.status.code()));
            continue;
        };
        calls += state.used().model_calls;
        broken.extend(differences(state, &summary, output.status.code()));
        broken.extend(needless_failure(&wanted, state));
    }
    if calls > server.log().len() as u64 {
        broken.push(format!("{calls} model calls are reported, {} were made", server.log().len()));
    }
    if !broken.is_empty() {
        broken.push(format!("after {} s, of {wanted:?}", begun.elapsed().as_secs()));
    }
    broken
}

/// The fleet, with those agents that do not work as they should.
fn up(wanted: &RandomFleet, server: &ModelServer) -> (Fleet, Vec<Running>) {
    let folder =
        folder().with("OPENAI_API_KEY", "key-of-sound-agents").with("OPENAI_BASE_URL", server.openai_url());
    folder.write("plan.json", json!(wanted.plan).to_string()).unwrap();
    let specialist: Role = SPECIALIST.parse().unwrap();
    let file = format!("agents/{SPECIALIST}.agent.md");
    if wanted.has(&specialist) {
        folder.write(&file, format!("---\nrole: {SPECIALIST}\ndescription: Brews.\n---\nBrew.\n")).unwrap();
    }
    let mut arguments = vec![format!("orchestrator={}", wanted.orchestrators)];
    let sound =
        |role: &Role| wanted.agents.iter().filter(|agent| **agent == (role.clone(), Conduct::Sound)).count();
    let roles = Role::BUILT_IN.into_iter().chain(wanted.has(&specialist).then_some(specialist));
    arguments.extend(roles.map(|role| format!("{role}={}", sound(&role))));
    let slots = format!("agent.slots.worker={}", wanted.slots);
    let mut all = vec!["--set", "agent.model=openai/scripted", "--set", &slots];
    arguments.iter().for_each(|scale| all.extend(["--scale", scale]));
    let fleet = folder.up(&all).unwrap();
    let others = wanted.agents.iter().filter(|(_, conduct)| *conduct != Conduct::Sound);
    let others: Vec<Running> =
        others.map(|(role, conduct)| join(fleet.folder(), (role, &file), *conduct)).collect();
    let online = || {
        fleet
            .folder()
            .json(&["ps", "--json"])
            .is_ok_and(|all| all.as_array().map_or(0, Vec::len) > wanted.agents.len())
    };
    wait_until("all agents are online", Duration::from_secs(30), online).unwrap();
    (fleet, others)
}

/// An agent that is known to the model by its key.
fn join(folder: &Folder, (role, file): (&Role, &str), conduct: Conduct) -> Running {
    let what = if matches!(role, Role::Specialist(_)) { file } else { role.as_str() };
    let mut agent = folder.command(&["--set", "agent.model=openai/scripted", "agent", what]);
    agent
        .env("OPENAI_API_KEY", format!("key-of-{conduct:?}-agents"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Running(agent.spawn().unwrap())
}

fn script(wanted: &RandomFleet) -> Script {
    let (tasks, refines) = (json!(wanted.plan.tasks), wanted.refines);
    Script::answering(move |request| {
        let key = request.key.as_deref().unwrap_or_default();
        let reply = answer(request, &tasks, refines);
        match [Conduct::Slow, Conduct::Broken, Conduct::Lying]
            .into_iter()
            .find(|it| key.contains(&format!("{it:?}")))
        {
            Some(Conduct::Broken) => Reply::status(401, None),
            Some(Conduct::Slow) => reply.with_delay(Duration::from_secs(2)),
            Some(Conduct::Lying) => reply.with_usage(4_000_000_000, 4_000_000_000, 0),
            Some(Conduct::Sound) | None => reply,
        }
    })
    .with_delay(Duration::from_millis(50))
}

fn answer(request: &CapturedRequest, tasks: &Value, refines: bool) -> Reply {
    let is_child = request.holds("Count the ships");
    match asker(request) {
        "planner" if is_child => plan(&json!([{ "name": "ships", "goal": "Count them.", "role": "worker" }])),
        "planner" => plan(tasks),
        "reflector" if refines => submit(&json!({
            "thought": "Seen.", "summary": "It is seen.", "refine": "Something is missing.",
        })),
        "reflector" => learnt("It is seen."),
        "refiner" => submit(&json!({
            "thought": "Seen.", "operations": [{ "operation": "exit", "reason": "It is enough." }],
        })),
        "writer" => written("# Parts\n\nAll 99 tasks are done."),
        _ if request.holds_itself(NESTED) && !is_child && request.turns() == 0 => {
            act("plan", json!({ "goal": "Count the ships" }))
        }
        _ => done("The part is known."),
    }
}

fn fold(log: &[&Entry]) -> Option<RunState> {
    let mut state = None;
    log.iter().try_for_each(|entry| apply(&mut state, entry)).unwrap();
    state
}

/// Pauses and claims that the log of a run does not explain.
fn judge(run: &RunState, log: &[&Entry]) -> Vec<String> {
    let mut broken = unsupported_claims(run, log.iter().copied());
    let pauses =
        log.windows(2).filter(|pair| pair[1].at.0.saturating_sub(pair[0].at.0) > LONGEST_PAUSE_MILLIS);
    broken.extend(pauses.map(|pair| {
        let waits = fold(&log[..=log.iter().position(|entry| entry.seq == pair[0].seq).unwrap()]);
        let waits = waits
            .into_iter()
            .flat_map(|run| run.tasks)
            .map(|(task, state)| format!("{task} {:?}", state.status));
        let pause = pair[1].at.0 - pair[0].at.0;
        format!("run {} had no event for {pause} ms: {:?}", run.id.short(), waits.collect::<Vec<_>>())
    }));
    if !run.status.is_ended() {
        broken.push(format!("run {} has not ended", run.id.short()));
    }
    broken
}

/// Differences between the summary that a client received and the log of the run.
fn differences(run: &RunState, summary: &Value, code: Option<i32>) -> Vec<String> {
    let expected = match run.status {
        RunStatus::Completed if is_completed_in_part(run) => 6,
        RunStatus::Completed => 0,
        RunStatus::Aborted(_) => 4,
        RunStatus::Failed | RunStatus::Created | RunStatus::Processing => 1,
    };
    let pairs = [
        ("exit code", json!(expected), json!(code)),
        ("status", json!(run.status), summary["status"].clone()),
        ("complete", json!(expected == 0), summary["complete"].clone()),
        ("count", json!(count(run)), summary["count"].clone()),
        ("usage", json!(run.used()), summary["usage"].clone()),
    ];
    let differ = pairs.into_iter().filter(|(_, logged, received)| logged != received);
    differ
        .map(|(field, logged, received)| {
            format!("run {}: {field} {received}, by the log {logged}", run.id.short())
        })
        .collect()
}

/// A run that did not complete although agents of all roles that it needs are online.
fn needless_failure(wanted: &RandomFleet, run: &RunState) -> Option<String> {
    let needed = [Role::Planner, Role::Worker, Role::Researcher, Role::Writer].into_iter();
    let named = wanted.plan.tasks.iter().filter_map(|task| task.role.as_deref()?.parse().ok());
    let is_possible = needed.chain(named).all(|role| wanted.has(&role));
    (is_possible && run.status != RunStatus::Completed)
        .then(|| format!("run {} could be done and is {:?}: {:?}", run.id.short(), run.status, run.reason))
}
