//! What models are sent: it can be read back exactly, with nobody alive, and its stable part comes first.

use std::sync::Arc;

use muster_bus::Bus;
use muster_support::fleet::both;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::json;

use super::help::{act, done, plan_and_report};
use super::support::with_model;

fn answer(request: &CapturedRequest) -> Reply {
    let task = json!({ "name": "the sum", "goal": "Add up.", "role": "worker" });
    plan_and_report(request, &[task], "# Sum\n\n5").unwrap_or_else(|| match request.turns() {
        turn @ 0..2 => act("calculator", json!({ "expression": format!("{} + 1", turn + 2) })),
        _ => done("It is 5."),
    })
}

#[test]
fn what_was_sent_is_read_back_and_vouched_for_with_nobody_alive() {
    let server = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = with_model(&server);
    let output = folder.run(&["run", "Add two and three.", "--model", "openai/scripted", "--quiet"]).unwrap();
    assert!(output.status.success(), "{}\n{}", both(&output), folder.logs());
    assert!(folder.state().is_none(), "the fleet of the run is gone");

    let log = server.log();
    let asked: Vec<&CapturedRequest> = log.iter().map(|entry| &*entry.request).collect();
    let worker: Vec<_> =
        asked.into_iter().filter(|request| request.system().contains("You are a worker")).collect();
    assert_eq!(worker.len(), 3);
    for pair in worker.windows(2) {
        assert!(pair[1].messages.starts_with(&pair[0].messages), "the stable part comes first");
    }
    for (step, request) in ["1", "2", "3"].iter().zip(&worker) {
        let shown = folder.json(&["prompt", "last", "1", step, "--json"]).unwrap();
        assert_eq!(shown["check"], "matches", "{shown}");
        let messages = shown["messages"].as_array().unwrap();
        assert_eq!(messages.len(), request.messages.len());
        for (shown, sent) in messages.iter().zip(&request.messages) {
            assert_eq!(shown["role"], sent.role.as_str());
            assert!(shown["content"].as_str().unwrap().contains(sent.text.trim()), "{shown} for {sent:?}");
        }
        let tools: Vec<&str> =
            shown["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(tools, request.tools);
    }

    let diff = folder.output(&["prompt", "last", "1", "--diff"]).unwrap();
    assert!(diff.contains("Since step 2: 4 messages"), "{diff}");
    assert!(diff.contains("\n+ [result of step-2]") && !diff.contains("\n- "), "{diff}");
    let missing = folder.run(&["prompt", "last", "1", "9"]).unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(both(&missing).contains("1, 2, 3"), "{}", both(&missing));

    let replayed = folder.json(&["replay", "--json"]).unwrap();
    assert_eq!(replayed["same"], true, "{replayed}");
}

/// An object of the fleet's store is put away, as by somebody who cleans up too much.
fn remove(object: &str, url: &str) {
    let settings = muster_support::way::settings(url);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let bus = Bus::connect(&settings, &"remover".parse().unwrap(), Arc::default()).await.unwrap();
        assert!(bus.store().has(object).await.unwrap());
        bus.store().delete(object).await.unwrap();
    });
}

#[test]
fn tools_are_kept_once_for_all_runs_and_what_is_missing_is_said() {
    let server = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = with_model(&server);
    let fleet = folder.up(&["--set", "agent.model=openai/scripted"]).unwrap();
    let (folder, url) = (fleet.folder(), fleet.url());
    let run = || {
        let output = folder.run(&["run", "Add two and three.", "--quiet"]).unwrap();
        assert!(output.status.success(), "{}\n{}", both(&output), folder.logs());
    };
    let shown = |step: &str| folder.json(&["prompt", "last", "1", step, "--json"]).unwrap();
    run();
    let first = shown("1");
    assert_eq!(first["check"], "matches", "{first}");
    // A worker's first task may end before the object is there: its steps hold the tools then.
    let refers = || {
        run();
        shown("3")["tools_object"].is_string()
    };
    assert!((0..6).any(|_| refers()), "no step refers to the tools");
    let second = shown("3");
    assert_eq!((&second["check"], &second["tools"]), (&json!("matches"), &first["tools"]));
    assert_eq!(second["parameters"]["tools"], first["parameters"]["tools"], "{second}");
    let object = second["tools_object"].as_str().expect("the tools are in an object").to_owned();

    remove(&object, &url);
    let without = shown("3");
    assert_eq!((&without["check"], &without["tools"]), (&json!("tools_missing"), &json!([])));
    assert_eq!(without["messages"], second["messages"]);
    let told = folder.output(&["prompt", "last", "1", "3"]).unwrap();
    assert!(told.contains(&format!("object {object}, which holds them, is not in the store")), "{told}");
    let replayed = folder.json(&["replay", "--json"]).unwrap();
    assert_eq!(replayed["same"], true, "{replayed}");
    // Whoever works goes on.
    run();
    assert_eq!(shown("3")["check"], "tools_missing");
}
