//! Where plans come from, and what becomes of those that are refused or fail.

use muster_support::fleet::both;
use muster_support::model_server::{CapturedRequest, Reply};
use serde_json::{Value, json};

use super::scenarios::{Ended, ask, asker, done, learnt, model, plan, submit, written};
use super::support::{folder, of_kind};

const GOAL: &str = "Find out how the old harbour silted up, and explain how it can be cleared.";

fn in_vain(why: &str) -> Reply {
    submit(
        &json!({ "thought": "It cannot be done.", "ending": "escalate", "reason": why, "conclusion": why }),
    )
}

/// The names of what was decided, in order.
fn decided(ended: &Ended) -> Vec<&str> {
    let events = of_kind(&ended.trace, "decided").filter_map(|entry| entry["event"]["events"].as_array());
    events.flatten().filter_map(|event| event["event"].as_str()).collect()
}

fn count(ended: &Ended, name: &str) -> usize {
    decided(ended).into_iter().filter(|event| *event == name).count()
}

#[test]
fn a_plan_with_a_fault_is_mended_where_it_was_made_and_a_failed_one_is_made_anew() {
    let task = |name: &str, on: &[&str], critical: bool| json!({ "name": name, "goal": format!("Find out about {name}."), "depends_on": on, "critical": critical });
    let (server, folder) = model(move |who, request| match who {
        "planner" if request.holds("The plan failed") => {
            assert!(request.holds("the archive burnt down"), "it is told why");
            assert!(request.holds("New tasks are numbered from 4"), "{}", request.last_text());
            assert!(request.holds("The silt came from the river."), "and what there is");
            plan(&json!([task("the memories of the pilots", &["1"], true)]))
        }
        "planner" if request.holds("The plan cannot be carried out yet") => {
            assert!(request.holds("wait for each other"), "{}", request.last_text());
            plan(&json!([
                task("the silt", &[], false),
                task("the charts", &[], true),
                task("the clearing", &["the charts"], false),
            ]))
        }
        "planner" => {
            plan(&json!([task("the silt", &["the charts"], false), task("the charts", &["the silt"], true)]))
        }
        "1" => done("The silt came from the river."),
        "2" => in_vain("the archive burnt down"),
        "4" => {
            assert!(request.holds("The silt came from the river."), "what ended well is built upon");
            done("The pilots remember a weir.")
        }
        "reflector" => learnt("It went as it could."),
        "writer" if request.holds("a weir") => {
            written("# Silt\n\nThe old harbour silted up at a weir. Clear it.")
        }
        "aside" => Reply::json(&json!({ "faults": [] })),
        who => panic!("{who} asks: {:?}", request.messages),
    });
    let ended = ask(&folder, GOAL, &[]);
    let body = ended.summary["report"]["body"].as_str().unwrap();
    let left_out = "- 3 the clearing (left out): new plan 1 has no such task";
    for part in ["silted up at a weir.", "- 2 the charts (failed): the archive burnt down", left_out] {
        assert!(ended.code == 6 && body.contains(part), "{part} in {body}");
    }
    assert_eq!(
        ["1", "2", "3", "4"].map(|task| ended.status(task)),
        ["completed", "failed", "not there", "completed"]
    );
    assert_eq!((count(&ended, "plan_refused"), count(&ended, "replanned")), (0, 1), "{:?}", decided(&ended));
    let asked = server.log().iter().filter(|entry| asker(&entry.request) == "planner").count();
    assert_eq!(asked, 3);
    let changes = ended.state["planning"]["replans"][0]["changes"].to_string();
    assert!(changes.contains("left out 3 the clearing") && changes.contains("new task 4"), "{changes}");
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("[~] 3 the clearing (left out: ") && shown.contains("4 the memories"), "{shown}");
}

#[test]
fn after_three_new_plans_a_run_fails_with_what_was_tried_and_learnt_and_a_simpler_goal() {
    let (server, folder) = model(|who, request| match who {
        "planner" => {
            let made = request.between("New tasks are numbered from ", ";").unwrap_or("1").to_owned();
            let easy =
                json!({ "name": format!("easy {made}"), "goal": format!("Describe the mud, {made}.") });
            let hard = json!({ "name": format!("hard {made}"), "goal": format!("Clear it, {made}."), "critical": true });
            plan(&json!([easy, hard]))
        }
        "reflector" if request.holds("too heavy") => submit(&json!({
            "thought": "So it is.", "summary": "The mud stayed.", "on_plan": ["mud needs a dredger, not a spade"],
        })),
        "reflector" => learnt("The mud is described."),
        _ if request.holds("Describe the mud") && !request.holds("Your task, 2") => {
            let own = request.between("Your task, ", "Progress").unwrap_or_default().to_owned();
            if own.contains("Describe the mud") {
                done("The mud is grey.")
            } else {
                in_vain("too heavy for a spade")
            }
        }
        _ => in_vain("too heavy for a spade"),
    });
    let ended = ask(&folder, GOAL, &[]);
    assert_eq!(
        (ended.code, &ended.summary["status"]),
        (1, &json!("failed")),
        "{}\n{}",
        ended.said,
        folder.logs()
    );
    let given_up = &ended.state["planning"]["given_up"];
    let plans = given_up["plans"].as_array().unwrap();
    assert_eq!((plans.len(), count(&ended, "replanned")), (4, 3), "{given_up}");
    for (number, failed) in plans.iter().enumerate() {
        let hard = format!("hard {}", 2 * number + 1);
        assert!(failed["tasks"].to_string().contains(&hard), "{hard}: {failed}");
        assert!(failed["reasons"].to_string().contains("too heavy for a spade"), "{failed}");
    }
    assert!(given_up["lessons"].to_string().contains("mud needs a dredger"), "{given_up}");
    assert!(given_up["simpler"].as_str().unwrap().contains("Describe the mud"), "{given_up}");
    for words in ["4 plans failed", "too heavy for a spade", "Ask for less", "Describe the mud"] {
        assert!(ended.said.contains(words), "{words} is missing:\n{}", ended.said);
    }
    let asked = server.log().iter().filter(|entry| asker(&entry.request) == "planner").count();
    assert_eq!(asked, 4, "no fifth plan is asked for");
    assert!(!server.log().iter().any(|entry| asker(&entry.request) == "writer"));
}

fn in_one_go(who: &str, request: &CapturedRequest) -> Reply {
    match who {
        "reflector" => learnt("It went as planned."),
        "writer" if request.holds("twelve fathoms") => written("It is twelve fathoms deep."),
        "writer" => written("Nobody knows."),
        "planner" => panic!("no plan is to be made"),
        _ => done("It is twelve fathoms."),
    }
}

#[test]
fn a_goal_starts_as_one_task_and_a_later_one_may_follow_it() {
    let (server, folder) = model(in_one_go);
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let first = ask(folder, "How deep is the harbor?", &["--planning", "auto"]);
    assert_eq!(first.report(folder), "It is twelve fathoms deep.");
    assert_eq!(first.state["plan"]["tasks"].as_object().unwrap().len(), 1, "{}", first.state["plan"]);
    assert!(
        first.state["planning"]["skipped"].as_str().unwrap().contains("one agent"),
        "{}",
        first.state["planning"]
    );
    assert!(folder.output(&["trace", "last"]).unwrap().contains("one agent starts with it"));

    let before = server.log().len();
    let second = ask(folder, "And at low water?", &["--continue", "last", "--planning", "auto"]);
    second.report(folder);
    let turn = &second.state["goal"]["conversation"][0];
    assert_eq!(turn["asked"], "How deep is the harbor?", "{turn}");
    let told = server.log()[before..].iter().any(|entry| {
        asker(&entry.request) == "1"
            && entry.request.holds("How deep is the harbor?")
            && entry.request.holds("It is twelve fathoms deep.")
    });
    assert!(told, "whoever does it knows what was asked and answered before");
    let nowhere = folder.run(&["run", "And then?", "--continue", "0193f0c0"]).unwrap();
    assert_eq!(nowhere.status.code(), Some(2), "{}", both(&nowhere));
}

#[test]
fn a_plan_that_is_brought_is_carried_out_as_it_is_or_refused_with_the_reason() {
    let task = |name: &str, goal: &str, on: &[&str]| json!({ "name": name, "goal": goal, "depends_on": on });
    let many: Vec<Value> = (0..500).map(|n| task(&format!("t{n}"), &format!("Do part {n}."), &[])).collect();
    let broken = [
        ("cycle", json!([task("a", "Do a.", &["b"]), task("b", "Do b.", &["a"])]), "wait for each other"),
        ("many", json!(many), "500 tasks"),
        ("unknown", json!([task("a", "Do a.", &["9-9"])]), "\"9-9\""),
        ("reference", json!([task("a", "Go on from {{7.result}}.", &[])]), "{{7.result}}"),
        ("nameless", json!([task(" ", "Do it.", &[])]), "no name"),
        ("aimless", json!([task("a", "", &[])]), "no goal"),
        ("empty", json!([]), "no task"),
    ];
    let (_server, folder) = model(in_one_go);
    let fleet = folder.up(&[]).unwrap();
    let (folder, before) = (fleet.folder(), fleet.pids());
    for (name, tasks, reason) in broken {
        let file = format!("{name}.json");
        folder.write(&file, json!({ "tasks": tasks }).to_string()).unwrap();
        let output = folder.run(&["run", GOAL, "--plan", &file]).unwrap();
        // A message is broken into lines.
        let said = both(&output).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(reason) && said.contains(&file), "{name}: {said}");
    }
    assert_eq!(folder.json(&["runs", "--json"]).unwrap(), json!([]), "nothing was begun");

    let tasks = json!([
        task("depth", "Sound it.", &[]),
        task("use", "Say which ships fit: {{depth.result}}", &["depth"])
    ]);
    folder.write("sound.json", json!({ "tasks": tasks }).to_string()).unwrap();
    let ended = ask(folder, GOAL, &["--plan", "sound.json"]);
    assert_eq!(ended.report(folder), "It is twelve fathoms deep.");
    assert_eq!(["1", "2"].map(|task| ended.status(task)), ["completed"; 2]);
    assert_eq!(fleet.pids(), before, "nobody died of any of it");
}

#[test]
fn a_missing_plan_file_starts_nothing() {
    let folder = folder();
    let output = folder.run(&["run", GOAL, "--plan", "nowhere.json"]).unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(both(&output).contains("nowhere.json"), "{}", both(&output));
    assert!(!folder.path().join(".muster").exists(), "no fleet was brought up");
}
