//! Budgets of runs and of the fleet, a provider's rate, and what is refused above the limits.

use std::process::Stdio;
use std::time::Duration;

use muster_support::fleet::{Folder, both};
use muster_support::model_server::{ModelServer, Reply, Script};
use muster_support::workload::{self, MODEL_CALLS, Speech};
use serde_json::Value;

use super::support::with_model;

const ASK: [&str; 7] = [
    "run",
    "Work out the eight sums.",
    "--model",
    "openai/scripted",
    "--json",
    "--set",
    "limits.max_width=8",
];

fn server() -> ModelServer {
    ModelServer::start(workload::script(Duration::ZERO, Speech::Native)).unwrap()
}

/// Asks, and gives exit code, summary and everything that was said.
fn ask(folder: &Folder, more: &[&str]) -> (i32, Value, String) {
    let output = folder.run(&[&ASK[..], more].concat()).unwrap();
    let summary = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap_or(-1), summary, format!("{}\n{}", both(&output), folder.logs()))
}

#[test]
fn a_run_makes_no_more_calls_than_it_may_and_its_report_says_what_is_missing() {
    let server = server();
    let folder = with_model(&server);
    let (code, summary, said) = ask(&folder, &["--max-calls", "20"]);
    assert_eq!((code, &summary["status"]), (6, &Value::from("completed")), "{said}");
    assert_eq!(summary["complete"], false, "{summary}");
    assert!(summary["count"]["in_part"].as_u64() > Some(0), "{summary}");
    assert!(server.arrived() <= 20, "{} calls", server.arrived());
    let body = summary["report"]["body"].as_str().unwrap_or_default();
    assert!(body.contains("The budget did not suffice (20 model calls)"), "{body}");
    assert!(body.contains("## What was not done") && body.contains("(done in part)"), "{body}");
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("of 20 model calls"), "{shown}");
}

#[test]
fn a_run_that_cannot_even_report_is_stopped() {
    let server = server();
    let folder = with_model(&server);
    for most in ["1", "3"] {
        let (code, summary, said) = ask(&folder, &["--max-calls", most]);
        assert_eq!(code, 4, "{said}");
        assert_eq!(summary["status"]["aborted"], "budget_exhausted", "{summary}");
        let reason = summary["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(&format!("({most} model call")), "{reason}");
    }
    assert!(server.arrived() <= 4, "{} calls", server.arrived());
}

#[test]
fn what_there_is_is_delivered_when_the_report_cannot_be_paid_for() {
    let script = Script::answering(|request| {
        let is_writer = request.system().contains("You are the writer");
        if is_writer { Reply::status(500, None) } else { workload::answer(request, Speech::Native) }
    });
    let server = ModelServer::start(script).unwrap();
    let folder = with_model(&server);
    let (code, summary, said) = ask(&folder, &["--max-calls", "44"]);
    assert_eq!((code, &summary["status"]["aborted"]), (4, &Value::from("budget_exhausted")), "{said}");
    assert!(server.arrived() <= 44, "{} calls", server.arrived());
    let report = &summary["report"];
    assert_eq!(report["partial"], true, "{summary}");
    let body = report["body"].as_str().unwrap_or_default();
    assert!(body.contains("42") && body.contains("its budget (44 model calls) was used up"), "{body}");
}

#[test]
fn a_run_costs_no_more_than_it_may() {
    let server = server();
    let folder = with_model(&server);
    folder.write("muster.toml", "[agent.prices.scripted]\ninput = 3.0\noutput = 15.0\n").unwrap();
    let (_, unlimited, said) = ask(&folder, &[]);
    let cost = unlimited["usage"]["cost_micros"].as_u64().unwrap_or_default();
    assert!(cost > 0, "{said}");
    let limit = cost / 2;
    let dollars = format!("{}.{:06}", limit / 1_000_000, limit % 1_000_000);
    let (code, summary, said) = ask(&folder, &["--max-cost", &dollars]);
    assert!([4, 6].contains(&code), "{said}");
    let used = summary["usage"]["cost_micros"].as_u64().unwrap();
    assert!(used > 0 && used <= limit, "{used} of {limit}: {summary}");
}

#[test]
fn a_cost_that_cannot_be_known_is_not_promised() {
    let server = server();
    let (code, summary, said) = ask(&with_model(&server), &["--max-cost", "1.50"]);
    assert_eq!(code, 4, "{said}");
    let reason = summary["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("agent.prices"), "it says what to set: {reason}");
    assert_eq!(server.arrived(), 0);
}

#[test]
fn the_budget_of_the_fleet_holds_for_all_runs_together() {
    let server = server();
    let folder = with_model(&server);
    let settings =
        "[limits]\nmax_width = 8\n[fleet]\nbudget_per = \"total\"\n[fleet.budget]\nmodel_calls = 60\n";
    folder.write("muster.toml", settings).unwrap();
    let fleet = folder.up(&[]).unwrap();
    let (code, _, said) = ask(fleet.folder(), &[]);
    assert_eq!(code, 0, "{said}");
    let (_, summary, said) = ask(fleet.folder(), &[]);
    assert!(server.arrived() <= 60, "{} calls: {said}", server.arrived());
    let told = format!("{summary}");
    assert!(told.contains("fleet's"), "{told}");
}

#[test]
fn many_agents_on_a_limited_model_slow_down_and_none_fails() {
    const RUNS: usize = 3;
    // Twenty a second, and two for what is on its way between two seconds.
    let script = workload::script(Duration::ZERO, Speech::Native).limited(22, Duration::from_secs(1));
    let server = ModelServer::start(script).unwrap();
    let folder = with_model(&server);
    let settings = "[limits]\nmax_width = 8\n[agent.rates.\"openai/scripted\"]\nrequests_per_minute = 1200\n";
    folder.write("muster.toml", settings).unwrap();
    let fleet = folder.up(&["--scale", "worker=3"]).unwrap();
    let asked: Vec<_> = (0..RUNS)
        .map(|_| {
            let mut command = fleet.folder().command(&ASK);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for asker in asked {
        let output = asker.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}\n{}", both(&output), fleet.folder().logs());
    }
    assert_eq!(server.arrived() - server.refused(), RUNS * MODEL_CALLS, "nothing was answered twice");
    // A busy machine bunches what was sent in time; agents that did not slow down would be refused most of it.
    assert!(
        server.refused() * 4 <= server.arrived(),
        "{} of {} calls were refused",
        server.refused(),
        server.arrived()
    );
}

#[test]
fn without_a_rate_in_the_settings_runs_complete_as_well() {
    let script = workload::script(Duration::ZERO, Speech::Native).limited(15, Duration::from_secs(1));
    let server = ModelServer::start(script).unwrap();
    let (code, summary, said) = ask(&with_model(&server), &[]);
    assert_eq!((code, &summary["status"]), (0, &Value::from("completed")), "{said}");
    assert!(server.refused() > 0, "the test asks too little");
}

#[test]
fn above_its_limits_a_fleet_refuses_at_once_and_finishes_what_it_took() {
    const ASKED: usize = 10;
    const TAKEN: usize = 4;
    let server = ModelServer::start(workload::script(Duration::from_millis(400), Speech::Native)).unwrap();
    let folder = with_model(&server);
    let limits = "[limits]\nmax_width = 8\n[orchestrator]\nmax_runs = 2\nmax_waiting = 2\n";
    folder.write("muster.toml", limits).unwrap();
    let fleet = folder.up(&[]).unwrap();
    let asked: Vec<_> = (0..ASKED)
        .map(|_| {
            let mut command = fleet.folder().command(&ASK);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let outputs: Vec<_> = asked.into_iter().map(|asker| asker.wait_with_output().unwrap()).collect();
    let ended = |code: i32| outputs.iter().filter(move |output| output.status.code() == Some(code));
    let told = || outputs.iter().map(both).collect::<Vec<_>>().join("\n");
    assert_eq!(ended(0).count() + ended(5).count(), ASKED, "{}\n{}", told(), fleet.folder().logs());
    assert!(ended(0).count() >= TAKEN, "{}", told());
    assert!(ended(5).count() > 0, "{}", told());
    for refused in ended(5) {
        let summary: Value = serde_json::from_slice(&refused.stdout).unwrap();
        let reason = summary["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("orchestrator.max_waiting"), "it says what to do: {reason}");
        let time = |key: &str| summary[key].as_u64().unwrap();
        assert!(time("ended_at") - time("created_at") < 1_000, "{summary}");
    }
}
