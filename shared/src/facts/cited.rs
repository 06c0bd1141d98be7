//! Values of all lines that a statement cites together.

use super::value::{self, Kind, Spaces, Value};
use crate::text::unit::{self, Dimension, Unit};

/// Text that a statement cites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CitedText<'a> {
    /// Cited lines, joined by `\n`.
    pub text: &'a str,
    /// Header row of the table, if the lines are rows of one.
    pub header: Option<&'a str>,
    /// Path of the document. Its extension gives the format: `.csv`, `.tsv`, `.json`, `.md`, and others.
    pub path: &'a str,
}

/// Values of cited lines.
pub(super) struct CitedValues<'a> {
    texts: Vec<&'a str>,
    /// Values as written there.
    pub(super) values: Vec<Value>,
    /// Values in the header rows, which belong to every row.
    pub(super) headers: Vec<Value>,
    /// Possible lengths of the lists there.
    pub(super) counts: Vec<f64>,
}

impl<'a> CitedValues<'a> {
    pub(super) fn read(cited: &[CitedText<'a>]) -> Self {
        let values = cited.iter().flat_map(|one| match separator(one) {
            Some(separator) => fields(one, separator),
            None => value::read(one.text, Spaces::GroupOrSeparate),
        });
        Self {
            values: values.collect(),
            headers: cited
                .iter()
                .filter_map(|one| one.header)
                .flat_map(|header| value::read(header, Spaces::Group))
                .collect(),
            counts: cited.iter().flat_map(list_lengths).collect(),
            texts: cited.iter().map(|one| one.text).collect(),
        }
    }

    /// Whether these digits are a number there, also as a part of a name.
    pub(super) fn has_digits(&self, digits: &str) -> bool {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let is_bounded = |text: &str, at: usize| {
            let (before, after) = (&text[..at], &text[at + digits.len()..]);
            let goes_on = after.starts_with(is_digit)
                || after.starts_with(['.', ',']) && after[1..].starts_with(is_digit) && !digits.contains('.');
            let is_part = before.ends_with(is_digit)
                || before.ends_with(['.', ',']) && before[..before.len() - 1].ends_with(is_digit);
            !goes_on && !is_part
        };
        !digits.is_empty()
            && self.texts.iter().any(|text| text.match_indices(digits).any(|(at, _)| is_bounded(text, at)))
    }
}

/// Separator of the fields of a table.
fn separator(cited: &CitedText<'_>) -> Option<char> {
    let extension = cited.path.rsplit('.').next().unwrap_or_default().to_lowercase();
    let line = cited.header.or_else(|| cited.text.lines().next()).unwrap_or_default();
    let most = |marks: &[char]| marks.iter().copied().max_by_key(|mark| line.matches(*mark).count());
    match extension.as_str() {
        "tsv" => Some('\t'),
        "csv" => most(&[';', '\t', ',']),
        _ => None,
    }
}

/// Values of the fields of rows, each with its column and the unit in the name of that column.
fn fields(cited: &CitedText<'_>, separator: char) -> Vec<Value> {
    let units: Vec<Option<Unit>> =
        split(cited.header.unwrap_or_default(), separator).iter().map(|name| column_unit(name)).collect();
    let mut values = Vec::new();
    for line in cited.text.lines() {
        for (column, field) in split(line, separator).iter().enumerate() {
            let unit = units.get(column).and_then(Option::as_ref);
            values.extend(
                value::read(field, Spaces::Group).into_iter().map(|value| in_column(value, column, unit)),
            );
        }
    }
    values
}

fn in_column(value: Value, column: usize, unit: Option<&Unit>) -> Value {
    match unit {
        Some(unit) if value.kind == Kind::Count => Value {
            numbers: value.plain.iter().map(|plain| unit.in_base(*plain)).collect(),
            step: value.step * unit.factor,
            kind: Kind::Measure(unit.dimension.clone()),
            column,
            ..value
        },
        Some(_) | None => Value { column, ..value },
    }
}

/// Unit in the name of a column: `height_m`, `price (EUR)`.
fn column_unit(name: &str) -> Option<Unit> {
    let (_, last) = name.trim_end_matches([')', ']']).rsplit_once(['_', '(', '['])?;
    let unit = unit::read(last);
    let is_known = matches!(unit.dimension, Dimension::Percent | Dimension::Of(_)) || unit::is_currency(last);
    is_known.then_some(unit)
}

fn split(line: &str, separator: char) -> Vec<String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        if letter == '"' {
            is_quoted = !is_quoted;
        } else if letter == separator && !is_quoted {
            fields.push(std::mem::take(&mut field));
        } else {
            field.push(letter);
        }
    }
    fields.push(field);
    fields
}

/// Numbers of items that the lists of a text can have: marked lines, rows, items between brackets, items of a line.
fn list_lengths(cited: &CitedText<'_>) -> Vec<f64> {
    let filled = || cited.text.lines().filter(|line| !line.trim().is_empty());
    let is_marked = |line: &&str| line.trim_start().starts_with(['-', '*', '•', '"', '\'', '|']);
    let items = |part: &str| part.split([',', ';']).filter(|item| !item.trim().is_empty()).count();
    let groups =
        cited.text.split(['[', '(', '{']).skip(1).filter_map(|part| part.split([']', ')', '}']).next());
    let rows = if separator(cited).is_some() { filled().count() } else { 0 };
    let mut lengths: Vec<usize> = groups.map(items).chain(filled().map(items)).collect();
    lengths.extend([filled().filter(is_marked).count(), rows, items(cited.text)]);
    lengths.sort_unstable();
    lengths.dedup();
    lengths.into_iter().filter(|length| *length > 1).map(|length| length as f64).collect()
}
