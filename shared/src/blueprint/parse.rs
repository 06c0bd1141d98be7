//! Blueprints as files: TOML, with each problem at its line and column.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::check;
use super::{Blueprint, Problem};
use crate::text::{is_control, quoted};

/// Most characters of what is wrong, which may quote a file. Decisions tell of problems as they came: old ones are made again.
const MOST: usize = 2_000;
/// Longest file, in bytes.
pub const MAX_FILE_BYTES: usize = 128 * 1024;

/// A problem, and where in the file it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {}{why}", prefix(at))]
pub struct Located {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// Which value it is about, such as `steps[2].if`; empty when the file cannot be read at all.
    pub at: String,
    /// What is wrong, and what to do.
    pub why: String,
}

fn prefix(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("{at}: ") }
}

/// Reads a blueprint and checks it.
///
/// # Errors
/// With everything that is wrong with it.
pub fn parse(text: &str) -> Result<Blueprint, Vec<Located>> {
    if text.len() > MAX_FILE_BYTES {
        let why = format!("the file has {} bytes, {MAX_FILE_BYTES} is the most", text.len());
        return Err(vec![Located { line: 1, column: 1, at: String::new(), why }]);
    }
    let blueprint: Blueprint = toml::from_str(text).map_err(|error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        let why = quoted(&error.message().lines().collect::<Vec<_>>().join("; "), MOST);
        vec![Located { line, column, at: String::new(), why }]
    })?;
    let problems = check(&blueprint);
    if problems.is_empty() {
        return Ok(blueprint);
    }
    let tree = DeTable::parse(text).ok();
    Err(problems.iter().map(|problem| locate(text, tree.as_ref(), problem)).collect())
}

/// The blueprint as a file.
#[must_use]
pub fn write(blueprint: &Blueprint) -> String {
    // Every field is a text, a list or a table of these: all of that can be written.
    let text = toml::to_string_pretty(blueprint).unwrap_or_default();
    if text.chars().any(hides) { escaped(blueprint, &text).unwrap_or(text) } else { text }
}

/// Whether a character has to stand escaped in a file that people read: TOML asks for that of a few only.
fn hides(c: char) -> bool {
    is_control(c) && !matches!(c, '\n' | '\r' | '\t')
}

/// The same with what hides or steers escaped. What forces a text into quotes in which escapes count marks the place.
fn escaped(blueprint: &Blueprint, plain: &str) -> Option<String> {
    let mark = (0_u32..).map(|number| format!("<{number}:")).find(|mark| !plain.contains(mark.as_str()))?;
    let mut value = serde_json::to_value(blueprint).ok()?;
    mark_all(&mut value, &mark);
    let marked: Blueprint = serde_json::from_value(value).ok()?;
    let text = toml::to_string_pretty(&marked).ok()?;
    Some(text.replace(&format!("\\u0001{mark}"), "\\U"))
}

fn mark_all(value: &mut serde_json::Value, mark: &str) {
    match value {
        serde_json::Value::String(text) if text.chars().any(hides) => {
            let escape = |c: char| match hides(c) {
                true => format!("\u{1}{mark}{:08X}", u32::from(c)),
                false => c.to_string(),
            };
            *text = text.chars().map(escape).collect();
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| mark_all(item, mark)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|field| mark_all(field, mark)),
        serde_json::Value::String(_)
        | serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_) => {}
    }
}

fn locate(text: &str, tree: Option<&Spanned<DeTable<'_>>>, problem: &Problem) -> Located {
    let start = tree.map_or(0, |tree| start_of(tree, &problem.at));
    let (line, column) = position(text, start);
    Located { line, column, at: quoted(&problem.at, MOST), why: quoted(&problem.why, MOST) }
}

/// Where the value begins that a path names, or the nearest one around it.
fn start_of(tree: &Spanned<DeTable<'_>>, path: &str) -> usize {
    let mut start = 0;
    let mut table = Some(tree.get_ref());
    for part in path.split('.') {
        let (key, number) = match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
            Some((key, number)) => (key, number.parse::<usize>().ok()),
            None => (part, None),
        };
        let found = table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == key));
        let Some((name, value)) = found else { break };
        let value = match (value.get_ref(), number) {
            (DeValue::Array(items), Some(number)) => items.get(number.saturating_sub(1)),
            _ => Some(value),
        };
        let Some(value) = value else { break };
        // A table begins with its header; a plain value is shown itself.
        start = if value.get_ref().is_table() && number.is_none() {
            name.span().start
        } else {
            value.span().start
        };
        table = value.get_ref().as_table();
    }
    start
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let before =
        &text[..(0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}
