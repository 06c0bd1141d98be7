//! What passes.

use super::{Column, Row, Rows, Tone, left};
use crate::live::model::Model;

const COLUMNS: &[Column] = &[left("MESSAGE", 0)];

/// The newest messages, the newest last.
pub(crate) fn traffic(model: &Model) -> Rows<u64> {
    let rows = model.traffic().passed().map(|passed| {
        let tone = if passed.tapped.content.is_err() { Tone::Bad } else { Tone::Plain };
        Row { key: passed.number, cells: vec![passed.line().to_owned()], by: Vec::new(), tone: (0, tone) }
    });
    Rows { columns: COLUMNS, rows: rows.collect(), is_sorted: false, none: "nothing passed since you look" }
}
