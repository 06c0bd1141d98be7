//! Guards: processes that are asked at hooks of a run, and allow, change or refuse; that hang, rave or are gone; and those
//! that come with Muster.

mod plans;

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::foreign::Stranger;
use muster_support::model_server::{CapturedRequest, Fault, ModelServer, Reply, Script};
use muster_support::process::Running;
use muster_support::python;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::help::{act, done, script_of, up};
use super::support::{folder, of_kind, signal};

const LIMIT: Duration = Duration::from_secs(30);

/// What a guard is played to say, by what it is asked.
type Says = Box<dyn Fn(&Value) -> Value + Send>;

/// A guard that this test plays.
#[derive(Clone)]
struct Eye {
    says: Arc<Mutex<Says>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Eye {
    fn open(stranger: &Stranger, name: &str) -> Self {
        let eye = Self { says: Arc::new(Mutex::new(Box::new(|_| allow()))), asked: Arc::default() };
        let served = eye.clone();
        let answer = move |bytes: &[u8]| {
            let asked: Value = serde_json::from_slice(bytes).unwrap();
            let said = served.says.lock().unwrap()(&asked);
            served.asked.lock().unwrap().push(asked);
            (!said.is_null()).then(|| said.to_string().into_bytes())
        };
        stranger.serve(&format!("guard.{name}"), name, answer).unwrap();
        eye
    }

    /// Says this at one hook, and has nothing against anything else.
    fn at(&self, hook: &'static str, says: impl Fn(&Value) -> Value + Send + 'static) {
        self.asked.lock().unwrap().clear();
        let says = move |asked: &Value| if asked["hook"] == hook { says(&asked["payload"]) } else { allow() };
        *self.says.lock().unwrap() = Box::new(says);
    }

    fn asked(&self, hook: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|one| one["hook"] == hook).cloned().collect()
    }
}

fn allow() -> Value {
    json!({ "verdict": "allow" })
}

fn refuse(reason: &str) -> Value {
    json!({ "verdict": "refuse", "reason": reason })
}

/// The same with other words in it.
fn reworded(payload: &Value, from: &str, to: &str) -> Value {
    let text = payload.to_string();
    match text.contains(from) {
        true => {
            let payload: Value = serde_json::from_str(&text.replace(from, to)).unwrap();
            json!({ "verdict": "change", "reason": format!("{to} is better"), "payload": payload })
        }
        false => allow(),
    }
}

/// A model that makes a plan of one task, does a sum in it, and says what it saw.
fn sums() -> Script {
    let task = json!({ "name": "sum", "goal": "Work out 6 * 7.", "role": "worker" });
    script_of(vec![task], |request: &CapturedRequest| match request.turns() {
        0 => act("calculator", json!({ "expression": "6 * 7" })),
        _ => done("It is worked out."),
    })
}

fn run(folder: &Folder, more: &[&str]) -> Value {
    let usual = ["run", "What is 6 * 7?", "--planning", "always", "--json", "--deadline", "60s"];
    let output = folder.run(&[&usual[..], more].concat()).unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", both(&output)))
}

/// The trace of the last run, which is decided alike when it is replayed.
fn trace(folder: &Folder) -> Vec<Value> {
    let replayed = folder.run(&["replay", "last"]).unwrap();
    assert!(replayed.status.success(), "{}", both(&replayed));
    folder.json_lines(&["trace", "last", "--json"]).unwrap()
}

/// The first step that called a tool.
fn step(trace: &[Value]) -> Value {
    let mut steps = of_kind(trace, "step").map(|entry| entry["event"].clone());
    steps.find(|step| step["action"]["name"] == "calculator").unwrap()
}

fn observed(trace: &[Value]) -> String {
    step(trace)["observation"]["content"].as_str().unwrap().to_owned()
}

fn completed(summary: &Value, folder: &Folder) {
    let told = || format!("{}\n{}", folder.output(&["trace", "last"]).unwrap_or_default(), folder.logs());
    assert_eq!(summary["status"], "completed", "{summary}\n{}", told());
}

const EYE: &str = "[guards.eye]\n\
    hooks = [\"before_model\", \"before_tool\", \"after_observation\", \"before_plan\", \"before_report\"]\n\
    timeout = \"5s\"\n";

fn watched() -> (ModelServer, Fleet) {
    let server = ModelServer::start(sums()).unwrap();
    let folder = folder();
    folder.write("muster.toml", EYE).unwrap();
    let fleet = up(&server, folder, &[]);
    (server, fleet)
}

#[test]
fn tools_and_what_they_answer_are_allowed_changed_and_refused() {
    let (server, fleet) = watched();
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");

    completed(&run(folder, &[]), folder);
    assert!(observed(&trace(folder)).contains("42"));
    let text = folder.output(&["trace", "last"]).unwrap();
    for words in [
        "before_tool: 1 allowed",
        "after_observation: 1 allowed",
        "before_model: ",
        "guards, before_plan: 1 allowed",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let asked = eye.asked("before_tool");
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!((&asked[0]["role"], &asked[0]["task"]), (&json!("worker"), &json!("1")));
    assert_eq!(asked[0]["payload"], json!({ "tool": "calculator", "arguments": { "expression": "6 * 7" } }));

    eye.at("before_tool", |payload| reworded(payload, "6 * 7", "6 * 8"));
    completed(&run(folder, &[]), folder);
    let changed = trace(folder);
    assert!(
        observed(&changed).contains("48") && observed(&changed).contains("changed by guard eye"),
        "{}",
        observed(&changed)
    );
    assert_eq!(step(&changed)["action"]["arguments"]["expression"], "6 * 7", "what the model chose stays");

    // What does not fit the tool is no verdict.
    eye.at(
        "before_tool",
        |_| json!({ "verdict": "change", "reason": "odd", "payload": { "arguments": { "expression": 5 } } }),
    );
    completed(&run(folder, &[]), folder);
    assert!(observed(&trace(folder)).contains("its change cannot be made"), "{}", observed(&trace(folder)));

    eye.at("before_tool", |_| refuse("no sums today"));
    completed(&run(folder, &[]), folder);
    let refused = trace(folder);
    assert!(observed(&refused).contains("refused by guard eye: no sums today"), "{}", observed(&refused));
    assert_eq!(step(&refused)["observation"]["status"], "refused");
    assert!(eye.asked("after_observation").is_empty(), "nothing was done");

    eye.at("after_observation", |payload| reworded(payload, "42", "seven"));
    let before = server.log().len();
    completed(&run(folder, &[]), folder);
    let changed = trace(folder);
    assert!(
        observed(&changed).contains("seven") && !observed(&changed).contains("42"),
        "{}",
        observed(&changed)
    );
    let log = server.log();
    assert!(log[before..].iter().any(|entry| entry.request.last_text().contains("seven")));

    eye.at("after_observation", |_| refuse("it is none of yours"));
    completed(&run(folder, &[]), folder);
    let withheld = observed(&trace(folder));
    assert!(withheld.contains("withheld: refused by guard eye: it is none of yours"), "{withheld}");
}

#[test]
fn what_a_model_is_asked_is_changed_and_refused() {
    let (server, fleet) = watched();
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");
    eye.at("before_model", |payload| reworded(payload, "6 * 7", "6 times SEVEN"));
    completed(&run(folder, &[]), folder);
    let log = server.log();
    assert!(log.iter().any(|entry| entry.request.holds("6 times SEVEN")));
    let kept: Vec<&str> = log
        .iter()
        .flat_map(|entry| entry.request.messages.iter().skip(1).filter(|said| said.role == "user"))
        .map(|said| said.text.as_str())
        .filter(|text| text.contains("6 * 7"))
        .collect();
    assert!(kept.is_empty(), "{kept:?}");
    trace(folder);
    // What was shown to the guard once is not shown to it again.
    let asked = eye.asked("before_model");
    let of_worker: Vec<String> = asked
        .iter()
        .filter(|one| one["role"] == "worker")
        .flat_map(|one| one["payload"]["messages"].as_array().unwrap().clone())
        .map(|message| message.to_string())
        .collect();
    let mut unique = of_worker.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), of_worker.len(), "{of_worker:#?}");

    eye.at("before_model", |_| refuse("no questions"));
    let arrived = server.arrived();
    let summary = run(folder, &[]);
    assert_eq!(summary["status"], "failed", "{summary}");
    assert!(summary["reason"].as_str().unwrap().contains("refused by guard eye: no questions"), "{summary}");
    assert_eq!(server.arrived(), arrived, "no model was asked");
    trace(folder);
}

#[test]
fn plans_and_reports_are_changed_and_refused() {
    let (_server, fleet) = watched();
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");
    eye.at("before_plan", |payload| reworded(payload, "\"sum\"", "\"product\""));
    let summary = run(folder, &[]);
    completed(&summary, folder);
    assert!(folder.output(&["show", "last"]).unwrap().contains("product"));

    eye.at("before_plan", |_| refuse("too bold"));
    let summary = run(folder, &[]);
    assert_eq!(summary["status"], "failed", "{summary}");
    assert!(summary["reason"].as_str().unwrap().contains("refused by guard eye: too bold"), "{summary}");
    assert!(eye.asked("before_plan").len() > 1, "the planner had another try");

    eye.at("before_report", |payload| reworded(payload, "Five", "FIVE"));
    let summary = run(folder, &[]);
    completed(&summary, folder);
    assert!(summary["report"]["body"].as_str().unwrap().contains("FIVE"), "{summary}");

    eye.at("before_report", |_| refuse("say less"));
    let summary = run(folder, &[]);
    assert_eq!(summary["status"], "failed", "{summary}");
    assert!(summary["reason"].as_str().unwrap().contains("refused by guard eye: say less"), "{summary}");
    assert!(summary["report"].is_null(), "{summary}");
    trace(folder);
}

#[test]
fn a_guard_that_gives_no_verdict_is_told_of_and_its_setting_decides() {
    let server = ModelServer::start(sums()).unwrap();
    let fleet = up(&server, folder(), &[]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    stranger.serve("guard.hangs", "hangs", |_| None).unwrap();
    stranger.serve("guard.raves", "raves", |_| Some(b"\xffwell, perhaps".to_vec())).unwrap();
    // Two answers come at once, but late on a busy machine.
    for (name, timeout, words) in [
        ("gone", "10s", "guard gone is gone: no process serves the subject guard.gone"),
        ("hangs", "300ms", "guard hangs did not answer within 300 ms"),
        ("raves", "10s", "guard raves answered what is no verdict"),
    ] {
        for on_failure in ["refuse", "allow"] {
            let set = [
                format!("guards.{name}.hooks=before_tool"),
                format!("guards.{name}.timeout={timeout}"),
                format!("guards.{name}.on_failure={on_failure}"),
            ];
            let more: Vec<&str> = set.iter().flat_map(|set| ["--set", set.as_str()]).collect();
            completed(&run(folder, &more), folder);
            let trace = trace(folder);
            let (note, seen) = (step(&trace)["notes"].to_string(), observed(&trace));
            assert!(note.contains(words), "{name} {on_failure}: {note}");
            assert_eq!(seen.contains("42"), on_failure == "allow", "{name} {on_failure}: {seen}");
            assert_eq!(seen.contains(words), on_failure == "refuse", "{name} {on_failure}: {seen}");
        }
    }
    // Nobody is asked where no guard is set.
    completed(&run(folder, &[]), folder);
    assert!(step(&trace(folder))["notes"].is_null());
}

#[test]
fn those_that_come_with_muster_are_started_and_come_back() {
    let mail = "ann@mail-of-ann.org";
    let task = json!({ "name": "sum", "goal": "Work out 6 * 7.", "role": "worker" });
    let slow = script_of(vec![task], move |request: &CapturedRequest| match request.turns() {
        0 => act("calculator", json!({ "expression": "6 * 8" })),
        1 => act("calculator", json!({ "expression": "6 * 7" })).with_delay(Duration::from_millis(500)),
        _ => done(&format!("Write to {mail}.")),
    });
    let server = ModelServer::start(slow).unwrap();
    let folder = folder();
    folder.write("muster.toml", "[guards.secrets]\n\n[guards.allow-list]\nfile = \"tools.toml\"\n").unwrap();
    folder
        .write("tools.toml", "[[allow]]\ntool = \"calculator\"\narguments = { expression = \"6 . 7\" }\n")
        .unwrap();
    let fleet = up(&server, folder, &[]);
    let folder = fleet.folder();
    let listed = folder.output(&["ps"]).unwrap();
    assert!(listed.contains("guard-secrets") && listed.contains("guard-allow-list"), "{listed}");

    let asking = format!("What is 6 * 7? Ask {mail}.");
    let mut asker = folder.command(&["run", &asking, "--planning", "always", "--json", "--deadline", "60s"]);
    let asker = asker.stdout(Stdio::piped()).spawn().unwrap();
    let stepped = || {
        let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap_or_default();
        of_kind(&trace, "step").any(|entry| entry["event"]["action"]["name"] == "calculator")
    };
    wait_until("a step is taken", LIMIT, stepped).unwrap();
    for name in ["guard-secrets-1", "guard-allow-list-1"] {
        let pid = fleet.pid(name).unwrap();
        signal(pid, Signal::SIGKILL);
        wait_until("the guard is started again", LIMIT, || fleet.pid(name).is_some_and(|now| now != pid))
            .unwrap();
    }
    let output = asker.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    completed(&summary, folder);
    let trace = trace(folder);
    let sums: Vec<String> = of_kind(&trace, "step")
        .filter(|entry| entry["event"]["action"]["name"] == "calculator")
        .map(|entry| entry["event"]["observation"]["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        sums[0].contains("refused by guard allow-list: calculator is allowed with another `expression`"),
        "{sums:?}"
    );
    assert!(sums[1].contains("42"), "{sums:?}");
    let log = server.log();
    assert!(log.iter().all(|entry| !entry.request.holds(mail)), "no model was told the address");
    assert!(log.iter().any(|entry| entry.request.holds("[redacted e-mail address]")));
}

#[test]
fn nobody_is_asked_again_about_what_is_journaled_when_an_agent_dies() {
    let hung = std::sync::atomic::AtomicBool::new(false);
    let task = json!({ "name": "sum", "goal": "Work out 6 * 7.", "role": "worker" });
    let script = script_of(vec![task], move |request: &CapturedRequest| match request.turns() {
        0 => act("calculator", json!({ "expression": "6 * 7" })),
        _ if !hung.swap(true, std::sync::atomic::Ordering::SeqCst) => Reply::fault(Fault::Hang),
        _ => done("It is worked out."),
    });
    let server = ModelServer::start(script).unwrap();
    let folder = folder();
    folder.write("muster.toml", EYE).unwrap();
    let fleet = up(&server, folder, &["--scale", "worker=2"]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");
    eye.at("before_model", |payload| reworded(payload, "6 * 7", "6 times SEVEN"));
    let mut asker =
        folder.command(&["run", "What is 6 * 7?", "--planning", "always", "--json", "--deadline", "60s"]);
    let asker = asker.stdout(Stdio::piped()).spawn().unwrap();
    let at_work = || {
        let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap_or_default();
        let stepped = of_kind(&trace, "step").any(|entry| entry["task"] == "1");
        let mut started = of_kind(&trace, "started").filter(|entry| entry["task"] == "1");
        let pid = started.next().and_then(|entry| entry["event"]["pid"].as_u64()).filter(|_| stepped);
        pid.and_then(|pid| u32::try_from(pid).ok())
    };
    wait_until("the worker has taken a step", LIMIT, || at_work().is_some()).unwrap();
    signal(at_work().unwrap(), Signal::SIGKILL);
    let output = asker.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    completed(&summary, folder);
    let trace = trace(folder);
    assert_eq!(of_kind(&trace, "started").filter(|entry| entry["task"] == "1").count(), 2);
    assert_eq!(eye.asked("before_tool").len(), 1);
    assert_eq!(eye.asked("after_observation").len(), 1);
    let brief = |message: &Value| message["content"].as_str().unwrap_or_default().contains("Work out 6");
    let shown = eye.asked("before_model").into_iter().filter(|one| one["role"] == "worker");
    let shown = shown.flat_map(|one| one["payload"]["messages"].as_array().unwrap().clone()).filter(brief);
    assert_eq!(shown.count(), 1, "the task is shown to the guard once");
    let log = server.log();
    let last = log.iter().rfind(|entry| entry.request.holds("Work out 6")).unwrap();
    assert!(last.request.holds("Work out 6 times SEVEN"), "what it changed stays so");
}

#[test]
fn guards_are_asked_again_when_whoever_asked_died_before_their_answer() {
    let (_server, fleet) = watched();
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let eye = Eye::open(&stranger, "eye");
    let silent = std::sync::atomic::AtomicBool::new(true);
    eye.at("before_report", move |_| match silent.swap(false, std::sync::atomic::Ordering::SeqCst) {
        true => Value::Null,
        false => allow(),
    });
    let mut asker =
        folder.command(&["run", "What is 6 * 7?", "--planning", "always", "--json", "--deadline", "60s"]);
    let asker = asker.stdout(Stdio::piped()).spawn().unwrap();
    wait_until("the guard is asked", LIMIT, || eye.asked("before_report").len() == 1).unwrap();
    signal(fleet.pid("orchestrator-1").unwrap(), Signal::SIGKILL);
    let output = asker.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    completed(&summary, folder);
    assert_eq!(eye.asked("before_report").len(), 2);
    let events = trace(folder).iter().map(Value::to_string).collect::<String>();
    assert_eq!(
        events.matches("\"guards_asked\"").count(),
        3,
        "the plan, the report, and the report once more"
    );
}

#[test]
fn the_example_in_python_guards() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let server = ModelServer::start(sums()).unwrap();
    let folder = folder();
    folder.write("muster.toml", "[guards.words]\nhooks = [\"before_tool\", \"before_report\"]\n").unwrap();
    let fleet = up(&server, folder, &[]);
    let folder = fleet.folder();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/examples/guard.py");
    let mut command = Command::new(python);
    let told = muster_support::way::guard(&fleet.url(), "words").unwrap();
    command.arg(example).envs(told).env("WORDS", "6 * 7,loops");
    let _example = Running(command.stdout(Stdio::null()).spawn().unwrap());
    let summary = run(folder, &[]);
    completed(&summary, folder);
    let seen = observed(&trace(folder));
    assert!(seen.contains("refused by guard words: calculator is not called with '6 * 7'"), "{seen}");
    assert!(summary["report"]["body"].as_str().unwrap().contains("[…]"), "{summary}");
}

#[test]
fn a_guard_that_cannot_work_says_so_at_once() {
    let folder = folder();
    folder.write("bad.toml", "[[allow]]\nname = \"calculator\"\n").unwrap();
    for (arguments, words) in [
        (&["guard", "allow-list", "bad.toml", "--check"][..], "unknown field `name`"),
        (&["guard", "allow-list", "missing.toml"][..], "missing.toml"),
        (&["guard", "secrets", "--name", "No Name"][..], "cannot be the name of a guard"),
        (&["--set", "guards.mine.enabled=true", "config"][..], "say when this guard is"),
    ] {
        let output = folder.run(arguments).unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", both(&output));
        assert!(both(&output).contains(words), "{words}: {}", both(&output));
    }
}

#[test]
fn a_folder_adds_guards_and_changes_none_of_the_users() {
    let folder = folder();
    folder.write(".config/muster/muster.toml", "[guards.secrets]\n").unwrap();
    folder.write("muster.toml", "[guards.eye]\nhooks = [\"before_tool\"]\n\n[guards.secrets]\n").unwrap();
    folder.output(&["config"]).unwrap();
    let shown = folder.output(&["config", "--all"]).unwrap();
    assert!(shown.contains("guards.eye.hooks") && shown.contains("guards.secrets.enabled"), "{shown}");
    for weaker in
        ["enabled = false", "on_failure = \"allow\"", "hooks = [\"before_plan\"]", "roles = [\"nobody\"]"]
    {
        folder.write("muster.toml", format!("[guards.secrets]\n{weaker}\n")).unwrap();
        let output = folder.run(&["up"]).unwrap();
        assert_eq!(output.status.code(), Some(2), "{weaker}: {}", both(&output));
        assert!(both(&output).contains("change a guard of yours"), "{weaker}: {}", both(&output));
    }
}

#[test]
fn a_guard_that_is_gone_is_told_of_wherever_somebody_looks() {
    let server = ModelServer::start(sums()).unwrap();
    let folder = folder();
    folder.write("muster.toml", "[guards.eye]\nhooks = [\"before_tool\"]\ntimeout = \"300ms\"\n").unwrap();
    let fleet = up(&server, folder, &[]);
    let folder = fleet.folder();
    let usual = ["run", "What is 6 * 7?", "--planning", "always", "--deadline", "60s"];
    let output = folder.run(&[&usual[..], &["--json"]].concat()).unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", both(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    completed(&summary, folder);
    assert_eq!(
        (&summary["complete"], &summary["refused_without_verdict"]["eye"]["times"]),
        (&json!(false), &json!(1))
    );
    let output = folder.run(&usual).unwrap();
    let words = "once something was refused without a verdict: guard eye is gone";
    assert!(output.status.code() == Some(6) && both(&output).contains(words), "{}", both(&output));
    assert!(folder.output(&["show", "last"]).unwrap().contains(words));
    assert_eq!(
        folder.json(&["show", "last", "--json"]).unwrap()["refused_without_verdict"]["eye"]["times"],
        1
    );
    let ps = folder.output(&["ps"]).unwrap();
    assert!(ps.contains("guard eye is gone"), "{ps}");
    let doctor = folder.run(&["doctor"]).unwrap();
    assert!(!doctor.status.success() && both(&doctor).contains("guard eye is gone"), "{}", both(&doctor));

    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let _eye = Eye::open(&stranger, "eye");
    let output = folder.run(&usual).unwrap();
    assert!(output.status.success(), "{}", both(&output));
    let doctor = both(&folder.run(&["doctor"]).unwrap());
    assert!(doctor.contains("1 guard answer"), "{doctor}");
}

#[test]
fn a_fleet_does_not_begin_with_a_list_that_cannot_be_used() {
    let folder = folder();
    folder.write("muster.toml", "[guards.allow-list]\nfile = \"tools.toml\"\n").unwrap();
    for arguments in [&["up"][..], &["up", "--detach"]] {
        let output = folder.run(arguments).unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", both(&output));
        assert!(both(&output).contains("tools.toml cannot be used"), "{}", both(&output));
    }
    folder.write("tools.toml", "[[allow]]\nname = \"x\"\n").unwrap();
    let output = folder.run(&["up"]).unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(both(&output).contains("field `name`"), "{}", both(&output));
    assert!(!folder.path().join(".muster/nats").exists(), "nothing was started");
}

/// A guard that hangs holds a report up; when its time is up nothing of it is told.
#[test]
fn time_delivers_nothing_that_guards_did_not_let_through() {
    let server = ModelServer::start(sums()).unwrap();
    let fleet = up(&server, folder(), &[]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    stranger.serve("guard.hangs", "hangs", |_| None).unwrap();
    let set = ["guards.hangs.hooks=before_report", "guards.hangs.timeout=500ms"];
    let more: Vec<&str> = set.iter().flat_map(|set| ["--set", *set]).collect();
    let usual = ["run", "What is 6 * 7?", "--planning", "always", "--json", "--deadline", "10s"];
    let output = folder.run(&[&usual[..], &more].concat()).unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = summary["report"]["body"].as_str().unwrap_or_default();
    assert!(!report.contains("worked out"), "{summary}");
    assert!(!output.status.success(), "{summary}");
    let reason = summary["reason"].as_str().unwrap();
    assert!(report.contains("withheld") || reason.contains("guard hangs did not answer"), "{summary}");
    assert!(!reason.contains("muster doctor"), "no model is to blame: {reason}");
    trace(folder);
}

/// A program on the task gateway asks `agent.word_counter.<verb>`.
fn ask_gateway(program: &Stranger, verb: &str, said: &Value) -> Value {
    let answer = program.request(&format!("agent.word_counter.{verb}"), said.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

#[test]
fn what_programs_put_to_models_and_observe_is_asked_about() {
    let task = json!({ "name": "count", "goal": "Count the words.", "role": "word_counter" });
    let script = script_of(vec![task], |request: &CapturedRequest| {
        Reply::text(format!("You said: {}", request.last_text()))
    });
    let server = ModelServer::start(script).unwrap();
    let folder = folder();
    folder.write("muster.toml", EYE).unwrap();
    let fleet = up(&server, folder, &["--set", "limits.reflection=none"]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let program = Stranger::connect(&fleet.url()).unwrap();
    let eye = Eye::open(&stranger, "eye");
    eye.at("before_model", |payload| reworded(payload, "hunter", "nobody"));
    let who = json!({ "agent": "word_counter-1", "patience_ms": 100, "slots": 1, "description": "Counts the words of a text.",
                      "capabilities": ["word count"] });
    assert_eq!(ask_gateway(&program, "take", &who), json!({ "task": null }));
    let mut asker =
        folder.command(&["run", "Count these words.", "--planning", "always", "--json", "--deadline", "60s"]);
    let asker = asker.stdout(Stdio::piped()).spawn().unwrap();
    let mut patient = who;
    patient["patience_ms"] = json!(5000);
    let mut token = Value::Null;
    wait_until("a task comes", LIMIT, || {
        token = ask_gateway(&program, "take", &patient)["task"]["token"].clone();
        token.is_string()
    })
    .unwrap();

    let question = json!({ "token": token, "messages": [{ "role": "user", "content": "Where is hunter?" }] });
    let answer = ask_gateway(&program, "model", &question);
    assert_eq!(answer["text"], "You said: Where is nobody?", "{answer}");
    eye.at("before_model", |_| refuse("no questions"));
    let answer = ask_gateway(&program, "model", &question);
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("refused by guard eye: no questions"),
        "{answer}"
    );
    eye.at("after_observation", |payload| reworded(payload, "seven", "many"));
    let taken = json!({ "token": token, "thought": "Count.", "action": { "name": "count" }, "observation": "seven words" });
    let answer = ask_gateway(&program, "step", &taken);
    assert_eq!(answer["observation"], "many words", "{answer}");
    let finish = json!({ "token": token, "result": { "conclusion": "Many words." } });
    assert_eq!(ask_gateway(&program, "finish", &finish)["recorded"], true);
    let output = asker.wait_with_output().unwrap();
    completed(&serde_json::from_slice(&output.stdout).unwrap(), folder);
    let trace = trace(folder);
    let step =
        of_kind(&trace, "step").find(|entry| entry["role"] == "word_counter").unwrap()["event"].clone();
    assert_eq!(step["observation"]["content"], "many words");
    let notes = step["notes"].to_string();
    for words in ["nobody is better", "no questions", "many is better"] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
}

#[test]
fn what_is_carried_out_for_programs_and_what_they_announce_is_asked_about() {
    let task = json!({ "name": "count", "goal": "Count the words.", "role": "word_counter" });
    let server = ModelServer::start(script_of(vec![task], |_: &CapturedRequest| done("Counted."))).unwrap();
    let folder = folder();
    folder.write("muster.toml", EYE).unwrap();
    folder.write("docs/harbour.md", "# Harbour\n\nNine ships lie in the harbour.\n").unwrap();
    let fleet = up(&server, folder, &["--set", "limits.reflection=none"]);
    let (folder, stranger) = (fleet.folder(), Stranger::connect(&fleet.url()).unwrap());
    let program = Stranger::connect(&fleet.url()).unwrap();
    let eye = Eye::open(&stranger, "eye");
    let who = json!({ "agent": "word_counter-1", "patience_ms": 5000, "slots": 1, "description": "Counts the words of a text.",
                      "capabilities": ["word count"] });
    let mut shortly = who.clone();
    shortly["patience_ms"] = json!(100);
    assert_eq!(ask_gateway(&program, "take", &shortly), json!({ "task": null }));
    let asking = [
        "run",
        "Count these words.",
        "--planning",
        "always",
        "--json",
        "--deadline",
        "60s",
        "--docs",
        "docs",
    ];
    let asker = folder.command(&asking).stdout(Stdio::piped()).spawn().unwrap();
    let mut token = Value::Null;
    wait_until("a task comes", LIMIT, || {
        token = ask_gateway(&program, "take", &who)["task"]["token"].clone();
        token.is_string()
    })
    .unwrap();
    let with = |verb: &str, mut said: Value| {
        said["token"] = token.clone();
        ask_gateway(&program, verb, &said)
    };
    let refused = |answer: &Value, words: &str| {
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(answer["error"]["code"] == "not_allowed" && message.contains(words), "{words}: {answer}");
    };

    eye.at("before_tool", |payload| match payload["tool"].as_str() {
        Some("workspace.write") => refuse("nothing is written"),
        Some("request_info") => refuse("nobody is asked"),
        Some("land") => refuse("no landing"),
        _ => reworded(payload, "moon", "mars"),
    });
    refused(&with("files", json!({ "do": "put", "path": "a.md", "text": "x" })), "eye: nothing is written");
    refused(&with("wait", json!({ "for": { "answer": { "text": "Which?" } } })), "eye: nobody is asked");
    let lands = json!({ "thought": "Go.", "action": { "name": "launch", "arguments": {} }, "more": [{ "action": { "name": "land" } }] });
    refused(&with("step", lands), "eye: no landing");
    let launch = |observation: Value| json!({ "thought": "Go.", "action": { "name": "launch", "arguments": { "to": "the moon" } }, "observation": observation });
    let told = with("step", launch(Value::Null));
    assert_eq!(told["arguments"], json!({ "to": "the mars" }), "{told}");
    assert!(told["idempotency_key"].is_string(), "{told}");
    assert_eq!(with("step", launch(json!("there")))["step"], told["step"]);
    let found = with("files", json!({ "do": "search", "query": "moon ships" }));
    assert_eq!(found["arguments"]["query"], "mars ships", "{found}");

    eye.at("after_observation", |payload| reworded(payload, "Nine", "Ten"));
    let read = with("files", json!({ "do": "read", "path": "harbour.md" }));
    assert!(read["lines"].to_string().contains("Ten ships"), "{read}");
    eye.at("after_observation", |_| refuse("it is none of yours"));
    refused(&with("files", json!({ "do": "read", "path": "harbour.md" })), "withheld: refused by guard eye");
    let counted = json!({ "thought": "Count.", "action": { "name": "count" }, "observation": "seven" });
    assert!(with("step", counted)["step"].is_u64());
    assert_eq!(with("finish", json!({ "result": { "conclusion": "Seven words." } }))["recorded"], true);
    let output = asker.wait_with_output().unwrap();
    completed(&serde_json::from_slice(&output.stdout).unwrap(), folder);
    let notes: String = trace(folder)
        .iter()
        .filter(|entry| entry["role"] == "word_counter")
        .map(|entry| entry["event"]["notes"].to_string())
        .collect();
    for words in [
        "nothing is written",
        "nobody is asked",
        "no landing",
        "mars is better",
        "Ten is better",
        "none of yours",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
}
