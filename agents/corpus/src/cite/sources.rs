//! What the numbers of a statement may come from: those of its places, in any form, and what can be worked out of them.

use muster_shared::text::{MONTHS, numerals, unit};

use super::beside::{Borne, readable};
use super::words::number_of;
use crate::figures::Known;

/// Most values of which pairs are computed with.
const MOST_VALUES: usize = 12;
/// Smallest number in words that is looked for; below, "one" and "two" say too little.
const LEAST_IN_WORDS: f64 = 4.0;
/// Largest one: "a hundred" is often not meant exactly.
const MOST_IN_WORDS: f64 = 90.0;
/// Words of a statement that was worked out.
const COMPUTING: [&str; 44] = [
    "total",
    "totals",
    "sum",
    "sums",
    "altogether",
    "together",
    "combined",
    "overall",
    "difference",
    "gap",
    "more",
    "less",
    "fewer",
    "larger",
    "smaller",
    "longer",
    "shorter",
    "higher",
    "lower",
    "faster",
    "slower",
    "times",
    "twice",
    "double",
    "half",
    "average",
    "mean",
    "per",
    "ratio",
    "share",
    "percent",
    "growth",
    "increase",
    "increased",
    "decrease",
    "decreased",
    "rose",
    "fell",
    "remaining",
    "left",
    "between",
    "apart",
    "range",
    "after",
];

/// What numbers may come from.
pub(super) struct Sources<'a> {
    pub(super) places: &'a [Borne<'a>],
    pub(super) texts: &'a [String],
    pub(super) known: &'a Known,
}

impl Sources<'_> {
    /// Whether the digits stand there in a form of their own: in words, within a name, as the beginning of a time.
    pub(super) fn has_digits(&self, digits: &str) -> bool {
        let digits = digits.trim_start_matches('-');
        let in_words = self.places.iter().any(|place| {
            let lines = place.page.with_number(digits);
            !lines.is_empty() && place.section().any(|line| lines.contains(&line))
        });
        let in_name = || self.texts.iter().any(|text| stands_in_a_name(text, digits));
        let in_time = || digits.contains(':') && self.texts.iter().any(|text| text.contains(digits));
        in_words || in_name() || in_time()
    }

    /// Whether a number may be worked out of those that are cited: it counts what stands there, or follows from two of them.
    pub(super) fn follows(&self, said: &str, value: f64, decimals: usize) -> bool {
        if value.fract() == 0.0 && self.counts().any(|count| (count - value).abs() < 0.5) {
            return true;
        }
        let is_worked_out = || {
            let mut words = said.split(|c: char| !c.is_alphabetic());
            said.contains(['+', '=', '×', '÷', '%'])
                || words.any(|word| COMPUTING.contains(&word.to_lowercase().as_str()))
        };
        (self.places.len() > 1 || is_worked_out()) && is_of_pair(&self.values(), value, decimals)
    }

    /// The numbers of the sentences that are cited.
    fn values(&self) -> Vec<f64> {
        let mut values: Vec<f64> = Vec::new();
        for place in self.places {
            let text = format!("{}\n{}", place.quote, place.text_of(place.sentences()));
            // Nothing is worked out of days and times.
            let is_day = |word: &&str| word.matches(['-', ':']).count() > 1;
            let text =
                readable(&text.split_whitespace().filter(|word| !is_day(word)).collect::<Vec<_>>().join(" "));
            for value in numerals(&spelt_out(&text)).iter().chain(&numerals(&text)).filter_map(|n| n.value())
            {
                if !values.contains(&value.abs()) {
                    values.push(value.abs());
                }
            }
        }
        values.truncate(MOST_VALUES);
        values
    }

    /// How many things the places list: items, rows, what stands between commas.
    fn counts(&self) -> impl Iterator<Item = f64> {
        self.places
            .iter()
            .flat_map(|place| {
                let (first, last) = place.page.section_of(place.first, place.last);
                let mut counts = place.page.runs(first, last);
                let (from, to) = place.sentences();
                let text = format!("{}\n{}", place.quote, place.text_of((from, to)));
                counts.extend(text.split(['.', ';', '\n']).filter_map(listed));
                counts.push(listed(&text.replace('\n', " ")).unwrap_or_default());
                counts.into_iter().flat_map(|count| [count, count + 1]).filter(|count| *count > 1)
            })
            .map(|count| f64::from(u32::try_from(count).unwrap_or(u32::MAX)))
    }

    /// Numbers that the statement has in words, and that stand there in no form.
    pub(super) fn missing_words(&self, said: &str) -> Vec<String> {
        let words: Vec<&str> = said.split_whitespace().collect();
        let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let mut missing = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).map(|next| bare(next)).unwrap_or_default();
            let before = at.checked_sub(1).map(|at| bare(words[at])).unwrap_or_default();
            // A part of a longer number, or of a name.
            let is_part = number_of(&next).is_some() || number_of(&before).is_some();
            let word = bare(word);
            let is_month = MONTHS.contains(&word.as_str());
            let Some(number) = number_of(&word).filter(|_| !is_part && !is_month) else { continue };
            let digits = number.to_string();
            let Ok(value) = digits.parse::<f64>() else { continue };
            let read = format!("{digits} {next}");
            let is_there = || {
                numerals(&read).first().is_none_or(|number| self.known.has(&read, number))
                    || self.has_digits(&digits)
                    || self.follows(said, value, 0)
            };
            if (LEAST_IN_WORDS..=MOST_IN_WORDS).contains(&value) && !is_there() {
                missing.push(format!("{word} {next}").trim_end().to_owned());
            }
        }
        missing
    }
}

/// How many things a sentence lists: one more than its commas.
fn listed(sentence: &str) -> Option<usize> {
    let commas = sentence.matches([',', '·']).count();
    let joined = sentence.contains(" and ") || sentence.contains(" or ");
    (commas > 0 || joined).then_some(commas + 1)
}

/// Whether a value follows from all of some values, or from two of them.
fn is_of_pair(values: &[f64], value: f64, decimals: usize) -> bool {
    let half = 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(i32::MAX));
    let near = |other: f64| (other - value).abs() <= half * (1.0 + 1e-9);
    let exact = |other: f64| (other - value).abs() <= 1e-6 * value.max(1.0);
    let sum: f64 = values.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "a few values")]
    let mean = sum / values.len().max(1) as f64;
    if values.len() > 1 && (exact(sum) || near(mean)) {
        return true;
    }
    let pairs = values.iter().flat_map(|one| values.iter().map(move |other| (*one, *other)));
    pairs.filter(|(one, other)| one > other && *other > 0.0).any(|(one, other)| {
        let by = one / other;
        exact(one + other)
            || exact(one - other)
            || exact(one * other)
            || exact(one * other / 100.0)
            || near((one + other) / 2.0)
            || [by, 1.0 / by, by * 100.0, 100.0 / by, (by - 1.0) * 100.0, (1.0 - 1.0 / by) * 100.0]
                .into_iter()
                .any(near)
    })
}

/// What a text says of amounts in words, in digits with their unit: "a week", "ninety days", "half".
pub(super) fn spelt_out(text: &str) -> String {
    const SHARES: [(&str, &str); 14] = [
        ("half", "50 % 0.5 2"),
        ("halves", "50 % 2"),
        ("quarter", "25 % 0.25 4 3"),
        ("quarters", "75 % 25 % 4"),
        ("third", "33 % 3"),
        ("thirds", "67 % 66 % 33 % 3"),
        ("double", "2"),
        ("doubles", "2"),
        ("doubled", "2"),
        ("dozen", "12"),
        ("hourly", "1 hour"),
        ("daily", "1 day"),
        ("weekly", "1 week"),
        ("monthly", "1 month"),
    ];
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '%')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let mut spelt = String::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map_or("", String::as_str);
        let is_one = ["a", "an", "one", "per", "each", "every", "the"].contains(&word.as_str());
        if let Some((_, as_number)) = SHARES.iter().find(|(share, _)| share == word) {
            spelt.push_str(as_number);
        } else if is_one && matches!(unit::read(next).dimension, unit::Dimension::Of(_)) {
            spelt.push_str(&format!("1 {next}"));
        } else if let Some(digits) = number_of(word) {
            spelt.push_str(&format!("{digits} {next}"));
        } else {
            continue;
        }
        spelt.push_str("; ");
    }
    spelt
}

/// Whether these digits stand somewhere within a name, and no other digit beside them.
fn stands_in_a_name(text: &str, digits: &str) -> bool {
    let of_name = |c: char| c.is_alphabetic() || c == '_' || c == '-';
    text.match_indices(digits).any(|(at, found)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + found.len()..].chars().next());
        let is_apart = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_digit());
        is_apart(before) && is_apart(after) && (before.is_some_and(of_name) || after.is_some_and(of_name))
    })
}
