//! Text of strangers steers no terminal: models, documents, file names and messages on the bus write escapes, and every
//! command shows them as what they are.

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::foreign::Stranger;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::support::{folder, with_model};

const LIMIT: Duration = Duration::from_secs(60);

/// Sets the clipboard, the title and a link, clears the screen, paints, turns text around, hides.
const EVIL: &str = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\u{9b}2J\u{9d}8;;http://e\u{9c}\
                    \u{202e}\u{2066}\u{200b}\u{2028}\u{8}\u{7f}\rend";

/// What can be part of the name of a file.
const NAME: &str = "notes\u{1b}]0;owned\u{7}\u{1b}[31m\u{202e}\u{9b}2J.md";

/// What must not reach a terminal as it is.
fn steers(c: char) -> bool {
    let turns =
        ['\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}', '\u{200b}'..='\u{200f}', '\u{2028}'..='\u{2029}'];
    (c.is_control() && c != '\n' && c != '\t') || turns.iter().any(|range| range.contains(&c))
}

fn harmless(what: &str, text: &str) {
    let found: Vec<String> = text
        .char_indices()
        .filter(|(_, c)| steers(*c))
        .take(3)
        .map(|(at, _)| {
            let near: String = text[at..].chars().take(40).collect();
            let before: String =
                text[..at].chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
            format!("{before:?} | {near:?}")
        })
        .collect();
    assert!(found.is_empty(), "{what} lets escapes through: {found:#?}");
}

fn evil(words: &str) -> String {
    format!("{words} {EVIL}")
}

fn answer(request: &CapturedRequest) -> Reply {
    let submit = |arguments: Value| Reply::call("submit", &arguments);
    let system = request.system();
    if system.contains("You are the planner") {
        let task = json!({
            "name": evil("count"), "goal": evil("Count."), "role": "worker", "expected_output": evil("a number"),
        });
        submit(json!({ "thought": evil("One."), "goal": evil("Count."), "tasks": [task] }))
    } else if system.contains("You are the reflector") {
        submit(
            json!({ "thought": evil("Fine."), "summary": evil("It went."), "lessons": [evil("Count twice.")] }),
        )
    } else if system.contains("You are the writer") {
        let body = format!("# Counted\n\n{}\n\n```\n{EVIL}\n```\n", evil("There are three."));
        submit(
            json!({ "thought": evil("In."), "title": evil("Counted"), "body": body, "unanswered": [evil("why")] }),
        )
    } else {
        match request.turns() {
            0 => Reply::call(
                "workspace.write",
                &json!({ "thought": evil("I write."), "path": NAME, "text": evil("three") }),
            ),
            1 => Reply::call(
                "workspace.write",
                &json!({ "thought": evil("Again."), "path": "three.md", "text": evil("three") }),
            ),
            2 => Reply::call(&evil("no_such_tool"), &json!({ "thought": evil("I try."), "what": EVIL })),
            _ => submit(json!({
                "thought": evil("Known."), "ending": "done", "conclusion": evil("There are three."),
                "findings": [{ "text": evil("three") }],
            })),
        }
    }
}

fn ask(fleet: &Fleet) -> Child {
    let arguments = [
        "run",
        &evil("How many?"),
        "--model",
        "openai/scripted",
        "--review",
        "--docs",
        "docs",
        "-o",
        "report.md",
    ];
    fleet.folder().command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn shown(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(arguments).unwrap();
    let said = both(&output);
    harmless(&arguments.join(" "), &said);
    said
}

#[test]
fn no_command_lets_an_escape_through() {
    let model = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = with_model(&model).with("MUSTER_LOG", "info,muster=debug");
    folder.write(&format!("docs/{NAME}"), evil("# There are three")).unwrap();
    folder.write("docs/plain.md", evil("# There are three")).unwrap();
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let watched = folder.path().join("tap.txt");
    let file = File::create(&watched).unwrap();
    let mut tap = folder.command(&["tap"]).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();

    let mut asker = ask(&fleet);
    let mut questions = String::new();
    let waits = wait_until("the plan is looked at", LIMIT, || {
        questions = shown(folder, &["questions"]);
        questions.contains("muster approve") || asker.try_wait().unwrap().is_some()
    });
    if waits.is_err() || !questions.contains("muster approve") {
        asker.kill().unwrap();
        panic!("{waits:?}: {}\n{questions}", both(&asker.wait_with_output().unwrap()));
    }
    assert!(questions.contains("\\u{1b}]52;c"), "what was written is there to be seen: {questions}");
    for command in [&["show", "last"][..], &["graph", "last"], &["questions", "--json"]] {
        shown(folder, command);
    }
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let run = "0193f0c0c0c07000800000000000dead";
    for subject in [format!("cmd.{run}.submit"), format!("live.{run}.worker.x.1"), "hb.worker.x".to_owned()] {
        stranger.publish(&subject, EVIL.as_bytes()).unwrap();
        stranger
            .publish(&subject, json!({ "v": 1, "sender": EVIL, "body": EVIL }).to_string().as_bytes())
            .unwrap();
    }
    stranger.flush().unwrap();
    shown(folder, &["approve", "last"]);
    let asked = asker.wait_with_output().unwrap();
    harmless("run", &both(&asked));
    let report = std::fs::read_to_string(folder.path().join("report.md")).unwrap_or_default();
    harmless("the report", &report);
    assert!(report.contains("There are three. \\u{1b}]52"), "{report:?} {}", both(&asked));

    wait_until("it is a dead letter", LIMIT, || shown(folder, &["dead", "list"]).contains("cmd.0193f0c0"))
        .unwrap();
    let commands: [&[&str]; 24] = [
        &["show", "last"],
        &["show", "last", "--json"],
        &["show", "last", "1"],
        &["trace", "last"],
        &["trace", "last", "--json"],
        &["trace", "last", "1"],
        &["prompt", "last", "1", "1"],
        &["prompt", "last", "1", "3"],
        &["prompt", "last", "1", "2", "--json"],
        &["graph", "last"],
        &["graph", "last", "--form", "dot"],
        &["replay", "last"],
        &["runs"],
        &["runs", "--json"],
        &["ps"],
        &["ps", "--json"],
        &["artifacts", "last"],
        &["artifacts", "last", "-o", "copied"],
        &["context", "last"],
        &["dead", "list"],
        &["dead", "show", "1"],
        &["dead", "show", "2"],
        &["show", EVIL],
        &["agent", "--check", NAME],
    ];
    let said: Vec<String> = commands.iter().map(|command| shown(folder, command)).collect();
    for (command, said) in commands.iter().zip(&said).take(7) {
        assert!(said.contains("1b") && said.contains("52;c;ZXZpbA"), "{command:?} shows it: {said}");
    }
    tap.kill().unwrap();
    tap.wait().unwrap();
    let watched = String::from_utf8_lossy(&std::fs::read(watched).unwrap()).into_owned();
    harmless("tap", &watched);
    assert!(watched.contains("\\u{1b}]52"), "it was seen: {watched}");
    harmless("the logs", &folder.logs());
}

/// Files, settings and arguments hold them too, and errors quote them.
#[test]
fn errors_quote_what_was_written_as_what_it_is() {
    let folder = folder();
    folder.write("muster.toml", "[limits]\n\"max\\u001b[2J\" = 3 # \u{202e}\u{9b}\n").unwrap();
    assert!(shown(&folder, &["config"]).contains("\\u{202e}"), "the line is quoted");
    folder.write("muster.toml", "").unwrap();
    folder.write("x.agent.md", "---\nrole: x\n\u{1b}]0;t\u{7}: y\u{202e}\n---\n").unwrap();
    assert!(shown(&folder, &["agent", "--check", "x.agent.md"]).contains("\\u{1b}]0"));
    folder.write("plan.toml", format!("[[tasks]]\nname = \"x\"\nnoal = \"{}\"\n", "\\u001b[31m")).unwrap();
    shown(&folder, &["run", "What?", "--plan", "plan.toml"]);
    folder.write("blueprints/\u{1b}[31mx.toml", "name = \"\\u001b[2Jx\"\n").unwrap();
    shown(&folder, &["blueprint", "list"]);
    shown(&folder, &["blueprint", "show", "\u{1b}[31mx"]);
    // The command line itself: names of files in a pattern, words that somebody else gave.
    for wrong in
        [&["tap", EVIL][..], &[EVIL], &["--url", "nats://h", "ps", "x\u{e0100}\u{ad}"], &["run", EVIL, EVIL]]
    {
        let output = folder.run(wrong).unwrap();
        harmless(&wrong.join(" "), &both(&output));
        assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    }
    assert!(shown(&folder, &["tap", EVIL]).contains("\\u{1b}]52"), "it is there to be seen");
    for asked in [&["--help"][..], &["run", "--help"], &["--version"]] {
        assert_eq!(folder.run(asked).unwrap().status.code(), Some(0), "{asked:?}");
    }
}
