//! Whether a number that is said stands in texts, or follows from one there by rounding or by another way to write it. Pure.

use muster_shared::text::unit::{self, Dimension, Unit};
use muster_shared::text::{Numeral, numerals};

/// Largest number that may count what the report itself lists.
const SMALL: f64 = 12.0;
/// Words that are counted by whoever writes a report.
const COUNTED: [&str; 34] = [
    "option",
    "document",
    "file",
    "task",
    "point",
    "step",
    "reason",
    "item",
    "source",
    "result",
    "finding",
    "question",
    "way",
    "thing",
    "part",
    "section",
    "difference",
    "criterion",
    "criteria",
    "candidate",
    "tool",
    "alternative",
    "approach",
    "category",
    "aspect",
    "key",
    "main",
    "of",
    "out",
    "other",
    "more",
    "different",
    "such",
    "recommendation",
];
/// Words before a number that names a place in the report.
const NAMING: [&str; 13] = [
    "option", "step", "section", "table", "figure", "fig", "no", "number", "part", "task", "chapter",
    "question", "item",
];
/// Words before a number that is not meant exactly.
const ABOUT: [&str; 14] = [
    "about",
    "around",
    "roughly",
    "nearly",
    "almost",
    "over",
    "approximately",
    "some",
    "under",
    "than",
    "ca",
    "circa",
    "to",
    "exceeding",
];

/// The numbers, where groups of three digits after a space are one that is known.
pub fn joined(text: &str, numbers: Vec<Numeral>, known: &Known) -> Vec<Numeral> {
    let mut all: Vec<Numeral> = Vec::new();
    for number in numbers {
        let is_group =
            text[number.at.clone()].len() == 3 && number.digits.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(before) = all.last_mut().filter(|before| is_group && before.at.end + 1 == number.at.start)
        {
            let digits = format!("{}{}", before.digits, &text[number.at.clone()]);
            let whole = Numeral { at: before.at.start..number.at.end, digits, suffix: number.suffix.clone() };
            if text[before.at.end..].starts_with(' ') && known.has(text, &whole) {
                *before = whole;
                continue;
            }
        }
        all.push(number);
    }
    all
}

/// Whether a number only numbers something: an item of a list, a heading, an option.
#[must_use]
pub fn is_marker(text: &str, number: &Numeral) -> bool {
    let line = text[..number.at.start].rfind('\n').map_or(0, |end| end + 1);
    let (before, after) = (&text[line..number.at.start], &text[number.at.end..]);
    let begins = before.trim_start().trim_start_matches(['#', '*', '-', '>', '|', ' ']).is_empty();
    let is_heading = before.trim_start().starts_with('#');
    let ends_marker =
        after.starts_with(['.', ')', ':']) && !after[1..].starts_with(|c: char| c.is_ascii_digit());
    let word = before.trim_end().rsplit(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
    let word = word.unwrap_or_default().to_lowercase();
    let is_ordinal = ["st", "nd", "rd", "th"].contains(&number.suffix.as_str());
    begins && (ends_marker || is_heading)
        || before.trim_end().ends_with('#')
        || is_ordinal
        || NAMING.contains(&word.trim_end_matches('s'))
}

/// What numbers the results have.
#[derive(Debug, Clone, Default)]
pub struct Known {
    digits: Vec<String>,
    values: Vec<(f64, Unit)>,
    /// Whether a number with decimals is another one only where it is that rounded to as many.
    exact_decimals: bool,
}

impl Known {
    /// Those of these texts.
    #[must_use]
    pub fn of(texts: &[String]) -> Self {
        let mut known = Self::in_figures(texts);
        let words =
            texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphabetic())).map(str::to_lowercase);
        let numbers = words.filter_map(|word| number_of(&word));
        known.values.extend(numbers.map(|value| (value, unit::read(""))));
        known
    }

    /// Those that stand in figures.
    #[must_use]
    pub fn in_figures(texts: &[String]) -> Self {
        let (mut digits, mut values) = (Vec::new(), Vec::new());
        for text in texts {
            for number in numerals(text) {
                if let Some(value) = number.value() {
                    values.push((value.abs(), unit_of(text, &number)));
                }
                digits.push(number.digits.trim_start_matches('-').to_owned());
            }
        }
        Self { digits, values, exact_decimals: false }
    }

    /// The same, where whoever gives decimals has rounded to them.
    #[must_use]
    pub fn with_exact_decimals(self) -> Self {
        Self { exact_decimals: true, ..self }
    }

    /// Whether a number of `text` is one of them, or one of them written otherwise.
    #[must_use]
    pub fn has(&self, text: &str, number: &Numeral) -> bool {
        let digits = number.digits.trim_start_matches('-');
        let Some(value) = number.value().map(f64::abs) else {
            return self.digits.iter().any(|known| known == digits);
        };
        if self.digits.iter().any(|known| known == digits) || counts(text, number, value) {
            return true;
        }
        let unit = unit_of(text, number);
        let decimals = i32::try_from(number.decimals()).unwrap_or(i32::MAX);
        let exact = 0.5 * 10f64.powi(-decimals);
        let rough = match is_about(text, number) {
            true => exact.max(zeros(value)),
            false if self.exact_decimals && decimals > 0 => exact,
            false => exact.max(zeros(value) * 0.5).min(value * 0.06),
        };
        self.values.iter().any(|(known, of)| {
            let near = |one: f64, other: f64, within: f64| (one - other).abs() <= within * (1.0 + 1e-9);
            let percent = |unit: &Unit| unit.dimension == Dimension::Percent;
            let plain = near(value, *known, rough) && has_more(*known, value);
            let multiplied = near(value * unit.factor, known * of.factor, rough * unit.factor)
                && (unit.dimension == of.dimension || is_bare(&unit) || is_bare(of));
            let in_percent = percent(&unit) && !percent(of) && near(value, known * 100.0, exact)
                || percent(of) && !percent(&unit) && near(value * 100.0, *known, exact * 100.0);
            plain || multiplied || in_percent
        })
    }
}

impl Known {
    /// Whether a number stands there with another unit of the same kind only: in seconds, and is said in minutes.
    #[must_use]
    pub fn is_in_another_unit(&self, text: &str, number: &Numeral) -> bool {
        let Some(value) = number.value().map(f64::abs) else { return false };
        let unit = unit_of(text, number);
        // "MB" and "MiB" are often the same to whoever writes.
        let is_other =
            |of: &Unit| of.dimension == unit.dimension && !(0.9..1.1).contains(&(of.factor / unit.factor));
        let same: Vec<&Unit> =
            self.values.iter().filter(|(known, _)| *known == value).map(|(_, of)| of).collect();
        let follows = self.values.iter().any(|(known, of)| {
            of.dimension == unit.dimension
                && (known * of.factor - value * unit.factor).abs() <= 1e-9 * known * of.factor
        });
        matches!(unit.dimension, Dimension::Of(_))
            && !follows
            && !same.is_empty()
            && same.into_iter().all(is_other)
    }
}

const fn is_bare(unit: &Unit) -> bool {
    matches!(unit.dimension, Dimension::None | Dimension::Other(_))
}

/// Whether a number may be another one rounded: that has more digits.
fn has_more(known: f64, value: f64) -> bool {
    known.fract() != 0.0 || zeros(value) > 1.0 && zeros(known) < zeros(value)
}

/// 1,000 for 25,000: by how much a whole number was rounded, as far as its zeros say.
fn zeros(value: f64) -> f64 {
    let mut step = 1.0;
    while value >= step * 100.0 && (value / (step * 10.0)).fract() == 0.0 {
        step *= 10.0;
    }
    step
}

/// Whether words before a number say that it is not meant exactly.
fn is_about(text: &str, number: &Numeral) -> bool {
    let before = text[..number.at.start].trim_end();
    let word = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    before.ends_with(['~', '≈', '>', '<']) || ABOUT.contains(&word.as_str())
}

/// Whether a small number counts what the report lists.
fn counts(text: &str, number: &Numeral, value: f64) -> bool {
    let next = word_after(text, number).to_lowercase();
    let next = next.trim_end_matches('s');
    value <= SMALL && value.fract() == 0.0 && COUNTED.contains(&next) && number.suffix.is_empty()
}

fn word_after<'a>(text: &'a str, number: &Numeral) -> &'a str {
    let rest = text[number.at.end..].trim_start_matches([' ', '\u{a0}', '\u{202f}', '*', '-']);
    let end = rest.find(|c: char| !c.is_alphabetic() && c != '%' && c != '°').unwrap_or(rest.len());
    &rest[..end]
}

fn unit_of(text: &str, number: &Numeral) -> Unit {
    let short = match number.suffix.as_str() {
        "k" => Some(1e3),
        "m" | "mio" => Some(1e6),
        "b" | "bn" => Some(1e9),
        _ => None,
    };
    if let Some(times) = short.or_else(|| (word_after(text, number) == "k").then_some(1e3)) {
        return Unit { factor: times, ..unit::read("") };
    }
    let word = if number.suffix.is_empty() { word_after(text, number) } else { number.suffix.as_str() };
    let known = unit::read(word);
    // Any noun would be a unit of its own.
    let is_other = matches!(known.dimension, Dimension::Other(_));
    if is_other { Unit { dimension: Dimension::None, ..known } } else { known }
}

fn number_of(word: &str) -> Option<f64> {
    const WORDS: [(&str, f64); 15] = [
        ("zero", 0.0),
        ("one", 1.0),
        ("two", 2.0),
        ("three", 3.0),
        ("four", 4.0),
        ("five", 5.0),
        ("six", 6.0),
        ("seven", 7.0),
        ("eight", 8.0),
        ("nine", 9.0),
        ("ten", 10.0),
        ("eleven", 11.0),
        ("twelve", 12.0),
        ("twenty", 20.0),
        ("thirty", 30.0),
    ];
    WORDS.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
}
