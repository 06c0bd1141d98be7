//! Small questions that belong to no task: a word to be said, two numbers to be added, a line to be found in a text.

use serde_json::{Value, json};

use super::answers::{Answer, Call};
use super::facts;
use super::request::Seen;
use super::words;

/// What it knows by itself.
const KNOWN: [(&str, &str); 1] = [("which command ends the process with the id 4242", "kill 4242")];

/// The answer to a small question; nothing where the request is none.
pub(super) fn answer(seen: &Seen) -> Option<Answer> {
    let is_small = |kind: &str| ["log", "documents"].contains(&kind);
    if !seen.fences.iter().all(|fence| is_small(&fence.kind)) {
        return None;
    }
    let text = |text: String| Answer { text, ..Answer::default() };
    let asked = seen.said.as_str();
    if let Some(schema) = seen.tools.submit() {
        return (!words::pairs(asked).is_empty()).then(|| with_tools(seen, schema));
    }
    if let Some(word) = asked.split("the one word: ").nth(1) {
        return Some(text(word.trim().to_owned()));
    }
    if let Some((_, said)) = KNOWN.iter().find(|(question, _)| asked.contains(question)) {
        return Some(text((*said).to_owned()));
    }
    if asked.contains("capital of France") {
        return Some(text(json!({"city": "Paris", "letters": 5}).to_string()));
    }
    if asked.contains("\"action\"") {
        let (a, b) = *words::pairs(asked).first()?;
        let action = json!({"thought": "a sum", "action": "add", "arguments": {"a": a, "b": b}});
        return Some(text(action.to_string()));
    }
    seen.fences.first().map(|fence| text(found(&fence.text, asked)))
}

/// Sums by the tool, what it has to call, or what came of it.
fn with_tools(seen: &Seen, submit: &Value) -> Answer {
    let call = |tool: &str, arguments: Value| Call { tool: tool.to_owned(), arguments, takes_thought: false };
    if seen.only.as_deref() == Some("submit") {
        let field = submit.pointer("/required/0").and_then(Value::as_str).unwrap_or("text");
        return Answer::calls(String::new(), vec![call("submit", json!({ field: "42" }))]);
    }
    if let Some(last) = seen.observed.last() {
        return Answer { text: format!("The sum is {}.", last.text), ..Answer::default() };
    }
    let sums = words::pairs(&seen.said).into_iter().map(|(a, b)| call("add", json!({"a": a, "b": b})));
    Answer::calls(String::new(), sums.collect())
}

/// The sentence of a text that has all that the question names, with its place where it has one; else what the question
/// wants to hear then.
fn found(text: &str, asked: &str) -> String {
    let question = asked.rsplit(">>>").next().unwrap_or(asked);
    let (question, otherwise) = question.split_once('?').unwrap_or((question, ""));
    let mut wanted = words::stems(question);
    wanted.remove("text");
    let told = facts::lines(text);
    let place = |line: &facts::Line| format!("{} {}:{}", line.text, line.path, line.number);
    if let Some(line) = told.iter().find(|line| wanted.intersection(&words::stems(&line.text)).count() > 1) {
        return place(line);
    }
    let sentences = words::sentences(text);
    let says = |sentence: &&String| wanted.is_subset(&words::stems(sentence));
    match sentences.iter().find(says) {
        Some(sentence) => sentence.clone(),
        None => otherwise.split("answer: ").nth(1).unwrap_or("I do not know.").trim().to_owned(),
    }
}
