//! What is usually meant by words: other words for the same, endings, and words that say nothing by themselves.

use super::subject::words as plain_words;
use crate::text::stop::is_light_in_claim;

/// Words for the same, the first of which stands for all.
const SAME: [&[&str]; 24] = [
    &["chance", "probability", "likelihood", "odd", "prob"],
    &["number", "count", "quantity", "many"],
    &["share", "percentage", "percent", "proportion", "fraction", "%"],
    &["colour", "color", "hue"],
    &["average", "mean", "avg"],
    &["maximum", "max"],
    &["minimum", "min"],
    &["temperature", "temp"],
    &["open", "inaugurate", "inaugurated", "inauguration", "opened", "opening"],
    &["found", "founded", "foundation", "establish", "established", "establishment"],
    &["build", "built", "construct", "constructed", "construction"],
    &["start", "begin", "began", "beginning", "begun"],
    &["end", "finish", "finished"],
    &["inhabitant", "resident"],
    &["company", "firm"],
    &["film", "movie"],
    &["metre", "meter"],
    &["centre", "center"],
    &["area", "surface"],
    &["weight", "mass"],
    &["weekly", "week"],
    &["precipitation", "rainfall"],
    &["level", "tier"],
    &["born", "birth"],
];

/// Words that stand for two.
const TWO: [(&str, [&str; 2]); 3] = [
    ("population", ["inhabitant", "number"]),
    ("birthday", ["born", "day"]),
    ("birthyear", ["born", "year"]),
];

/// Words that say that a time is meant.
const TIMES: [&str; 6] = ["year", "date", "when", "day", "time", "since"];

/// Words by which dates are told.
const DATED: [&str; 4] = ["open", "found", "build", "start"];

/// Countries and the like, which say once more where a place lies that was named before them.
const COUNTRIES: [&str; 56] = [
    "france",
    "germany",
    "italy",
    "spain",
    "portugal",
    "england",
    "scotland",
    "wales",
    "ireland",
    "uk",
    "britain",
    "usa",
    "us",
    "america",
    "canada",
    "mexico",
    "brazil",
    "argentina",
    "chile",
    "peru",
    "china",
    "japan",
    "india",
    "russia",
    "poland",
    "austria",
    "switzerland",
    "belgium",
    "netherlands",
    "denmark",
    "norway",
    "sweden",
    "finland",
    "greece",
    "turkey",
    "egypt",
    "kenya",
    "nigeria",
    "australia",
    "hungary",
    "romania",
    "czechia",
    "slovakia",
    "croatia",
    "serbia",
    "ukraine",
    "israel",
    "iran",
    "iraq",
    "pakistan",
    "thailand",
    "vietnam",
    "indonesia",
    "korea",
    "morocco",
    "luxembourg",
];

/// The telling words of a text, each as the one that stands for all that mean the same.
pub(super) fn words(text: &str) -> Vec<String> {
    plain_words(text).filter(|word| !is_light_in_claim(word)).flat_map(|word| canonical(&word)).collect()
}

fn canonical(word: &str) -> Vec<String> {
    if let Some((_, two)) = TWO.iter().find(|(known, _)| *known == word) {
        return two.iter().map(|word| (*word).to_owned()).collect();
    }
    let stem = stem(word);
    let known = SAME.iter().find(|same| same.contains(&word) || same.contains(&stem.as_str()));
    vec![known.and_then(|same| same.first()).map_or(stem, |first| (*first).to_owned())]
}

/// A word without the ending of a form of it.
fn stem(word: &str) -> String {
    let letters = word.chars().count();
    if word.chars().any(|letter| !letter.is_alphabetic()) {
        return word.to_owned();
    }
    let cut = match (word.strip_suffix("ing"), word.strip_suffix("ed")) {
        (Some(rest), _) if letters > 5 => rest,
        (None, Some(rest)) if letters > 4 => rest,
        (_, _) => return if letters > 4 { word.trim_end_matches('e').to_owned() } else { word.to_owned() },
    };
    let mut last = cut.chars().rev();
    match (last.next(), last.next()) {
        // "running" is of "run"; "falling" is of "fall".
        (Some(one), Some(other)) if one == other && !"aeiouls".contains(one) => {
            cut[..cut.len() - one.len_utf8()].to_owned()
        }
        _ => cut.trim_end_matches('e').to_owned(),
    }
}

/// Whether plain numbers that are claimed of a subject with this word are years.
pub(super) fn is_dated(word: &str) -> bool {
    DATED.contains(&word)
}

/// Whether a word says no more than that a time is meant.
pub(super) fn is_time(word: &str) -> bool {
    TIMES.contains(&word)
}

/// The country that a text names right after a place, as in "Paris, France".
pub(super) fn country_after_place(text: &str) -> Option<String> {
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let place = word.strip_suffix(',').filter(|place| place.starts_with(char::is_uppercase));
        let next = words
            .peek()
            .map(|next| next.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase());
        if let (Some(_), Some(next)) = (place, next)
            && COUNTRIES.contains(&next.as_str())
        {
            return canonical(&plain_words(&next).next()?).into_iter().next();
        }
    }
    None
}

/// Words of a statement that say nothing of what it states.
const SAYING: [&str; 26] = [
    "answer",
    "result",
    "value",
    "conclusion",
    "finding",
    "name",
    "call",
    "known",
    "document",
    "according",
    "stat",
    "say",
    "show",
    "therefor",
    "thu",
    "so",
    "overall",
    "indeed",
    "actually",
    "colour",
    "number",
    "amount",
    "it",
    "found",
    "total",
    "that",
];

/// Words that turn a statement round.
const NOT: [&str; 12] =
    ["not", "no", "never", "none", "neither", "nor", "without", "cannot", "isn", "aren", "false", "t"];

/// How much of their words two statements have in common at least that say the same, one of which says more, in percent.
const IN_COMMON: usize = 80;

/// Whether two statements say the same, as far as words tell: one has all telling words of the other, what it has besides
/// says nothing, and neither denies what the other says, nor names another number.
#[must_use]
pub fn same_statement(one: &str, other: &str) -> bool {
    let (one, other) = (Statement::of(one), Statement::of(other));
    if one.words.is_empty() || other.words.is_empty() {
        return one == other;
    }
    let (less, more) = if one.words.len() <= other.words.len() { (&one, &other) } else { (&other, &one) };
    let besides: Vec<&String> = more.words.difference(&less.words).collect();
    let shared = less.words.intersection(&more.words).count();
    let says_nothing = besides.iter().all(|word| SAYING.contains(&word.as_str()));
    let telling = less.words.iter().any(|word| !SAYING.contains(&word.as_str()));
    one.denies == other.denies
        && one.numbers == other.numbers
        && shared == less.words.len()
        && (besides.is_empty() || telling && says_nothing || shared * 100 >= more.words.len() * IN_COMMON)
}

#[derive(Debug, PartialEq, Eq)]
struct Statement {
    words: std::collections::BTreeSet<String>,
    numbers: Vec<String>,
    denies: bool,
}

impl Statement {
    fn of(text: &str) -> Self {
        let all = words(text);
        let denials = all.iter().filter(|word| NOT.contains(&word.as_str())).count();
        let mut numbers: Vec<String> =
            all.iter().filter(|word| word.contains(char::is_numeric)).cloned().collect();
        numbers.sort();
        numbers.dedup();
        let words = all.into_iter().filter(|word| !NOT.contains(&word.as_str())).collect();
        Self { words, numbers, denies: denials % 2 == 1 }
    }
}
