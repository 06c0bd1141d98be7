//! What a claim is about, by its words.

use super::meant;
use crate::text::stop::is_link;
use crate::text::{DAYS, MONTHS};

/// Words after which the order of the others matters: `from Paris to Rome` is not `from Rome to Paris`.
const DIRECTIONS: [&str; 12] =
    ["from", "to", "per", "over", "than", "versus", "vs", "minus", "against", "into", "before", "after"];

/// Words of subjects whose numbers are years.
const DATED: [&str; 15] = [
    "year",
    "date",
    "founded",
    "born",
    "built",
    "established",
    "released",
    "died",
    "opened",
    "when",
    "introduced",
    "published",
    "started",
    "ended",
    "since",
];

/// The subject of a claim in a form by which it is compared: two claims are about the same only where all of their
/// telling words are the same. Words in common are not enough: the chance of rain on Saturday is not that on Sunday.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    key: String,
    dated: bool,
}

impl Subject {
    /// The subject that these words name; nothing when no word of them tells anything.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let mut plain = words(text).filter(|word| !is_link(word));
        let meant = meant::words(text);
        let dated = plain.any(|word| DATED.contains(&word.as_str()))
            || meant.iter().any(|word| meant::is_dated(word));
        Self::made(meant, dated)
    }

    fn made(mut words: Vec<String>, dated: bool) -> Option<Self> {
        if words.is_empty() {
            return None;
        }
        if !words.iter().any(|word| DIRECTIONS.contains(&word.as_str())) {
            words.sort();
            words.dedup();
        }
        Some(Self { key: words.join(" "), dated })
    }

    /// The words it is compared by.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether plain numbers that are claimed of it are years.
    #[must_use]
    pub const fn is_dated(&self) -> bool {
        self.dated
    }

    /// The words it is compared by, one by one.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.key.split(' ')
    }

    /// The same without some of its words; nothing when none is left.
    pub(super) fn without(&self, is_left_out: impl Fn(&str) -> bool) -> Option<Self> {
        let words = self.words().filter(|word| !is_left_out(word)).map(str::to_owned).collect();
        Self::made(words, self.dated)
    }
}

/// The words of a text in lower case: letters and digits, plurals and days as their stem.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let lower = text.to_lowercase();
    let split: Vec<String> = lower
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '%'))
        .filter(|word| !word.is_empty())
        .map(stem)
        .collect();
    split.into_iter()
}

fn stem(word: &str) -> String {
    let is_short = |full: &str| full == word || (word.chars().count() >= 3 && full.starts_with(word));
    if let Some(full) = DAYS.iter().chain(&MONTHS).find(|full| is_short(full)) {
        return full.chars().take(3).collect();
    }
    if let Some(number) = word.strip_prefix('0').filter(|rest| rest.len() == 1 && rest.parse::<u8>().is_ok())
    {
        return number.to_owned();
    }
    let keeps = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    match word.strip_suffix('s') {
        Some(one) if word.chars().count() > 3 && !keeps => match one.strip_suffix("ie") {
            Some(one) => format!("{one}y"),
            None => one.to_owned(),
        },
        Some(_) | None => word.to_owned(),
    }
}
