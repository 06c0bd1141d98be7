//! Whole runs as people would have them: a goal, a fleet, a model that answers by a script, and what is seen of it from
//! the command line. Each is replayed at its end: every decision must come out the same from its record.

use std::panic::{AssertUnwindSafe, catch_unwind};

use muster_support::fleet::{Folder, both};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::support::with_model;

mod audit;
mod offline;
mod population;
mod skip_redo;
mod split;
mod team;

/// A model that answers by `answer`, which is told who asks: `planner`, `reflector`, `refiner`, `writer`, `reviewer`, the index of a
/// leaf, or `aside` for a question apart. What it does not expect is refused at once, so that nobody tries again.
pub(crate) fn model(
    answer: impl Fn(&str, &CapturedRequest) -> Reply + Send + Sync + 'static,
) -> (ModelServer, Folder) {
    let script = Script::answering(move |request| {
        let answer = AssertUnwindSafe(|| answer(asker(request), request));
        catch_unwind(answer).unwrap_or_else(|_| Reply::status(400, None))
    });
    let server = ModelServer::start(script).unwrap();
    let folder = with_model(&server);
    (server, folder)
}

/// Who sent a request.
pub(crate) fn asker(request: &CapturedRequest) -> &str {
    let system = request.system();
    let mut roles = ["planner", "reflector", "refiner", "writer", "reviewer"].into_iter();
    let known = roles.find(|role| system.contains(&format!("You are the {role}")));
    known.or_else(|| request.between("Your task, ", ":")).unwrap_or("aside")
}

pub(crate) fn submit(arguments: &Value) -> Reply {
    Reply::call("submit", arguments)
}

pub(crate) fn plan(tasks: &Value) -> Reply {
    submit(&json!({ "thought": "These.", "goal": "As asked.", "tasks": tasks }))
}

pub(crate) fn done(conclusion: &str) -> Reply {
    submit(&json!({ "thought": "That is it.", "ending": "done", "conclusion": conclusion, "findings": [] }))
}

pub(crate) fn learnt(summary: &str) -> Reply {
    submit(&json!({ "thought": "Seen.", "summary": summary }))
}

pub(crate) fn written(body: &str) -> Reply {
    submit(&json!({ "thought": "All is in.", "title": "The answer", "body": body, "unanswered": [] }))
}

/// A run that has ended, and what is seen of it.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) summary: Value,
    pub(crate) said: String,
    pub(crate) state: Value,
    pub(crate) trace: Vec<Value>,
}

/// Asks a goal and waits for the end. Every decision is made again from the record.
pub(crate) fn ask(folder: &Folder, goal: &str, more: &[&str]) -> Ended {
    let run = ["run", goal, "--model", "openai/scripted", "--json", "--deadline", "60s"];
    let output = folder.run(&[&run[..], more].concat()).unwrap();
    ended(folder, output.status.code(), &output.stdout, both(&output))
}

pub(crate) fn ended(folder: &Folder, code: Option<i32>, stdout: &[u8], said: String) -> Ended {
    let summary = serde_json::from_slice(stdout).unwrap_or(Value::Null);
    let state = folder.json(&["show", "last", "--json"]).unwrap_or_else(|error| panic!("{error}\n{said}"));
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let replayed = folder.run(&["replay", "last"]).unwrap();
    assert!(replayed.status.success(), "{}", both(&replayed));
    Ended { code: code.unwrap_or(-1), summary, said, state, trace }
}

impl Ended {
    /// The report of a run that ended well.
    pub(crate) fn report(&self, folder: &Folder) -> &str {
        assert_eq!(self.code, 0, "{}\n{}", self.said, folder.logs());
        assert_eq!(self.summary["status"], "completed", "{}", self.summary);
        self.summary["report"]["body"].as_str().unwrap().trim_end()
    }

    pub(crate) fn status(&self, task: &str) -> &str {
        self.state["tasks"][task]["status"].as_str().unwrap_or("not there")
    }
}
