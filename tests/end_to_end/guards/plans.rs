//! Plans that no planner made, and reports of runs that are given up: they wait for guards like any other.

use std::process::Child;

use super::*;

/// Looks into two topics, then sums up.
const STEPS: &str = "name = \"looks\"\nversion = \"1.0\"\ngoal = \"Look into it.\"\n\n[params.topics]\ntype = \"list\"\n\
    default = [\"ants\", \"bees\"]\n\n[[steps]]\nid = \"look\"\ngoal = \"Look into {{item}}.\"\n\
    for_each = \"params.topics\"\n\n[[steps]]\nid = \"sum\"\ngoal = \"Sum up: {{look.result}}\"\nif = \"look.ok\"\n";

/// The planner makes these tasks of it; whoever does one says that it is done, or that it cannot be.
fn doers(tasks: Vec<Value>) -> Script {
    script_of(tasks, |request: &CapturedRequest| match request.holds("Count the pears.") {
        true => super::super::help::submit(
            &json!({ "thought": "No.", "ending": "escalate", "reason": "the pears are gone", "conclusion": "" }),
        ),
        false => done("It is worked out."),
    })
}

fn task(name: &str, on: &[&str]) -> Value {
    json!({ "name": name, "goal": format!("Count {name}."), "role": "worker", "depends_on": on })
}

/// A fleet with a guard that this test plays, whose answers are waited for.
fn guarded(script: Script, more: &[&str]) -> (ModelServer, Fleet) {
    let server = ModelServer::start(script).unwrap();
    let folder = folder().with("USER", "ada");
    folder.write("muster.toml", EYE).unwrap();
    folder.write("looks.toml", STEPS).unwrap();
    let usual = ["--set", "limits.reflection=none"];
    let fleet = up(&server, folder, &[&usual[..], more].concat());
    (server, fleet)
}

fn by_blueprint(folder: &Folder, more: &[&str]) -> Value {
    let usual = ["run", "--blueprint", "looks.toml", "--json"];
    let output = folder.run(&[&usual[..], more].concat()).unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", both(&output)))
}

fn reason(summary: &Value) -> &str {
    assert_eq!(summary["status"], "failed", "{summary}");
    summary["reason"].as_str().unwrap()
}

#[test]
fn plans_of_blueprints_are_changed_and_refused() {
    let (server, fleet) = guarded(doers(Vec::new()), &[]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");
    eye.at("before_plan", |payload| reworded(payload, "ants", "wasps"));
    completed(&by_blueprint(folder, &[]), folder);
    let worked_on = |words: &str| server.log().iter().any(|entry| entry.request.holds(words));
    assert!(worked_on("Look into wasps.") && !worked_on("Look into ants."));
    let asked = eye.asked("before_plan");
    assert_eq!(asked.len(), 2, "each time that it grows: {asked:?}");
    let names = |at: usize| asked[at]["payload"]["plan"]["tasks"][0]["name"].clone();
    assert_eq!((names(0), names(1), &asked[0]["role"]), (json!("look"), json!("sum"), &json!("")));
    trace(folder);

    eye.at("before_plan", |_| refuse("too bold"));
    let (arrived, summary) = (server.arrived(), by_blueprint(folder, &[]));
    let words = "the plan that was made from the blueprint looks was refused by guard eye: too bold";
    assert_eq!(reason(&summary), words);
    assert_eq!(server.arrived(), arrived, "nothing was begun");
    trace(folder);

    // What comes later is asked about when it comes, and what was done is told of.
    eye.at("before_plan", |payload| match payload.to_string().contains("Sum up") {
        true => refuse("no sums"),
        false => allow(),
    });
    let summary = by_blueprint(folder, &[]);
    assert!(reason(&summary).contains("(sum) was refused by guard eye: no sums"), "{summary}");
    assert!(summary["report"]["body"].as_str().unwrap().contains("It is worked out."), "{summary}");
    trace(folder);

    // Which tasks there are is the blueprint's.
    eye.at("before_plan", |payload| {
        let mut payload = payload.clone();
        payload["plan"]["tasks"] = json!([]);
        json!({ "verdict": "change", "reason": "none is best", "payload": payload })
    });
    let summary = by_blueprint(folder, &[]);
    assert!(reason(&summary).contains("which tasks there are cannot be changed"), "{summary}");
    trace(folder);
}

#[test]
fn a_guard_that_hangs_holds_the_plan_of_a_blueprint_up_as_its_setting_says() {
    let server = ModelServer::start(doers(Vec::new())).unwrap();
    let folder = folder();
    folder.write("looks.toml", STEPS).unwrap();
    let fleet = up(&server, folder, &["--set", "limits.reflection=none"]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    stranger.serve("guard.hangs", "hangs", |_| None).unwrap();
    for on_failure in ["refuse", "allow"] {
        let set = [
            "guards.hangs.hooks=before_plan".to_owned(),
            "guards.hangs.timeout=300ms".to_owned(),
            format!("guards.hangs.on_failure={on_failure}"),
        ];
        let more: Vec<&str> = set.iter().flat_map(|set| ["--set", set.as_str()]).collect();
        let arrived = server.arrived();
        let summary = by_blueprint(folder, &[&more[..], &["--deadline", "6s"]].concat());
        let asked = trace(folder)
            .iter()
            .map(|entry| entry.to_string().matches("\"guards_asked\"").count())
            .sum::<usize>();
        if on_failure == "allow" {
            completed(&summary, folder);
            assert_eq!(asked, 2);
            continue;
        }
        assert!(reason(&summary).contains("guard hangs did not answer within 300 ms"), "{summary}");
        assert!(asked > 1, "it is asked again while there is time: {asked}");
        assert_eq!(server.arrived(), arrived, "nothing was begun");
        assert!(summary["refused_without_verdict"]["hangs"]["times"].as_u64().unwrap() >= 1, "{summary}");
    }
}

fn ask(folder: &Folder, more: &[&str]) -> Child {
    let usual = ["run", "How much fruit is there?", "--planning", "always", "--json", "--deadline", "60s"];
    folder.command(&[&usual[..], more].concat()).stdout(Stdio::piped()).spawn().unwrap()
}

fn end(asker: Child) -> Value {
    serde_json::from_slice(&asker.wait_with_output().unwrap().stdout).unwrap()
}

fn until_asked(folder: &Folder) {
    let waits = || {
        let asked = folder.json(&["questions", "--json"]).unwrap_or_default();
        asked[0]["question"].is_u64()
    };
    wait_until("a person is asked", LIMIT, waits).unwrap();
}

fn steer(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let output = folder.run(arguments).unwrap();
    let words: Vec<String> = both(&output).replace('│', " ").split_whitespace().map(str::to_owned).collect();
    (output.status.code().unwrap_or(-1), words.join(" "))
}

#[test]
fn what_a_person_makes_of_a_plan_is_changed_and_refused_and_the_person_is_told() {
    let (server, fleet) = guarded(doers(vec![task("the apples", &[]), task("the figs", &[])]), &[]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");
    let asker = ask(folder, &["--review"]);
    until_asked(folder);
    let plan = folder.output(&["approve", "last", "--show"]).unwrap();
    folder.write("plums.toml", plan.replace("apples", "plums")).unwrap();

    eye.at("before_plan", |_| refuse("plums are none of ours"));
    let (code, said) = steer(folder, &["approve", "last", "--plan", "plums.toml"]);
    let words = "the change was refused by guard eye: plums are none of ours; the plan stays as it was";
    assert!(code == 1 && said.contains(words), "{code}: {said}");
    let (code, said) = steer(folder, &["edit", "last", "2", "--goal", "Count the dates."]);
    assert!(code == 1 && said.contains(words), "{code}: {said}");
    assert_eq!(folder.output(&["approve", "last", "--show"]).unwrap(), plan, "it waits on as it was");

    // What cannot be done nobody is asked about.
    let asked = eye.asked("before_plan").len();
    let (code, said) = steer(folder, &["edit", "last", "2", "--goal", "Use {{nobody.result}}."]);
    assert!(code == 1 && said.contains("nobody"), "{code}: {said}");
    assert_eq!(eye.asked("before_plan").len(), asked);

    eye.at("before_plan", |payload| reworded(payload, "dates", "olives"));
    let (code, said) = steer(folder, &["edit", "last", "2", "--goal", "Count the dates."]);
    assert!(code == 0 && said.contains("changed by guard eye: olives is better"), "{code}: {said}");
    assert!(said.contains("2 has a new goal"), "{said}");
    let edited = folder.output(&["approve", "last", "--show"]).unwrap();
    assert!(edited.contains("Count the olives.") && edited.contains("Count the apples."), "{edited}");

    eye.at("before_plan", |payload| reworded(payload, "plums", "quinces"));
    folder.write("plums.toml", edited.replace("apples", "plums")).unwrap();
    let (code, said) = steer(folder, &["approve", "last", "--plan", "plums.toml", "--json"]);
    assert!(
        code == 0 && said.contains("plan_edited") && said.contains("question_answered"),
        "{code}: {said}"
    );
    completed(&end(asker), folder);
    let worked_on = |words: &str| server.log().iter().any(|entry| entry.request.holds(words));
    assert!(worked_on("Count the quinces.") && worked_on("Count the olives."));
    assert!(!worked_on("Count the plums.") && !worked_on("Count the dates."));
    trace(folder);
}

#[test]
fn a_change_that_a_hanging_guard_does_not_answer_about_is_not_made_and_the_run_goes_on() {
    let (server, fleet) = guarded(doers(vec![task("the apples", &[]), task("the figs", &[])]), &[]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");
    let asker = ask(folder, &["--review"]);
    until_asked(folder);
    eye.at("before_plan", |_| Value::Null);
    let (code, said) = steer(folder, &["edit", "last", "2", "--goal", "Count the dates.", "--wait", "1s"]);
    assert!(code == 1 && said.contains("have not answered within 1.0s"), "{code}: {said}");
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("guards are asked about a change of the plan by ada"), "{shown}");
    let (code, said) = steer(folder, &["edit", "last", "1", "--goal", "Count the plums."]);
    assert!(code == 1 && said.contains("waits for guards"), "{code}: {said}");
    // Nothing else waits for it.
    folder.output(&["approve", "last"]).unwrap();
    let summary = end(asker);
    completed(&summary, folder);
    let worked_on = |words: &str| server.log().iter().any(|entry| entry.request.holds(words));
    assert!(worked_on("Count the figs.") && !worked_on("Count the dates."));
    trace(folder);
}

#[test]
fn the_report_of_a_run_that_is_given_up_is_changed_and_refused() {
    let mut pears = task("the pears", &["the apples"]);
    pears["critical"] = json!(true);
    let more = ["--set", "limits.max_replans=1"];
    let (_server, fleet) = guarded(doers(vec![task("the apples", &[]), pears]), &more);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");
    let given_up = || {
        let summary = end(ask(folder, &[]));
        assert!(reason(&summary).contains("the goal was not reached"), "{summary}");
        trace(folder);
        summary["report"]["body"].as_str().unwrap().to_owned()
    };
    let body = given_up();
    assert!(body.contains("It is worked out.") && body.contains("## What was tried"), "{body}");
    let asked = eye.asked("before_report");
    assert_eq!(asked.len(), 1, "{asked:?}");
    eye.at("before_report", |payload| reworded(payload, "It is worked out.", "It is [withheld]."));
    let body = given_up();
    assert!(body.contains("It is [withheld].") && !body.contains("It is worked out."), "{body}");
    eye.at("before_report", |_| refuse("say less"));
    let body = given_up();
    assert!(body.contains("the guards of reports did not let it through"), "{body}");
    assert!(!body.contains("It is worked out.") && body.contains("## What to ask instead"), "{body}");
}

#[test]
fn work_that_is_handed_over_is_asked_about() {
    let script = script_of(vec![task("the fruit", &[])], |request: &CapturedRequest| {
        let brief = request.messages.get(1).map_or("", |message| message.text.as_str());
        match (brief.contains("Count the fruit."), request.turns()) {
            (true, 0) => {
                act("delegate", json!({ "name": "figs", "goal": "Count the figs.", "role": "worker" }))
            }
            _ => done("It is worked out."),
        }
    });
    let (server, fleet) = guarded(script, &[]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");
    eye.at("before_plan", |payload| reworded(payload, "Count the figs.", "Count the dates."));
    completed(&end(ask(folder, &[])), folder);
    let worked_on = |words: &str| server.log().iter().any(|entry| entry.request.holds(words));
    assert!(worked_on("Count the dates."), "{}", folder.output(&["trace", "last"]).unwrap());
    assert_eq!(eye.asked("before_plan").len(), 2);
    trace(folder);
}
