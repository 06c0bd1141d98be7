//! The front matter of a definition.

use std::time::Duration;

use muster_shared::flow::{RolePermissions, Specialty};
use muster_shared::ids::Role;
use muster_shared::text::{bracket_depth, nearest_name};
use muster_shared::wire::codec::MAX_DEPTH;
use serde::Deserialize;
use serde_json::Value;

use super::DefinitionLimits;
use super::Fault;
use super::contract::{Contract, Schema};
use crate::settings::MAX_SLOTS;

/// The line before and after the front matter.
const MARK: &str = "---";
/// Lines before the YAML: the first mark.
const BEFORE: usize = 1;
/// Most tool patterns.
const MAX_TOOLS: usize = 64;
/// Most steps that can be asked for.
const MAX_STEPS: u32 = 1000;
/// Longest time for one task.
const MAX_DEADLINE: Duration = Duration::from_secs(24 * 3600);

/// What the front matter says, checked.
pub(super) struct Matter {
    pub(super) role: Role,
    pub(super) description: String,
    pub(super) capabilities: Vec<String>,
    pub(super) model: Option<String>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) permissions: Option<RolePermissions>,
    pub(super) contract: Contract,
    pub(super) limits: DefinitionLimits,
}

/// The front matter as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    role: String,
    description: String,
    #[serde(default)]
    capabilities: Vec<String>,
    model: Option<String>,
    tools: Option<Vec<String>>,
    permissions: Option<RolePermissions>,
    #[serde(default)]
    contract: WrittenContract,
    #[serde(default)]
    limits: WrittenLimits,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenContract {
    input: Option<Value>,
    output: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenLimits {
    steps: Option<u32>,
    slots: Option<u32>,
    deadline: Option<String>,
}

/// The front matter and what stands below it.
pub(super) fn split(text: &str) -> Result<(&str, &str), Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let missing = |what: &str| {
        let advice =
            "put the settings between two lines that hold --- and nothing else, the first at the very top";
        Fault::new((1, 1), what, advice)
    };
    let first = text.lines().next().unwrap_or_default();
    if first.trim_end() != MARK {
        return Err(missing("the file does not begin with front matter"));
    }
    let after = text.split_once('\n').map(|(_, rest)| rest).unwrap_or_default();
    let mut at = 0;
    for line in after.split_inclusive('\n') {
        if line.trim_end() == MARK {
            return Ok((&after[..at], &after[at + line.len()..]));
        }
        at += line.len();
    }
    Err(missing("the front matter has no end"))
}

/// Reads the front matter.
pub(super) fn read(yaml: &str) -> Result<Matter, Fault> {
    if bracket_depth(yaml) > MAX_DEPTH {
        let what = format!("brackets stand in each other, more than {MAX_DEPTH} levels deep");
        return Err(Fault::new((1, 1), what, "write each part on lines of its own"));
    }
    let written: Written = serde_yaml_ng::from_str(yaml).map_err(|error| refused(&error))?;
    let at = |keys: &[&str]| place(yaml, keys);
    let role = role(&written.role).map_err(|advice| {
        Fault::new(at(&["role"]), format!("{:?} cannot be the role of a specialist", written.role), advice)
    })?;
    let description = written.description.trim().to_owned();
    if description.is_empty() || description.chars().count() > Specialty::MAX_DESCRIPTION {
        let what = format!("description must have 1 to {} characters", Specialty::MAX_DESCRIPTION);
        let advice = "say in a sentence what it is for: planners choose by it";
        return Err(Fault::new(at(&["description"]), what, advice));
    }
    let capabilities = capabilities(&written.capabilities)
        .map_err(|what| Fault::new(at(&["capabilities"]), what, "such as [security audit, secrets]"))?;
    let tools = tools(written.tools)
        .map_err(|what| Fault::new(at(&["tools"]), what, "such as [corpus.*, calculator]"))?;
    let schema = |name: &str, written: Option<Value>| {
        let compiled = written.map(schema).transpose();
        compiled.map_err(|what| {
            let what = format!("contract.{name} is no JSON Schema that can be used: {what}");
            Fault::new(at(&["contract", name]), what, "see https://json-schema.org")
        })
    };
    let contract = Contract {
        input: schema("input", written.contract.input)?,
        output: schema("output", written.contract.output)?,
    };
    let limits = limits(&written.limits)
        .map_err(|(key, what)| Fault::new(at(&["limits", key]), what, String::new()))?;
    let model = written.model.map(|model| model.trim().to_owned()).filter(|model| !model.is_empty());
    let permissions = written.permissions;
    Ok(Matter { role, description, capabilities, model, tools, permissions, contract, limits })
}

fn role(text: &str) -> Result<Role, String> {
    let role: Role = text.trim().parse().map_err(|error| format!("{error}"))?;
    if matches!(role, Role::Specialist(_)) && text.trim() != "orchestrator" {
        return Ok(role);
    }
    Err("it comes with Muster: choose a name of your own".to_owned())
}

fn capabilities(written: &[String]) -> Result<Vec<String>, String> {
    if written.len() > Specialty::MAX_CAPABILITIES {
        return Err(format!(
            "there are {} capabilities, {} is the most",
            written.len(),
            Specialty::MAX_CAPABILITIES
        ));
    }
    let fits = |text: &str| !text.is_empty() && text.chars().count() <= Specialty::MAX_CAPABILITY;
    let trimmed: Vec<String> = written.iter().map(|text| text.trim().to_owned()).collect();
    match trimmed.iter().find(|text| !fits(text)) {
        Some(wrong) => Err(format!("{wrong:?} must have 1 to {} characters", Specialty::MAX_CAPABILITY)),
        None => Ok(trimmed),
    }
}

fn tools(written: Option<Vec<String>>) -> Result<Option<Vec<String>>, String> {
    let Some(written) = written else { return Ok(None) };
    if written.len() > MAX_TOOLS {
        return Err(format!("there are {} tools, {MAX_TOOLS} is the most", written.len()));
    }
    let good = |text: &String| {
        let name = text.strip_suffix('*').unwrap_or(text);
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) && !text.is_empty()
    };
    match written.iter().find(|text| !good(text)) {
        Some(wrong) => Err(format!("{wrong:?} is neither the name of a tool nor prefix.*")),
        None => Ok(Some(written)),
    }
}

fn schema(written: Value) -> Result<Schema, String> {
    let bytes = written.to_string().len();
    if bytes > Schema::MAX_BYTES {
        return Err(format!("it has {bytes} bytes, {} is the most", Schema::MAX_BYTES));
    }
    Schema::new(written)
}

fn limits(written: &WrittenLimits) -> Result<DefinitionLimits, (&'static str, String)> {
    let within = |key: &'static str, value: Option<u32>, most: u32| match value {
        Some(value) if value == 0 || value > most => Err((key, format!("{key} must be 1 to {most}"))),
        value => Ok(value),
    };
    let deadline = written.deadline.as_deref().map(|text| {
        let span =
            muster_shared::span::parse(text.trim()).filter(|span| !span.is_zero() && *span <= MAX_DEADLINE);
        span.ok_or_else(|| ("deadline", format!("{text:?} is no time such as 90s, 10m or 2h, up to 24h")))
    });
    Ok(DefinitionLimits {
        steps: within("steps", written.steps, MAX_STEPS)?,
        slots: within("slots", written.slots, MAX_SLOTS)?,
        deadline: deadline.transpose()?,
    })
}

/// What the YAML reader says, with the place in the whole file, and the nearest known key for one that is not known.
fn refused(error: &serde_yaml_ng::Error) -> Fault {
    let at = error.location().map_or((1, 1), |at| (at.line() + BEFORE, at.column()));
    let text = error.to_string();
    let text = text.split_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned();
    let names: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    match names.split_first() {
        Some((unknown, known)) if text.contains("unknown field") || text.contains("unknown variant") => {
            let within = text.split_once(": unknown ").map(|(path, _)| format!(" in {path}"));
            let what = format!("{unknown:?}{} is no key of an agent file", within.unwrap_or_default());
            Fault::new(at, what, nearest(unknown, known))
        }
        Some((missing, _)) if text.contains("missing field") => {
            Fault::new((1, 1), format!("{missing:?} is missing"), "role and description are needed")
        }
        _ => Fault::new(at, text, String::new()),
    }
}

fn nearest(unknown: &str, known: &[&str]) -> String {
    match nearest_name(unknown, known.iter().copied()) {
        Some(best) => format!("did you mean {best:?}?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// Where a key stands in YAML of the usual form, one key a line; the beginning when it is written otherwise.
fn place(yaml: &str, keys: &[&str]) -> (usize, usize) {
    let mut lines = yaml.lines().enumerate();
    let (mut found, mut above) = ((1, 1), None);
    for key in keys {
        let next = lines.find(|(_, line)| {
            let indent = line.len() - line.trim_start().len();
            let deep_enough = above.map_or(indent == 0, |above| indent > above);
            let name = line.trim_start().split(':').next().unwrap_or_default().trim_matches(['"', '\'']);
            deep_enough && name == *key
        });
        let Some((number, line)) = next else { break };
        let indent = line.len() - line.trim_start().len();
        above = Some(indent);
        found = (number + 1 + BEFORE, indent + 1);
    }
    found
}
