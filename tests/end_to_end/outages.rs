//! Providers that do not answer: the whole fleet keeps away from them, and says so.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use muster_support::fleet::{Folder, both};
use muster_support::model_server::{Fault, ModelServer, Reply, Script};
use muster_support::workload::{self, MODEL_CALLS, Speech};

use super::support::{of_kind, with_model};

const ASK: [&str; 6] = ["run", "Work out the eight sums.", "--model", "openai/scripted", "--deadline", "90s"];

fn with_settings(server: &ModelServer, settings: &str) -> Folder {
    let folder = with_model(server);
    folder.write("muster.toml", format!("[limits]\nmax_width = 8\n{settings}")).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    folder
}

#[test]
fn a_provider_that_only_refuses_is_left_alone_by_all_and_said_to_be() {
    let server = ModelServer::start(Script::new().otherwise(Reply::status(429, None))).unwrap();
    let folder = with_settings(&server, "[agent.breaker]\npatience = \"10s\"\n");
    let fleet = folder.up(&["--scale", "worker=2"]).unwrap();
    let mut command = fleet.folder().command(&ASK);
    let asker = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    loop {
        let listed = fleet.folder().output(&["ps"]).unwrap();
        if listed.contains("openai does not answer (429 too many requests") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{listed}");
        std::thread::sleep(Duration::from_millis(100));
    }
    for machine in [&["ps", "--json"][..], &["doctor", "--json"]] {
        let said = both(&fleet.folder().run(machine).unwrap());
        assert!(said.contains("openai does not answer (429 too many requests"), "{machine:?}: {said}");
    }
    let output = asker.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}", both(&output));
    assert!(
        told.contains("openai does not answer (429 too many requests") && told.contains("trying again"),
        "{told}"
    );
    let shown = fleet.folder().output(&["show", "last"]).unwrap();
    assert!(shown.contains("openai does not answer (429 too many requests"), "{shown}");
    assert!(server.arrived() <= 20, "{} calls", server.arrived());
}

#[test]
fn an_outage_burns_nobodys_tries() {
    const FAILED: usize = 4;
    let count = AtomicUsize::new(0);
    let script = Script::answering(move |request| match count.fetch_add(1, Ordering::SeqCst) {
        // In the midst of the work, and for longer than one call is tried.
        call if (20..20 + FAILED).contains(&call) => Reply::status(503, None),
        _ => workload::answer(request, Speech::Native),
    });
    let server = ModelServer::start(script).unwrap();
    let quick = "[agent.retries]\nattempts = 2\n";
    let folder = with_settings(&server, quick);
    let output = folder.run(&ASK).unwrap();
    let said = format!("{}\n{}", both(&output), folder.logs());
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(server.arrived(), MODEL_CALLS + FAILED, "{said}");
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    assert_eq!(of_kind(&trace, "outcome").count(), 18, "{said}");
}

#[test]
fn a_model_that_is_silent_is_told_of_within_seconds() {
    let server = ModelServer::start(Script::new().otherwise(Reply::fault(Fault::Hang))).unwrap();
    let quick = "[agent.calls]\ncall = \"7s\"\n[agent.breaker]\npatience = \"8s\"\n";
    let folder = with_settings(&server, quick);
    let output = folder.run(&ASK).unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("task plan: no answer from openai/scripted for 5 s"), "{told}");
    assert!(told.contains("openai does not answer (no answer in time"), "{told}");
    assert_eq!(output.status.code(), Some(1), "{}", both(&output));
    assert!(server.arrived() <= 6, "{} calls", server.arrived());
}

#[test]
fn where_there_is_another_model_it_is_asked_instead() {
    let dead = ModelServer::start(Script::new().otherwise(Reply::status(503, None))).unwrap();
    let alive = ModelServer::start(workload::script(Duration::ZERO, Speech::Native)).unwrap();
    let quick = "[agent]\nfallback_models = [\"anthropic/scripted\"]\n[agent.retries]\nattempts = 2\n";
    let folder = with_settings(&dead, quick)
        .with("ANTHROPIC_API_KEY", "test-key-for-the-scripted-server")
        .with("ANTHROPIC_BASE_URL", format!("{}/v1", alive.url()));
    let output = folder.run(&ASK).unwrap();
    let said = format!("{}\n{}", both(&output), folder.logs());
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(alive.arrived(), MODEL_CALLS, "{said}");
    // Without a breaker each call would have tried the dead one five times before.
    assert!(dead.arrived() <= 30, "{} calls of the dead one", dead.arrived());
}
