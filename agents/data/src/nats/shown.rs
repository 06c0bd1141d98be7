//! Entries as rows, each with its citation, and how fresh they are. Pure.

use bytes::Bytes;
use muster_bus::sources::{SourceEntry, SourceState};
use muster_shared::text::{beginning, one_line};
use muster_shared::time::Millis;
use serde_json::{Map, Value};

use crate::cell::Cell;
use crate::shown::{Rows, Total};

/// Most fields of bodies that are columns of their own.
const MAX_FIELDS: usize = 12;
/// Bytes of a body that is no text that are shown.
const SHOWN_BYTES: usize = 24;
/// Longest name of a column, in characters.
const MAX_COLUMN: usize = 60;
/// What stands in the place of a value that was taken away.
const REMOVED: &str = "(removed)";

/// What a body is.
#[derive(Debug, Clone, PartialEq)]
enum Body {
    Json(Value),
    Text(String),
    Bytes(String),
    Removed,
}

impl Body {
    fn of(entry: &SourceEntry) -> Self {
        if entry.is_removal {
            return Self::Removed;
        }
        match std::str::from_utf8(&entry.body) {
            Ok(text) if is_text(text) => match serde_json::from_str(text) {
                Ok(value) => Self::Json(value),
                Err(_) => Self::Text(text.to_owned()),
            },
            Ok(_) | Err(_) => Self::Bytes(in_hex(&entry.body)),
        }
    }

    fn cell(&self, most: usize) -> Cell {
        match self {
            Self::Json(value) => cut(Cell::of_json(value), most),
            Self::Text(text) => cut(Cell::Text(text.clone()), most),
            Self::Bytes(text) => Cell::Text(text.clone()),
            Self::Removed => Cell::Text(REMOVED.to_owned()),
        }
    }
}

fn is_text(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

fn in_hex(body: &Bytes) -> String {
    let shown = &body[..body.len().min(SHOWN_BYTES)];
    let rest = if body.len() > SHOWN_BYTES { "…" } else { "" };
    format!("({} bytes, no text: {}{rest})", body.len(), hex::encode(shown))
}

fn cut(cell: Cell, most: usize) -> Cell {
    match cell {
        Cell::Text(text) => match text.char_indices().nth(most) {
            Some((end, _)) => Cell::Text(format!("{}…", &text[..end])),
            None => Cell::Text(text),
        },
        Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Blob(_) => cell,
    }
}

/// What rows are made with.
pub(super) struct Table<'a> {
    /// The name of the source.
    pub(super) source: &'a str,
    /// What stands before keys in subjects; nothing for streams.
    pub(super) before_key: &'a str,
    /// Most characters of a cell.
    pub(super) max_cell: usize,
}

impl Table<'_> {
    /// `SOURCE:SEQ`.
    pub(super) fn citation(&self, entry: &SourceEntry) -> String {
        format!("{}:{}", self.source, entry.seq)
    }

    fn subject<'e>(&self, entry: &'e SourceEntry) -> &'e str {
        entry.subject.strip_prefix(self.before_key).unwrap_or(&entry.subject)
    }

    fn head(&self) -> [String; 3] {
        let subject = if self.before_key.is_empty() { "subject" } else { "key" };
        ["entry", "stored", subject].map(str::to_owned)
    }

    fn begin(&self, entry: &SourceEntry) -> Vec<Cell> {
        [self.citation(entry), time(entry.at), self.subject(entry).to_owned()].map(Cell::Text).to_vec()
    }

    /// Entries with their bodies: where all of these are JSON objects with the same few fields, each field is a column.
    pub(super) fn rows(&self, entries: &[SourceEntry]) -> Rows {
        let bodies: Vec<Body> = entries.iter().map(Body::of).collect();
        let fields = fields(&bodies);
        let body = if self.before_key.is_empty() { "body" } else { "value" };
        let head = self.head();
        let columns: Vec<String> = match &fields {
            Some(fields) => fields
                .iter()
                .map(|field| {
                    let shown = one_line(field, MAX_COLUMN);
                    if head.contains(field) { format!("{body}.{shown}") } else { shown }
                })
                .collect(),
            None => vec![body.to_owned()],
        };
        let row = |(entry, content): (&SourceEntry, &Body)| {
            let mut row = self.begin(entry);
            match (&fields, content) {
                (Some(fields), Body::Json(Value::Object(object))) => {
                    row.extend(fields.iter().map(|field| self.field(object, field)));
                }
                (Some(_) | None, Body::Json(_) | Body::Text(_) | Body::Bytes(_) | Body::Removed) => {
                    row.push(content.cell(self.max_cell));
                }
            }
            row
        };
        let rows = entries.iter().zip(&bodies).map(row).collect();
        Rows { columns: head.into_iter().chain(columns).collect(), rows, total: Total::Given }
    }

    fn field(&self, object: &Map<String, Value>, field: &str) -> Cell {
        object.get(field).map_or(Cell::Null, |value| cut(Cell::of_json(value), self.max_cell))
    }

    /// Entries without bodies.
    pub(super) fn heads(&self, entries: &[SourceEntry]) -> Rows {
        let row = |entry: &SourceEntry| {
            let bytes = Cell::Integer(i64::try_from(entry.bytes).unwrap_or(i64::MAX));
            self.begin(entry).into_iter().chain([bytes]).collect()
        };
        let columns = self.head().into_iter().chain(["bytes".to_owned()]).collect();
        Rows { columns, rows: entries.iter().map(row).collect(), total: Total::Given }
    }

    /// One entry as it is, cut to the size of a cell: a table would cut it to a line.
    pub(super) fn whole(&self, entry: &SourceEntry) -> String {
        let body = Body::of(entry).cell(self.max_cell).words();
        let (citation, at) = (self.citation(entry), time(entry.at));
        format!("{citation}, `{}`, stored {at}:\n{body}", self.subject(entry))
    }
}

/// The fields of bodies that are all JSON objects, in the order in which they come first; nothing where they are too many, or
/// a body is something else.
fn fields(bodies: &[Body]) -> Option<Vec<String>> {
    let mut fields: Vec<String> = Vec::new();
    for body in bodies {
        let Body::Json(Value::Object(object)) = body else { return None };
        for field in object.keys().filter(|field| !field.is_empty()) {
            if !fields.contains(field) {
                fields.push(field.clone());
            }
        }
        if fields.len() > MAX_FIELDS {
            return None;
        }
    }
    (!fields.is_empty()).then_some(fields)
}

/// A moment by its date and time.
pub(super) fn time(at: Millis) -> String {
    let at = i64::try_from(at.0).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    at.map_or_else(|| "unknown".to_owned(), |at| format!("{at:.3}"))
}

/// How fresh an answer is, in a line.
pub(super) fn fresh(source: &str, state: &SourceState) -> String {
    let asked = format!("Asked at {} by the server's clock", time(state.asked_at));
    let behind = match state.behind {
        Some(0) => "; it mirrors another stream and has all of it".to_owned(),
        Some(lag) => format!("; it mirrors another stream and is {lag} entries behind"),
        None => String::new(),
    };
    match state.last_at.filter(|_| state.messages > 0) {
        Some(at) => {
            let age = state.asked_at.0.saturating_sub(at.0);
            let age = span_of(age);
            format!(
                "{asked}. The newest entry of all is {source}:{}, stored {}, {age} before{behind}.",
                state.last,
                time(at)
            )
        }
        None => format!("{asked}. It is empty{behind}."),
    }
}

fn span_of(millis: u64) -> String {
    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    match millis {
        0..MINUTE => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        MINUTE..HOUR => format!("{} min", millis / MINUTE),
        HOUR..DAY => format!("{} h", millis / HOUR),
        DAY.. => format!("{} days", millis / DAY),
    }
}

/// What a stream holds, for a model.
pub(super) fn described(source: &str, state: &SourceState, counts: &[(String, u64)], more: u64) -> String {
    let mut lines = vec![match (state.first_at, state.last_at) {
        (Some(first), Some(last)) if state.messages > 0 => format!(
            "{source} holds {} entries ({} bytes), {source}:{} to {source}:{}, stored from {} to {}.",
            state.messages,
            state.bytes,
            state.first,
            state.last,
            time(first),
            time(last)
        ),
        (Some(_) | None, Some(_) | None) => format!("{source} is empty."),
    }];
    lines.extend(counts.iter().map(|(subject, count)| {
        let noun = if *count == 1 { "entry" } else { "entries" };
        format!("- {}: {count} {noun}", beginning(subject, 200))
    }));
    if more > 0 {
        lines.push(format!("- {more} more of them; narrow it with a filter"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn entry(seq: u64, body: &[u8]) -> SourceEntry {
        SourceEntry {
            seq,
            at: Millis(1_000 * seq),
            subject: "own.orders.new".to_owned(),
            body: Bytes::copy_from_slice(body),
            bytes: body.len() as u64,
            is_removal: false,
        }
    }

    const TABLE: Table<'static> = Table { source: "orders", before_key: "", max_cell: 40 };

    #[test]
    fn objects_of_a_few_fields_are_columns_and_each_row_has_its_citation() {
        let rows =
            TABLE.rows(&[entry(7, br#"{"id": 1, "entry": "x"}"#), entry(9, br#"{"id": 2.5, "note": [1]}"#)]);
        assert_eq!(rows.columns, ["entry", "stored", "subject", "id", "body.entry", "note"]);
        let words = rows.in_words();
        assert!(
            words.contains("| orders:7 | 1970-01-01T00:00:07.000Z | own.orders.new | 1 | x | NULL |"),
            "{words}"
        );
        assert!(
            words.contains("| orders:9 | 1970-01-01T00:00:09.000Z | own.orders.new | 2.5 | NULL | [1] |"),
            "{words}"
        );
    }

    #[test]
    fn a_body_is_json_text_or_a_few_of_its_bytes() {
        let many: String = (0..40).map(|n| format!("\"f{n}\": {n}, ")).collect();
        let many = format!("{{{}}}", many.trim_end_matches(", "));
        for (body, shown) in [
            (&b"[1, 2]"[..], "[1,2]"),
            (b"42", "42"),
            (b"hello", "hello"),
            (b"\x00\x01ab", "(4 bytes, no text: 00016162)"),
            (b"\xff\xfe", "(2 bytes, no text: fffe)"),
            (b"a\x1b[31mred", "(9 bytes, no text: 611b5b33316d726564)"),
            (b"", ""),
            (many.as_bytes(), "{\"f0\":0,"),
        ] {
            let rows = TABLE.rows(&[entry(1, body)]);
            let cell = rows.rows[0][3].words();
            assert!(cell.starts_with(shown) && cell.chars().count() <= 41 + 20, "{cell}");
            assert!(TABLE.whole(&entry(1, body)).starts_with("orders:1, `own.orders.new`, stored 1970"));
        }
        let removed = SourceEntry { is_removal: true, ..entry(3, b"") };
        assert_eq!(TABLE.rows(&[removed]).rows[0][3], Cell::Text(REMOVED.to_owned()));
    }

    #[test]
    fn an_answer_says_how_fresh_it_is() {
        let mut state = SourceState {
            stream: "ORDERS".to_owned(),
            subjects: Vec::new(),
            copies: Vec::new(),
            behind: None,
            messages: 2,
            bytes: 10,
            first: 1,
            last: 9,
            first_at: Some(Millis(1_000)),
            last_at: Some(Millis(60_000)),
            asked_at: Millis(61_500),
            counts: std::collections::BTreeMap::new(),
            counted: 0,
        };
        let line = fresh("orders", &state);
        assert!(
            line.ends_with(
                "The newest entry of all is orders:9, stored 1970-01-01T00:01:00.000Z, 1.5 s before."
            ),
            "{line}"
        );
        state.behind = Some(12);
        state.asked_at = Millis(60_000 + 3 * 3_600_000);
        let line = fresh("orders", &state);
        assert!(line.contains(", 3 h before; it mirrors another stream and is 12 entries behind."), "{line}");
        (state.messages, state.behind) = (0, None);
        assert!(fresh("orders", &state).ends_with("It is empty."), "{}", fresh("orders", &state));
    }

    proptest! {
        #[test]
        fn any_bodies_make_rows_as_wide_as_their_columns(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..8),
            objects in prop::collection::vec("[a-z]{0,3}", 0..20),
        ) {
            let object: Map<String, Value> = objects.into_iter().map(|name| (name, Value::from(1))).collect();
            let object = serde_json::to_vec(&object).unwrap();
            let entries: Vec<SourceEntry> =
                bodies.iter().map(Vec::as_slice).chain([object.as_slice()]).map(|body| entry(1, body)).collect();
            for entries in [&entries[..], &entries[entries.len() - 1..]] {
                let rows = TABLE.rows(entries);
                prop_assert!(rows.rows.iter().all(|row| row.len() == rows.columns.len()));
                prop_assert_eq!(rows.in_words().find(char::from(0x1b)), None);
            }
        }
    }
}
