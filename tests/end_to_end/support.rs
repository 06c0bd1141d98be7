//! What several of these tests need.

use muster_support::fleet::Folder;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::help::{done, plan_and_report};

/// A folder for the binary under test.
pub(crate) fn folder() -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_muster")).unwrap()
}

/// The same, with a scripted server as its provider of models.
pub(crate) fn with_model(server: &ModelServer) -> Folder {
    folder().with("OPENAI_API_KEY", "test-key").with("OPENAI_BASE_URL", server.openai_url())
}

/// Sends a signal to a process of a fleet under test.
pub(crate) fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
}

/// A few documents that answer some questions and leave others open.
pub(crate) fn write_documents(folder: &Folder) {
    folder
        .write(
            "docs/delegation.md",
            "# Delegation\n\n\
             An agent may hand a task to another agent.\n\n\
             ## Limits\n\n\
             A delegation loop is refused: the chain of agents travels with every task, and an agent that stands in \
             the chain already is not asked again.\n\
             The depth of delegation is limited to five hops by default.\n",
        )
        .unwrap();
    folder
        .write(
            "docs/recovery.txt",
            "How a run survives the death of a worker\n\n\
             Every step of a worker is written to the record before the next one begins.\n\
             When a worker dies, another worker takes the task over and goes on after the last recorded step.\n\
             Model calls that were recorded are never made again.\n",
        )
        .unwrap();
    folder.write("docs/picture.bin", [0_u8, 159, 146, 150, 0, 1, 2, 3]).unwrap();
    folder
        .write(
            "docs/page.html",
            "<html><body><h1>Storage</h1>\n<p>The record is kept in a file\nby the broker.</p></body></html>\n",
        )
        .unwrap();
}

/// Entries of a trace that are of one kind.
pub(crate) fn of_kind<'a>(trace: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    trace.iter().filter(move |entry| entry["kind"] == kind)
}

/// Every `path:line` that a report cites in code marks.
pub(crate) fn citations(report: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for piece in report.split('`').skip(1).step_by(2) {
        if let Some((path, line)) = piece.rsplit_once(':')
            && let Ok(line) = line.parse()
        {
            found.push((path.to_owned(), line));
        }
    }
    found
}

/// A model that plans one task, calls this tool once for it, and says that the word is noted.
pub(crate) fn one_call(request: &CapturedRequest, tool: &str, arguments: &Value) -> Reply {
    let task = json!({ "name": "note it down", "goal": "Note down the word.", "role": "worker" });
    plan_and_report(request, &[task], "# Note\n\nIt is noted.").unwrap_or_else(|| match request.turns() {
        0 => Reply::call(tool, arguments),
        _ => done("It is noted."),
    })
}
