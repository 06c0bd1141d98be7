//! A team writes a text: a researcher finds, a drafter writes and has a number converted by somebody else, an editor
//! reads, and each is told what those before it gave.

use std::collections::BTreeSet;
use std::time::Duration;

use muster_support::fleet::{both, wait_until};
use muster_support::model_server::{CapturedRequest, Reply};
use serde_json::json;

use super::super::support::of_kind;
use super::{ask, done, learnt, model, plan, submit, written};

const RAIN: &str = "# Rain\n\nSeattle has 37 inches of rain a year.\n";
const DRAFT: &str = "Rain falls on Seattle, 939.8 mm of it a year.";
const EDITED: &str = "Seattle gets 939.8 mm of rain a year.";

fn specialist(role: &str, description: &str) -> String {
    format!("---\nrole: {role}\ndescription: {description}\ncapabilities: [{role}]\n---\nBe brief.\n")
}

fn answer(who: &str, request: &CapturedRequest) -> Reply {
    match (who, request.turns()) {
        ("planner", _) => plan(&json!([
            { "name": "research", "goal": "Find out how much it rains.", "role": "researcher" },
            { "name": "draft", "goal": "Write a paragraph.", "role": "drafter", "depends_on": ["research"] },
            { "name": "edit", "goal": "Make it clearer.", "role": "editor", "depends_on": ["draft"] },
        ])),
        ("1", 0) => Reply::call("corpus_search", &json!({ "thought": "Look.", "query": "rain a year" })),
        ("1", _) => submit(&json!({
            "thought": "There.", "ending": "done", "conclusion": "37 inches a year.", "findings": [{
                "text": "37 inches a year.", "citations": [{ "path": "rain.md", "line": 3, "quote": "37 inches of rain" }],
            }],
        })),
        ("2", 0) => {
            assert!(request.holds("37 inches a year."), "the drafter is told what was found");
            let goal = "Convert 37 inches to mm.";
            Reply::call(
                "delegate",
                &json!({ "thought": "Not my trade.", "name": "convert", "goal": goal, "role": "worker" }),
            )
        }
        ("2", 1) => {
            assert!(request.holds("939.8 mm"), "it goes on with what the other gave");
            Reply::call(
                "workspace_write",
                &json!({ "thought": "Write it down.", "path": "draft.md", "text": DRAFT }),
            )
        }
        ("2", _) => done("The draft stands in draft.md."),
        ("3", 0) => {
            Reply::call("workspace_read", &json!({ "thought": "Read the draft.", "path": "draft.md" }))
        }
        ("3", _) => {
            assert!(request.holds(DRAFT), "the editor sees what the drafter wrote");
            done(EDITED)
        }
        ("4", 0) => Reply::call("calculator", &json!({ "thought": "25.4 each.", "expression": "37 * 25.4" })),
        ("4", _) => done("37 inches are 939.8 mm."),
        ("reflector", _) => learnt("It went as planned."),
        ("writer", _) => written(if request.holds(EDITED) { EDITED } else { "Nobody knows." }),
        (who, _) => panic!("{who} asks: {:?}", request.messages),
    }
}

#[test]
fn each_of_a_team_builds_on_the_one_before_it_and_hands_over_what_is_not_its_own() {
    let (server, folder) = model(answer);
    folder.write("docs/rain.md", RAIN).unwrap();
    folder.write("agents/drafter.agent.md", specialist("drafter", "Writes drafts.")).unwrap();
    folder.write("agents/editor.agent.md", specialist("editor", "Makes drafts clearer.")).unwrap();
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let joined =
        || folder.output(&["ps"]).is_ok_and(|listed| listed.contains("drafter") && listed.contains("editor"));
    wait_until("both have joined", Duration::from_secs(30), joined).unwrap();

    let goal = "Find out how much it rains in Seattle, and write a paragraph about it.";
    let ended = ask(folder, goal, &["--docs", "docs"]);
    assert_eq!(ended.report(folder), EDITED);
    let did = |task: &str| -> BTreeSet<&str> {
        let started = of_kind(&ended.trace, "started").filter(|entry| entry["task"] == task);
        started.map(|entry| entry["role"].as_str().unwrap()).collect()
    };
    let team = ["1", "2", "3", "4"].map(did);
    assert_eq!(team, ["researcher", "drafter", "editor", "worker"].map(|role| BTreeSet::from([role])));
    assert_eq!(ended.state["delegated"]["4"], "2", "the plan has a task more, and knows whose it was");
    assert!(server.violations().is_empty(), "{:?}", server.violations());

    let made = &ended.state["report"]["artifacts"];
    assert_eq!((&made[0]["path"], &made[0]["task"]), (&json!("draft.md"), &json!("2")), "{made}");
    assert!(folder.output(&["artifacts", "last"]).unwrap().contains("draft.md"));
    let copied = folder.output(&["artifacts", "last", "draft.md", "--get", "-o", "here/and/there"]).unwrap();
    assert_eq!(copied.trim(), "here/and/there/draft.md");
    let draft = || std::fs::read_to_string(folder.path().join("here/and/there/draft.md")).unwrap();
    assert_eq!(draft(), DRAFT);
    for (arguments, code, said) in [
        (&["artifacts", "last", "--get", "-o", "here/and/there"][..], 1, "is there already"),
        (&["artifacts", "last", "none.md"], 2, "has no file"),
        (&["artifacts", "last", "-o", "here"], 2, "--get"),
        (&["artifacts", "nothing"], 2, "names no run"),
    ] {
        let output = folder.run(arguments).unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", both(&output));
        assert!(both(&output).contains(said), "{}", both(&output));
    }
    assert_eq!(draft(), DRAFT);
}
