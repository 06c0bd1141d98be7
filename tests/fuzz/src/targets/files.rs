//! Files of agents: definitions, templates of prompts, contracts, paths in a workspace.

use std::sync::LazyLock;

use muster_agents::definition::Definition;
use muster_agents::prompts::Templates;
use muster_agents::roles::rules_for;
use muster_agents::tools::workspace::WorkspacePath;
use muster_shared::contract::{Schema, fields_named};
use serde_json::{Value, json};

use super::answers::offer;
use super::{ensure, text_of};
use crate::{Seen, Shape, Target};

/// Definitions of specialists.
pub(super) const AGENTS: Target = Target::new("agent_files", Shape::Text, definition)
    .with_fixtures(&["deploy/examples/fact-checker.agent.md", "deploy/examples/security-auditor.agent.md"])
    .with_words(&[
        "---\n",
        "name:",
        "model:",
        "type: object",
        "$ref:",
        "&a",
        "*a",
        "<<: *a",
        "!!binary",
        "? ",
        "|",
        ">-",
        "- ",
        "  ",
        "\t",
        "# ",
        "## Instructions",
        "null",
        "~",
        "yes",
        "1e9",
        "pattern: (a+)+$",
    ]);

fn definition(input: &[u8]) -> Result<Seen, String> {
    let text = text_of(input);
    match Definition::parse(&text) {
        Ok(read) => {
            let again = Definition::parse(&text).map_err(|fault| format!("read once only: {fault}"))?;
            ensure(again.hash == read.hash && again.role == read.role, || {
                "read again it is another".to_owned()
            })?;
            let _advertised = serde_json::to_vec(&read.advertised()).map_err(|error| error.to_string())?;
            Ok(Seen::Read)
        }
        Err(fault) => {
            let lines = text.lines().count().max(1);
            ensure(fault.line > 0 && fault.column > 0 && fault.line <= lines + 1, || {
                format!("a fault at line {}, column {} of {lines} lines", fault.line, fault.column)
            })?;
            Ok(Seen::refused([fault]))
        }
    }
}

/// Templates of prompts.
pub(super) const TEMPLATES: Target = Target::new("templates", Shape::Text, template)
    .with_fixtures(&["agents/src/prompts/worker.md.j2", "agents/src/prompts/common.md.j2"])
    .with_words(&[
        "{% for i in range(99999) %}",
        "{% endfor %}",
        "{% if",
        "{% endif %}",
        "{% macro m() %}",
        "{% endmacro %}",
        "{{ m() }}",
        "{% include \"worker.md.j2\" %}",
        "{% extends \"worker.md.j2\" %}",
        "{% import \"common.md.j2\" as c %}",
        "{{ \"a\" * 9999999999 }}",
        "{% set goal = goal ~ goal %}",
        "{% set goal %}{{ goal }}{{ goal }}{% endset %}",
        "{% set goal = [goal, goal] %}",
        "~ goal",
        "| indent(999999999)",
        "| replace(\"\", goal)",
        "| string",
        "{% filter upper %}",
        "{% elif goal %}",
        "{{ 9 ** 99999 }}",
        "{{ fence(",
        "| join",
        "| upper",
        "| batch(0)",
        "| slice(0)",
        "| round(400)",
        "offer",
        "=== task ===\n",
        "range(",
        "loop(",
        "{% block b %}",
        "{% endblock %}",
        "{% raw %}",
        "{% set ns = namespace(x=1) %}",
    ]);

fn template(input: &[u8]) -> Result<Seen, String> {
    static OFFER: LazyLock<Result<muster_shared::flow::TaskOffered, String>> =
        LazyLock::new(|| offer("execute"));
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let offer = OFFER.as_ref().map_err(Clone::clone)?;
    let rules = rules_for(&offer.work);
    std::fs::write(folder.path().join(format!("{}.md.j2", rules.name)), input)
        .map_err(|error| error.to_string())?;
    let shown = |error: String| Seen::Refused(error.replace(&folder.path().display().to_string(), "folder"));
    let templates = match Templates::load(Some(folder.path())) {
        Ok(templates) => templates,
        Err(error) => return Ok(shown(error.to_string())),
    };
    match templates.brief(rules, offer) {
        Ok((brief, _)) => {
            let bytes = brief.system.len() + brief.task.len();
            ensure(bytes <= 16 << 20, || format!("a prompt of {bytes} bytes"))?;
            Ok(Seen::Read)
        }
        Err(error) => Ok(shown(error.to_string())),
    }
}

/// Contracts: schemas of what specialists take and give.
pub(super) const CONTRACTS: Target = Target::new("contracts", Shape::Json, contract).with_words(&[
    "#",
    "#/$defs/a",
    "(a+)+$",
    "((a*)*)*b",
    "anyOf",
    "allOf",
    "not",
    "if",
    "then",
    "format",
    "$schema",
    "http://example.com/x.json",
    "file:///etc/passwd",
    "$dynamicRef",
    "$id",
    "patternProperties",
    "multipleOf",
]);

fn contract(input: &[u8]) -> Result<Seen, String> {
    let written: Value = match serde_json::from_slice(input) {
        Ok(written) => written,
        Err(_) => return Ok(Seen::Refused("no JSON".to_owned())),
    };
    let schema = match Schema::new(written.clone()) {
        Ok(schema) => schema,
        Err(why) => return Ok(Seen::Refused(why)),
    };
    ensure(schema.written() == &written, || "it is not what was written".to_owned())?;
    let mut faults = Vec::new();
    for value in
        [json!(null), json!({"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}), written, json!(["a", 1, 1, {}])]
    {
        faults.extend(schema.faults("value", &value));
        let _violation = schema.refuses(&value);
    }
    let _names = (schema.names("a"), fields_named("it gives `a`, `b` and `c`"));
    Ok(if faults.is_empty() { Seen::Read } else { Seen::refused(faults) })
}

/// Paths of files in a workspace.
pub(super) const PATHS: Target = Target::new("workspace_paths", Shape::Text, |input| {
    let text = text_of(input);
    let path = match WorkspacePath::parse(&text) {
        Ok(path) => path,
        Err(error) => return Ok(Seen::refused([error])),
    };
    let inside = !path.as_str().starts_with('/')
        && path.as_str().split('/').all(|part| !matches!(part, "" | "." | ".."));
    ensure(inside, || format!("{:?} leads outside", path.as_str()))?;
    ensure(WorkspacePath::parse(path.as_str()).is_ok_and(|again| again == path), || {
        "read again it is another".to_owned()
    })?;
    let (folders, name) = path.split();
    ensure(!name.is_empty() && folders.iter().all(|part| !part.is_empty()), || "an empty part".to_owned())?;
    Ok(Seen::Read)
})
.with_words(&["..", "\\", ":", "~", "C:", "%2e%2e", ".git", "\u{2024}\u{2024}", "a/b"]);
