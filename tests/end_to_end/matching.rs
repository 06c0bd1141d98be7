//! Who is asked to do a task: by what it needs, by what came of earlier work, and who else when one dies.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use muster_support::fleet::{EFFORT, Folder, both, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use muster_support::process::Running;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::help::{done, plan_and_report, submit};
use super::support::{of_kind, signal, with_model};

const LIMIT: Duration = Duration::from_secs(30);

/// A clerk that the test started.
struct Clerk(Running);

impl Clerk {
    /// Joins as a clerk that can do this, with these words in its prompt.
    fn joins(folder: &Folder, name: &str, capability: &str, words: &str) -> Self {
        Self::defined(folder, name, &format!("capabilities: [{capability}]"), words)
    }

    /// Joins as a clerk of which its file says this, with these words in its prompt.
    fn defined(folder: &Folder, name: &str, says: &str, words: &str) -> Self {
        let file = format!("{name}.agent.md");
        let text = format!("---\nrole: clerk\ndescription: Looks things up.\n{says}\n---\n{words}\n");
        folder.write(&file, text).unwrap();
        let mut command = folder.command(&["agent", &file]);
        let clerk = Self(Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()));
        wait_until("the clerk has joined", LIMIT, || clerk.name(folder).is_some()).unwrap();
        clerk
    }

    fn pid(&self) -> u32 {
        self.0.0.id()
    }

    /// Its name in the fleet, once it has joined.
    fn name(&self, folder: &Folder) -> Option<String> {
        let listed = folder.json(&["ps", "--json"]).ok()?;
        let own = listed.as_array()?.iter().find(|one| one["pid"] == self.pid())?.clone();
        own["agent"].as_str().map(str::to_owned)
    }
}

/// Plans so many tasks for clerks, each of which needs this. Whoever is told to be of no use gives up.
fn answer(request: &CapturedRequest, tasks: usize, need: &str) -> Reply {
    let task = |n| {
        let goal = format!("Look up paragraph {n}.");
        json!({ "name": format!("paragraph {n}"), "goal": goal, "role": "clerk", "needs": [need] })
    };
    let tasks: Vec<Value> = (1..=tasks).map(task).collect();
    plan_and_report(request, &tasks, "# Law").unwrap_or_else(|| match request.holds("Be of no use.") {
        true => submit(
            &json!({ "thought": "No.", "ending": "give_up", "reason": "I cannot read", "conclusion": "" }),
        ),
        false => done("So it says."),
    })
}

fn ask(folder: &Folder) -> Value {
    folder
        .json(&[
            "run",
            "Look the paragraphs up.",
            "--planning",
            "always",
            "--model",
            "openai/scripted",
            "--json",
        ])
        .unwrap()
}

/// The processes that started a leaf of the newest run.
fn started(folder: &Folder, task: &str) -> Vec<u64> {
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let started = of_kind(&trace, "started").filter(|entry| entry["task"] == task);
    started.map(|entry| entry["event"]["pid"].as_u64().unwrap()).collect()
}

#[test]
fn a_task_goes_to_whoever_of_its_role_can_do_what_it_needs() {
    let server = ModelServer::start(Script::answering(|request| answer(request, 2, "Law"))).unwrap();
    let folder = with_model(&server);
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let lawyer = Clerk::joins(folder, "lawyer", "law", "Be exact.");
    let doctor = Clerk::joins(folder, "doctor", "medicine", "Be kind.");
    let summary = ask(folder);
    assert_eq!(summary["status"], "completed", "{summary}");
    for task in ["1", "2"] {
        assert_eq!(started(folder, task), [u64::from(lawyer.pid())], "task {task}");
    }
    // The record says why, for people and for machines, and a replay needs nothing else.
    let (lawyer, doctor) = (lawyer.name(folder).unwrap(), doctor.name(folder).unwrap());
    let told = folder.output(&["trace", "last"]).unwrap();
    assert!(told.contains(&format!("1 goes to {lawyer}: it can do what is needed: law")), "{told}");
    assert!(told.contains(&format!("not to {doctor}: it lacks law")), "{told}");
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let whole = serde_json::to_string(&trace).unwrap();
    assert!(whole.contains(&format!("\"to\":\"@{lawyer}\"")) && whole.contains("it lacks law"), "{whole}");
    assert_eq!(folder.json(&["replay", "last", "--json"]).unwrap()["same"], true);
}

#[test]
fn a_task_that_is_tried_again_is_offered_though_several_are_equally_fit() {
    let asked = AtomicUsize::new(0);
    let server =
        ModelServer::start(Script::answering(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::call("submit", &json!({"ending": "give_up", "reason": "not today"})),
            _ => Reply::call("submit", &json!({"ending": "done", "conclusion": "The swallow flies fast."})),
        }));
    let server = server.unwrap();
    let folder = with_model(&server);
    let folder = folder.with(EFFORT, "quick");
    let fleet = folder.up(&["--scale", "worker=3"]).unwrap();
    let begun = Instant::now();
    let question =
        ["run", "How fast does the swallow fly?", "--model", "openai/scripted", "--deadline", "90s"];
    let run = fleet.folder().run(&question).unwrap();
    assert!(begun.elapsed() < LIMIT, "it stood still: {}", both(&run));
    assert!(started(fleet.folder(), "1").len() > 1, "nothing was tried again: {}", both(&run));
}

#[test]
fn who_failed_much_in_earlier_runs_is_passed_over() {
    let server = ModelServer::start(Script::answering(|request| answer(request, 2, "law"))).unwrap();
    let folder = with_model(&server);
    let fleet = folder.up(&["--set", "limits.max_replans=0", "--set", "limits.max_refinements=0"]).unwrap();
    let folder = fleet.folder();
    let useless = Clerk::joins(folder, "useless", "law", "Be of no use.");
    let first =
        folder.run(&["run", "Look the paragraphs up.", "--planning", "always", "--model", "openai/scripted"]);
    let first = both(&first.unwrap());
    let known = || {
        let listed = folder.json(&["ps", "--json"]).unwrap();
        let own = listed.as_array().unwrap().iter().find(|one| one["pid"] == useless.pid()).cloned();
        own.is_some_and(|own| own["track_record"]["failed"].as_u64() == Some(4))
    };
    wait_until("what it did is known", LIMIT, known).unwrap_or_else(|error| panic!("{error}\n{first}"));
    assert!(folder.output(&["ps"]).unwrap().contains("0/4"));

    let useful = Clerk::joins(folder, "useful", "law", "Be exact.");
    let summary = ask(folder);
    assert_eq!(summary["status"], "completed", "{summary}");
    for task in ["1", "2"] {
        assert_eq!(started(folder, task), [u64::from(useful.pid())], "task {task}");
    }
    let told = folder.output(&["trace", "last"]).unwrap();
    assert!(told.contains("too much of its work went wrong: 0 of 4 tasks done"), "{told}");
    assert_eq!(folder.json(&["replay", "last", "--json"]).unwrap()["same"], true);
}

#[test]
fn a_task_goes_elsewhere_when_the_agent_it_went_to_is_killed() {
    let hanging = |request: &CapturedRequest| {
        let reply = answer(request, 1, "law");
        if request.holds("Be slow.") { reply.with_delay(Duration::from_secs(60)) } else { reply }
    };
    let server = ModelServer::start(Script::answering(hanging)).unwrap();
    let folder = with_model(&server);
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let _doctor = Clerk::joins(folder, "doctor", "medicine", "Be kind.");
    let slow = Clerk::joins(folder, "slow", "law", "Be slow.");
    let goal =
        ["run", "Look the paragraphs up.", "--planning", "always", "--model", "openai/scripted", "--quiet"];
    let mut asking = folder.command(&goal).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    server
        .wait_until(LIMIT, |server| server.arrived() >= 2)
        .unwrap_or_else(|error| panic!("{error}\n{}", folder.logs()));
    let lawyer = Clerk::joins(folder, "lawyer", "law", "Be exact.");
    signal(slow.pid(), Signal::SIGKILL);
    let ended = wait_until("the run has ended", LIMIT, || asking.try_wait().unwrap().is_some());
    // It has ended already unless something went wrong.
    let _ended = asking.kill();
    let status = asking.wait().unwrap();
    ended.unwrap_or_else(|error| panic!("{error}\n{}", folder.logs()));
    assert!(status.success(), "{status}\n{}", folder.logs());
    assert_eq!(started(folder, "1"), [u64::from(slow.pid()), u64::from(lawyer.pid())]);
    assert_eq!(folder.json(&["replay", "last", "--json"]).unwrap()["same"], true);
}

#[test]
fn a_task_goes_to_whose_contract_it_fits() {
    let server = ModelServer::start(Script::answering(|request| {
        if request.system().contains("You are the planner") {
            let task = |name: &str, expected: &str, after: &[&str]| {
                let goal = format!("Look up the {name}.");
                json!({ "name": name, "goal": goal, "role": "clerk", "expected_output": expected, "depends_on": after })
            };
            let tasks = [task("paragraphs", "A list.", &[]), task("sum", "The sum, as data.total.", &["paragraphs"])];
            submit(&json!({ "thought": "So.", "goal": "Look it up.", "tasks": tasks }))
        } else if request.holds("Add up.") {
            let data = json!({ "total": 3 });
            submit(&json!({ "thought": "3.", "ending": "done", "conclusion": "3.", "findings": [], "data": data }))
        } else {
            answer(request, 0, "")
        }
    }))
    .unwrap();
    let folder = with_model(&server);
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let reads = "contract: {input: {properties: {documents: {minimum: 1}}}}";
    let reader = Clerk::defined(folder, "reader", reads, "Read.");
    let adds =
        "contract: {input: {properties: {inputs: {minItems: 1}}}, output: {type: object, required: [total]}}";
    let adder = Clerk::defined(folder, "adder", adds, "Add up.");
    let scribe = Clerk::joins(folder, "scribe", "law", "Be exact.");

    let summary = ask(folder);
    assert_eq!(summary["status"], "completed", "{summary}");
    assert_eq!(started(folder, "1"), [u64::from(scribe.pid())], "there are no documents, and nothing to add");
    assert_eq!(started(folder, "2"), [u64::from(adder.pid())], "it alone promises a total");
    let told = folder.output(&["trace", "last"]).unwrap();
    let [reader, adder, scribe] = [reader, adder, scribe].map(|clerk| clerk.name(folder).unwrap());
    let refuses = "its contract asks for what the task does not bring";
    for part in [
        format!("1 goes to {scribe}: it takes on what the task brings, others do not"),
        format!("not to {reader}: {refuses}: `input.documents`: 0 is less than the minimum of 1"),
        format!("not to {adder}: {refuses}: `input.inputs`: [] has less than 1 item"),
        format!("2 goes to {adder}: it can do what is needed: data.total"),
        format!("not to {scribe}: it lacks data.total"),
    ] {
        assert!(told.contains(&part), "{part:?} in {told}");
    }
    assert_eq!(folder.json(&["replay", "last", "--json"]).unwrap()["same"], true);
}
