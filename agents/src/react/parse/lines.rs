//! `Thought:` / `Action:` / `Action Input:` lines, with or without markup.

use std::sync::LazyLock;

use muster_shared::text::bracket_depth;
use regex::Regex;
use serde_json::Value;

use super::Reading;
use super::answer::AnswerForm;
use super::calls;
use super::fields::{self, Fields};
use super::json;
use super::limits::MAX_DEPTH;
use super::tools::{KnownTools, SUBMIT};

const LABELS: &str = r"thoughts?|thinking|reasoning|plan|criticism|reflection|action[ _-]*inputs?|action[ _-]*arguments|action[ _-]*args|action[ _-]*parameters|tool[ _-]*inputs?|tool[ _-]*args|arguments|parameters|args|params|input|action[ _-]*name|action|tool[ _-]*name|tool|function|observation|final[ _-]*answer";

#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?im)^[ \t>#*_-]*(?:\d+[.)][ \t]*)?[*_`]*({LABELS})[ \t]*(?:\d+[ \t]*)?[*_`]*[ \t]*[:：][*_]*[ \t]*"
    ))
    .unwrap()
});
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static INLINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[ \t.;]+((?:Action Input|Action|Observation|Final Answer)[ \t]*:)").unwrap()
});
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static THOUGHT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)^\s*[*_#]*(?:thoughts?|thinking)[*_]*\s*[:：][*_]*\s*").unwrap());

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Thought,
    Reasoning,
    Plan,
    Criticism,
    Action,
    Input,
    Observation,
    Final,
}

pub(super) fn read(text: &str, tools: &KnownTools<'_>) -> Option<Reading> {
    read_lines(text, tools).or_else(|| {
        let broken = INLINE.replace_all(text, "\n$1");
        if broken == text { None } else { read_lines(&broken, tools) }
    })
}

/// A text without its leading `Thought:`.
pub(super) fn without_label(text: &str) -> &str {
    THOUGHT.find(text).map_or(text, |label| &text[label.end()..])
}

fn read_lines(text: &str, tools: &KnownTools<'_>) -> Option<Reading> {
    let (before, sections) = sections(text);
    // What follows an observation was imagined.
    let real: Vec<_> =
        sections.iter().take_while(|(kind, _)| *kind != LineKind::Observation).copied().collect();
    let mut fields = match real.iter().position(|(kind, _)| *kind == LineKind::Action) {
        Some(at) => act(
            real[at].1,
            real.get(at + 1).filter(|(kind, _)| *kind == LineKind::Input).map(|(_, text)| *text),
            tools,
        )?,
        None => submit(&real, tools)?,
    };
    let said = |wanted: LineKind| {
        real.iter()
            .find(|(kind, text)| *kind == wanted && !text.trim().is_empty())
            .and_then(|(_, text)| super::shown(text))
    };
    let thoughts = Fields {
        thought: said(LineKind::Thought).or_else(|| super::prose(before)),
        reasoning: said(LineKind::Reasoning),
        plan: said(LineKind::Plan),
        criticism: said(LineKind::Criticism),
        actions: Vec::new(),
    };
    fields.borrow_thoughts(&thoughts);
    let open_ended = real.len() == sections.len();
    let torn = open_ended && json::ends_torn(text);
    Some(Reading { fields, form: AnswerForm::ActionLines, repaired: false, open_ended, torn })
}

fn sections(text: &str) -> (&str, Vec<(LineKind, &str)>) {
    let labels: Vec<_> =
        LABEL.captures_iter(text).filter_map(|found| Some((found.get(0)?, kind(&found[1])))).collect();
    let before = labels.first().map_or(text, |(label, _)| &text[..label.start()]);
    let sections = labels
        .iter()
        .enumerate()
        .map(|(at, (label, kind))| {
            let end = labels.get(at + 1).map_or(text.len(), |(next, _)| next.start());
            (*kind, &text[label.end()..end])
        })
        .collect();
    (before, sections)
}

fn kind(label: &str) -> LineKind {
    let plain: String =
        label.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect();
    match plain.as_str() {
        "thought" | "thoughts" | "thinking" => LineKind::Thought,
        "reasoning" => LineKind::Reasoning,
        "plan" => LineKind::Plan,
        "criticism" | "reflection" => LineKind::Criticism,
        "action" | "actionname" | "tool" | "toolname" | "function" => LineKind::Action,
        "observation" => LineKind::Observation,
        "finalanswer" => LineKind::Final,
        _ => LineKind::Input,
    }
}

fn act(named: &str, input: Option<&str>, tools: &KnownTools<'_>) -> Option<Fields> {
    let named = without_fence(named).trim();
    if named.starts_with(['{', '[']) {
        let whole = json::objects(named).into_iter().find_map(|found| fields::read(&found.value, tools));
        if whole.is_some() {
            return whole;
        }
    }
    let Some(input) = input else {
        return calls::call(named, tools).or_else(|| first_line_call(named, tools)).or_else(|| {
            let name = tools.resolve(named.lines().next()?)?;
            Some(Fields::act(name, fields::empty()))
        });
    };
    let name = tools.resolve(named.lines().next()?)?;
    let given = arguments(without_fence(input), &name, tools);
    Some(Fields::act(name, given))
}

/// `search: the query` and `search the query` are calls when the tool is known; so is a call followed by chatter.
fn first_line_call(named: &str, tools: &KnownTools<'_>) -> Option<Fields> {
    let line = named.lines().next()?;
    if let Some(fields) = calls::call(line, tools) {
        return Some(fields);
    }
    let (word, rest) = line.split_once([':', ' '])?;
    let name = tools.known(word)?.to_owned();
    let rest = rest.trim();
    let given = if let Some(pairs) = calls::pairs(rest) {
        pairs
    } else if line.contains(':') || rest.starts_with(['"', '\'', '{']) {
        arguments(rest, &name, tools)
    } else {
        return None;
    };
    Some(Fields::act(name, given))
}

fn arguments(input: &str, tool: &str, tools: &KnownTools<'_>) -> Value {
    let indented = input;
    let input = input.trim();
    if input.starts_with(['{', '['])
        && let Some(found) = json::objects(input).into_iter().next()
    {
        return fields::arguments(found.value, tool, tools);
    }
    if let Some(pairs) = calls::pairs(input) {
        return pairs;
    }
    if bracket_depth(indented) <= MAX_DEPTH
        && let Ok(Value::Object(map)) = serde_yaml_ng::from_str::<Value>(indented)
        && map.keys().all(|key| !key.contains(' ') && (!tools.knows(tool) || tools.takes(tool, key)))
    {
        return Value::Object(map);
    }
    let bare = json::literal(input).unwrap_or_else(|| Value::String(input.to_owned()));
    fields::arguments(bare, tool, tools)
}

/// `Final Answer:` ends the task.
fn submit(sections: &[(LineKind, &str)], tools: &KnownTools<'_>) -> Option<Fields> {
    let (_, text) =
        sections.iter().find(|(kind, text)| *kind == LineKind::Final && !text.trim().is_empty())?;
    let name = [SUBMIT, "give_answer", "final_answer", "finish"]
        .into_iter()
        .find(|name| tools.knows(name))
        .unwrap_or(SUBMIT);
    let text = text.trim();
    let given = if text.starts_with('{') { json::literal(text) } else { None };
    let given = match given {
        Some(given @ Value::Object(_)) => given,
        _ => {
            let key = tools.main_argument(name).unwrap_or_else(|| "answer".to_owned());
            serde_json::json!({ key: text })
        }
    };
    Some(Fields::act(name.to_owned(), given))
}

/// The inside of a code fence that surrounds the text.
fn without_fence(text: &str) -> &str {
    let Some(inner) = text.trim().strip_prefix("```") else {
        // Indentation stays: it means something in YAML.
        return text.trim_end().trim_start_matches(['\n', '\r']);
    };
    let inner = inner.split_once('\n').map_or(inner, |(language, rest)| {
        if language.trim().chars().all(char::is_alphanumeric) { rest } else { inner }
    });
    inner.split("```").next().unwrap_or(inner).trim()
}
