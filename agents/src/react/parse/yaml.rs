//! The YAML form: `thought:`, `action:`, `action_input:`.

use std::sync::LazyLock;

use muster_shared::text::bracket_depth;
use regex::Regex;
use serde_json::Value;

use super::Reading;
use super::answer::AnswerForm;
use super::fields;
use super::limits::MAX_DEPTH;
use super::tools::KnownTools;

#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static ACTION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^[ -]*(?:action|tool)[ \t]*:").unwrap());
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static BEGIN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^[ -]*(?:step|thought|reasoning|plan|criticism|action|tool|action_input)[ \t]*:")
        .unwrap()
});
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static END: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^(?:---|\.\.\.|```|[ ]*observation[ \t]*:|[ ]*Observation[ \t]*:)").unwrap()
});

pub(super) fn read(text: &str, tools: &KnownTools<'_>) -> Option<Reading> {
    if !ACTION.is_match(text) {
        return None;
    }
    let start = BEGIN.find(text)?.start();
    let block = &text[start..];
    // A document mark may stand before the block, and an imagined observation after it.
    let end = END.find(block).map_or(block.len(), |found| found.start());
    let block = block[..end].replace('\t', "  ");
    if bracket_depth(&block) > MAX_DEPTH {
        return None;
    }
    let parsed: Value = serde_yaml_ng::from_str(block.trim_end()).ok()?;
    let parsed = match parsed {
        Value::Array(mut items) if items.len() == 1 => items.remove(0),
        other => other,
    };
    let mut fields = fields::read(&parsed, tools)?;
    if fields.thought.is_none() {
        fields.thought = super::prose(&text[..start]);
    }
    let open_ended = end == text.len() - start;
    Some(Reading { fields, form: AnswerForm::Yaml, repaired: false, open_ended, torn: false })
}
