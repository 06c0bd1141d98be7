//! A call of a tool that waits for a person's approval, and its arguments as they are to be.

use std::path::Path;

use muster_shared::flow::{About, CallToApprove, Wait};
use muster_shared::ids::QuestionId;
use muster_shared::run::RunState;
use serde_json::Value;

use super::editor;
use crate::exit::{Failure, failed, usage};

/// Largest file of arguments, in bytes.
const MOST: u64 = 1024 * 1024;

/// The call that an open question is about: that of the question that is named, else of the only one that waits to be
/// approved.
pub(crate) fn waiting(state: &RunState, named: Option<QuestionId>) -> Option<(QuestionId, &CallToApprove)> {
    let mut open = state.open_questions().filter(|(id, asked)| match named {
        Some(named) => *id == named,
        None => asked.about.is_approved(),
    });
    let (id, asked) = open.next().filter(|_| named.is_some() || open.next().is_none())?;
    let About::Call(task) = &asked.about else { return None };
    match &state.tasks.get(task)?.waiting.as_ref()?.wait {
        Wait::Approval(call) => Some((id, call)),
        _ => None,
    }
}

/// The arguments as a person reads and edits them.
pub(super) fn written(call: &CallToApprove) -> Result<String, Failure> {
    serde_json::to_string_pretty(&call.arguments)
        .map_err(|error| failed!("the arguments cannot be shown: {error}"))
}

/// Has a person edit the arguments in their editor. Nothing when they leave them as they are.
pub(super) async fn by_editor(call: &CallToApprove) -> Result<Option<Value>, Failure> {
    let edited = parse(&editor::edited(written(call)?, "json").await?)?;
    Ok((edited != call.arguments).then_some(edited))
}

/// Arguments from the command line: JSON, or `@FILE` with JSON in it.
pub(super) fn given(text: &str) -> Result<Value, Failure> {
    match text.strip_prefix('@') {
        Some(file) => {
            let read = muster_agents::input::text(Path::new(file), MOST);
            parse(&read.map_err(|why| usage!("cannot read {file}: {why}"))?)
        }
        None => parse(text),
    }
}

fn parse(text: &str) -> Result<Value, Failure> {
    let parsed: Value = serde_json::from_str(text).map_err(|error| {
        usage!("the arguments are not JSON: {error}")
            .help("`muster approve RUN --show` prints them in the expected form; the run keeps waiting")
    })?;
    if parsed.is_object() {
        Ok(parsed)
    } else {
        Err(Failure::usage("the arguments of a call are a JSON object, such as {\"to\": \"ann\"}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_an_object_given_here_or_in_a_file() {
        assert_eq!(given("{\"to\": 1}").unwrap(), json!({ "to": 1 }));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        std::fs::write(&file, "{\"to\": 2}").unwrap();
        assert_eq!(given(&format!("@{}", file.display())).unwrap(), json!({ "to": 2 }));
        for wrong in ["", "to=1", "[1]", "7", "null", "@/nowhere/at.all"] {
            assert!(given(wrong).is_err(), "{wrong}");
        }
    }
}
