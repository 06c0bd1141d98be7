//! Texts of a blueprint with values in them. What values say is never read as a reference, and a text never becomes
//! longer than a task may hold: long values are cut.

use serde_json::Value;

use super::Filled;
use super::names::Path;
use super::template::{TextPiece, pieces};
use crate::flow::Report;
use crate::plan::MAX_TEXT_BYTES;

/// Room in a text for what is added to tell tasks apart.
const SPARE_BYTES: usize = 128;

/// Comes between the goal and the parts that the report is to have.
pub const REPORT_PARTS: &str = "\n\nThe report has these parts, each under a heading of its own:";

/// Stands for what was cut.
const CUT: &str = " […]";

impl Filled {
    /// The goal of a run by it, with its values.
    #[must_use]
    pub fn goal(&self) -> String {
        text(self, &self.blueprint.goal, None, &|_| String::new())
    }

    /// The goal as the writer is told it: with the parts that the report is to have.
    #[must_use]
    pub fn goal_of_report(&self, goal: &str) -> String {
        let parts = self.blueprint.output.iter().map(|(name, part)| {
            let colon = if part.description.is_empty() { "" } else { ": " };
            format!("- {}{colon}{}", heading(name), part.description)
        });
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() {
            return goal.to_owned();
        }
        format!("{goal}{REPORT_PARTS}\n{}", parts.join("\n"))
    }
}

/// The parts that a report was to have and has not.
#[must_use]
pub fn missing_parts(filled: &Filled, report: &Report) -> Vec<String> {
    let headings: Vec<String> = report
        .body
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('#').or_else(|| line.trim().strip_prefix("**")))
        .map(str::to_lowercase)
        .collect();
    let required = filled.blueprint.output.iter().filter(|(_, part)| part.required);
    let missing = required.filter(|(name, _)| {
        let wanted = heading(name).to_lowercase();
        !headings.iter().any(|line| line.contains(&wanted))
    });
    missing
        .map(|(name, _)| format!("the report was to have a part {:?} and has none", heading(name)))
        .collect()
}

fn heading(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A text with values in it. `step` says what stands for a result.
pub(super) fn text(
    filled: &Filled,
    template: &str,
    item: Option<&str>,
    step: &dyn Fn(&Path) -> String,
) -> String {
    let pieces = pieces(template);
    // Words and references have to stay whole; what is left is shared by the values.
    let parts: Vec<(bool, String)> = pieces
        .into_iter()
        .map(|piece| match piece {
            TextPiece::Words(words) => (false, harmless(words)),
            TextPiece::Wrong(_) => (false, String::new()),
            TextPiece::Path(Path::Param(name)) => (true, harmless(&shown(filled.params.get(&name)))),
            TextPiece::Path(Path::Item) => (true, harmless(item.unwrap_or_default())),
            TextPiece::Path(path @ Path::Step(..)) => (false, step(&path)),
        })
        .collect();
    let fixed: usize = parts.iter().filter(|(is_value, _)| !is_value).map(|(_, text)| text.len()).sum();
    let values = parts.iter().filter(|(is_value, _)| *is_value).count();
    let each = MAX_TEXT_BYTES.saturating_sub(SPARE_BYTES + fixed) / values.max(1);
    let parts = parts.into_iter().map(|(is_value, text)| if is_value { cut(&text, each) } else { text });
    parts.collect::<String>().trim().to_owned()
}

/// A value as it stands in a text.
fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let items = items.iter().map(|item| shown(Some(item)));
            items.collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}

/// Without double braces, also where it meets other text: what a person or a model wrote refers to nothing.
pub(super) fn harmless(text: &str) -> String {
    let mut text = text.to_owned();
    while text.contains("{{") {
        text = text.replace("{{", "{ {");
    }
    if text.starts_with('{') {
        text.insert(0, ' ');
    }
    if text.ends_with('{') {
        text.push(' ');
    }
    text
}

/// The text, cut to a number of bytes.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most.saturating_sub(CUT.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let cut = format!("{}{CUT}", &text[..end]);
    if cut.len() <= most { cut } else { String::new() }
}
