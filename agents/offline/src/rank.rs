//! Which statements answer a question: weighted coverage of its terms, form, and variety.

use std::collections::BTreeSet;

use super::question::{ParsedQuestion, Term, Wanted};
use super::statements::{Statement, StatementKind, begins_with_a_pointer, ends_like_a_sentence};
use super::text::{phrases, stem, stem_set, words};

/// Most statements chosen for one question.
pub(super) const MAX_CHOSEN: usize = 4;
/// Coverage from which on a question counts as answered.
pub(super) const ANSWERED: f64 = 0.5;
/// Coverage below which a statement has nothing to do with the question.
const RELEVANT: f64 = 0.34;
/// The same for a statement that goes on with one already chosen.
const RELEVANT_IN_PLACE: f64 = 0.2;
/// How many lines apart two statements of one section may stand to be read together.
const LINES_BESIDE: u32 = 6;
/// Share of words two statements may have in common.
const TOO_ALIKE: f64 = 0.6;

/// How much a term counts when it stands elsewhere than in the statement itself.
const BY_SYNONYM: f64 = 0.75;
/// Share of it when it stands in brackets or within code.
const ASIDE: f64 = 0.6;
/// What counts as covered where a heading asks the very question.
const UNDER_ITS_TITLE: f64 = 0.8;
const IN_HEADING: f64 = 0.6;
const SYNONYM_IN_HEADING: f64 = 0.4;
const AROUND: f64 = 0.3;
const SYNONYM_AROUND: f64 = 0.25;

/// A statement chosen as an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChosenStatement {
    /// The statement.
    pub(super) statement: Statement,
    /// The share of the question's terms it covers, by weight, from 0 to 1.
    pub(super) coverage: f64,
}

/// What was found for a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FoundAnswer {
    /// The best statements, best first.
    pub(super) chosen: Vec<ChosenStatement>,
    /// Words of the question that no chosen statement covers.
    pub(super) missing: Vec<String>,
}

impl FoundAnswer {
    /// Whether the question counts as answered.
    pub(super) fn is_answered(&self) -> bool {
        self.best_coverage() >= ANSWERED
    }

    /// The coverage of the best statement.
    pub(super) fn best_coverage(&self) -> f64 {
        self.chosen.iter().map(|chosen| chosen.coverage).fold(0.0, f64::max)
    }
}

/// Chooses the statements that answer a question best.
pub(super) fn choose(question: &ParsedQuestion, pool: Vec<Statement>) -> FoundAnswer {
    let weights = weights(question, &pool);
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return FoundAnswer::default();
    }
    let mut scored: Vec<Scored> = pool
        .into_iter()
        .map(|statement| Scored::new(question, &weights, total, statement))
        .filter(|scored| scored.coverage >= RELEVANT_IN_PLACE)
        .collect();
    scored.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| {
            (&a.statement.path, a.statement.line, &a.statement.text).cmp(&(
                &b.statement.path,
                b.statement.line,
                &b.statement.text,
            ))
        })
    });
    let chosen = vary(question, &scored, &weights, total);
    let missing = missing(question, &weights, total, &chosen);
    let chosen = chosen
        .into_iter()
        .map(|scored| ChosenStatement { statement: scored.statement.clone(), coverage: scored.coverage })
        .collect();
    FoundAnswer { chosen, missing }
}

struct Scored {
    statement: Statement,
    matches: Vec<f64>,
    coverage: f64,
    score: f64,
}

impl Scored {
    fn new(question: &ParsedQuestion, weights: &[f64], total: f64, statement: Statement) -> Self {
        let matches: Vec<f64> = question.terms.iter().map(|term| strength(term, &statement)).collect();
        let coverage =
            matches.iter().zip(weights).map(|(strength, weight)| strength * weight).sum::<f64>() / total;
        // A heading alone is not an answer: some of the words must be the statement's own.
        let own = question.terms.iter().any(|term| !term.light && own_strength(term, &statement) > 0.0);
        let coverage = if own { coverage } else { coverage * 0.6 };
        let coverage = if is_titled(question, &statement) { coverage.max(UNDER_ITS_TITLE) } else { coverage };
        let places = places(question, &statement.text);
        let coverage = if echoes(question, &statement.text) { coverage * 0.5 } else { coverage };
        let score = coverage * form(question, &statement) * closeness(&places) + nearness(&places);
        Self { statement, matches, coverage, score }
    }
}

/// How telling each term is, judged by how many of the statements seen have it.
fn weights(question: &ParsedQuestion, pool: &[Statement]) -> Vec<f64> {
    let all = pool.len() as f64;
    let weight = |term: &Term| {
        let with = pool.iter().filter(|statement| own_strength(term, statement) > 0.0).count() as f64;
        let rarity = 1.0 + ((all + 2.0) / (with.max(1.0) + 1.0)).ln();
        match (term.identifier, term.light) {
            (true, _) => rarity * 1.5,
            (false, true) => rarity * 0.25,
            (false, false) => rarity,
        }
    };
    question.terms.iter().map(weight).collect()
}

fn own_strength(term: &Term, statement: &Statement) -> f64 {
    let aside = if term.identifier { 1.0 } else { ASIDE };
    let strengths = [
        (statement.main.contains(&term.stem), 1.0),
        (!term.near.is_disjoint(&statement.main), BY_SYNONYM),
        (statement.stems.contains(&term.stem), aside),
        (!term.near.is_disjoint(&statement.stems), aside * BY_SYNONYM),
    ];
    strengths.into_iter().find(|(holds, _)| *holds).map_or(0.0, |(_, strength)| strength)
}

/// Whether the heading right above a statement asks the question: it has all its telling words and few others.
fn is_titled(question: &ParsedQuestion, statement: &Statement) -> bool {
    let telling: Vec<&Term> = question.terms.iter().filter(|term| !term.light).collect();
    let title = stem_set(&statement.heading);
    let said = words(&statement.heading).filter(|word| !super::text::is_stop_word(word.text)).count();
    !telling.is_empty()
        && telling.iter().all(|term| title.contains(&term.stem))
        && said <= telling.len() + usize::from(telling.len() > 1)
}

fn strength(term: &Term, statement: &Statement) -> f64 {
    let heading = if statement.context.contains(&term.stem) {
        IN_HEADING
    } else if !term.near.is_disjoint(&statement.context) {
        SYNONYM_IN_HEADING
    } else {
        0.0
    };
    let around = if statement.around.contains(&term.stem) {
        AROUND
    } else if !term.near.is_disjoint(&statement.around) {
        SYNONYM_AROUND
    } else {
        0.0
    };
    own_strength(term, statement).max(heading).max(around)
}

/// How well a statement reads as an answer, around 1.
fn form(question: &ParsedQuestion, statement: &Statement) -> f64 {
    let text = statement.text.as_str();
    let count = words(text).count();
    let length = match count {
        0..=3 => 0.55,
        4..=5 => 0.8,
        6..=45 => 1.0,
        46..=60 => 0.92,
        _ => 0.85,
    };
    let kind = match statement.kind {
        StatementKind::Sentence if ends_like_a_sentence(text) => 1.06,
        _ if question.wanted != Wanted::Number && figures(text) > 3 => 0.6,
        StatementKind::Row if count > 30 => 0.85,
        StatementKind::Sentence | StatementKind::Row => 1.0,
        StatementKind::Item => 0.97,
        StatementKind::Code if question.terms.iter().any(|term| term.identifier) => 0.75,
        StatementKind::Code => 0.4,
    };
    let asks = if text.ends_with('?') { 0.5 } else { 1.0 };
    let pointer = if begins_with_a_pointer(text) { 0.85 } else { 1.0 };
    let answers = if question.is_answered_in_form_by(text) { 1.14 } else { 1.0 };
    let opens = if question.wanted == Wanted::Definition && question.opens(text) { 1.15 } else { 1.0 };
    let listing = listing(text, count);
    let asks = if echoes(question, text) { 0.2 } else { asks };
    let news = if says_nothing_new(question, statement) { 0.75 } else { 1.0 };
    length
        * kind
        * asks
        * pointer
        * answers
        * opens
        * news
        * listing
        * plainness(text)
        * place(&statement.path)
}

/// Whether a statement has hardly a word that the question has not.
fn says_nothing_new(question: &ParsedQuestion, statement: &Statement) -> bool {
    let asked = stem_set(&question.text);
    let is_new = |word: &str| !super::text::is_stop_word(word) && !asked.contains(&stem(word));
    words(&statement.text).filter(|word| is_new(word.text)).count() < 2
}

/// Whether a text only puts the question again, as an example of how to ask it does.
fn echoes(question: &ParsedQuestion, text: &str) -> bool {
    let asked = question.text.trim_end_matches(['?', '.', ' ']).to_lowercase();
    asked.contains(' ') && text.to_lowercase().contains(&asked)
}

/// How many words of a text are figures.
fn figures(text: &str) -> usize {
    words(text).filter(|word| word.text.starts_with(|first: char| first.is_ascii_digit())).count()
}

/// Less than 1 for long enumerations: what names everything answers little.
fn listing(text: &str, words: usize) -> f64 {
    let parts = text.matches([',', ';']).count();
    match parts {
        0..=4 => 1.0,
        5..=7 if words < 35 => 0.95,
        5..=7 => 0.85,
        _ => 0.72,
    }
}

/// Less than 1 for what is said for its own sake: licences, tables of contents, badges, addresses.
fn plainness(text: &str) -> f64 {
    let lower = text.to_lowercase();
    let legal = [
        "copyright",
        "all rights reserved",
        "warranty",
        "hereby granted",
        "table of contents",
        "permission notice",
    ];
    if legal.iter().any(|sign| lower.contains(sign)) {
        return 0.4;
    }
    let letters = text.chars().filter(|letter| letter.is_alphabetic()).count();
    let share = letters as f64 / text.chars().count().max(1) as f64;
    let addresses = lower.matches("http").count();
    if share < 0.55 || addresses > 1 { 0.7 } else { 1.0 }
}

/// Where a document's name says that it is rarely the place of an answer.
fn place(path: &str) -> f64 {
    let lower = path.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    if name.starts_with("license") || name.starts_with("licence") || name.starts_with("copying") {
        0.5
    } else if name.starts_with("changelog") || name.starts_with("changes") || name.starts_with("history") {
        0.8
    } else if lower.contains("test") || lower.contains("fixture") || lower.contains("snapshot") {
        0.85
    } else {
        1.0
    }
}

/// Where each telling term of a question, or a word of like meaning, stands in a text, by number of word.
fn places(question: &ParsedQuestion, text: &str) -> Vec<Vec<usize>> {
    let mut found: Vec<(usize, String)> =
        words(text).enumerate().map(|(at, word)| (at, stem(word.text))).collect();
    found.extend(phrases(text));
    let of = |term: &Term| -> Vec<usize> {
        let is_it = |stem: &String| *stem == term.stem || term.near.contains(stem);
        found.iter().filter(|(_, stem)| is_it(stem)).map(|(at, _)| *at).collect()
    };
    question.terms.iter().filter(|term| !term.light).map(of).collect()
}

/// A bonus for terms that stand side by side as they do in the question.
fn nearness(places: &[Vec<usize>]) -> f64 {
    let near = places
        .windows(2)
        .filter(|pair| pair[0].iter().any(|at| pair[1].iter().any(|other| at.abs_diff(*other) <= 3)))
        .count();
    (near as f64 * 0.09).min(0.18)
}

/// Less than 1 when the terms that a text has stand far apart in it.
fn closeness(places: &[Vec<usize>]) -> f64 {
    let present: Vec<&Vec<usize>> = places.iter().filter(|places| !places.is_empty()).collect();
    if present.len() < 2 {
        return 1.0;
    }
    let span = present
        .iter()
        .flat_map(|places| places.iter())
        .filter_map(|start| {
            let ends = present.iter().map(|places| places.iter().find(|at| *at >= start));
            ends.collect::<Option<Vec<_>>>()?.into_iter().max().map(|end| end - start)
        })
        .min()
        .unwrap_or_default();
    match span {
        0..=16 => 1.0,
        17..=26 => 0.92,
        _ => 0.84,
    }
}

/// Best first, but nothing twice, and what adds a term before what repeats one.
fn vary<'a>(question: &ParsedQuestion, scored: &'a [Scored], weights: &[f64], total: f64) -> Vec<&'a Scored> {
    let Some(best) = scored.first() else { return Vec::new() };
    let mut covered = vec![0.0; weights.len()];
    let mut chosen: Vec<&Scored> = Vec::new();
    while chosen.len() < MAX_CHOSEN {
        let gain = |candidate: &Scored| -> f64 {
            let new: f64 = candidate
                .matches
                .iter()
                .zip(&covered)
                .zip(weights)
                .map(|((strength, before), weight)| f64::max(strength - before, 0.0) * weight)
                .sum();
            let alike = chosen
                .iter()
                .map(|other| likeness(&candidate.statement, &other.statement))
                .fold(0.0, f64::max);
            candidate.score + 0.4 * new / total - 0.3 * alike
        };
        let next = scored
            .iter()
            .filter(|candidate| is_good_enough(best, candidate, &chosen))
            .filter(|candidate| stays_with_the_subject(question, best, candidate))
            .filter(|candidate| chosen.iter().all(|other| are_apart(&candidate.statement, &other.statement)))
            .max_by(|a, b| {
                gain(a).total_cmp(&gain(b)).then_with(|| {
                    (&b.statement.path, b.statement.line, &b.statement.text).cmp(&(
                        &a.statement.path,
                        a.statement.line,
                        &a.statement.text,
                    ))
                })
            });
        let Some(next) = next else { break };
        for (before, now) in covered.iter_mut().zip(&next.matches) {
            *before = f64::max(*before, *now);
        }
        chosen.push(next);
    }
    chosen
}

/// Whether a statement is good enough to stand beside the best one; what goes on with a chosen one may be weaker.
fn is_good_enough(best: &Scored, candidate: &Scored, chosen: &[&Scored]) -> bool {
    let goes_on = chosen.iter().any(|other| {
        let (other, candidate) = (&other.statement, &candidate.statement);
        other.path == candidate.path && other.around == candidate.around && other.order + 1 == candidate.order
    });
    let stands_beside = chosen.iter().any(|other| {
        let (other, candidate) = (&other.statement, &candidate.statement);
        other.path == candidate.path
            && other.heading == candidate.heading
            && other.line.abs_diff(candidate.line) <= LINES_BESIDE
    });
    if goes_on {
        candidate.score >= best.score * 0.4
    } else if stands_beside {
        candidate.score >= best.score * 0.5 && candidate.coverage >= 0.45
    } else {
        candidate.score >= best.score * 0.68 && candidate.coverage >= RELEVANT
    }
}

/// Beside a definition stands only what is said of its subject from the start.
fn stays_with_the_subject(question: &ParsedQuestion, best: &Scored, candidate: &Scored) -> bool {
    if question.wanted != Wanted::Definition || !question.opens(&best.statement.text) {
        return true;
    }
    let telling: Vec<&Term> = question.terms.iter().filter(|term| !term.light).collect();
    let first: BTreeSet<String> =
        words(&candidate.statement.text).take(6).map(|word| stem(word.text)).collect();
    telling.iter().all(|term| first.contains(&term.stem))
}

fn are_apart(left: &Statement, right: &Statement) -> bool {
    let overlap = left.path == right.path
        && (left.text.contains(&right.text) || right.text.contains(&left.text))
        && left.line <= right.last_line
        && right.line <= left.last_line;
    !overlap && left.text != right.text && likeness(left, right) <= TOO_ALIKE
}

/// The share of stems that two statements have in common.
pub(super) fn likeness(left: &Statement, right: &Statement) -> f64 {
    share_in_common(&left.stems, &right.stems)
}

/// The size of what two sets share over the size of the smaller one.
pub(super) fn share_in_common(left: &BTreeSet<String>, right: &BTreeSet<String>) -> f64 {
    let smaller = left.len().min(right.len()).max(1);
    left.intersection(right).count() as f64 / smaller as f64
}

/// The telling words that nothing chosen covers.
fn missing(question: &ParsedQuestion, weights: &[f64], total: f64, chosen: &[&Scored]) -> Vec<String> {
    // Where most of the question is covered, a single word may well be paraphrased.
    let best = chosen.iter().map(|scored| scored.coverage).fold(0.0, f64::max);
    let share = if best >= ANSWERED { 0.3 } else { 0.12 };
    let is_missing =
        |at: usize| chosen.iter().all(|scored| scored.matches.get(at).copied().unwrap_or(0.0) <= AROUND);
    question
        .terms
        .iter()
        .zip(weights)
        .enumerate()
        .filter(|(at, (term, weight))| !term.light && **weight / total >= share && is_missing(*at))
        .map(|(_, (term, _))| term.word.clone())
        .collect()
}
