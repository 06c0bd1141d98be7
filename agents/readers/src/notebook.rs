//! Jupyter notebooks (nbformat 4): cells with their text, their code and what it printed.

use muster_corpus::Unit;
use serde_json::Value;

use crate::found::{Failure, Found};
use crate::html;
use crate::limits::Budget;

/// Most of what one cell printed that is kept, in bytes.
const MOST_OUTPUT: usize = 16 * 1024;

/// The cells of a notebook.
pub(crate) fn notebook(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let notebook: Value = serde_json::from_slice(bytes).map_err(Failure::broken)?;
    let cells = notebook["cells"].as_array();
    let cells = cells.ok_or_else(|| Failure::broken("it has no cells"))?;
    let most = usize::try_from(budget.limits.max_pages).unwrap_or(usize::MAX);
    let mut found = Found::default();
    if cells.len() > most {
        found.leave_out(format!("the cells after {most}"));
    }
    let mut pieces = Vec::new();
    for cell in cells.iter().take(most) {
        let mut text = shown(cell);
        if budget.take_text(&mut text) {
            found.leave_out("the end: there is too much text");
        }
        pieces.push(text);
    }
    let whole = Found::cut("ipynb", Unit::Cell, pieces);
    Ok(Found { left_out: found.left_out, ..whole })
}

fn shown(cell: &Value) -> String {
    let source = joined(cell.get("source"));
    if cell["cell_type"].as_str() != Some("code") {
        return source;
    }
    let mut text = if source.trim().is_empty() { String::new() } else { format!("```\n{source}\n```") };
    for output in cell["outputs"].as_array().into_iter().flatten() {
        let said = printed(output);
        if !said.trim().is_empty() {
            text.push('\n');
            text.push_str(said.trim_end());
        }
    }
    text
}

fn printed(output: &Value) -> String {
    let data = output.get("data");
    let plain = data.and_then(|data| data.get("text/plain"));
    let mut said = match (output.get("text"), plain, data.and_then(|data| data.get("text/html"))) {
        (Some(text), _, _) | (None, Some(text), _) => joined(Some(text)),
        (None, None, Some(page)) => html::to_text(&joined(Some(page)), MOST_OUTPUT).0,
        (None, None, None) => output.get("evalue").map(|value| joined(Some(value))).unwrap_or_default(),
    };
    said.truncate(said.floor_char_boundary(MOST_OUTPUT));
    said
}

/// A text of several lines stands as one, or as a list of them.
fn joined(text: Option<&Value>) -> String {
    match text {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => String::new(),
    }
}
