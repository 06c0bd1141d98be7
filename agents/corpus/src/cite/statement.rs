//! Whether what is said of a place without quoting it stands there: its telling words mostly, its numbers and names all.

use std::collections::HashMap;

use super::page::Page;
use super::words::Telling;

/// Lines before and after a cited one in which the words may stand.
const BEFORE: u32 = 3;
const AFTER: u32 = 10;
/// The same for names.
const NAMES_BEFORE: u32 = 20;
const NAMES_AFTER: u32 = 30;
/// Share of the words that has to stand there, in weight.
const ENOUGH: f64 = 0.34;
/// The same where a number of several digits stands there too.
const ENOUGH_WITH_NUMBER: f64 = 0.2;
/// Share that makes another place the one that is meant.
const MEANT: f64 = 0.6;
/// Share of another place by which a poor one is given up.
pub(super) const CLEARLY: f64 = 0.85;
/// Share of a poor one.
const POOR: f64 = 0.55;
/// Share of the best line's words that has to stand beside a number.
const BESIDE: f64 = 0.8;
/// How much words count that stand in the window and not in its best sentence.
const APART: f64 = 0.5;
/// Most lines of one document that are looked at as the one that is meant.
const MOST_LINES: usize = 4_000;

/// What a statement has in common with a document.
pub(super) struct Match<'a> {
    page: &'a Page,
    telling: &'a Telling,
    /// The words on each line, by their place in the statement.
    words: HashMap<u32, u64>,
    /// How much each word tells.
    weights: Vec<f64>,
}

/// How well a statement stands at a place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fit {
    /// Share of its words, in weight; 1 when it has none.
    pub(super) share: f64,
    /// The numbers that do not stand there.
    pub(super) missing: Vec<String>,
    /// Whether its names stand there.
    pub(super) has_names: bool,
    /// Whether a number of several digits stands there.
    pub(super) has_number: bool,
}

impl Fit {
    /// Whether the words suffice; where several places are cited together, each has to have some.
    pub(super) fn has_words(&self, together: bool) -> bool {
        let enough = if self.has_number { ENOUGH_WITH_NUMBER } else { ENOUGH };
        self.has_names && self.share >= if together { enough / 2.0 } else { enough }
    }
}

impl<'a> Match<'a> {
    pub(super) fn new(page: &'a Page, telling: &'a Telling) -> Self {
        let mut words: HashMap<u32, u64> = HashMap::new();
        let mut weights = Vec::new();
        for (bit, word) in telling.words.iter().enumerate().take(63) {
            let lines = page.with_word(word);
            lines.iter().for_each(|line| *words.entry(*line).or_default() |= 1 << bit);
            weights.push(weight(lines.len(), page.len()));
        }
        Self { page, telling, words, weights }
    }

    fn mask(&self, first: u32, last: u32) -> u64 {
        (first..=last).filter_map(|line| self.words.get(&line)).fold(0, |all, mask| all | mask)
    }

    fn share(&self, mask: u64) -> f64 {
        let all: f64 = self.weights.iter().sum();
        if all <= 0.0 {
            return 1.0;
        }
        let there = self.weights.iter().enumerate().filter(|(bit, _)| mask & (1 << bit) != 0);
        there.map(|(_, weight)| weight).sum::<f64>() / all
    }

    /// The words of the sentence or entry that a line belongs to.
    pub(super) fn of_sentence(&self, line: u32) -> f64 {
        self.share(self.sentence(line))
    }

    fn sentence(&self, line: u32) -> u64 {
        let (first, last) = self.page.around(line);
        self.mask(first, last)
    }

    /// How well the statement stands at a line.
    pub(super) fn at(&self, line: u32) -> Fit {
        let (first, last) =
            (line.saturating_sub(BEFORE).max(1), line.saturating_add(AFTER).min(self.page.len()));
        let heading = self.page.heading_of(line);
        let around = self.mask(heading, heading) | self.mask(1, 1);
        let best = (first..=last).map(|at| self.share(self.sentence(at) | around)).fold(0.0, f64::max);
        let all = self.share(self.mask(first, last) | around);
        let missing: Vec<String> = self
            .telling
            .numbers
            .iter()
            .filter(|number| !self.has_number(number, line, (first, last)))
            .cloned()
            .collect();
        let telling_number = |number: &&String| number.len() > 1 && !missing.contains(number);
        Fit {
            share: best + (all - best) * APART,
            has_names: self.has_names(line),
            has_number: self.telling.numbers.iter().any(|number| telling_number(&number)),
            missing,
        }
    }

    /// Whether a number stands at the line, or near it beside words of the statement.
    fn has_number(&self, number: &str, line: u32, (first, last): (u32, u32)) -> bool {
        let lines = self.page.with_number(number);
        let (from, to) = self.page.around(line);
        if lines.iter().any(|at| (from..=to).contains(at)) {
            return true;
        }
        let best = (first..=last).map(|at| self.of_sentence(at)).fold(0.0, f64::max);
        let near = lines.iter().filter(|at| (first..=last).contains(*at));
        near.into_iter()
            .any(|at| best <= 0.0 || self.of_sentence(*at) >= best * BESIDE && self.of_sentence(*at) > 0.0)
    }

    /// Names of several parts stand near, with digits certainly; of the others some may stand elsewhere in the document.
    fn has_names(&self, line: u32) -> bool {
        let window = line.saturating_sub(NAMES_BEFORE)..=line.saturating_add(NAMES_AFTER);
        let heading = self.page.heading_of(line);
        let (mut near, mut all) = (0, 0);
        for name in &self.telling.names {
            let lines = self.page.with_name(name);
            let is_near = lines.iter().any(|at| window.contains(at) || *at == heading);
            let has_digit = name.chars().any(|c| c.is_ascii_digit());
            if lines.is_empty() || has_digit && !is_near {
                return false;
            }
            near += usize::from(is_near);
            all += 1;
        }
        near * 2 >= all
    }

    /// The line where the statement stands best, if one place has clearly most of it: the nearest to `line` of those as good.
    pub(super) fn best(&self, line: u32) -> Option<(u32, f64)> {
        let anchors = self.telling.numbers.iter().map(|number| self.page.with_number(number));
        let rarest = anchors.min_by_key(|lines| lines.len());
        let candidates: Vec<u32> = match rarest {
            Some(lines) => lines.iter().copied().take(MOST_LINES).collect(),
            None => self.words.keys().copied().take(MOST_LINES).collect(),
        };
        let scored = candidates.into_iter().map(|at| (at, self.of_sentence(at)));
        let scored: Vec<(u32, f64)> = scored.filter(|(_, share)| *share >= MEANT).collect();
        let best = scored.iter().map(|(_, share)| *share).fold(0.0, f64::max);
        let mut good: Vec<(u32, f64)> =
            scored.into_iter().filter(|(_, share)| *share >= best - 1e-9).collect();
        good.sort_by_key(|(at, _)| (at.abs_diff(line), *at));
        good.into_iter().find(|(at, _)| {
            let fit = self.at(*at);
            fit.missing.is_empty() && fit.has_names
        })
    }

    /// Whether so little of the statement stands here that another place may be the one meant.
    pub(super) fn is_poor(&self, here: &Fit) -> bool {
        self.telling.words.len() > 2 && here.share < POOR
    }
}

/// Words that stand everywhere in a document tell little; those that do not stand in it at all may be a paraphrase.
fn weight(with: usize, lines: u32) -> f64 {
    if with == 0 {
        return 0.7;
    }
    let with = f64::from(u32::try_from(with).unwrap_or(u32::MAX));
    (1.0 + f64::from(lines) / with).ln().clamp(0.2, 3.0) / 3.0
}
