//! Trials with real processes: a canary that does worse is withdrawn by rule, and a shadow that lies and would write reaches
//! nothing.

use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use muster_support::workload::{self, Speech};
use serde_json::{Value, json};

use super::support::with_model;

const LIMIT: Duration = Duration::from_secs(60);
const ASK: [&str; 5] = ["run", "Work out the eight sums.", "--json", "--set", "limits.max_width=8"];
const LIE: &str = "swordfish";

/// The usual model does as it should; another one as this says.
fn server(tried: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static) -> ModelServer {
    let script = Script::answering(move |request| match request.model.as_str() {
        "tried" => tried(request),
        _ => workload::answer(request, Speech::Native),
    });
    ModelServer::start(script).unwrap()
}

fn with(server: &ModelServer, trial: &str) -> Folder {
    let folder = with_model(server);
    let prices = "[agent.prices.scripted]\ninput = 3.0\noutput = 15.0\n[agent.prices.tried]\ninput = 1.0\noutput = 5.0\n";
    let text = format!(
        "[agent]\nmodel = \"openai/scripted\"\n{prices}[limits]\nplanning = \"always\"\nwriter = \"always\"\n{trial}"
    );
    folder.write("muster.toml", text).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    folder
}

fn asked_of_tried(server: &ModelServer) -> usize {
    server.log().iter().filter(|entry| entry.request.model == "tried").count()
}

fn trial(fleet: &Fleet) -> Value {
    fleet.folder().json(&["trials", "--json"]).unwrap()[0].clone()
}

fn run(fleet: &Fleet) -> Value {
    let summary = fleet.folder().json(&ASK).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", fleet.folder().logs());
    summary
}

#[test]
fn a_canary_that_does_worse_is_withdrawn_by_rule_and_seen_to_be() {
    let server = server(|_| Reply::refusing("I would rather not."));
    let settings = "[trials.cheap]\nrole = \"worker\"\nmode = \"canary\"\nvariant_model = \"openai/tried\"\n\
                    share = 50\nwithdraw_after = 1\n";
    let fleet = with(&server, settings).up(&[]).unwrap();
    assert_eq!(trial(&fleet)["stands"], "goes on");
    // Which tasks it gets is told by the run's id: both sides have some in one of a few runs.
    let mut runs = 0;
    while trial(&fleet)["stands"] != "withdrawn" {
        // Tasks that the variant declines to the end before the trial is withdrawn leave the run completed in part.
        let ended = fleet.folder().run(&ASK).unwrap();
        assert!(matches!(ended.status.code(), Some(0 | 6)), "{ended:?}");
        runs += 1;
        assert!(runs < 8, "{}", trial(&fleet));
    }
    let stands = trial(&fleet);
    assert!(stands["withdrawn"]["by"].as_str().unwrap().starts_with("rule, in run"), "{stands}");
    let trace = fleet.folder().output(&["trace", "last"]).unwrap();
    assert!(trace.contains("trial cheap is withdrawn:") && trace.contains("trial cheap: canary"), "{trace}");
    let explained = fleet.folder().output(&["explain", "last", "--full"]).unwrap();
    assert!(explained.contains("trial cheap"), "{explained}");
    fleet.folder().output(&["replay", "last"]).unwrap();
    let compared = fleet.folder().json(&["compare", "cheap", "--json"]).unwrap();
    assert_eq!(compared["second"]["success"]["passed"], 0, "{compared}");
    assert_eq!(compared["paired"], false);
    // What was withdrawn stays so, until a person has it go on.
    let before = asked_of_tried(&server);
    assert!(before > 0);
    run(&fleet);
    assert_eq!(asked_of_tried(&server), before, "nothing goes to it");
    fleet.folder().output(&["trials", "resume", "cheap"]).unwrap();
    assert_eq!(trial(&fleet)["stands"], "goes on");
    fleet.folder().output(&["trials", "withdraw", "cheap", "--reason", "enough is known"]).unwrap();
    run(&fleet);
    assert_eq!(asked_of_tried(&server), before);
    let told = fleet.folder().output(&["trials"]).unwrap();
    assert!(told.contains("withdrawn") && told.contains("enough is known"), "{told}");
    let unknown = fleet.folder().run(&["trials", "withdraw", "nothing"]).unwrap();
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn a_shadow_that_lies_and_would_write_reaches_nothing_and_is_paid_for_apart() {
    let server = server(|request| match request.tool_results() {
        0 => Reply::call(
            "workspace.write",
            &json!({ "thought": "I write it down.", "path": "lie.txt", "content": LIE }),
        ),
        _ => Reply::call(
            "submit",
            &json!({ "thought": "Done.", "ending": "done", "conclusion": LIE, "findings": [] }),
        ),
    });
    let settings = "[trials.other]\nrole = \"worker\"\nvariant_model = \"openai/tried\"\nshare = 100\n\
                    [trials.other.budget]\nmodel_calls = 500\n";
    let fleet = with(&server, settings).up(&[]).unwrap();
    let summary = run(&fleet);
    assert!(!summary.to_string().contains(LIE), "{summary}");
    wait_until("all shadows have ended", LIMIT, || {
        let stands = trial(&fleet);
        stands["shadows_open"] == 0 && stands["shadows_used"]["model_calls"].as_u64() >= Some(16)
    })
    .unwrap_or_else(|late| panic!("{late}: {}\n{}", trial(&fleet), fleet.folder().logs()));
    let run_id = summary["run"].as_str().unwrap();
    // What it used is of its own accounts.
    let usual = server.log().iter().filter(|entry| entry.request.model != "tried").count();
    assert_eq!(summary["usage"]["model_calls"].as_u64(), Some(usual as u64), "{summary}");
    assert_eq!(trial(&fleet)["shadows_used"]["model_calls"].as_u64(), Some(asked_of_tried(&server) as u64));
    let whole = fleet.folder().output(&["trace", run_id, "--full"]).unwrap();
    assert!(!whole.contains(LIE) && whole.contains("done once more as a shadow"), "{whole}");
    // Nothing was written, and it was told why.
    let runs = fleet.folder().json(&["runs", "--json", "--limit", "50"]).unwrap();
    let shadows: Vec<&Value> =
        runs.as_array().unwrap().iter().filter(|run| run["shadow_of"]["run"] == run_id).collect();
    assert_eq!(shadows.len(), 8, "{runs}");
    let shadow = shadows[0]["run"].as_str().unwrap();
    assert!(fleet.folder().output(&["runs"]).unwrap().contains("trial other, shadow of"));
    let trace = fleet.folder().output(&["trace", shadow]).unwrap();
    assert!(trace.contains("this task may") && trace.contains("trial other: shadow"), "{trace}");
    let files = fleet.folder().output(&["artifacts", shadow]).unwrap();
    assert!(!files.contains("lie.txt"), "{files}");
    fleet.folder().output(&["replay", shadow]).unwrap();
    fleet.folder().output(&["replay", run_id]).unwrap();
    let compared = fleet.folder().json(&["compare", "other", "--json"]).unwrap();
    assert_eq!((&compared["paired"], compared["least"].as_u64()), (&json!(true), Some(8)), "{compared}");
    let cost = &compared["measures"][1];
    assert_eq!(cost["says"], "less", "it is cheaper: {compared}");
    let text = fleet.folder().output(&["compare", "other"]).unwrap();
    assert!(text.contains("that both did, pair by pair"), "{text}");
}
