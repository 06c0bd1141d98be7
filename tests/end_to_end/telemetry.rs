//! What a fleet tells of itself: spans by OTLP, figures for Prometheus, log lines with the run they are of. One fleet, in which
//! a worker and an orchestrator are killed.

mod prometheus;
mod receiver;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use muster_support::fleet::{Folder, wait_until};
use muster_support::model_server::{ModelServer, Script};
use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use serde_json::{Value, json};

use super::deaths::{Catch, Scene, never, script};
use super::orchestrators::owner;
use super::support::{folder, one_call, signal, with_model};
use prometheus::scraped;
use receiver::{Receiver, check, hex, said};

const LIMIT: Duration = Duration::from_secs(60);

/// The trace of somebody who asks for a run.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Asks for something over HTTP, and gives what stands above the body, and the body.
fn asked(address: &str, path: &str, accept: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn is_well(head: &str) -> bool {
    head.starts_with("HTTP/1.") && head.contains(" 200 ")
}

/// Asks for something over HTTP, and gives the body.
fn get(address: &str, path: &str, accept: &str) -> String {
    let (head, body) = asked(address, path, accept);
    assert!(is_well(&head), "{address}{path}: {head}\n{body}");
    body
}

/// The sum of all samples of a figure whose line holds these words.
fn figure(text: &str, name: &str, words: &[&str]) -> f64 {
    let mine = text.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with([' ', '{'])) && words.iter().all(|word| line.contains(word))
    });
    mine.map(|line| line.split(" # ").next().unwrap().rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn addresses(folder: &Folder, role: &str) -> Vec<String> {
    let listed = folder.json(&["ps", "--json"]).unwrap();
    let of_role = listed.as_array().unwrap().iter().filter(|one| one["role"] == role);
    of_role.map(|one| one["metrics"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_run_is_one_trace_whoever_dies_and_figures_and_logs_lead_to_it() {
    let (receiver, at) = (Receiver::start(), free_address());
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=sesame%20open"),
        ("OTEL_SERVICE_NAME", "harbour"),
        ("OTEL_BSP_SCHEDULE_DELAY", "200"),
    ];
    let folder = variables.into_iter().fold(folder(), |folder, (name, value)| folder.with(name, value));
    let listen = format!("metrics.listen={at}");
    let settings =
        ["--set", &listen, "--set", "log.format=json", "--set", "log.level=info,muster_agents=debug"];
    let scale = ["--scale", "worker=2", "--scale", "orchestrator=2"];
    let catch = Catch { step: 3, times: 2, reply: never };
    let mut scene = Scene::begin_in(folder, script(1, catch), &[&settings[..], &scale].concat());

    // First the worker dies in the midst of a call, then whoever decides, while the next one makes that call.
    scene.wait_for_calls(3, 1);
    let (first, pid) = scene.holder("1");
    signal(pid, Signal::SIGKILL);
    scene.wait_for_calls(3, 2);
    let (second, worker) = scene.holder("1");
    let (_, orchestrator) = owner(scene.fleet.folder(), "last");
    signal(orchestrator, Signal::SIGKILL);
    signal(worker, Signal::SIGKILL);
    let summary = scene.summary();
    let run = summary["run"].as_str().unwrap().to_owned();
    let folder = scene.fleet.folder();

    let root = || receiver.trace(&run).values().any(|span| span.parent_span_id.is_empty());
    wait_until("the span of the run is received", LIMIT, root).unwrap();
    let live = receiver.trace(&run);
    check(&live, None);
    let tries: Vec<_> = live.values().filter(|span| said(span, "muster.task.attempt").is_some()).collect();
    let of_task = |task: &str| {
        tries.iter().filter(|span| said(span, "muster.task.id").as_deref() == Some(task)).count()
    };
    assert_eq!((of_task("plan"), of_task("write"), of_task("reflect-1")), (1, 1, 1));
    assert_eq!(of_task("1"), 3);
    let by = |agent: &str| {
        let found = tries.iter().find(|span| said(span, "gen_ai.agent.id").as_deref() == Some(agent));
        *found.unwrap_or_else(|| panic!("{agent} in {tries:#?}"))
    };
    assert_eq!(said(by(&first), "error.type").as_deref(), Some("agent_lost"));
    assert_eq!(by(&second).links.len(), 1, "{:#?}", by(&second));
    assert_eq!(
        by(&second).links[0].span_id,
        by(&first).span_id,
        "whoever takes over is linked to whoever had it"
    );
    let of = |operation: &str| {
        live.values().filter(|span| said(span, "gen_ai.operation.name").as_deref() == Some(operation)).count()
    };
    let usage = &summary["usage"];
    assert_eq!(of("execute_tool"), usage["tool_calls"].as_u64().unwrap() as usize, "{usage}");
    let wasted = usage["wasted_calls"].as_u64().unwrap_or(0);
    assert_eq!(of("chat") as u64, usage["model_calls"].as_u64().unwrap(), "{usage}, {wasted} wasted");
    let (services, keys) = receiver.senders();
    assert!(services.iter().all(|name| name.contains("harbour")), "{services:?}");
    assert!(keys.iter().all(|key| key == "sesame open"), "{keys:?}");

    after_the_fact(folder, &receiver, &run);
    below_another_trace(folder, &receiver);
    // What was seen last leads to the trace of the last run.
    figures(folder, &at, TRACE);
    log_lines(folder, &run);
}

/// Guards and tool servers tell figures of their own, which are found where everybody's are.
#[test]
fn those_that_take_no_tasks_tell_their_figures_too() {
    let (at, arguments) = (free_address(), json!({ "thought": "I say it.", "word": "ant" }));
    let script = Script::answering(move |request| one_call(request, "own_say", &arguments));
    let server = ModelServer::start(script).unwrap();
    let folder = with_model(&server);
    folder.write(".config/muster/muster.toml", "[guards.secrets]\n").unwrap();
    let tool = "description = \"Says words.\"\ncommand = [\"echo\", \"said\"]\nsandbox = false\n\n[parameters]\n\
                type = \"object\"\nproperties.word.type = \"string\"\n";
    folder.write("tools/say.tool.toml", tool).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    let listen = format!("metrics.listen={at}");
    // The only flag: none of it reaches the processes, each of which has a separate port.
    let fleet = folder.with("MUSTER_AGENT_MODEL", "openai/scripted").up(&["--set", &listen]).unwrap();
    let folder = fleet.folder();
    let roles = ["guard-secrets", "tools-own"];
    let are_there =
        || roles.iter().all(|role| addresses(folder, role).iter().any(|address| !address.is_empty()));
    wait_until("all of them say where their figures are", LIMIT, are_there).unwrap();
    let run = ["run", "Note down the word.", "--planning", "always", "--json", "--deadline", "60s"];
    let summary = folder.json(&run).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());

    let told = |role: &str| -> String {
        addresses(folder, role).iter().map(|address| get(address, "/metrics", "text/plain")).collect()
    };
    let guard = told("guard-secrets");
    assert!(figure(&guard, "muster_guard_verdicts_total", &["before_tool", "allow"]) >= 1.0, "{guard}");
    assert!(
        figure(&guard, "muster_guard_verdict_duration_seconds_count", &["before_tool"]) >= 1.0,
        "{guard}"
    );
    let tools = told("tools-own");
    assert_eq!(figure(&tools, "muster_served_calls_total", &["own.say", "success"]), 1.0, "{tools}");
    let targets = get(&at, "/targets", "");
    for role in roles {
        let told = told(role);
        assert!(figure(&told, "process_resident_memory_bytes", &[]) > 0.0, "{role}: {told}");
        assert!(targets.contains(&format!("\"role\":\"{role}\"")), "{targets}");
    }
}

/// The same spans come of the record, whenever they are made.
fn after_the_fact(folder: &Folder, receiver: &Receiver, run: &str) {
    let live = receiver.trace(run);
    let sent = folder.run(&["trace", run, "--otlp", receiver.url()]).unwrap();
    assert!(sent.status.success(), "{}", muster_support::fleet::both(&sent));
    let again = receiver.trace(run);
    assert_eq!(
        again.keys().collect::<Vec<_>>(),
        live.keys().collect::<Vec<_>>(),
        "live, every span was sent"
    );

    folder.output(&["trace", run, "--otlp", "spans.jsonl"]).unwrap();
    let text = std::fs::read_to_string(folder.path().join("spans.jsonl")).unwrap();
    let read =
        |line: &str| serde_json::from_str::<ExportTraceServiceRequest>(line).expect("it is OTLP's JSON");
    let in_file: Vec<_> = text
        .lines()
        .map(read)
        .flat_map(|request| request.resource_spans)
        .flat_map(|one| one.scope_spans)
        .flat_map(|one| one.spans)
        .collect();
    assert_eq!(in_file.len(), live.len());
    for span in in_file {
        assert_eq!(live.get(&hex(&span.span_id)), Some(&span), "both forms say the same");
    }
    let content = folder.output(&["trace", run, "--otlp", "-", "--content"]).unwrap();
    assert!(content.contains("gen_ai.input.messages") && content.contains("Add up list 1"), "{content}");
    for (to, wanted) in [
        ("ftp://a", "no address of a receiver"),
        ("none/spans.jsonl", "cannot be written"),
        ("http://127.0.0.1:9", "cannot be reached"),
        ("http:// ", "no address"),
    ] {
        let failed = folder.run(&["trace", run, "--otlp", to]).unwrap();
        let words = muster_support::fleet::both(&failed);
        assert!(!failed.status.success() && words.contains(wanted), "{to}: {words}");
    }
}

/// A run stands below the span of whoever asked for it. Nobody waits for a receiver that is away for a while.
fn below_another_trace(folder: &Folder, receiver: &Receiver) {
    let (trace, span) = (TRACE, "b7ad6b7169203331");
    receiver.be_away(true);
    let mut command = folder.command(&["run", "Add up the lists.", "--json", "--deadline", "60s"]);
    let asked =
        command.env("TRACEPARENT", format!("00-{trace}-{span}-01")).stdout(Stdio::piped()).output().unwrap();
    let summary: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}");
    wait_until("the receiver is asked", LIMIT, || receiver.refused() > 0).unwrap();
    receiver.be_away(false);
    let ended = || receiver.trace(trace).values().any(|one| hex(&one.parent_span_id) == span);
    wait_until("the span of the run is received", LIMIT, ended).unwrap();
    check(&receiver.trace(trace), Some(span));
}

fn figures(folder: &Folder, at: &str, run: &str) {
    let fleet = get(at, "/metrics", "text/plain");
    assert_eq!(figure(&fleet, "muster_bus_up", &[]), 1.0, "{fleet}");
    assert_eq!(figure(&fleet, "muster_processes", &["worker"]), 2.0, "{fleet}");
    assert_eq!(figure(&fleet, "muster_process_restarts_total", &[]), 3.0, "three were killed: {fleet}");
    let targets: Value = serde_json::from_str(&get(at, "/targets", "")).unwrap();
    assert!(targets.as_array().unwrap().len() >= 8, "{targets:#}");
    let printed = folder.output(&["metrics"]).unwrap();
    assert_eq!(figure(&printed, "muster_processes", &[]), figure(&fleet, "muster_processes", &[]));
    assert_eq!(
        folder.json(&["metrics", "--targets"]).unwrap().as_array().unwrap().len(),
        targets.as_array().unwrap().len()
    );

    let read = |role: &str, accept: &str| -> String {
        addresses(folder, role).iter().map(|address| get(address, "/metrics", accept)).collect()
    };
    let workers = read("worker", "application/openmetrics-text");
    let exemplar = format!("# {{trace_id=\"{run}\"}}");
    assert!(
        workers
            .lines()
            .any(|line| line.starts_with("muster_step_duration_seconds_bucket") && line.contains(&exemplar)),
        "{workers}"
    );
    assert!(figure(&workers, "muster_tool_calls_total", &["calculator", "success"]) >= 7.0, "{workers}");
    assert!(figure(&workers, "muster_model_tokens_total", &["openai", "input"]) > 0.0, "{workers}");
    assert!(figure(&workers, "muster_step_duration_seconds_count", &["worker"]) >= 8.0, "{workers}");
    let orchestrators = read("orchestrator", "text/plain");
    assert!(figure(&orchestrators, "muster_runs_ended_total", &["completed"]) >= 1.0, "{orchestrators}");
    assert!(figure(&orchestrators, "muster_spans_sent_total", &[]) > 10.0, "{orchestrators}");
    assert!(!orchestrators.contains("trace_id"), "{orchestrators}");
    scraped(folder, at, run);
}

/// Lines of agents say which run, task, step and trace they are of.
fn log_lines(folder: &Folder, run: &str) {
    let logs = folder.logs();
    let lines: Vec<Value> = logs.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of_task: Vec<&Value> =
        lines.iter().filter(|line| line["run"] == run && line["task"] == "1").collect();
    assert!(!of_task.is_empty(), "{logs}");
    let ended = of_task.iter().find(|line| line["message"] == "the task is out of hand");
    let ended = ended.unwrap_or_else(|| panic!("{of_task:#?}"));
    assert_eq!(ended["trace_id"], run, "{ended}");
    assert!(ended["span_id"].as_str().unwrap().len() == 16 && ended["attempt"].as_u64() > Some(0), "{ended}");
    assert!(ended["step"].as_u64() > Some(1), "{ended}");
}
