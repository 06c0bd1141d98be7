//! A request as a model reads it: the fences of data in it, what it is asked to be, what it has seen so far.

use serde_json::Value;

use super::facts::{self, Line};
use super::tools::Tools;
use crate::model_server::{CapturedRequest, SeenMessage};

/// A piece of data in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) kind: String,
    pub(super) text: String,
}

/// A call that was made, and what came of it.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) text: String,
}

/// What a model is asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Planner,
    Refiner,
    Reviewer,
    Writer,
    Reflector,
    Leaf,
    /// A question apart, answered in JSON.
    Aside,
}

/// A request, read.
pub(super) struct Seen {
    pub(super) system: String,
    /// The data of what the user says, in order.
    pub(super) fences: Vec<Fence>,
    /// All that the user says, as it stands.
    pub(super) said: String,
    pub(super) observed: Vec<Observed>,
    pub(super) tools: Tools,
    /// Mark of the fences.
    pub(super) nonce: String,
    /// How often the model has answered.
    pub(super) turns: usize,
    /// Whether several calls may be made in one answer.
    pub(super) parallel: bool,
    /// The schema that an answer in text is to follow.
    pub(super) schema: Option<Value>,
    /// The tool that is to be called.
    pub(super) only: Option<String>,
    /// Whether this is the last step, by what the request says.
    pub(super) is_last: bool,
    /// Whether it is told of tools in words, and calls them in words.
    pub(super) in_words: bool,
}

impl Seen {
    pub(super) fn of(request: &CapturedRequest) -> Self {
        let in_text = observed_in_text(&request.messages);
        let shows = |at: usize| in_text.iter().any(|(shown, _)| *shown == at);
        let user: Vec<&str> = (0..)
            .zip(&request.messages)
            .filter(|(at, message)| message.role == "user" && !shows(*at))
            .map(|(_, message)| message.text.as_str())
            .collect();
        let said = user.join("\n\n");
        let fences = fences(&said);
        let system = request.system().to_owned();
        let schema = schema(&request.body, &system);
        let declared = Tools::of(&request.body);
        let in_words = declared.is_empty();
        let tools = if in_words { Tools::in_words(&system) } else { declared };
        let parallel = request.body.get("parallel_tool_calls").and_then(Value::as_bool).unwrap_or(true);
        Self {
            nonce: nonce(&said).unwrap_or_default(),
            observed: observed(request)
                .into_iter()
                .chain(in_text.into_iter().map(|(_, seen)| seen))
                .collect(),
            tools,
            turns: request.turns(),
            // In words, one action is asked for.
            parallel: parallel && !in_words,
            in_words,
            only: request
                .body
                .pointer("/tool_choice/function/name")
                .and_then(Value::as_str)
                .map(str::to_owned),
            is_last: is_last(request.last_text()),
            fences,
            said,
            system,
            schema,
        }
    }

    pub(super) fn role(&self) -> Role {
        let Some(schema) = self.tools.submit().or(self.schema.as_ref()) else {
            return if self.tools.is_empty() { Role::Aside } else { Role::Leaf };
        };
        let has = |name: &str| schema.pointer(&format!("/properties/{name}")).is_some();
        if has("operations") {
            Role::Refiner
        } else if has("tasks") && !has("conclusion") {
            Role::Planner
        } else if has("verdict") && has("remarks") {
            Role::Reviewer
        } else if has("conclusion") || has("findings") {
            Role::Leaf
        } else if has("body") {
            Role::Writer
        } else if has("summary") {
            Role::Reflector
        } else {
            Role::Aside
        }
    }

    /// The first piece of data of a kind.
    pub(super) fn fence(&self, kind: &str) -> Option<&str> {
        self.fences.iter().find(|fence| fence.kind == kind).map(|fence| fence.text.as_str())
    }

    /// All pieces of data of a kind.
    pub(super) fn all<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.fences.iter().filter(move |fence| fence.kind == kind).map(|fence| fence.text.as_str())
    }

    /// What is to be done: the task, else the goal.
    pub(super) fn task(&self) -> &str {
        self.fence("task").or_else(|| self.fence("goal")).unwrap_or(&self.said)
    }

    /// What the conversation is about, the same in every request of it and in every run with the same goal.
    pub(super) fn about(&self) -> String {
        format!("{:?} {} {}", self.role(), self.fence("goal").unwrap_or_default(), self.task())
    }

    /// The lines of documents that were shown.
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.observed.iter().flat_map(|seen| facts::lines(&seen.text)).collect();
        lines.sort();
        lines.dedup_by(|one, other| one.path == other.path && one.number == other.number);
        lines
    }

    /// The documents that are known, by what was shown and by what the request lists.
    pub(super) fn documents(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.lines().into_iter().map(|line| line.path).collect();
        paths.extend(
            self.fences
                .iter()
                .filter(|fence| ["document", "file", "corpus"].iter().any(|word| fence.kind.contains(word)))
                .flat_map(|fence| listed(&fence.text)),
        );
        paths.sort();
        paths.dedup();
        paths
    }

    /// Whether documents can be looked into.
    pub(super) fn has_documents(&self) -> bool {
        let none = self.said.contains("No documents were given")
            || self.observed.iter().any(|seen| seen.text.contains("no documents were given"));
        !none && (self.tools.search().is_some() || self.tools.read().is_some())
    }

    /// Whether a call was made with these arguments, the thought aside.
    pub(super) fn was_called(&self, tool: &str, arguments: &Value) -> bool {
        self.called(tool, arguments).is_some()
    }

    /// What came of a call with these arguments.
    pub(super) fn called(&self, tool: &str, arguments: &Value) -> Option<&Observed> {
        let without = |arguments: &Value| {
            let mut fields = arguments.as_object().cloned().unwrap_or_default();
            fields.remove("thought");
            fields
        };
        self.observed
            .iter()
            .rev()
            .find(|seen| seen.tool == tool && without(&seen.arguments) == without(arguments))
    }
}

/// Names of files at the beginning of lines.
fn listed(text: &str) -> Vec<String> {
    let first = text.lines().filter_map(|line| {
        line.trim_start_matches(['-', '*', ' ', '`']).split([' ', ':', ',', '`', '|']).next()
    });
    let is_file = |word: &&str| {
        word.rsplit_once('.').is_some_and(|(name, ending)| {
            !name.is_empty()
                && (1..=5).contains(&ending.len())
                && ending.chars().all(|c| c.is_ascii_alphanumeric())
        })
    };
    first.filter(is_file).map(str::to_owned).collect()
}

fn observed(request: &CapturedRequest) -> Vec<Observed> {
    let calls: Vec<_> = request.messages.iter().flat_map(|message| &message.calls).collect();
    let answers = request.messages.iter().filter(|message| message.role == "tool");
    let mut open: Vec<_> = calls.iter().map(Some).collect();
    let mut found = Vec::new();
    for answer in answers {
        let id = answer.answers.as_deref().unwrap_or_default();
        // Where ids are names, the first call that is not answered yet is meant.
        let Some(call) =
            open.iter_mut().find(|call| call.is_some_and(|call| call.id == id)).and_then(Option::take)
        else {
            continue;
        };
        let inside: Vec<String> = fences(&answer.text).into_iter().map(|fence| fence.text).collect();
        let text = if inside.is_empty() { answer.text.clone() } else { inside.join("\n") };
        found.push(Observed { tool: call.name.clone(), arguments: call.arguments.clone(), text });
    }
    found
}

/// The same of actions that were written as JSON, each with the place of the message that shows what came of it.
fn observed_in_text(messages: &[SeenMessage]) -> Vec<(usize, Observed)> {
    let answered = messages.iter().zip(messages.iter().skip(1));
    let pairs =
        (1..).zip(answered).filter(|(_, (said, shown))| said.role == "assistant" && shown.role == "user");
    let seen = pairs.filter_map(|(at, (said, shown))| {
        let written: Value = serde_json::from_str(&said.text).ok()?;
        let tool = written.get("action")?.as_str()?.to_owned();
        let arguments = written.get("arguments").cloned().unwrap_or_default();
        let inside = fences(&shown.text).into_iter().find(|fence| fence.kind.starts_with("observation"))?;
        Some((at, Observed { tool, arguments, text: inside.text }))
    });
    seen.collect()
}

/// The mark of the first fence.
fn nonce(text: &str) -> Option<String> {
    text.lines().find_map(|line| Some(line.strip_prefix("<<<")?.split(' ').next()?.to_owned()))
}

/// The pieces of data between fences.
pub(super) fn fences(text: &str) -> Vec<Fence> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((nonce, kind)) = line.strip_prefix("<<<").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let end = format!("{nonce}>>>");
        let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
        found.push(Fence { kind: kind.to_owned(), text: inside.join("\n") });
    }
    found
}

/// The schema for an answer in text: the provider's own field for it, else what the system prompt ends with.
fn schema(body: &Value, system: &str) -> Option<Value> {
    let declared = [
        "/response_format/json_schema/schema",
        "/format",
        "/generationConfig/responseJsonSchema",
        "/generationConfig/responseSchema",
    ];
    if let Some(schema) = declared.iter().find_map(|at| body.pointer(at)).filter(|schema| schema.is_object())
    {
        return Some(schema.clone());
    }
    let at = system.rfind("{\"").or_else(|| system.rfind('{'))?;
    // The schema is the last document of the prompt: its outermost brace is looked for from the front.
    let begins = system.match_indices('{').map(|(at, _)| at).filter(|begin| *begin <= at);
    begins
        .filter_map(|begin| serde_json::from_str::<Value>(system.get(begin..)?.trim()).ok())
        .find(|schema| schema.get("properties").is_some())
}

/// Whether the text that came last says that no tool is run any more, in whatever words: the step is the last of all.
fn is_last(text: &str) -> bool {
    let Some((_, rest)) = text.rsplit_once("Step ") else { return false };
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    match (
        numbers.next().and_then(|n| n.parse::<u32>().ok()),
        numbers.next().and_then(|n| n.parse::<u32>().ok()),
    ) {
        (Some(step), Some(most)) => step >= most,
        (Some(_) | None, _) => false,
    }
}
