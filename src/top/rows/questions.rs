//! What waits for a person.

use muster_shared::ids::{QuestionId, RunId};
use muster_shared::time::Millis;

use super::{By, Column, Row, Rows, Tone, left, right};
use crate::live::model::Model;
use crate::render::figures;

const COLUMNS: &[Column] = &[
    left("RUN", 0),
    left("NO", 0),
    left("ABOUT", 2),
    right("WAITS", 3),
    right("LEFT", 1),
    left("QUESTION", 0),
];

/// How many columns there are.
pub(crate) const COLUMNS_COUNT: usize = COLUMNS.len();

/// The column by which a key puts it in order: what is due first.
pub(crate) const BY_LEFT: usize = 4;

/// What is asked, the oldest first.
pub(crate) fn questions(model: &Model, now: Millis) -> Rows<(RunId, QuestionId)> {
    let rows = model.questions().map(|(run, id, asked)| {
        let left = asked.expires.since(now);
        let (about, text) = (asked.about.to_string(), figures::one_line(&asked.question.text, 400));
        let cells = vec![
            run.id.short(),
            id.to_string(),
            about.clone(),
            figures::span(now.since(asked.asked_at)),
            figures::span(left),
            text.clone(),
        ];
        let by = vec![
            By::Text(run.id.to_string()),
            By::Text(id.to_string()),
            By::Text(about),
            By::Number(asked.asked_at.0),
            By::Number(asked.expires.0),
            By::Text(text),
        ];
        Row { key: (run.id, id), cells, by, tone: (4, Tone::Warn) }
    });
    Rows { columns: COLUMNS, rows: rows.collect(), is_sorted: true, none: "no question waits for an answer" }
}
