//! What a task has no right to, a program is not given: the gateway looks before it does what is asked.

use muster_support::foreign::Stranger;
use serde_json::{Value, json};

use super::{Program, code, of_role, submit, token, trace};
use crate::support::folder;

#[test]
fn a_program_is_refused_what_its_task_has_no_right_to() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    folder.write("docs/open.md", "# Harbour\n\nNine ships lie in the harbour.\n").unwrap();
    folder.write("docs/private/key.md", "# Harbour\n\nThe word of the harbour is swordfish.\n").unwrap();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let program = Program::new(&stranger, "one");
    program.enter();
    let (people, files) = ("limits.rights.people=false", "limits.rights.write_files=false");
    let flags = [
        "--docs",
        "docs",
        "--deny-docs",
        "private",
        "--deny-tools",
        "launch",
        "--set",
        people,
        "--set",
        files,
    ];
    let (mut asker, run) = submit(folder, &flags);
    let task = program.take();
    assert_eq!(
        (&task["may"]["ask_person"], &task["may"]["write_files"], &task["may"]["hand_over"]),
        (&json!(false), &json!(false), &json!(true))
    );
    assert_eq!(task["rights"]["documents"], json!(["*", "!private"]));
    let held = token(&task);
    let with = |said: Value| {
        let mut said = said;
        said["token"] = json!(held);
        said
    };
    let listed = program.ask("files", &with(json!({ "do": "list" })));
    assert_eq!(listed["documents"].as_array().map(Vec::len), Some(1), "{listed}");
    let found = program.ask("files", &with(json!({ "do": "search", "query": "harbour swordfish" })));
    assert!(!found.to_string().contains("swordfish") && found.to_string().contains("Nine"), "{found}");
    let refused = [
        ("files", json!({ "do": "read", "path": "private/key.md" }), "read private/key.md"),
        ("files", json!({ "do": "put", "path": "a.md", "text": "x" }), "write a file"),
        ("wait", json!({ "for": { "answer": { "text": "Which?" } } }), "ask a person"),
        (
            "step",
            json!({ "thought": "Go.", "action": { "name": "launch" } }),
            "launch: this task may not call it",
        ),
        (
            "step",
            json!({ "thought": "Go.", "action": { "name": "count" }, "more": [{ "action": { "name": "launch" } }] }),
            "launch: this task may not call it",
        ),
    ];
    for (verb, said, words) in &refused {
        let answer = program.ask(verb, &with(said.clone()));
        assert_eq!(code(&answer), "not_allowed", "{verb} {said}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(words) && message.contains("goal: "), "{message}");
    }
    assert_eq!(program.stepped(&held, "a"), 1, "nothing was recorded before");
    let result = json!({ "conclusion": "7", "data": { "words": 7 } });
    let ended = program.ask("finish", &with(json!({ "result": result })));
    assert_eq!(ended["recorded"], true, "{ended}");
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
    let record = trace(folder, &run);
    let steps = of_role(&record, "step");
    let notes = steps[0]["event"]["notes"].as_array().unwrap();
    let noted: Vec<&str> =
        notes.iter().filter_map(|note| note["denied"]["refusal"]["wanted"].as_str()).collect();
    assert_eq!(noted, ["read private/key.md", "write a file", "ask a person", "launch", "launch"]);
    assert_eq!(notes[4]["denied"]["at"], 1, "by its place in the step: {notes:?}");
    let text = folder.output(&["trace", &run]).unwrap();
    assert!(text.contains("refused     write a file: this task may write no files (goal: no)"), "{text}");
}
