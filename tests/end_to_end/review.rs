//! A person looks at the plan before it is carried out, from another terminal, while orchestrators come and go.

use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::help::{done, plan_and_report, submit};
use super::support::{signal, with_model};

const LIMIT: Duration = Duration::from_secs(60);

fn answer(request: &CapturedRequest) -> Reply {
    if request.system().contains("You are the refiner") && request.holds("leave out the pears") {
        let delete = json!({ "operation": "delete", "task": "2", "reason": "a person wants it so" });
        return submit(&json!({ "thought": "As they wish.", "operations": [delete] }));
    }
    let task = |name: &str| json!({ "name": name, "goal": format!("Count {name}."), "role": "worker" });
    let tasks = ["the apples", "the pears", "the figs"].map(task);
    plan_and_report(request, &tasks, "# Fruit\n\nAll of it.").unwrap_or_else(|| done("They are counted"))
}

fn scripted(model: &ModelServer) -> Folder {
    with_model(model).with("EDITOR", "sed -i s/apples/plums/g").with("USER", "ada")
}

fn ask(fleet: &Fleet, more: &[&str]) -> Child {
    let run = ["run", "How much fruit is there?", "--model", "openai/scripted", "--json"];
    let arguments = [&run[..], more].concat();
    fleet.folder().command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(asker: Child) -> (i32, Value, String) {
    let output = asker.wait_with_output().unwrap();
    let summary = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap_or(-1), summary, both(&output))
}

/// Waits until this question of the newest run is the only one that waits.
fn until_asked(fleet: &Fleet, number: u32) -> Value {
    let mut found = Value::Null;
    wait_until("it is asked", LIMIT, || {
        found = fleet.folder().json(&["questions", "--json"]).unwrap_or_default();
        found[0]["question"] == number
    })
    .unwrap_or_else(|late| panic!("{late}: {found}\n{}", fleet.folder().logs()));
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    found[0].clone()
}

fn refused(fleet: &Fleet, arguments: &[&str]) -> (i32, String) {
    let output = fleet.folder().run(arguments).unwrap();
    (output.status.code().unwrap_or(-1), both(&output))
}

/// Whether a worker was asked about a task that holds these words.
fn worked_on(model: &ModelServer, words: &str) -> bool {
    let log = model.log();
    log.iter().any(|entry| entry.request.system().contains("You are a worker") && entry.request.holds(words))
}

#[test]
fn a_plan_is_rejected_changed_edited_and_approved_while_the_orchestrator_is_killed() {
    let model = ModelServer::start(Script::answering(answer)).unwrap();
    let fleet = scripted(&model).up(&[]).unwrap();
    let asker = ask(&fleet, &["--review"]);

    let asked = until_asked(&fleet, 1);
    assert_eq!(asked["asked"]["about"], "plan", "{asked}");
    for arguments in [&["questions"][..], &["show", "last"]] {
        let said = fleet.folder().output(arguments).unwrap();
        for wanted in ["muster approve", "muster reject", "1  approve", "3  edit", "the run is stopped in"] {
            assert!(said.contains(wanted), "{arguments:?}: {said}");
        }
    }
    let states = || {
        let [shown, runs] = [&["show", "last", "--json"][..], &["runs", "--json"]]
            .map(|arguments| fleet.folder().json(arguments).unwrap());
        [shown["state"].clone(), runs[0]["state"].clone()]
    };
    assert_eq!(states(), ["waits for an answer"; 2]);
    for arguments in [&["runs"][..], &["ps"], &["show", "last"]] {
        assert!(fleet.folder().output(arguments).unwrap().contains("waits for "), "{arguments:?}");
    }
    // No word approves, and none is a change of the plan.
    for text in ["Nothing to change", "согласен", "off"] {
        let told = fleet.folder().output(&["answer", "last", "1", text]).unwrap();
        assert!(told.contains("question 1 stays open"), "{text}: {told}");
    }
    assert_eq!(states(), ["waits for an answer"; 2]);

    // It waits on with another orchestrator.
    let before = fleet.pid("orchestrator-1").unwrap();
    signal(before, Signal::SIGKILL);
    wait_until("another is there", LIMIT, || fleet.pid("orchestrator-1").is_some_and(|pid| pid != before))
        .unwrap();
    until_asked(&fleet, 1);
    let told = fleet.folder().output(&["reject", "last", "leave out the pears", "--wait", "60s"]).unwrap();
    assert!(told.contains("question 1 is answered") && told.contains("the plan will be refined"), "{told}");

    let asked = until_asked(&fleet, 2);
    assert!(
        asked["asked"]["question"]["reason"].as_str().unwrap().contains("deleted 2 the pears"),
        "{asked}"
    );
    let (code, said) = refused(&fleet, &["answer", "last", "1", "approve"]);
    assert!(code == 1 && said.contains("question 1 was answered by ada"), "{code}: {said}");

    // What cannot be carried out is refused, and the run is unharmed.
    let plan = fleet.folder().output(&["approve", "last", "--show"]).unwrap();
    fleet
        .folder()
        .write("broken.toml", plan.replacen("depends_on = []", "depends_on = [\"the moon\"]", 1))
        .unwrap();
    let (code, said) = refused(&fleet, &["approve", "last", "--plan", "broken.toml"]);
    assert!(code == 1 && said.contains("cannot be used"), "{code}: {said}");
    fleet.folder().write("broken.toml", "tasks = 7").unwrap();
    let (code, said) = refused(&fleet, &["approve", "last", "--plan", "broken.toml"]);
    assert!(code == 2 && said.contains("cannot be read"), "{code}: {said}");
    assert!(!worked_on(&model, "Count"), "nothing was begun");

    let told = fleet.folder().output(&["answer", "last", "2", "edit"]).unwrap();
    assert!(told.contains("the plan stands as edited") && told.contains("question 2 is answered"), "{told}");
    let (code, summary, said) = end(asker);
    assert_eq!((code, &summary["status"]), (0, &json!("completed")), "{said}\n{}", fleet.folder().logs());
    assert!(worked_on(&model, "Count the plums.") && worked_on(&model, "Count the figs."));
    assert!(!worked_on(&model, "Count the pears.") && !worked_on(&model, "Count the apples."));
    assert!(fleet.folder().output(&["replay", "last"]).is_ok(), "every decision can be made again");
    let (code, said) = refused(&fleet, &["approve", "last"]);
    assert!(code == 2 && said.contains("has ended (completed)"), "{code}: {said}");
    assert!(fleet.folder().output(&["questions"]).unwrap().contains("no question waits"));
}

#[test]
fn a_plan_that_nobody_looks_at_goes_by_the_policy() {
    let model = ModelServer::start(Script::answering(answer)).unwrap();
    let fleet = scripted(&model).up(&["--set", "limits.people.answer_within=300ms"]).unwrap();
    let (_, summary, said) = end(ask(&fleet, &["--review"]));
    assert_eq!(
        summary["status"],
        json!({ "aborted": "deadline_passed" }),
        "{said}\n{}",
        fleet.folder().logs()
    );
    let all = fleet.folder().output(&["questions", "last", "--all"]).unwrap();
    assert!(all.contains("withdrawn: no approval in time") && !worked_on(&model, "Count"), "{all}");
}

/// A decision may come long after the outcome of a task: all outputs show the task as it is.
#[test]
fn a_finished_task_is_shown_in_every_output_before_it_is_decided() {
    let model = ModelServer::start(Script::answering(|request: &CapturedRequest| {
        let slow = !request.system().contains("You are the ") && request.holds("Count the figs.");
        if slow { answer(request).with_delay(LIMIT) } else { answer(request) }
    }))
    .unwrap();
    let fleet = scripted(&model).up(&[]).unwrap();
    let asker = ask(&fleet, &["--planning", "always"]);
    let folder = fleet.folder();
    let tree = || folder.output(&["show", "last"]).unwrap_or_default();
    wait_until("two are counted", LIMIT, || tree().contains("2 of 3 tasks done")).unwrap();
    let shown = folder.json(&["show", "last", "--json"]).unwrap();
    let runs = folder.json(&["runs", "--json"]).unwrap();
    for (of, count) in [("show", &shown["count"]), ("runs", &runs[0]["count"])] {
        assert_eq!((&count["done"], &count["in_work"]), (&json!(2), &json!(1)), "{of}: {count}");
    }
    let statuses = ["1", "2", "3"].map(|task| shown["tasks"][task]["status"].clone());
    assert_eq!(statuses, ["completed", "completed", "processing"]);
    assert!(!shown["tasks"]["1"]["outcome"].is_null() && tree().matches("[x] ").count() == 3, "{}", tree());
    assert_eq!([&shown["state"], &runs[0]["state"]], ["in work", "in work"]);
    assert_eq!(shown["usage"], runs[0]["usage"]);
    folder.output(&["cancel", "last"]).unwrap();
    end(asker);
}

#[test]
fn a_question_is_answered_where_the_run_is_watched() {
    let model = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = scripted(&model);
    let terminal = nix::pty::openpty(None, None).unwrap();
    let run =
        ["run", "How much fruit is there?", "--model", "openai/scripted", "--review", "--output", "out.md"];
    let mut asker = folder.command(&run);
    asker.stdin(Stdio::from(terminal.slave.try_clone().unwrap()));
    asker.stderr(Stdio::from(terminal.slave)).stdout(Stdio::null());
    let mut child = asker.spawn().unwrap();
    drop(asker);

    let mut screen = std::fs::File::from(terminal.master);
    let mut keys = screen.try_clone().unwrap();
    let shown = Arc::new(Mutex::new(String::new()));
    let reader = std::thread::spawn({
        let shown = Arc::clone(&shown);
        move || {
            let mut piece = [0; 4096];
            // Reading fails when the other side is gone.
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        }
    });
    let has = |text: &str| shown.lock().unwrap().contains(text);
    let until = |text: &str| {
        wait_until(text, LIMIT, || has(text))
            .unwrap_or_else(|late| panic!("{late}: {}\n{}", shown.lock().unwrap(), folder.logs()));
    };
    until("type the answer");
    assert!(has("muster approve"), "and it says how to answer elsewhere: {}", shown.lock().unwrap());
    keys.write_all(b"leave out the pears\n").unwrap();
    until("sent as the answer to question 1");
    // Feedback repeats the question; a rejection has the plan changed by it.
    for (times, choice) in [(2, &b"2\n"[..]), (3, b"approve\n")] {
        let asked = || shown.lock().unwrap().matches("type the answer").count() >= times;
        wait_until("it is asked again", LIMIT, asked).unwrap();
        keys.write_all(choice).unwrap();
    }
    assert!(child.wait().unwrap().success(), "{}\n{}", shown.lock().unwrap(), folder.logs());
    drop(keys);
    reader.join().unwrap();
    assert!(!worked_on(&model, "Count the pears.") && worked_on(&model, "Count the figs."));
}
