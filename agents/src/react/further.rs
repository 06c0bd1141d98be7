//! Tools that a task may use and that are not declared: how they are told of, found and called.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::toolset::{Ability, described, model_name};
use crate::tools::ToolSpec;

/// The tool that tells of tools that are not declared, where there are any.
pub const FIND_TOOL: &str = "find_tool";
/// The tool by which they are called.
pub const USE_TOOL: &str = "use_tool";

/// Most tools that are told of in full at once.
const MOST_TOLD: usize = 4;

static WAYS: LazyLock<[Ability; 2]> = LazyLock::new(made);

/// How tools that are not declared are found and called.
pub(super) fn ways() -> &'static [Ability] {
    WAYS.as_slice()
}

fn made() -> [Ability; 2] {
    let find = json!({
        "type": "object",
        "properties": {"what": {"type": "string", "description": "what it is to do, in a few words"}},
        "required": ["what"]
    });
    let call = json!({
        "type": "object",
        "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["tool", "arguments"]
    });
    let spec = |name: &str, what: &str, parameters| Arc::new(ToolSpec::new(name, what, parameters));
    [
        spec(
            FIND_TOOL,
            "Tells of further tools: to hand a part over, ask other agents, share values, compare, transform.",
            find,
        ),
        spec(USE_TOOL, "Calls a tool that find_tool told of.", call),
    ]
}

/// The tool of this name, if it is one by which others are found or called.
#[must_use]
pub fn way_to_further(name: &str) -> Option<Ability> {
    ways().iter().find(|way| way.name == name).cloned()
}

/// The tool and the arguments of a call by way of [`USE_TOOL`].
#[must_use]
pub fn used_tool(name: &str, arguments: &Value) -> Option<(String, Value)> {
    if model_name(name.trim()) != USE_TOOL {
        return None;
    }
    let tool = arguments["tool"].as_str()?.to_owned();
    let given = arguments.get("arguments").cloned().unwrap_or_else(|| json!({}));
    Some((tool, given))
}

/// These tools, those first whose name and description have most of these words; all of them in brief where none does.
pub(super) fn told_of(further: &[Ability], words: &str) -> String {
    let words: Vec<String> = words
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 2)
        .map(str::to_lowercase)
        .collect();
    let share = |ability: &Ability| {
        let text = format!("{} {}", ability.name, ability.description).to_lowercase();
        words.iter().filter(|word| text.contains(word.as_str())).count()
    };
    let mut found: Vec<(usize, &Ability)> = further.iter().map(|ability| (share(ability), ability)).collect();
    found.retain(|(share, _)| *share > 0);
    found.sort_by(|(one, _), (other, _)| other.cmp(one));
    if found.is_empty() {
        let brief = further.iter().map(|ability| {
            format!("- {}: {}", model_name(&ability.name), first_sentence(&ability.description))
        });
        let brief: Vec<String> = brief.collect();
        return format!("None fits these words. There are:\n{}", brief.join("\n"));
    }
    let told = found.into_iter().take(MOST_TOLD).map(|(_, ability)| described(ability));
    let told: Vec<String> = told.collect();
    format!("Call them by `{USE_TOOL}`:\n{}", told.join("\n"))
}

fn first_sentence(text: &str) -> &str {
    text.split_inclusive(['.', ':']).next().unwrap_or(text).trim_end_matches([':', '.'])
}

#[cfg(test)]
#[path = "further_tests.rs"]
mod tests;
