//! Answers, and those of all roles besides the ones that act: plan, refinement, review, report, reflection, asides.

use serde_json::{Map, Value, json};

use super::facts;
use super::request::Seen;
use super::result::{conclusion, given};
use super::tools::{Declared, completed};
use super::words;
use crate::model_server::Reply;

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// Whether a thought goes with the arguments.
    pub(super) takes_thought: bool,
}

impl Call {
    pub(super) fn of(tool: &Declared, arguments: Value) -> Self {
        Self { tool: tool.name.clone(), arguments, takes_thought: tool.takes_thought() }
    }
}

/// What the model says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) thought: String,
    pub(super) calls: Vec<Call>,
    pub(super) text: String,
    /// Whether it stopped before its end.
    pub(super) is_cut: bool,
}

impl Answer {
    pub(super) fn calls(thought: String, calls: Vec<Call>) -> Self {
        Self { thought, calls, ..Self::default() }
    }

    fn json(value: &Value) -> Self {
        Self { text: value.to_string(), ..Self::default() }
    }

    /// What is submitted: those of the fields that the schema has, and what else it requires.
    pub(super) fn submitting(seen: &Seen, thought: String, mut fields: Map<String, Value>) -> Self {
        let Some(schema) = seen.tools.submit().or(seen.schema.as_ref()) else {
            let text = ["body", "conclusion"].iter().find_map(|name| fields.get(*name)?.as_str());
            return Self { text: text.unwrap_or_default().to_owned(), thought, ..Self::default() };
        };
        fields.retain(|name, _| schema.pointer(&format!("/properties/{name}")).is_some());
        let arguments = completed(schema, fields);
        if seen.tools.submit().is_none() {
            return Self::json(&arguments);
        }
        let takes_thought = schema.pointer("/properties/thought").is_some();
        Self::calls(thought, vec![Call { tool: "submit".to_owned(), arguments, takes_thought }])
    }

    /// What is submitted, if this ends a task.
    pub(super) fn submitted(&self) -> Option<&Value> {
        self.calls.iter().find(|call| call.tool == "submit").map(|call| &call.arguments)
    }

    /// The same, to be changed.
    pub(super) fn submitted_mut(&mut self) -> Option<&mut Value> {
        self.calls.iter_mut().find(|call| call.tool == "submit").map(|call| &mut call.arguments)
    }

    pub(super) fn bytes(&self) -> usize {
        let calls: usize =
            self.calls.iter().map(|call| call.arguments.to_string().len() + call.tool.len()).sum();
        self.text.len() + self.thought.len() + calls
    }

    /// What is written where actions are JSON in the text.
    pub(super) fn in_words(&self) -> String {
        let Some(call) = self.calls.first() else { return self.text.clone() };
        json!({"thought": self.thought, "action": call.tool, "arguments": call.arguments}).to_string()
    }

    pub(super) fn reply(self, seen: &Seen) -> Reply {
        if seen.in_words {
            return written(&self.in_words(), self.is_cut);
        }
        let in_text = !self.calls.is_empty() && self.calls.iter().all(|call| !call.takes_thought);
        let text = if in_text { self.thought.clone() } else { self.text };
        let mut reply = Reply::text(text);
        for call in self.calls {
            let mut arguments = call.arguments;
            if let Some(fields) =
                arguments.as_object_mut().filter(|_| call.takes_thought && !self.thought.is_empty())
            {
                fields.insert("thought".to_owned(), json!(self.thought));
            }
            let written = arguments.to_string();
            let sent = if self.is_cut { first_half(&written) } else { &written };
            reply = reply.and_raw_call(&call.tool, sent);
        }
        if self.is_cut { reply.with_finish("length") } else { reply }
    }
}

fn first_half(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len() / 2)]
}

/// A text as it is sent: half of it, where the limit of an answer ends it.
pub(super) fn written(text: &str, is_cut: bool) -> Reply {
    if is_cut { Reply::text(first_half(text)).with_finish("length") } else { Reply::text(text) }
}

fn fields<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The plan: aspects in twos and a task that brings them together, or one task for what is of one piece.
pub(super) fn plan(seen: &Seen) -> Answer {
    let goal = seen.fence("goal").unwrap_or(&seen.said).to_owned();
    let asked = words::asked(&goal);
    let has_documents = !seen.said.contains("No documents were given");
    let finder = if has_documents { "researcher" } else { "worker" };
    let task = |name: String, goal: String, role: &str, after: &[String]| json!({"name": name, "goal": goal, "role": role_of(seen, role), "depends_on": after});
    let tasks = if asked.of_each && asked.aspects.len() > 2 && words::sums(&goal).is_empty() {
        let groups: Vec<&[String]> = asked.aspects.chunks(asked.aspects.len().div_ceil(3)).collect();
        let names: Vec<String> = groups.iter().map(|group| group.join(" and ")).collect();
        let mut tasks: Vec<Value> = groups
            .iter()
            .zip(&names)
            .map(|(group, name)| {
                let goal =
                    format!("Find what each document says about {}. Cite every finding.", group.join(", "));
                task(name.clone(), goal, finder, &[])
            })
            .collect();
        tasks.push(task(
            "bring it together".to_owned(),
            "Bring the results together and say which document they speak for.".to_owned(),
            "worker",
            &names,
        ));
        tasks
    } else {
        let role =
            if words::sums(&goal).is_empty() && words::files(&goal).is_empty() { finder } else { "worker" };
        vec![task("the whole goal".to_owned(), goal.clone(), role, &[])]
    };
    Answer::submitting(
        seen,
        format!("{} tasks do it.", tasks.len()),
        fields([("goal", json!(goal)), ("tasks", json!(tasks))]),
    )
}

/// The role by this name, or the first that there is.
fn role_of(seen: &Seen, wanted: &str) -> String {
    let roles =
        seen.tools.submit().and_then(|schema| schema.pointer("/properties/tasks/items/properties/role/enum"));
    let roles: Vec<&str> =
        roles.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let known = roles.is_empty() || roles.contains(&wanted);
    if known { wanted.to_owned() } else { roles.first().map_or_else(String::new, |role| (*role).to_owned()) }
}

/// What results left open is looked for once more, in other words; else the plan stays.
pub(super) fn refinement(seen: &Seen) -> Answer {
    let progress = seen.fence("progress").unwrap_or_default();
    let open: Vec<String> = uncovered(seen);
    let last = progress
        .lines()
        .filter(|line| line.contains("[x]") || line.contains("[~]"))
        .filter_map(index)
        .next_back();
    let operation = match last {
        Some(after) if !open.is_empty() && !progress.contains("look again") => json!({
            "operation": "add", "after": after,
            "tasks": [{"name": "look again", "goal": format!("Find what the documents say about {}.", open.join(", "))}],
        }),
        Some(_) | None => {
            json!({"operation": "exit", "reason": "what is left open cannot be found by another task"})
        }
    };
    Answer::submitting(
        seen,
        "Only what is open is worth a task.".to_owned(),
        fields([("operations", json!([operation]))]),
    )
}

/// The index of a task in a line of progress.
fn index(line: &str) -> Option<String> {
    let is_index = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    line.split_whitespace().find(is_index).map(str::to_owned)
}

fn uncovered(seen: &Seen) -> Vec<String> {
    let told = seen.fences.iter().flat_map(|fence| fence.text.lines());
    let parts = told
        .filter_map(|line| line.strip_prefix("Uncovered: ").or_else(|| line.strip_prefix("Unanswered: ")));
    let mut open: Vec<String> = parts.flat_map(|part| part.split("; ")).map(str::to_owned).collect();
    open.extend(seen.all("uncovered").map(str::to_owned));
    open.sort();
    open.dedup();
    open
}

/// A draft is good when every citation of it stands in a result.
pub(super) fn review(seen: &Seen) -> Answer {
    let draft = seen.fence("draft").unwrap_or_default();
    let results: String = seen.all("result").collect::<Vec<_>>().join("\n");
    let unsupported: Vec<String> =
        cited(draft).into_iter().filter(|place| !results.contains(place)).collect();
    let verdict = if unsupported.is_empty() { "accept" } else { "revise" };
    Answer::submitting(
        seen,
        "The draft was held against the results.".to_owned(),
        fields([("verdict", json!(verdict)), ("unsupported", json!(unsupported))]),
    )
}

/// Every `path:line` in a text.
pub(super) fn cited(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || "`[](),;".contains(c));
    let is_place = |word: &&str| {
        word.rsplit_once(':').is_some_and(|(path, line)| {
            path.contains('.') && !line.is_empty() && line.chars().all(|c| c.is_ascii_digit())
        })
    };
    words.map(|word| word.trim_end_matches(['.', ':'])).filter(is_place).map(str::to_owned).collect()
}

/// The report: what the tasks concluded, then what supports it.
pub(super) fn report(seen: &Seen) -> Answer {
    let goal = seen.fence("goal").unwrap_or_default();
    let results: Vec<&str> = seen.all("result").collect();
    let concluded: Vec<String> = results.iter().rev().filter_map(|result| conclusion(result)).collect();
    let mut body = format!("# {}\n\n{}\n", title(goal), concluded.join("\n\n"));
    let mut told = Vec::new();
    for result in &results {
        for given in given(result) {
            if !told.contains(&given) {
                body.push_str(&format!("\n- {} (`{}:{}`)", given.text, given.path, given.line));
                told.push(given);
            }
        }
    }
    let open = uncovered(seen);
    if !open.is_empty() {
        body.push_str(&format!("\n\nNot answered: {}.", open.join("; ")));
    }
    let fields = fields([("title", json!(title(goal))), ("body", json!(body)), ("unanswered", json!(open))]);
    Answer::submitting(seen, "All results are in.".to_owned(), fields)
}

fn title(goal: &str) -> String {
    let words: Vec<&str> = goal.split_whitespace().take(10).collect();
    words.join(" ").trim_end_matches(['.', '?', ',']).to_owned()
}

pub(super) fn reflection(seen: &Seen) -> Answer {
    let open = uncovered(seen);
    let result = seen.fence("result").and_then(conclusion);
    let summary = result
        .map_or_else(|| "The task gave nothing.".to_owned(), |result| format!("The task gave: {result}"));
    let mut fields = fields([("summary", json!(summary)), ("uncovered", json!(open))]);
    if !open.is_empty() {
        fields.insert("refine".to_owned(), json!(format!("not covered: {}", open.join("; "))));
    }
    Answer::submitting(seen, "The result was held against the task.".to_owned(), fields)
}

/// A question apart: by what its schema asks for.
pub(super) fn aside(seen: &Seen) -> Answer {
    let Some(schema) = &seen.schema else {
        return Answer { text: "Yes.".to_owned(), ..Answer::default() };
    };
    let has = |name: &str| schema.pointer(&format!("/properties/{name}")).is_some();
    let mut said = Map::new();
    if has("faults") {
        said.insert("faults".to_owned(), faults(seen, schema));
    }
    if has("reached") {
        said.insert(
            "reached".to_owned(),
            json!(seen.fences.iter().any(|fence| fence.kind.starts_with("step"))),
        );
    }
    for (name, value) in [
        ("same", json!(false)),
        ("why", json!("each step asks for something else")),
        ("declined", json!(false)),
    ] {
        if has(name) {
            said.insert(name.to_owned(), value);
        }
    }
    Answer::json(&completed(schema, said))
}

/// Citations of a result that what was shown contradicts: the line is shown and says something else.
fn faults(seen: &Seen, schema: &Value) -> Value {
    let shown: Vec<facts::Line> = seen
        .fences
        .iter()
        .filter(|fence| fence.kind != "result")
        .flat_map(|fence| facts::lines(&fence.text))
        .collect();
    let result: Value =
        seen.fence("result").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let citations =
        result.pointer("/findings").and_then(Value::as_array).into_iter().flatten().flat_map(|finding| {
            finding.get("citations").and_then(Value::as_array).cloned().unwrap_or_default()
        });
    let checks: Vec<&str> = schema
        .pointer("/properties/faults/items/properties/check/enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let check = if checks.contains(&"correctness") {
        "correctness"
    } else {
        checks.first().copied().unwrap_or("correctness")
    };
    let wrong = citations.filter_map(|citation| {
        let (path, line, quote) = (
            citation.get("path")?.as_str()?,
            citation.get("line")?.as_u64()?,
            citation.get("quote")?.as_str()?,
        );
        let stands = shown.iter().find(|one| one.path == path && u64::from(one.number) == line)?;
        (!quote.is_empty() && !stands.text.contains(quote) && !quote.contains(&stands.text))
            .then(|| json!({"check": check, "why": format!("{path}:{line} says: {}", stands.text)}))
    });
    wrong.collect()
}
