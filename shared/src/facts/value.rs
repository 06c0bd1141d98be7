//! Reader of the typed values of a text.

use std::ops::Range;

use crate::text::date::{self, Date};
use crate::text::unit::{self, Dimension, Unit};
use crate::text::{DigitReading, number_in_words, numerals, stop};

/// Kind of a value. Values of different kinds do not contradict each other.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Date, with its possible readings.
    Date(Vec<Date>),
    /// Time of day, in minutes after noon or midnight.
    Time,
    /// Version.
    Version,
    /// Number that is part of a name, with the word before it: `UTF-8`, `Python 3.7`.
    Name(String),
    /// Number with a known unit, in the base unit.
    Measure(Dimension),
    /// Interval of something that repeats, in seconds: `every minute`.
    Period,
    /// Unit without a number (`in seconds`), as its factor to this base unit.
    Unit(&'static str),
    /// Number without a known unit.
    Count,
}

/// Direction of an inexact value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Exact,
    About,
    AtLeast,
    AtMost,
}

/// Typed value of a text.
#[derive(Debug, Clone)]
pub(super) struct Value {
    /// As written.
    pub(super) written: String,
    pub(super) kind: Kind,
    /// Possible numbers, in the base unit.
    pub(super) numbers: Vec<f64>,
    /// Possible numbers without the unit.
    pub(super) plain: Vec<f64>,
    /// Weight of the last digit, in the base unit.
    pub(super) step: f64,
    pub(super) bound: Bound,
    /// Stems of the words after a number, which name the counted items.
    pub(super) nouns: Vec<String>,
    /// Digits with a decimal point, of a number in digits.
    pub(super) digits: String,
    /// Whether it only supports a statement: an article, or a unit that is mentioned.
    pub(super) is_weak: bool,
    /// Column of a table, from 0.
    pub(super) column: usize,
}

impl Value {
    /// Whether it is a number of four digits that can be a year.
    pub(super) fn is_year(&self) -> bool {
        self.kind == Kind::Count
            && self.written.len() == 4
            && self.plain.iter().any(|year| YEARS.contains(year))
    }

    /// Dates that it can be.
    pub(super) fn dates(&self) -> &[Date] {
        if let Kind::Date(readings) = &self.kind { readings } else { &[] }
    }

    /// The same number as a plain one.
    pub(super) fn without_unit(&self) -> Self {
        let per_unit = self.numbers.iter().zip(&self.plain).find(|(_, plain)| **plain != 0.0);
        let factor = per_unit.map_or(1.0, |(number, plain)| number / plain);
        Self {
            numbers: self.plain.clone(),
            step: self.step / factor.abs(),
            kind: Kind::Count,
            ..self.clone()
        }
    }

    /// Whether a number agrees with it at the precision at which it is written.
    pub(super) fn fits(&self, other: f64) -> bool {
        self.numbers.iter().zip(&self.plain).any(|(number, plain)| {
            let exact = 0.5 * self.step * (1.0 + 1e-9) + 1e-9 * number.abs();
            let rough = self.step * zeros(*plain);
            let off = other - number;
            match self.bound {
                Bound::Exact => off.abs() <= exact,
                Bound::About => off.abs() <= exact.max(rough.min(0.1 * number.abs())),
                Bound::AtLeast => off >= -exact && off < rough.max(exact),
                Bound::AtMost => off <= exact && off > -rough.max(exact),
            }
        })
    }

    /// Whether a computed number agrees with it. A whole number that is not called inexact is not a rounded one.
    pub(super) fn fits_computed(&self, other: f64) -> bool {
        const ROUNDED: f64 = 0.01;
        let is_whole = self.bound == Bound::Exact && !self.digits.contains('.');
        let is_near = |number: &f64| (other - number).abs() <= ROUNDED * number.abs() + 1e-9;
        self.fits(other) && (!is_whole || self.numbers.iter().any(is_near))
    }

    fn without_number(written: &str, kind: Kind, numbers: Vec<f64>) -> Self {
        Self {
            written: written.to_owned(),
            kind,
            numbers,
            plain: Vec::new(),
            step: 0.0,
            bound: Bound::Exact,
            nouns: Vec::new(),
            digits: String::new(),
            is_weak: false,
            column: 0,
        }
    }
}

/// Numbers that can be years.
const YEARS: std::ops::Range<f64> = 1700.0..2100.0;

/// Weight of the last digit before the zeros at the end of a whole number: 100 for 1,200.
fn zeros(value: f64) -> f64 {
    let mut weight = 1.0;
    while value != 0.0 && value.fract() == 0.0 && (value / (weight * 10.0)).fract() == 0.0 {
        weight *= 10.0;
    }
    weight
}

const VERSIONS: [&str; 14] = [
    "version",
    "versions",
    "versión",
    "versione",
    "versão",
    "release",
    "v",
    "ver",
    "fassung",
    "rev",
    "revision",
    "revisión",
    "révision",
    "ausgabe",
];
const EVERY: [&str; 15] = [
    "every", "each", "per", "jede", "jeder", "jedes", "jeden", "alle", "pro", "chaque", "par", "cada", "por",
    "al", "ogni",
];
const TIMES: [&str; 6] = ["once", "twice", "times", "mal", "veces", "fois"];
const ONE: [&str; 13] =
    ["one", "a", "an", "un", "une", "una", "uno", "ein", "eine", "einen", "einem", "einer", "um"];
const PERIODS: [(&[&str], &str); 5] = [
    (&["hourly", "stündlich"], "hour"),
    (&["daily", "täglich", "tägliche", "quotidien", "quotidienne", "diario", "diaria"], "day"),
    (&["weekly", "wöchentlich", "hebdomadaire", "semanal"], "week"),
    (&["monthly", "monatlich", "mensuel", "mensuelle", "mensual"], "month"),
    (&["yearly", "annually", "annual", "jährlich", "annuel", "annuelle", "anual"], "year"),
];
const ABOUT: [&str; 15] = [
    "about",
    "around",
    "roughly",
    "approximately",
    "some",
    "circa",
    "ca",
    "etwa",
    "rund",
    "ungefähr",
    "environ",
    "aproximadamente",
    "cerca",
    "unos",
    "unas",
];
const AT_LEAST: [&str; 10] =
    ["more", "over", "above", "exceeding", "mehr", "über", "plus", "más", "gut", "mais"];
const AT_MOST: [&str; 14] = [
    "less", "under", "below", "almost", "nearly", "fast", "knapp", "presque", "casi", "moins", "menos",
    "weniger", "fewer", "quase",
];
/// Units that are common words in one of the languages; they are units only directly after the digits.
const WORDS_LIKE_UNITS: [&str; 14] =
    ["in", "y", "d", "a", "an", "t", "b", "mi", "mo", "ora", "ore", "tag", "go", "ko"];

/// Characters between a number and its unit.
const SPACES: [char; 6] = [' ', '\u{a0}', '\u{202f}', '\n', '\t', '-'];
const ORDINALS: [&str; 7] = ["st", "nd", "rd", "th", "er", "e", "º"];

/// Reading of a space before exactly three digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spaces {
    /// It groups digits, as in prose.
    Group,
    /// It groups digits or separates numbers: both readings are values.
    GroupOrSeparate,
}

/// Typed values of a text, in order.
pub(super) fn read(text: &str, spaces: Spaces) -> Vec<Value> {
    let dates = date::find(text);
    let mut masked = text.to_owned();
    let versions = text.match_indices(['v', 'V']).map(|(at, _)| at..at + 1).filter(|at| {
        let is_start = !text[..at.start].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        is_start && text[at.end..].starts_with(|letter: char| letter.is_ascii_digit())
    });
    for at in dates.iter().map(|found| found.at.clone()).chain(versions) {
        masked.replace_range(at.clone(), &" ".repeat(at.len()));
    }
    let text_of = |at: &Range<usize>| text[at.clone()].to_owned();
    let mut values: Vec<(usize, Value)> = dates
        .into_iter()
        .map(|found| {
            (
                found.at.start,
                Value::without_number(&text_of(&found.at), Kind::Date(found.readings), Vec::new()),
            )
        })
        .collect();
    let digits = in_digits(&masked, spaces);
    let words = in_words(&masked);
    let has_number = |at: usize| {
        let numbers = digits.iter().chain(&words).filter(|number| !number.is_article);
        let ends = numbers.map(|number| number.at.end + number.suffix.len());
        ends.filter(|end| *end <= at)
            .any(|end| masked[end..at].trim_matches(['-', ' ', '\u{a0}', '\n']).is_empty())
    };
    values.extend(units(&masked).into_iter().filter(|(at, _)| !has_number(*at)));
    values.extend(
        digits.iter().chain(&words).filter_map(|number| Some((number.at.start, number.value(&masked)?))),
    );
    values.sort_by_key(|(at, _)| *at);
    values.into_iter().map(|(_, value)| value).collect()
}

/// Number at a position of a text.
struct Number {
    at: Range<usize>,
    digits: String,
    suffix: String,
    plain: Vec<f64>,
    is_article: bool,
}

fn in_digits(text: &str, spaces: Spaces) -> Vec<Number> {
    let digits_of = |at: &Range<usize>| text[at.clone()].trim_start_matches(['-', '−']);
    let mut found: Vec<Number> = Vec::new();
    for number in numerals(text) {
        let is_group = digits_of(&number.at).len() == 3 && number.digits.parse::<u32>().is_ok();
        let start = found.last().filter(|before| {
            let is_first = before.digits.len() <= 3 || digits_of(&before.at).contains(' ');
            is_group
                && is_first
                && before.suffix.is_empty()
                && text.get(before.at.end..number.at.start) == Some(" ")
        });
        let joined =
            start.map(|before| before.at.start..number.at.end).filter(|at| !digits_of(at).starts_with('0'));
        let sign = if number.digits.starts_with('-') { -1.0 } else { 1.0 };
        let plain = |at: &Range<usize>| {
            DigitReading::read(digits_of(at)).values().map(|value| sign * value).collect()
        };
        let mut own: Vec<f64> = plain(&number.at);
        if own.is_empty() {
            own.extend(number.value());
        }
        let suffix = number.suffix;
        if joined.is_none() || spaces == Spaces::GroupOrSeparate {
            found.push(Number {
                at: number.at,
                digits: number.digits,
                suffix: suffix.clone(),
                plain: own,
                is_article: false,
            });
        } else {
            found.pop();
        }
        if let Some(at) = joined {
            let (digits, plain) = (digits_of(&at).replace(' ', ""), plain(&at));
            found.push(Number { at, digits, suffix, plain, is_article: false });
        }
    }
    found
}

fn in_words(text: &str) -> Vec<Number> {
    let mut found: Vec<Number> = Vec::new();
    for at in words(text) {
        let word = text[at.clone()].to_lowercase();
        let joined = found.last().map(|last| (last.at.end, last.plain.first().copied().unwrap_or(0.0)));
        let follows = joined.filter(|(end, _)| matches!(text.get(*end..at.start), Some("-" | " ")));
        let after_digits = text[..at.start].trim_end().ends_with(|c: char| c.is_ascii_digit());
        match (number_in_words(&word), follows) {
            // A multiple of the number before it.
            (Some(value), _) if value >= 100 && (after_digits || follows.is_some()) => {}
            (Some(value @ 1..10), Some((_, tens))) if tens >= 20.0 && tens % 10.0 == 0.0 => {
                if let Some(last) = found.last_mut() {
                    last.at.end = at.end;
                    last.plain = vec![tens + value as f64];
                }
            }
            (Some(value), _) => found.push(spelled(text, at, value as f64, false)),
            (None, _) if ONE.contains(&word.as_str()) => {
                let number = spelled(text, at, 1.0, word != "one");
                // An article, unless a unit follows.
                found.extend(number.unit(text).map(|_| number));
            }
            (None, _) => {}
        }
    }
    found
}

fn spelled(text: &str, at: Range<usize>, value: f64, is_article: bool) -> Number {
    const HALF: &str = " and a half";
    let half = text[at.end..].starts_with(HALF);
    let (end, value) = if half { (at.end + HALF.len(), value + 0.5) } else { (at.end, value) };
    Number { at: at.start..end, digits: String::new(), suffix: String::new(), plain: vec![value], is_article }
}

impl Number {
    fn value(&self, text: &str) -> Option<Value> {
        let after = text.get(self.at.end + self.suffix.len()..).unwrap_or_default();
        let (before_word, gap) = word_before(&text[..self.at.start]);
        let (times, found_unit) = self.unit(text).unwrap_or((1.0, None));
        let kind = self.kind(text, found_unit.as_ref(), before_word, gap);
        let line = text[..self.at.start].rsplit('\n').next().unwrap_or_default();
        let is_marker = line.trim().is_empty() && (after.starts_with(". ") || after.starts_with(") "));
        if is_marker {
            return None;
        }
        let in_base = |value: f64| match &kind {
            Kind::Measure(_) | Kind::Period => {
                found_unit.as_ref().map_or(value, |unit| unit.in_base(value * times))
            }
            Kind::Date(_) | Kind::Time | Kind::Version | Kind::Name(_) | Kind::Unit(_) | Kind::Count => {
                value * times
            }
        };
        let numbers = match (&kind, self.digits.split_once(':')) {
            (Kind::Time, Some((hour, minutes))) => {
                let minutes: f64 = minutes.split(':').next()?.parse().ok()?;
                vec![(hour.parse::<f64>().ok()? % 12.0).mul_add(60.0, minutes)]
            }
            (_, _) => self.plain.iter().copied().map(in_base).collect(),
        };
        let reading = DigitReading::read(text[self.at.clone()].trim_start_matches(['-', '−']));
        let fractions = [reading.with_point, reading.with_comma].into_iter().flatten();
        let decimals = fractions.filter_map(|value| Some(value.split_once('.')?.1.len())).max().unwrap_or(0);
        let half = if self.plain.iter().any(|value| value.fract() != 0.0) && self.digits.is_empty() {
            0.5
        } else {
            1.0
        };
        let digit = half * 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
        let shown_end = self.at.end + self.suffix.len();
        let unit_len = unit_len(after);
        let is_unit = self.suffix.is_empty() && known(after[..unit_len].trim_start_matches(SPACES)).is_some();
        let written =
            text.get(self.at.start..shown_end + if is_unit { unit_len } else { 0 }).unwrap_or_default();
        Some(Value {
            written: written.to_owned(),
            step: (in_base(digit) - in_base(0.0)).abs(),
            numbers,
            plain: self.plain.clone(),
            bound: bound(&text[..self.at.start]),
            nouns: nouns(after),
            digits: match &kind {
                // Zeros at the end are a part of a version.
                Kind::Version | Kind::Name(_) if !self.digits.is_empty() => {
                    text[self.at.clone()].trim_start_matches(['-', '−']).to_owned()
                }
                _ => self.digits.clone(),
            },
            is_weak: self.is_article,
            column: 0,
            kind,
        })
    }

    fn kind(&self, text: &str, unit: Option<&Unit>, word: &str, gap: &str) -> Kind {
        let (before, lower) = (&text[..self.at.start], word.to_lowercase());
        let is_word = word.starts_with(char::is_alphabetic);
        let in_brackets = gap == "(" && text[self.at.end..].starts_with(')');
        let is_sentence = before.trim_end().strip_suffix(word).is_none_or(|head| {
            head.trim_end().is_empty()
                || head.trim_end().ends_with(['.', '!', '?', ':', ';', '"', '„', '«', '|', '('])
        });
        if self.digits.contains(':') {
            return Kind::Time;
        }
        if self.digits.matches('.').count() > 1
            || is_word && gap.trim().is_empty() && VERSIONS.contains(&lower.as_str())
        {
            return Kind::Version;
        }
        if !self.digits.is_empty() && (gap.ends_with(['#', '@']) || is_word && (gap == "-" || in_brackets)) {
            return Kind::Name(lower);
        }
        if let Some(unit) = unit {
            let repeats = EVERY.contains(&lower.as_str()) && unit.dimension == Dimension::Of("s");
            return if repeats { Kind::Period } else { Kind::Measure(unit.dimension.clone()) };
        }
        let is_year = self.at.len() == 4 && self.plain.iter().any(|year| YEARS.contains(year));
        let is_capital =
            word.starts_with(char::is_uppercase) && matches!(gap, " " | "\u{a0}") && !is_sentence;
        if is_capital && !self.digits.is_empty() && !is_year { Kind::Name(lower) } else { Kind::Count }
    }

    /// Multiple and unit after the number, or before it: a currency, or the name of a field.
    fn unit(&self, text: &str) -> Option<(f64, Option<Unit>)> {
        let (before, after) = (&text[..self.at.start], &text[self.at.end..]);
        if let Some(sign) = before.trim_end().chars().next_back().filter(|sign| "$€£¥".contains(*sign)) {
            let (times, _) = unit::without_multiple(after);
            return Some((times, Some(unit::read(&sign.to_string()))));
        }
        let is_ordinal = ORDINALS.contains(&self.suffix.as_str());
        if !self.suffix.is_empty() && !is_ordinal {
            let written = after.get(..self.suffix.len())?;
            return match written {
                "k" | "K" => Some((1e3, None)),
                "M" => Some((1e6, None)),
                "Mo" => Some((1.0, Some(unit::read("mb")))),
                _ => known(written).map(|unit| (1.0, Some(unit))),
            };
        }
        let after = after.get(self.suffix.len()..)?;
        let (times, rest) = unit::without_multiple(after.strip_prefix('-').unwrap_or(after));
        let word = &rest[..unit_len(rest)];
        let unit = match word {
            "Mo" => Some(unit::read("mb")),
            _ if WORDS_LIKE_UNITS.contains(&word) => None,
            _ => known(word),
        };
        let unit = unit.or_else(|| key_unit(before)).or_else(|| two_words(rest));
        (times > 1.0 || unit.is_some()).then_some((times, unit))
    }
}

/// A unit that is known by its name.
fn known(word: &str) -> Option<Unit> {
    let read = unit::read(word);
    match &read.dimension {
        Dimension::Percent | Dimension::Of(_) => Some(read),
        Dimension::Temperature => (word.chars().count() > 1).then_some(read),
        Dimension::Other(_) if unit::is_currency(word) => Some(read),
        Dimension::Other(_) => word.split_once('/').and_then(|(first, _)| known(first)),
        Dimension::None => None,
    }
}

fn two_words(rest: &str) -> Option<Unit> {
    let mut words = rest.split_whitespace();
    let (first, second) = (words.next()?.to_lowercase(), words.next()?.to_lowercase());
    let second = second.trim_end_matches(|letter: char| !letter.is_alphabetic());
    match first.as_str() {
        "per" | "pour" | "por" => known(&format!("{first} {second}")),
        "degrees" | "grad" | "degrés" | "grados" => known(second),
        _ => None,
    }
}

/// Unit in the name of the field before a number: `hours=12`, `"ttl_ms": 5`.
fn key_unit(before: &str) -> Option<Unit> {
    let (key, gap) = word_before(before);
    let (rest, last) = key.rsplit_once('_').unwrap_or(("", key));
    let is_key = matches!(gap.trim(), "=" | ":" | "\":" | "':")
        && (!rest.is_empty() || last.ends_with('s') && last.len() > 3);
    if is_key { known(last) } else { None }
}

/// Length of the word or sign that can be a unit, with the space before it.
fn unit_len(rest: &str) -> usize {
    let start = rest.len() - rest.trim_start_matches(SPACES).len();
    let is_part = |letter: char| letter.is_alphabetic() || "%°²³/µ℃℉$€£¥".contains(letter);
    rest[start..].find(|letter: char| !is_part(letter)).map_or(rest.len(), |len| start + len)
}

/// Intervals and units without a number, with their positions.
fn units(text: &str) -> Vec<(usize, Value)> {
    let (mut found, mut before, mut before_that) = (Vec::new(), String::new(), String::new());
    for at in words(text) {
        let written = &text[at.clone()];
        let word = written.to_lowercase();
        let adverb = PERIODS.iter().find(|(names, _)| names.contains(&word.as_str())).map(|(_, name)| *name);
        let unit = unit::read(adverb.unwrap_or(&word));
        if let Dimension::Of(base @ ("s" | "byte")) = unit.dimension {
            let repeats = EVERY.contains(&before.as_str()) || TIMES.contains(&before_that.as_str());
            let is_period = adverb.is_some() || repeats && base == "s" && word.chars().count() > 1;
            let is_named = word.chars().count() > 3;
            let is_fine = base == "s" && unit.factor < 1.0 || base == "byte" && unit.factor > 1.0;
            let is_after_in =
                ["in", "en", "em"].contains(&before.as_str()) && is_named && word.ends_with(['s', 'n']);
            let value = if is_period {
                Some(Value::without_number(written, Kind::Period, vec![unit.factor]))
            } else if is_named {
                let value = Value::without_number(written, Kind::Unit(base), vec![unit.factor]);
                Some(Value { is_weak: !is_fine && !is_after_in, ..value })
            } else {
                None
            };
            found.extend(value.map(|value| (at.start, value)));
        }
        before_that = std::mem::replace(&mut before, word);
    }
    found
}

/// Ranges of words in a text: letters without digits.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        match (letter.is_alphabetic(), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                found.push(from..at);
                start = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
    found
}

/// Word before a position, and the characters between.
fn word_before(before: &str) -> (&str, &str) {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let head = before.trim_end_matches(|letter: char| !is_part(letter));
    let start = head.rfind(|letter: char| !is_part(letter));
    let start = start.map_or(0, |at| at + head[at..].chars().next().map_or(0, char::len_utf8));
    (&head[start..], &before[head.len()..])
}

/// Whether one of the words right before a number makes it inexact.
fn bound(before: &str) -> Bound {
    const NEAR: usize = 3;
    let sentence = before.rsplit(['.', ';', ',', '\n']).next().unwrap_or_default();
    let words = sentence.rsplit(|letter: char| !letter.is_alphabetic() && !"~≈".contains(letter));
    let words: Vec<String> =
        words.filter(|word| !word.is_empty()).take(NEAR).map(str::to_lowercase).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    if has(&["~", "≈"]) || has(&ABOUT) {
        Bound::About
    } else if has(&AT_LEAST) {
        Bound::AtLeast
    } else if has(&AT_MOST) {
        Bound::AtMost
    } else {
        Bound::Exact
    }
}

/// Stems of the telling words after a number, in the same part of the sentence.
fn nouns(after: &str) -> Vec<String> {
    const NEAR: usize = 3;
    const STEM: usize = 5;
    let end = after.find(['.', ',', ';', ':', '!', '?', '(', ')', '|']).unwrap_or(after.len());
    let words = after[..end].split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty());
    let words = words.take(NEAR).map(str::to_lowercase);
    words
        .filter(|word| word.chars().count() > 3 && !stop::is_light_in_search(word))
        .map(|word| word.chars().take(STEM).collect())
        .collect()
}
