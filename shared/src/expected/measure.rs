//! What there is in a result: JSON, items, words, a table.

use serde_json::Value;

use super::count::Measure;
use crate::conflict::read_value;
use crate::flow::{ClaimValue, TaskResult};

/// Longest text in which JSON is looked for, in bytes.
const LONGEST: usize = 256 * 1024;

/// Most words of an answer that is a number and nothing else.
const MOST_WORDS_OF_A_NUMBER: usize = 6;

/// JSON in a text: all of it, a block of it in a fence, or what stands between the first bracket and the last.
pub(super) fn json_in(text: &str) -> Vec<Value> {
    let text = text.trim();
    if text.len() > LONGEST {
        return Vec::new();
    }
    let fenced =
        text.split("```").skip(1).step_by(2).map(|block| block.strip_prefix("json").unwrap_or(block));
    let between = [('[', ']'), ('{', '}')].into_iter().filter_map(|(open, close)| {
        let (from, to) = (text.find(open)?, text.rfind(close)?);
        text.get(from..=to)
    });
    let read = |text: &str| serde_json::from_str::<Value>(text.trim()).ok();
    let is_json = |value: &Value| value.is_array() || value.is_object();
    let whole = read(text);
    whole.into_iter().chain(fenced.chain(between).filter_map(read).filter(is_json)).collect()
}

/// How many there may be, by each way to count them; the likeliest first.
pub(super) fn counts(measure: Measure, text: &str, values: &[Value], result: &TaskResult) -> Vec<usize> {
    match measure {
        Measure::Items { of_json: true } => values.iter().filter_map(Value::as_array).map(Vec::len).collect(),
        Measure::Items { of_json: false } => items(text, values, result),
        Measure::Words => {
            vec![text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()]
        }
        Measure::Sentences => vec![sentences(text)],
        Measure::Paragraphs => vec![blocks(text), lines(text).count()],
        Measure::Lines => vec![lines(text).count()],
        Measure::Characters => vec![text.chars().count()],
        Measure::Rows => rows(text, values),
        Measure::Columns => columns(text, values),
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

fn blocks(text: &str) -> usize {
    text.split("\n\n").filter(|block| !block.trim().is_empty()).count()
}

fn sentences(text: &str) -> usize {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ends = |at: usize, word: &str| {
        let next = words.get(at + 1);
        let closed =
            word.trim_end_matches(['"', '\'', ')', '”', '*', '_', '`']).ends_with(['.', '!', '?', '…', '。']);
        closed && next.is_none_or(|next| !next.starts_with(char::is_lowercase))
    };
    let ended = words.iter().enumerate().filter(|(at, word)| ends(*at, word)).count();
    let open = words.last().is_some_and(|last| !ends(words.len() - 1, last));
    ended + usize::from(open)
}

/// Items of arrays, lines of a list, headings, lines, sentences, parts between commas, findings: whoever lists does so in
/// one of these ways.
fn items(text: &str, values: &[Value], result: &TaskResult) -> Vec<usize> {
    let arrays = values.iter().flat_map(|value| match value {
        Value::Array(items) => vec![items.len()],
        Value::Object(fields) => {
            let inner = fields.values().filter_map(Value::as_array).map(Vec::len);
            inner.chain([fields.len()]).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    });
    let at_margin = lines(text).filter(|line| is_item(line)).count();
    let at_any = lines(text).filter(|line| is_item(line.trim_start())).count();
    let headings = lines(text).filter(|line| line.starts_with('#') || line.starts_with("**")).count();
    let commas = parts(text, &[',', ';']);
    let of_text = [at_margin, at_any, headings, lines(text).count(), blocks(text), sentences(text)];
    let lists = [result.findings.len(), result.claims.len()];
    let all: Vec<usize> = arrays.chain(of_text).chain(commas).chain(lists).collect();
    all.into_iter().filter(|count| *count > 0).collect()
}

/// How many parts there are between commas, with and without an "and" that stands for one, of the whole and of each
/// sentence or of what follows a colon.
fn parts(text: &str, signs: &[char]) -> Vec<usize> {
    let pieces = text.split([':', '\n']).flat_map(|piece| piece.split(". "));
    let of = |piece: &str| {
        let split = piece.split(signs).filter(|part| part.chars().any(char::is_alphanumeric));
        let split: Vec<&str> = split.collect();
        let joins = |part: &str, word: &str| part.split_whitespace().any(|found| found == word);
        let joined = split.last().filter(|last| {
            let last = last.trim_start();
            !last.starts_with("and ")
                && !last.starts_with("or ")
                && (joins(last, "and") || joins(last, "or") || joins(last, "&"))
        });
        let count = split.len();
        [count, count + usize::from(joined.is_some())]
    };
    std::iter::once(text).chain(pieces).flat_map(of).collect()
}

/// `- x`, `* x`, `1. x`, `1) x`, `• x`.
fn is_item(line: &str) -> bool {
    if ["- ", "* ", "+ ", "• ", "– "].iter().any(|mark| line.starts_with(mark)) {
        return true;
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && (rest.starts_with(". ") || rest.starts_with(") "))
}

/// The rows of tables, with the head and without.
fn rows(text: &str, values: &[Value]) -> Vec<usize> {
    let table: Vec<&str> = lines(text).filter(|line| line.contains('|') && !is_rule(line)).collect();
    let arrays = values.iter().filter_map(Value::as_array).map(Vec::len);
    let separated = lines(text).filter(|line| line.contains([',', ';', '\t'])).count();
    let mut counts: Vec<usize> = arrays.collect();
    for count in [table.len(), separated] {
        if count > 0 {
            counts.extend([count - 1, count]);
        }
    }
    counts
}

fn is_rule(line: &str) -> bool {
    line.chars().all(|c| "|-:+ =".contains(c)) && line.contains('-')
}

fn columns(text: &str, values: &[Value]) -> Vec<usize> {
    let of_row = |row: &Value| match row {
        Value::Object(fields) => Some(fields.len()),
        Value::Array(cells) => Some(cells.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    let rows = values.iter().filter_map(Value::as_array).flatten().filter_map(of_row);
    let table = lines(text).filter(|line| line.contains('|') && !is_rule(line));
    let table = table.map(|line| line.trim().trim_matches('|').split('|').count());
    let separated = lines(text)
        .filter(|line| line.contains([',', ';', '\t']))
        .map(|line| line.split([',', ';', '\t']).count());
    rows.chain(table).chain(separated).collect()
}

/// A Markdown or HTML table, or lines of values parted by commas or tabs.
pub(super) fn has_table(text: &str) -> bool {
    let of = |sign: char| lines(text).filter(|line| line.contains(sign)).count();
    of('|') > 1
        || text.to_lowercase().contains("<table")
        || [',', ';', '\t'].into_iter().any(|sign| of(sign) > 1)
}

/// Whether a number is given, in digits or in words.
pub(super) fn is_number(text: &str, only: bool) -> bool {
    const WORDS: [&str; 24] = [
        "zero", "none", "no", "nothing", "one", "two", "three", "four", "five", "six", "seven", "eight",
        "nine", "ten", "eleven", "twelve", "twenty", "thirty", "forty", "fifty", "hundred", "thousand",
        "million", "half",
    ];
    if only && text.split_whitespace().count() > MOST_WORDS_OF_A_NUMBER {
        return false;
    }
    let is_value = matches!(read_value(text, ""), Some(ClaimValue::Number { .. }));
    let in_words =
        || text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word));
    is_value || text.chars().any(char::is_numeric) || in_words()
}

/// Whether it is said that something is so, or is not.
pub(super) fn says_yes_or_no(text: &str) -> bool {
    const WORDS: [&str; 6] = ["yes", "no", "true", "false", "not", "correct"];
    text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word))
}
