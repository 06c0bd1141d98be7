//! How many of what an expected output demands, in digits and in words.

use std::fmt;

use super::demand::Demand;
use crate::text::number_in_words;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub(super) enum Measure {
    /// Things that are listed; of a JSON array alone where one is asked for.
    Items {
        of_json: bool,
    },
    Words,
    Sentences,
    Paragraphs,
    Lines,
    Characters,
    Rows,
    Columns,
}

impl Measure {
    fn named(word: &str) -> Option<Self> {
        match word {
            "word" | "words" => Some(Self::Words),
            "sentence" | "sentences" => Some(Self::Sentences),
            "paragraph" | "paragraphs" => Some(Self::Paragraphs),
            "line" | "lines" => Some(Self::Lines),
            "character" | "characters" => Some(Self::Characters),
            "row" | "rows" => Some(Self::Rows),
            "column" | "columns" => Some(Self::Columns),
            "bullet" | "bullets" | "item" | "items" | "entry" | "entries" | "element" | "elements" => {
                Some(Self::Items { of_json: false })
            }
            _ => None,
        }
    }
}

/// How many it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) least: usize,
    pub(super) most: usize,
}

impl Bound {
    const fn exactly(count: usize) -> Self {
        Self { least: count, most: count }
    }

    pub(super) const fn holds(self, count: usize) -> bool {
        self.least <= count && count <= self.most
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (least, most) if least == most => write!(f, "exactly {least}"),
            (least, usize::MAX) => write!(f, "at least {least}"),
            (0, most) => write!(f, "at most {most}"),
            (least, most) => write!(f, "{least} to {most}"),
        }
    }
}

/// How many of what: `exactly three colours` of a list, `at most 50 words`, `two to four sentences`.
pub(super) fn counts(words: &[&str], of_json: bool) -> Vec<Demand> {
    let mut demands = Vec::new();
    let mut at = 0;
    while at < words.len() {
        match counted(words, at, of_json) {
            Some((demand, next)) => {
                demands.extend(demand);
                at = next;
            }
            None => at += 1,
        }
    }
    demands
}

/// A count that begins at this word, if one does, and the word after it.
fn counted(words: &[&str], at: usize, of_json: bool) -> Option<(Option<Demand>, usize)> {
    let Leading { count: first, until, noun: joined } = leading_count(words[at])?;
    let second = || words.get(at + 2).and_then(|word| count(word));
    let (bound, exact, mut next) = match (words.get(at + 1).copied(), second()) {
        _ if until.is_some() => (until.map(|most| Bound { least: first, most }), true, at + 1),
        (Some("to" | "or" | "and"), Some(second)) if first < second && joined.is_none() => {
            (Some(Bound { least: first, most: second }), true, at + 3)
        }
        (Some("or"), None) => match words.get(at + 2).copied() {
            Some("more") => (Some(Bound { least: first, most: usize::MAX }), true, at + 3),
            Some("fewer" | "less") => (Some(Bound { least: 0, most: first }), true, at + 3),
            _ => (bounded(words, at, first).0, true, at + 1),
        },
        _ => {
            let (bound, exact) = bounded(words, at, first);
            (bound, exact, at + 1)
        }
    };
    let Some(bound) = bound else { return Some((None, next)) };
    const BETWEEN: [&str; 9] =
        ["short", "full", "complete", "plain", "concise", "brief", "bullet", "key", "numbered"];
    let skip = words.get(next..).unwrap_or_default().iter().take_while(|word| BETWEEN.contains(word)).count();
    let noun = joined.or_else(|| words.get(next + skip).copied());
    let measure = noun.and_then(Measure::named).or_else(|| {
        let points = matches!(noun, Some("point" | "points")) && skip > 0;
        points.then_some(Measure::Items { of_json: false })
    });
    next += skip;
    let listed = is_listed(words, at);
    let measure = match measure {
        Some(Measure::Items { .. }) | None if listed || measure.is_some() => Measure::Items { of_json },
        Some(measure) => measure,
        None => return Some((None, next)),
    };
    // "200 words" is about as many; "one word" is one.
    let vague =
        !exact && first > 3 && matches!(measure, Measure::Words | Measure::Characters | Measure::Lines);
    // What a sentence is cannot be told to the last full stop.
    let bound = if matches!(measure, Measure::Sentences) {
        Bound { least: bound.least.saturating_sub(1).max(1), most: bound.most.saturating_add(1) }
    } else {
        bound
    };
    Some(((!vague).then_some(Demand::Count(measure, bound)), next))
}

/// How many a number is by the words before it, and whether they say so; nothing where it is only about as many.
fn bounded(words: &[&str], at: usize, count: usize) -> (Option<Bound>, bool) {
    let before: Vec<&str> =
        words[..at].iter().copied().rev().filter(|word| !["a", "of", "the"].contains(word)).collect();
    let at_most = Some(Bound { least: 0, most: count });
    let at_least = Some(Bound { least: count, most: usize::MAX });
    match before.as_slice() {
        ["exactly" | "precisely" | "only" | "just" | "exact" | "single", ..] => {
            (Some(Bound::exactly(count)), true)
        }
        ["than", "more", "no", ..] | ["most", "at", ..] | ["to", "up", ..] | ["exceeding", ..] => {
            (at_most, true)
        }
        ["maximum" | "max" | "within", ..] => (at_most, true),
        ["than", "fewer" | "less", "no", ..] | ["least", "at", ..] | ["minimum" | "min", ..] => {
            (at_least, true)
        }
        ["than", "more", ..] | ["over", ..] => {
            (Some(Bound { least: count.saturating_add(1), most: usize::MAX }), true)
        }
        ["than", "fewer" | "less", ..] | ["under" | "below", ..] => {
            (Some(Bound { least: 0, most: count.saturating_sub(1) }), true)
        }
        [
            "about" | "around" | "approximately" | "roughly" | "some" | "circa" | "ca" | "nearly" | "almost",
            ..,
        ] => (None, false),
        _ => (Some(Bound::exactly(count)), false),
    }
}

/// Whether what is counted is said to be listed: `a list of`, `an array with exactly`.
fn is_listed(words: &[&str], at: usize) -> bool {
    const BOUNDS: [&str; 20] = [
        "exactly",
        "precisely",
        "only",
        "just",
        "at",
        "most",
        "least",
        "no",
        "more",
        "fewer",
        "less",
        "than",
        "up",
        "to",
        "the",
        "maximum",
        "minimum",
        "a",
        "between",
        "top",
    ];
    let mut before = words[..at].iter().rev().skip_while(|word| BOUNDS.contains(word));
    let joins =
        before.next().is_some_and(|word| ["of", "with", "containing", "holding", "naming"].contains(word));
    joins && before.next().is_some_and(|word| ["list", "array"].contains(word))
}

/// A number at the beginning of a word, and what is joined to it.
struct Leading<'a> {
    count: usize,
    /// The other end of a range: `3-5`.
    until: Option<usize>,
    /// A noun: `200-word`.
    noun: Option<&'a str>,
}

fn leading_count(word: &str) -> Option<Leading<'_>> {
    if let Some(count) = count(word) {
        return Some(Leading { count, until: None, noun: None });
    }
    let (number, joined) = word.split_once(['-', '–'])?;
    let (first, until) = (count(number)?, count(joined));
    Some(Leading { count: first, until, noun: until.is_none().then_some(joined) })
}

/// A whole number in digits or words.
pub(super) fn count(word: &str) -> Option<usize> {
    const LARGE: [(&str, usize); 6] =
        [("thirty", 30), ("forty", 40), ("fifty", 50), ("hundred", 100), ("dozen", 12), ("single", 1)];
    if word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || c == ',')
    {
        return word.replace(',', "").parse().ok();
    }
    number_in_words(word).or_else(|| LARGE.iter().find(|(known, _)| *known == word).map(|(_, count)| *count))
}
