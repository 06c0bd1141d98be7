//! From a JSON object to thoughts and actions, whatever the keys are called.

use serde_json::{Map, Value};

use super::answer::ParsedAction;
use super::json;
use super::tools::KnownTools;

/// How deep an action may be wrapped in other objects.
const MAX_WRAPPING: usize = 4;

const STRONG_NAMES: &[&str] = &[
    "action",
    "tool",
    "toolname",
    "actionname",
    "actiontype",
    "function",
    "functionname",
    "toolcall",
    "functioncall",
    "nextaction",
    "tooluse",
    "recipientname",
    "tooltouse",
    "toolid",
    "actionid",
];
const WEAK_NAMES: &[&str] = &["name", "command", "call"];
const ARGUMENTS: &[&str] = &[
    "actioninput",
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
    "inputs",
    "toolinput",
    "toolargs",
    "toolarguments",
    "toolparameters",
    "toolparams",
    "actionarguments",
    "actionargs",
    "actionparameters",
    "actionparams",
    "actioninputs",
    "functionarguments",
    "functionargs",
    "functionparameters",
    "kwargs",
    "argument",
];
const LISTS: &[&str] = &["toolcalls", "actions", "calls", "functioncalls", "tooluses"];
const WRAPPERS: &[&str] = &[
    "response",
    "step",
    "output",
    "message",
    "assistant",
    "answer",
    "result",
    "json",
    "next",
    "nextstep",
    "choice",
    "decision",
];
/// Members that are no arguments when arguments are written beside the action.
const META: &[&str] =
    &["id", "type", "step", "status", "observation", "callid", "toolcallid", "index", "role", "confidence"];

/// Thoughts and actions read so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    pub(super) thought: Option<String>,
    pub(super) reasoning: Option<String>,
    pub(super) plan: Option<String>,
    pub(super) criticism: Option<String>,
    pub(super) actions: Vec<ParsedAction>,
}

impl Fields {
    pub(super) fn act(name: String, arguments: Value) -> Self {
        Self { actions: vec![ParsedAction { name, arguments, call_id: None }], ..Self::default() }
    }

    /// Fills what is missing from `other`.
    pub(super) fn borrow_thoughts(&mut self, other: &Self) {
        for (own, theirs) in [
            (&mut self.thought, &other.thought),
            (&mut self.reasoning, &other.reasoning),
            (&mut self.plan, &other.plan),
            (&mut self.criticism, &other.criticism),
        ] {
            if own.is_none() {
                own.clone_from(theirs);
            }
        }
    }

    fn no_thoughts(&self) -> bool {
        self.thought.is_none() && self.reasoning.is_none() && self.plan.is_none() && self.criticism.is_none()
    }
}

/// No arguments.
pub(super) fn empty() -> Value {
    Value::Object(Map::new())
}

/// Reads the action in `value`; `None` when it holds none.
pub(super) fn read(value: &Value, tools: &KnownTools<'_>) -> Option<Fields> {
    read_within(value, tools, MAX_WRAPPING)
}

/// The thoughts in `value`, when it holds any.
pub(super) fn thoughts(value: &Value) -> Option<Fields> {
    let mut fields = Fields::default();
    gather_thoughts(value.as_object()?, &mut fields);
    (!fields.no_thoughts()).then_some(fields)
}

fn read_within(value: &Value, tools: &KnownTools<'_>, levels: usize) -> Option<Fields> {
    if levels == 0 {
        return None;
    }
    match value {
        Value::Array(items) => read_list(items, tools, levels),
        Value::Object(map) => read_object(map, tools, levels),
        _ => None,
    }
}

fn read_list(items: &[Value], tools: &KnownTools<'_>, levels: usize) -> Option<Fields> {
    let mut all: Option<Fields> = None;
    for fields in items.iter().filter_map(|item| read_within(item, tools, levels - 1)) {
        match &mut all {
            None => all = Some(fields),
            Some(first) => first.actions.extend(fields.actions),
        }
    }
    let mut all = all?;
    for item in items {
        if let Some(thoughts) = thoughts(item) {
            all.borrow_thoughts(&thoughts);
        }
    }
    Some(all)
}

fn read_object(map: &Map<String, Value>, tools: &KnownTools<'_>, levels: usize) -> Option<Fields> {
    let mut fields = list_member(map, tools, levels)
        .or_else(|| named(map, tools, levels))
        .or_else(|| weakly_named(map, tools, levels))
        .or_else(|| keyed_by_tool(map, tools))
        .or_else(|| wrapped(map, tools, levels))?;
    let mut own = Fields::default();
    gather_thoughts(map, &mut own);
    own.borrow_thoughts(&fields);
    own.actions = std::mem::take(&mut fields.actions);
    Some(own)
}

/// `{"tool_calls": [{…}, {…}]}`
fn list_member(map: &Map<String, Value>, tools: &KnownTools<'_>, levels: usize) -> Option<Fields> {
    let (_, value) = member(map, LISTS)?;
    read_list(value.as_array()?, tools, levels)
}

/// `{"action": "search", "action_input": {…}}` and `{"function": {"name": …, "arguments": …}}`
fn named(map: &Map<String, Value>, tools: &KnownTools<'_>, levels: usize) -> Option<Fields> {
    STRONG_NAMES.iter().find_map(|wanted| {
        let (key, value) = member(map, &[wanted])?;
        match value {
            Value::String(text) => by_name(map, key, text, tools),
            Value::Object(inner) => {
                let mut fields = read_object(inner, tools, levels.checked_sub(1)?)
                    .or_else(|| only_name(inner, tools).map(|name| Fields::act(name, empty())))?;
                // The arguments may stand beside the object that names the tool.
                if let Some(action) = fields.actions.first_mut()
                    && action.arguments == empty()
                    && let Some((_, given)) = member(map, ARGUMENTS)
                {
                    action.arguments = arguments(given.clone(), &action.name, tools);
                }
                Some(fields)
            }
            Value::Array(items) => read_list(items, tools, levels),
            _ => None,
        }
    })
}

fn by_name(map: &Map<String, Value>, key: &str, text: &str, tools: &KnownTools<'_>) -> Option<Fields> {
    // The value may itself be a call, or JSON encoded once too often.
    if text.trim_start().starts_with('{') {
        return json::literal(text).and_then(|value| read_within(&value, tools, 2));
    }
    if let Some(fields) = super::calls::call(text, tools)
        && member(map, ARGUMENTS).is_none()
    {
        return Some(fields);
    }
    // `{"action": "use_tool", "tool": "search"}`: the known tool is meant.
    if tools.known(text).is_none() {
        let better = map
            .iter()
            .filter(|(other, _)| other.as_str() != key && (is(other, STRONG_NAMES) || is(other, WEAK_NAMES)))
            .find_map(|(other, value)| tools.known(value.as_str()?).map(|name| (other, name)));
        if let Some((other, name)) = better {
            return Some(Fields::act(name.to_owned(), given_arguments(map, &[key, other], name, tools)));
        }
    }
    let name = tools.resolve(text)?;
    let given = given_arguments(map, &[key], &name, tools);
    Some(Fields::act(name, given))
}

/// `{"name": "search", "arguments": {…}}`: a name alone is data, unless it is a known tool's.
fn weakly_named(map: &Map<String, Value>, tools: &KnownTools<'_>, levels: usize) -> Option<Fields> {
    WEAK_NAMES.iter().find_map(|wanted| {
        let (key, value) = member(map, &[wanted])?;
        match value {
            Value::String(text) => {
                let given = member(map, ARGUMENTS).map(|(_, given)| given);
                if given.is_some_and(is_schema) {
                    return None;
                }
                let known = tools.known(text).map(str::to_owned);
                let name = match (known, given) {
                    (Some(name), _) => name,
                    (None, Some(Value::Object(_))) => tools.resolve(text)?,
                    (None, Some(Value::String(given))) if given.trim_start().starts_with('{') => {
                        tools.resolve(text)?
                    }
                    (None, _) => return None,
                };
                let given = given_arguments(map, &[key], &name, tools);
                Some(Fields::act(name, given))
            }
            Value::Object(inner) => read_object(inner, tools, levels.checked_sub(1)?),
            _ => None,
        }
    })
}

/// `{"search": {"query": …}}`
fn keyed_by_tool(map: &Map<String, Value>, tools: &KnownTools<'_>) -> Option<Fields> {
    let mut others = map.iter().filter(|(key, _)| !is_thought(key) && !is(key, META));
    let (key, value) = others.next()?;
    if others.next().is_some() || is_schema(value) {
        return None;
    }
    let name = tools.known(key)?.to_owned();
    let given = arguments(value.clone(), &name, tools);
    Some(Fields::act(name, given))
}

fn wrapped(map: &Map<String, Value>, tools: &KnownTools<'_>, levels: usize) -> Option<Fields> {
    WRAPPERS.iter().find_map(|wanted| {
        let (_, value) = member(map, &[wanted])?;
        match value {
            Value::String(text) if text.trim_start().starts_with('{') => {
                json::literal(text).and_then(|value| read_within(&value, tools, levels - 1))
            }
            other => read_within(other, tools, levels - 1),
        }
    })
}

fn only_name(map: &Map<String, Value>, tools: &KnownTools<'_>) -> Option<String> {
    let (_, value) = member(map, WEAK_NAMES)?;
    tools.resolve(value.as_str()?)
}

/// A tool's declaration, echoed by the model, is no call.
fn is_schema(value: &Value) -> bool {
    value.get("properties").is_some() && value.get("type").and_then(Value::as_str) == Some("object")
}

/// The arguments beside a name: under one of their many keys, else the members left over.
fn given_arguments(map: &Map<String, Value>, names: &[&str], tool: &str, tools: &KnownTools<'_>) -> Value {
    if let Some((_, given)) = member(map, ARGUMENTS) {
        return arguments(given.clone(), tool, tools);
    }
    if let Some((key, given @ Value::Object(_))) = member(map, &["command"])
        && !names.contains(&key)
    {
        return arguments(given.clone(), tool, tools);
    }
    let left = map.iter().filter(|(key, _)| {
        let taken = names.contains(&key.as_str());
        let meant = tools.takes(tool, key);
        !taken && (meant || !(is_thought(key) || is(key, META)))
    });
    Value::Object(left.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Brings arguments into the shape of an object, as far as that can be told.
pub(super) fn arguments(given: Value, tool: &str, tools: &KnownTools<'_>) -> Value {
    match given {
        Value::Null => empty(),
        Value::String(text) => text_arguments(&text, tool, tools),
        Value::Object(map) => unwrap_arguments(map, tool, tools),
        Value::Array(mut items) if items.len() == 1 && items[0].is_object() => items.remove(0),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => bare(other, tool, tools),
    }
}

fn text_arguments(text: &str, tool: &str, tools: &KnownTools<'_>) -> Value {
    let trimmed = text.trim();
    if trimmed.is_empty() || matches!(trimmed, "None" | "null" | "{}" | "N/A" | "n/a") {
        return empty();
    }
    if trimmed.starts_with(['{', '"'])
        && let Some(inner) = json::literal(trimmed)
    {
        return match inner {
            Value::Object(map) => unwrap_arguments(map, tool, tools),
            // Encoded twice over.
            Value::String(again) if again.trim_start().starts_with('{') => json::literal(&again)
                .filter(Value::is_object)
                .unwrap_or_else(|| bare(Value::String(again), tool, tools)),
            other => bare(other, tool, tools),
        };
    }
    bare(Value::String(text.to_owned()), tool, tools)
}

/// `{"arguments": {…}}` within arguments, unless the tool takes an argument of that name.
fn unwrap_arguments(map: Map<String, Value>, tool: &str, tools: &KnownTools<'_>) -> Value {
    if map.len() == 1
        && let Some((key, inner @ Value::Object(_))) = map.iter().next()
        && is(key, ARGUMENTS)
        && tools.knows(tool)
        && !tools.takes(tool, key)
    {
        return inner.clone();
    }
    Value::Object(map)
}

/// A bare value goes to the tool's main argument; an unknown tool's is called `input`.
fn bare(value: Value, tool: &str, tools: &KnownTools<'_>) -> Value {
    let name = tools.main_argument(tool).unwrap_or_else(|| "input".to_owned());
    Value::Object(Map::from_iter([(name, value)]))
}

fn gather_thoughts(map: &Map<String, Value>, fields: &mut Fields) {
    for (key, value) in map {
        let slot = match plain(key).as_str() {
            "thought" | "thoughts" | "thinking" | "text" | "inner" | "innermonologue" => &mut fields.thought,
            "reasoning" | "rationale" | "analysis" | "explanation" | "reason" => &mut fields.reasoning,
            "plan" | "plans" => &mut fields.plan,
            "criticism" | "critique" | "selfcriticism" | "reflection" => &mut fields.criticism,
            _ => continue,
        };
        match value {
            Value::Object(inner) if is(key, &["thought", "thoughts"]) => gather_thoughts(inner, fields),
            Value::String(text) if slot.is_none() => *slot = super::shown(text),
            Value::Array(items) if slot.is_none() => {
                let lines: Vec<_> = items
                    .iter()
                    .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                    .collect();
                *slot = super::shown(&lines.join("\n"));
            }
            _ => {}
        }
    }
}

fn is_thought(key: &str) -> bool {
    const KEYS: &[&str] = &[
        "thought",
        "thoughts",
        "thinking",
        "innermonologue",
        "reasoning",
        "rationale",
        "analysis",
        "explanation",
        "plan",
        "plans",
        "criticism",
        "critique",
        "selfcriticism",
        "reflection",
        "reason",
    ];
    is(key, KEYS)
}

fn member<'a>(map: &'a Map<String, Value>, wanted: &[&str]) -> Option<(&'a str, &'a Value)> {
    wanted.iter().find_map(|wanted| {
        map.iter().find(|(key, _)| plain(key) == *wanted).map(|(key, value)| (key.as_str(), value))
    })
}

fn is(key: &str, wanted: &[&str]) -> bool {
    wanted.contains(&plain(key).as_str())
}

/// A key without case and separators: `Action Input`, `action_input` and `actionInput` are the same.
fn plain(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
