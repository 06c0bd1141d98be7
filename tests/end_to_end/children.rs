//! Planning as an action: runs within runs.

use std::time::Duration;

use muster_support::fleet::{Folder, both, wait_until};
use muster_support::model_server::{CapturedRequest, Fault, ModelServer, Reply, Script};
use muster_support::process::Running;
use serde_json::{Value, json};

use super::help::plan_and_report;
use super::support::{of_kind, with_model};

const LIMIT: Duration = Duration::from_secs(30);
const TRIAGE: &str = "# Urgent\n\nnone\n\n# Others\n\nT1";

fn submit(conclusion: &str) -> Reply {
    Reply::call("submit", &json!({ "ending": "done", "conclusion": conclusion, "findings": [] }))
}

/// Answers of all roles but workers: the child run counts ships, its parent describes a harbor.
fn others(request: &CapturedRequest, body: &str) -> Option<Reply> {
    let is_child = request.holds("count the ships");
    let (name, goal) =
        if is_child { ("Ships", "count every ship") } else { ("Harbour", "describe the harbour") };
    plan_and_report(request, &[json!({ "name": name, "goal": goal, "role": "worker" })], body)
}

/// The outer task asks for a run of its own; the task of that one gives `inner`.
fn script(action: &Value, inner: impl Fn() -> Reply + Send + Sync + 'static) -> Script {
    let name = action["name"].as_str().unwrap().to_owned();
    let arguments = action["arguments"].clone();
    Script::answering(move |request| {
        let seven = request.holds("seven ships lie there");
        let body = if seven { "# Report\n\nseven ships lie there" } else { "# Report\n\nnobody knows" };
        if let Some(reply) = others(request, body) {
            return reply;
        }
        if request.holds_itself("describe the harbour") && !request.holds("count every ship") {
            let told = request.holds("seven ships lie there") || request.holds("Do it within this task");
            return if told { submit("seven ships lie there") } else { Reply::call(&name, &arguments) };
        }
        inner()
    })
}

fn planning() -> Value {
    json!({ "name": "plan", "arguments": { "goal": "count the ships" } })
}

const ASK: [&str; 6] =
    ["run", "What is in the harbour?", "--planning", "always", "--model", "openai/scripted"];

#[test]
fn a_task_plans_and_goes_on_with_the_report_of_its_run() {
    let server = ModelServer::start(script(&planning(), || submit("seven ships lie there"))).unwrap();
    let folder = with_model(&server);
    let summary = folder.json(&[&ASK[..], &["--json"]].concat()).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    assert!(summary["report"]["body"].as_str().unwrap().contains("seven ships"), "{summary}");

    let runs = folder.json(&["runs", "--json"]).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert_eq!(runs[0]["run"], summary["run"], "the newest run is the one that somebody asked for");
    assert_eq!(runs[1]["parent"]["run"], summary["run"]);
    assert!(folder.output(&["runs"]).unwrap().contains('↳'));
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("Runs within") && shown.contains("Ships"), "{shown}");
    let trace = folder.output(&["trace", "last"]).unwrap();
    assert!(trace.contains("1 waits for a run of its own"), "{trace}");
    assert!(trace.contains("    ") && trace.contains("run created: count the ships"), "{trace}");
    let state = folder.json(&["show", "last", "--json"]).unwrap();
    let inner = state["children"].as_object().unwrap().values().next().unwrap()["end"]["usage"].clone();
    assert!(inner["model_calls"].as_u64() > Some(0));
    assert!(state["usage"]["model_calls"].as_u64() > inner["model_calls"].as_u64(), "what it used counts");
    folder.output(&["replay", "last"]).unwrap();
}

#[test]
fn an_agent_works_by_a_blueprint_and_is_told_what_it_forgot() {
    let action = json!({ "name": "blueprint", "arguments": { "name": "ticket_triage" } });
    let server = ModelServer::start(Script::answering(move |request| {
        if let Some(reply) = others(request, TRIAGE) {
            return reply;
        }
        if !request.holds_itself("describe the harbour") || request.holds("Sort these tickets") {
            return if request.holds_itself("describe the harbour") {
                submit("sorted")
            } else {
                submit("T1 can wait")
            };
        }
        if request.holds("Its report:") {
            return submit("sorted");
        }
        if request.holds("params.tickets: it is not given") {
            let arguments =
                json!({ "name": "ticket_triage", "params": { "tickets": ["T1 the door sticks"] } });
            return Reply::call("blueprint", &arguments);
        }
        if request.holds("Its report:") {
            submit("sorted")
        } else {
            Reply::call("blueprint", &action["arguments"])
        }
    }));
    let server = server.unwrap();
    let folder = with_model(&server);
    let summary = folder.json(&[&ASK[..], &["--json"]].concat()).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("Ticket: T1 the door sticks"), "{shown}");
}

/// A planner that gives its one task the blueprint `call`; nobody else chooses one. The task's worker fills in the
/// tickets when it is told that they are missing.
fn by_blueprint(call: &Value) -> Script {
    let call = call.clone();
    Script::answering(move |request| {
        let is_planner = request.system().contains("You are the planner");
        assert!(!is_planner || request.holds("a list of texts, needed"));
        let mut call = call.clone();
        if request.holds("did you mean ticket_triage?") {
            call["name"] = json!("ticket_triage");
        }
        let task = json!({ "name": "Harbour", "goal": "sort what the harbour wrote", "role": "worker",
            "blueprint": call });
        if let Some(reply) = plan_and_report(request, &[task], TRIAGE) {
            return reply;
        }
        if !request.holds_itself("sort what the harbour wrote") {
            return submit("T1 can wait");
        }
        if request.holds("Its report:") {
            return submit("sorted");
        }
        assert!(request.holds("params.tickets: it is not given"), "the plan has chosen: {request:?}");
        let arguments = json!({ "thought": "The tickets are known here.", "name": "ticket_triage",
            "params": { "tickets": ["T1 the door sticks"] } });
        Reply::call("blueprint", &arguments)
    })
}

/// The steps of the task in the last run: action, how it went, and how often a model was asked for it.
fn steps(folder: &Folder) -> Vec<(String, String, usize)> {
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let steps = of_kind(&trace, "step").filter(|step| step["task"] == "1").map(|step| {
        let content = &step["event"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let calls = content["calls"].as_array().map_or(0, Vec::len);
        (text(&content["action"]["name"]), text(&content["observation"]["status"]), calls)
    });
    steps.collect()
}

#[test]
fn a_planner_gives_a_task_a_blueprint_and_no_model_chooses_it_again() {
    let whole = json!({ "name": "ticket_triage", "params": { "tickets": ["T1 the door sticks"] } });
    let server = ModelServer::start(by_blueprint(&whole)).unwrap();
    let folder = with_model(&server);
    let summary = folder.json(&[&ASK[..], &["--json"]].concat()).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    assert_eq!(steps(&folder), [("blueprint".to_owned(), "success".to_owned(), 0)]);
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("Ticket: T1 the door sticks"), "{shown}");
    let task = folder.output(&["show", "last", "1"]).unwrap();
    assert!(task.contains("blueprint ticket_triage"), "{task}");
    folder.output(&["replay", "last"]).unwrap();
}

#[test]
fn what_the_plan_does_not_know_is_filled_in_and_a_blueprint_that_is_not_there_is_refused() {
    let server = ModelServer::start(by_blueprint(&json!({ "name": "ticket_triages" }))).unwrap();
    let folder = with_model(&server);
    let summary = folder.json(&[&ASK[..], &["--json"]].concat()).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    let expected = [("blueprint", "refused", 0), ("blueprint", "success", 1)];
    let expected = expected.map(|(name, status, calls)| (name.to_owned(), status.to_owned(), calls));
    assert_eq!(steps(&folder), expected);
    let trace = folder.output(&["trace", "last", "--full"]).unwrap();
    assert!(trace.contains("is done by the blueprint \"ticket_triages\", which is not there"), "{trace}");
    folder.output(&["replay", "last"]).unwrap();
}

/// A run whose child hangs at its task.
fn hanging() -> (ModelServer, muster_support::fleet::Fleet) {
    let server = ModelServer::start(script(&planning(), || Reply::fault(Fault::Hang))).unwrap();
    let fleet = with_model(&server).up(&["--scale", "orchestrator=2"]).unwrap();
    (server, fleet)
}

fn states(folder: &Folder) -> Vec<Value> {
    folder.json(&["runs", "--json"]).unwrap().as_array().unwrap().clone()
}

#[test]
fn pausing_and_cancelling_reach_the_run_within() {
    let (_server, fleet) = hanging();
    let folder = fleet.folder();
    let mut asking = Running(folder.command(&ASK).spawn().unwrap());
    wait_until("the inner run is in work", LIMIT, || states(folder).len() == 2).unwrap();
    folder.output(&["pause", "last"]).unwrap();
    wait_until("both are paused", LIMIT, || states(folder).iter().all(|run| !run["paused"].is_null()))
        .unwrap();
    folder.output(&["resume", "last"]).unwrap();
    wait_until("both go on", LIMIT, || states(folder).iter().all(|run| run["paused"].is_null())).unwrap();
    folder.output(&["cancel", "last"]).unwrap();
    let cancelled = || states(folder).iter().all(|run| run["status"]["aborted"] == "cancelled");
    wait_until("both are cancelled", LIMIT, cancelled).unwrap();
    asking.0.wait().unwrap();
}

/// Everything that is asked of tasks reaches those within a task by their path, and what nobody waits for any more is
/// left alone.
#[test]
fn tasks_within_a_task_are_named_by_their_path() {
    let server = ModelServer::start(script(&planning(), || Reply::fault(Fault::Hang))).unwrap();
    let fleet = with_model(&server).up(&[]).unwrap();
    let folder = fleet.folder();
    let mut asking = Running(folder.command(&ASK).spawn().unwrap());
    wait_until("the inner task is in work", LIMIT, || {
        folder.output(&["trace", "last", "1/1"]).is_ok_and(|trace| trace.contains("started"))
    })
    .unwrap();

    // It is shown by the same name.
    let shown = folder.output(&["show", "last", "1/1"]).unwrap();
    assert!(shown.contains("count every ship"), "{shown}");
    assert!(folder.output(&["trace", "last", "1/plan"]).unwrap().contains("plan"));
    assert!(folder.output(&["graph", "last/1"]).unwrap().contains("Ships"));
    let trace = folder.output(&["trace", "last"]).unwrap();
    assert!(trace.lines().any(|line| line.starts_with("    1/ ")), "{trace}");

    // What is wrong is said, and harms nothing.
    for (args, why) in [
        (["skip", "last", "1/7"], "no task 7"),
        (["skip", "last", "1/1/1"], "has no child run"),
        (["redo", "last", "7/1"], "no task 7"),
        (["skip", "last", "1/"], "1/"),
    ] {
        let output = folder.command(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", both(&output));
        assert!(both(&output).contains(why), "{args:?}: {}", both(&output));
    }

    let edited = folder.output(&["edit", "last", "1/1", "--goal", "count every boat"]).unwrap();
    assert!(edited.contains("has a new goal"), "{edited}");
    wait_until("the inner task is done again", LIMIT, || {
        folder.json(&["show", "last", "1/1", "--json"]).is_ok_and(|shown| {
            shown["state"]["generation"].as_u64() > Some(1) && shown["task"]["goal"] == "count every boat"
        })
    })
    .unwrap();
    folder.output(&["redo", "last", "1/1", "--reason", "once more"]).unwrap();
    let skipped = folder.output(&["skip", "last", "1/1", "--reason", "nobody counts boats"]).unwrap();
    assert!(skipped.contains("is left out"), "{skipped}");

    // Without a result the inner run fails, and the task goes on without it.
    assert!(asking.0.wait().unwrap().success(), "{}", folder.logs());
    let trace = folder.output(&["trace", "last"]).unwrap();
    assert!(trace.contains("nobody counts boats"), "the timeline is shared: {trace}");
    let inner = states(folder)[1]["run"].as_str().unwrap().to_owned();
    for run in ["last/1", inner.as_str()] {
        let output = folder.command(&["redo", run, "1"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", both(&output));
        assert!(both(&output).contains("has ended"), "{}", both(&output));
    }
}

/// The inner run is held up by a person who has to decide, so that the outer one can be changed around it.
#[test]
fn what_belongs_to_a_task_that_does_not_wait_any_more_is_left_alone() {
    let server = ModelServer::start(script(&planning(), || submit("seven ships lie there"))).unwrap();
    let fleet = with_model(&server).up(&["--set", "limits.people.pause_at=Harbour"]).unwrap();
    let folder = fleet.folder();
    let mut asking = Running(folder.command(&ASK).spawn().unwrap());
    wait_until("the outer task has ended", LIMIT, || {
        folder.json(&["questions", "last", "--json"]).is_ok_and(|asked| !asked.as_array().unwrap().is_empty())
    })
    .unwrap();
    let inner = states(folder)[1]["run"].as_str().unwrap().to_owned();
    let output = folder.command(&["redo", "last", "1/1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    let said = both(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("1 of run") && said.contains("has ended: nothing within it can be changed"),
        "{said}"
    );
    assert!(said.contains("has 1 done again, with a run of its own"), "{said}");

    // Done again, it begins a run anew.
    folder.output(&["redo", "last", "1"]).unwrap();
    wait_until("the run has ended", LIMIT, || {
        // It stops at the same milestone once more.
        drop(folder.output(&["approve", "last"]));
        asking.0.try_wait().unwrap().is_some()
    })
    .unwrap();
    assert!(asking.0.wait().unwrap().success(), "{}", folder.logs());
    assert_eq!(states(folder).len(), 3);
    assert_ne!(folder.json(&["show", "last/1", "--json"]).unwrap()["id"], inner);
}

/// A question within a task is answered through the run that somebody asked for.
#[test]
fn questions_of_runs_within_are_answered_through_the_run_they_belong_to() {
    let request = json!({ "question": "Are boats ships?" });
    let server = ModelServer::start(Script::answering(move |asked| {
        if let Some(reply) = others(asked, "# Report\n\nseven ships") {
            return reply;
        }
        if asked.holds("count every ship") {
            return if asked.holds("answers:") {
                submit("boats are ships")
            } else {
                Reply::call("request_info", &request)
            };
        }
        if asked.holds("The run ") {
            submit("seven ships lie there")
        } else {
            Reply::call("plan", &json!({ "goal": "count the ships" }))
        }
    }))
    .unwrap();
    let fleet = with_model(&server).up(&[]).unwrap();
    let folder = fleet.folder();
    let mut command = folder.command(&ASK);
    command.args(["--review=ask"]);
    let mut asking = Running(command.spawn().unwrap());
    let listed = || folder.json(&["questions", "last", "--json"]).unwrap_or_default();
    let asks = |words: &str| {
        wait_until(words, LIMIT, || listed().to_string().contains(words)).unwrap();
    };
    // The plan of the run, then that of the run within.
    asks("What is in the harbour?");
    folder.output(&["approve", "last"]).unwrap();
    asks("count the ships");
    folder.output(&["approve", "last"]).unwrap();
    asks("Are boats ships?");
    assert_eq!(listed()[0]["goal"], "count the ships", "{}", listed());
    // Both runs wait for the person, in every output.
    let shown = folder.json(&["show", "last", "--json"]).unwrap();
    let runs = folder.json(&["runs", "--json"]).unwrap();
    let states = [&shown["state"], &runs[0]["state"], &runs[1]["state"]];
    assert_eq!(states, ["waits for an answer"; 3], "{shown}");
    assert_eq!(shown["waits_for"][0]["waits"]["for"], "answer", "{}", shown["waits_for"]);
    let told = folder.output(&["show", "last"]).unwrap();
    assert!(
        told.contains("Are boats ships? (in run ") && told.contains("(waits for a run of its own: "),
        "{told}"
    );
    let told = folder.output(&["ps"]).unwrap();
    assert_eq!(told.matches("waits for the answer to question").count(), 2, "{told}");
    let number = listed()[0]["question"].to_string();
    let number = number.trim_matches('"');
    let output = folder.command(&["answer", "last", "1/9", "Yes."]).output().unwrap();
    assert!(!output.status.success() && both(&output).contains("no question 9"), "{}", both(&output));
    // By its number alone, as long as one run asks for it.
    folder.output(&["answer", "last", number, "Yes, boats are ships."]).unwrap();
    assert!(asking.0.wait().unwrap().success(), "{}", folder.logs());
}
