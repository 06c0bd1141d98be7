//! Calls in tags and template tokens, where the tool's name stands outside the JSON.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::Reading;
use super::answer::AnswerForm;
use super::fields::{self, Fields};
use super::json;
use super::tools::KnownTools;

const ARG_KEY: &str = "<arg_key>";

/// Patterns whose first group is the tool and after which its arguments follow.
#[expect(clippy::unwrap_used, reason = "constant patterns, compiled in every test run")]
static NAMED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // Llama, Qwen coder: <function=search>…</function>
        r#"<function=["']?([\w.-]+)["']?>"#,
        // Anthropic's: <invoke name="search">…</invoke>
        r#"<(?:antml:)?invoke name=["']([\w.-]+)["']>"#,
        r#"<(?:function|tool|tool_call|action|call) name=["']([\w.-]+)["'][^>]*>"#,
        // Kimi: <|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>
        r"<\|tool_call_begin\|>\s*([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>",
        // DeepSeek: <｜tool▁call▁begin｜>function<｜tool▁sep｜>search
        r"<｜tool▁call▁begin｜>\s*(?:function<｜tool▁sep｜>)?\s*([\w.-]+)\s*(?:<｜tool▁sep｜>|\n)",
        // gpt-oss: … to=functions.search … <|message|>
        r"to=([\w.-]+)[^{]{0,80}?<\|message\|>",
        // Mistral: [TOOL_CALLS]search[ARGS]{…} or [TOOL_CALLS]search{…}
        r"\[TOOL_CALLS\]\s*([A-Za-z_][\w-]*)\s*(?:\[CALL_ID\]\w*)?\s*(?:\[ARGS\])?",
        // GLM: <tool_call>search
        r"<tool_call>\s*([A-Za-z_][\w-]*)\s*(?:\n|<arg_key>)",
        // <tool>search</tool> <action>search</action>
        r"<(?:tool|tool_name|action|function|function_name)>\s*([\w.-]+)\s*</(?:tool|tool_name|action|function|function_name)>",
    ]
    .iter()
    .map(|pattern| Regex::new(pattern).unwrap())
    .collect()
});
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?s)<(?:antml:)?(?:parameter|param|arg)(?:=| name=)["']?([\w.-]+)["']?[^>]*>(.*?)(?:</(?:antml:)?(?:parameter|param|arg)>|\z)"#)
        .unwrap()
});
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static ARG_PAIR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|\z)").unwrap()
});
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static INPUT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)<(?:tool_input|action_input|input|parameters|arguments|args)>(.*?)(?:</(?:tool_input|action_input|input|parameters|arguments|args)>|\z)")
        .unwrap()
});
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static ELEMENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"<([A-Za-z_][\w-]*)>").unwrap());

/// Whether `text` holds a named call in tags; such a call may be nothing but tokens.
pub(super) fn present(text: &str) -> bool {
    NAMED.iter().any(|pattern| pattern.is_match(text))
}

pub(super) fn read(text: &str, tools: &KnownTools<'_>) -> Option<Reading> {
    let visible = visible_part(text);
    // The patterns are made when the first answer with a tag comes.
    if !visible.contains('<') && !visible.contains("[TOOL_CALLS]") {
        return None;
    }
    named(visible, tools).or_else(|| element(visible, tools))
}

/// Tags within reasoning are no calls.
fn visible_part(text: &str) -> &str {
    text.rfind("</think>").map_or(text, |at| &text[at..])
}

fn named(text: &str, tools: &KnownTools<'_>) -> Option<Reading> {
    if text.contains("<think>") && !text.contains("</think>") {
        return None;
    }
    let found = NAMED.iter().find_map(|pattern| pattern.captures(text))?;
    let (whole, name) = (found.get(0)?, found.get(1)?);
    // [TOOL_CALLS] is followed by a list as often as by a name, and <tool>s may hold anything.
    let name = tools.resolve(name.as_str())?;
    // GLM's first argument begins where the match ends.
    let end = whole.end() - if whole.as_str().ends_with(ARG_KEY) { ARG_KEY.len() } else { 0 };
    let rest = &text[end..];
    let (given, open_ended) = arguments_after(rest, &name, tools);
    let mut fields = Fields::act(name, given);
    fields.thought = super::prose(&super::clean::clean(&text[..whole.start()]).text)
        .filter(|prose| !prose.starts_with('<'));
    let torn = open_ended && json::ends_torn(rest);
    Some(Reading { fields, form: AnswerForm::Tags, repaired: false, open_ended, torn })
}

/// The arguments in whatever follows the name, and whether only the text's end closed them.
fn arguments_after(rest: &str, tool: &str, tools: &KnownTools<'_>) -> (Value, bool) {
    let body = rest.split("</invoke>").next().unwrap_or(rest).split("</function>").next().unwrap_or(rest);
    let closed = body.len() < rest.len();
    for pattern in [&PARAMETER, &ARG_PAIR] {
        let pairs: Map<String, Value> =
            pattern.captures_iter(body).map(|pair| (pair[1].to_owned(), typed(&pair[2]))).collect();
        if !pairs.is_empty() {
            return (Value::Object(pairs), !closed && !body.trim_end().ends_with('>'));
        }
    }
    let inner = INPUT.captures(body).and_then(|found| found.get(1)).map_or(body, |inner| inner.as_str());
    if let Some(found) = json::objects(inner).into_iter().next() {
        return (fields::arguments(found.value, tool, tools), !found.closed);
    }
    let elements = members(inner, tool, tools);
    if !elements.is_empty() {
        return (Value::Object(elements), false);
    }
    let text = inner.split('<').next().unwrap_or_default().trim();
    (fields::arguments(Value::String(text.to_owned()), tool, tools), !closed)
}

/// `<search><query>x</query></search>`, for known tools only.
fn element(text: &str, tools: &KnownTools<'_>) -> Option<Reading> {
    let found = ELEMENT.captures_iter(text).find(|found| tools.knows(&found[1]))?;
    let (whole, name) = (found.get(0)?, &found[1]);
    let rest = &text[whole.end()..];
    let body = rest.split(&format!("</{name}>")).next().unwrap_or(rest);
    let closed = body.len() < rest.len();
    let members = members(body, name, tools);
    let given = if members.is_empty() {
        fields::arguments(Value::String(body.trim().to_owned()), name, tools)
    } else {
        Value::Object(members)
    };
    let mut fields = Fields::act(name.to_owned(), given);
    fields.thought = super::prose(&text[..whole.start()]).filter(|prose| !prose.starts_with('<'));
    let torn = !closed && json::ends_torn(rest);
    Some(Reading { fields, form: AnswerForm::Tags, repaired: false, open_ended: !closed, torn })
}

/// Elements named like the tool's arguments.
fn members(body: &str, tool: &str, tools: &KnownTools<'_>) -> Map<String, Value> {
    ELEMENT
        .captures_iter(body)
        .filter(|found| tools.takes(tool, &found[1]))
        .filter_map(|found| {
            let rest = &body[found.get(0)?.end()..];
            let inner = rest.split(&format!("</{}>", &found[1])).next().unwrap_or(rest);
            Some((found[1].to_owned(), typed(inner)))
        })
        .collect()
}

/// Numbers, booleans and structures as such, all else as text.
fn typed(text: &str) -> Value {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    match serde_json::from_str(text.trim()) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Object(_) | Value::Array(_))) => value,
        _ => Value::String(text.trim().to_owned()),
    }
}
