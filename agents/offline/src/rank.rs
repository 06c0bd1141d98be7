//! Which statements answer a question: weighted coverage of its terms, form, and variety.

use std::collections::BTreeSet;

use super::question::{ParsedQuestion, Term};
use super::statements::Statement;
use super::text::{stem, words};
use super::wanted::Wanted;

mod form;
mod strength;
mod subject;

use form::{closeness, echoes, form, is_the_term, nearness, places};
use strength::{AROUND, asked_above, is_titled, own_strength, strength};
use subject::{Subjects, says_another_value};

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

/// Share of a question from which on a heading asks the same.
const SAME_QUESTION: f64 = 0.55;
/// Share of a question from which on a word that stands nowhere leaves something open.
const SHARE_OF_ABSENT: f64 = 0.2;
/// What is added for the statement that goes on with the best one.
const GOES_ON: f64 = 0.15;
/// How much the word counts that says what is measured: "how deep".
const OF_A_MEASURE: f64 = 0.1;
/// How much the word counts that says what kind of thing is asked for: "which colour is…".
const OF_THE_KIND: f64 = 0.6;
/// Share of the score of the best statement that one of another document needs to stand beside it.
const ELSEWHERE: f64 = 0.88;
/// Share of the score of a whole that something needs to stand beside it.
const BESIDE_A_WHOLE: f64 = 0.9;
/// Share of the score of a statement from which on all that it stands in is shown instead.
const LIFT: f64 = 0.7;
/// Most lines of all wholes that are shown.
const WHOLE_LINES: usize = 34;
/// How much more a rare term counts than a common one.
const RARITY: f64 = 0.6;
/// What counts as covered where a heading asks the very question.
const UNDER_ITS_TITLE: f64 = 0.8;

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
    let absent = absent(question, &pool);
    let subjects = Subjects::of(question, &pool);
    let scored = pool.into_iter().filter_map(|statement| Scored::new(question, &weights, total, statement));
    let mut scored: Vec<Scored> = scored
        .map(|scored| Scored { score: scored.score * subjects.weight(&scored.statement), ..scored })
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
    let missing = missing(question, &weights, total, &chosen, &absent);
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
    fn new(question: &ParsedQuestion, weights: &[f64], total: f64, statement: Statement) -> Option<Self> {
        // A heading alone is not an answer, nor is what the document is about: some of the words must be its own.
        let own = question.terms.iter().any(|term| term.tells() && own_strength(term, &statement) > 0.0);
        let matches: Vec<f64> = question.terms.iter().map(|term| strength(term, &statement, own)).collect();
        let coverage =
            matches.iter().zip(weights).map(|(strength, weight)| strength * weight).sum::<f64>() / total;
        let coverage = if own { coverage } else { coverage * 0.6 };
        let coverage = if is_titled(question, &statement) { coverage.max(UNDER_ITS_TITLE) } else { coverage };
        let asked = asked_above(question, weights, total, &statement);
        let coverage = coverage.max(if asked >= SAME_QUESTION { 0.4 + 0.5 * asked } else { 0.0 });
        let defines = statement.defines && is_the_term(question, &statement);
        let coverage = if defines { coverage.max(UNDER_ITS_TITLE) } else { coverage };
        if coverage < RELEVANT_IN_PLACE {
            return None;
        }
        let coverage = if echoes(question, &statement.text) { coverage * 0.5 } else { coverage };
        let score = if statement.kind.is_whole() {
            coverage * form(question, &statement)
        } else {
            let places = places(question, &statement.text);
            coverage * form(question, &statement) * closeness(&places) + nearness(&places)
        };
        (coverage >= RELEVANT_IN_PLACE).then_some(Self { statement, matches, coverage, score })
    }
}

/// How telling each term is, judged by how many of the statements seen have it.
fn weights(question: &ParsedQuestion, pool: &[Statement]) -> Vec<f64> {
    let all = pool.len() as f64;
    let weight = |term: &Term| {
        let with = pool.iter().filter(|statement| own_strength(term, statement) > 0.0).count() as f64;
        let rarity = 1.0 + RARITY * ((all + 2.0) / (with.max(1.0) + 1.0)).ln();
        if term.measures {
            return rarity * OF_A_MEASURE;
        }
        match (term.identifier, term.light, term.kind) {
            (true, _, _) => rarity * 1.5,
            (false, true, _) => rarity * 0.25,
            (false, false, true) => rarity * OF_THE_KIND,
            (false, false, false) => rarity,
        }
    };
    question.terms.iter().map(weight).collect()
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
            let goes_on = chosen.first().is_some_and(|first| goes_on(&first.statement, &candidate.statement));
            candidate.score + 0.4 * new / total - 0.3 * alike + if goes_on { GOES_ON } else { 0.0 }
        };
        let next = scored
            .iter()
            .filter(|candidate| is_good_enough(best, candidate, &chosen))
            .filter(|candidate| stays_with_the_subject(question, best, candidate))
            .filter(|candidate| has_room(&candidate.statement, &chosen))
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
        let Some(next) = next.map(|next| lifted(question, scored, next, &chosen)) else { break };
        for (before, now) in covered.iter_mut().zip(&next.matches) {
            *before = f64::max(*before, *now);
        }
        chosen.push(next);
    }
    chosen
}

/// Whether a statement is good enough to stand beside the best one; what goes on with a chosen one may be weaker.
fn is_good_enough(best: &Scored, candidate: &Scored, chosen: &[&Scored]) -> bool {
    let goes_on = chosen.iter().any(|other| goes_on(&other.statement, &candidate.statement));
    let stands_beside = chosen.iter().any(|other| {
        let (other, candidate) = (&other.statement, &candidate.statement);
        other.path == candidate.path
            && other.heading == candidate.heading
            && other.line.abs_diff(candidate.line) <= LINES_BESIDE
    });
    let in_lines = best.statement.kind.is_whole() || candidate.statement.kind.is_whole();
    if goes_on {
        candidate.score >= best.score * 0.4
    } else if stands_beside && !in_lines {
        candidate.score >= best.score * 0.5 && candidate.coverage >= 0.45
    } else if candidate.statement.path != best.statement.path {
        candidate.score >= best.score * ELSEWHERE && candidate.coverage >= RELEVANT
    } else if best.statement.kind.is_whole() {
        candidate.score >= best.score * BESIDE_A_WHOLE && candidate.coverage >= RELEVANT
    } else {
        candidate.score >= best.score * 0.75 && candidate.coverage >= RELEVANT
    }
}

/// The list or section that a statement stands in, where the way to do something is asked for and it fits nearly as well.
fn lifted<'a>(
    question: &ParsedQuestion,
    scored: &'a [Scored],
    next: &'a Scored,
    chosen: &[&Scored],
) -> &'a Scored {
    if !(question.steps || question.many) || next.statement.kind.is_whole() {
        return next;
    }
    let holds = |whole: &&Scored| {
        let (whole, part) = (&whole.statement, &next.statement);
        whole.kind.is_whole()
            && whole.path == part.path
            && (whole.line..=whole.last_line).contains(&part.line)
            && part.last_line <= whole.last_line
    };
    let fits = |whole: &&Scored| {
        has_room(&whole.statement, chosen)
            && chosen.iter().all(|other| are_apart(&whole.statement, &other.statement))
    };
    let best = scored.iter().filter(holds).find(fits);
    best.filter(|whole| whole.score >= next.score * LIFT).unwrap_or(next)
}

/// Whether what is shown in its own lines stays short enough to be read.
fn has_room(candidate: &Statement, chosen: &[&Scored]) -> bool {
    let lines = |statement: &Statement| {
        if statement.kind.is_whole() { statement.text.lines().count() + 3 } else { 1 }
    };
    let shown: usize = chosen.iter().map(|other| lines(&other.statement)).sum();
    chosen.is_empty() || shown + lines(candidate) <= WHOLE_LINES
}

/// Whether a statement is the one after another in its paragraph.
fn goes_on(before: &Statement, after: &Statement) -> bool {
    before.path == after.path
        && !before.kind.is_whole()
        && before.around == after.around
        && before.order + 1 == after.order
}

/// Beside a definition stands only what is said of its subject from the start.
fn stays_with_the_subject(question: &ParsedQuestion, best: &Scored, candidate: &Scored) -> bool {
    if question.wanted != Wanted::Definition || !question.opens(&best.statement.text) {
        return true;
    }
    let telling: Vec<&Term> = question.terms.iter().filter(|term| term.tells()).collect();
    let first: BTreeSet<String> =
        words(&candidate.statement.text).take(6).map(|word| stem(word.text)).collect();
    telling.iter().all(|term| first.contains(&term.stem))
}

fn are_apart(left: &Statement, right: &Statement) -> bool {
    let in_whole = left.kind.is_whole() || right.kind.is_whole();
    let overlap = left.path == right.path
        && (in_whole || left.text.contains(&right.text) || right.text.contains(&left.text))
        && left.line <= right.last_line
        && right.line <= left.last_line;
    let says_otherwise = || left.path != right.path && says_another_value(&left.text, &right.text);
    !overlap && left.text != right.text && (likeness(left, right) <= TOO_ALIKE || says_otherwise())
}

/// Whether two documents say the same of one thing, but for a figure.
pub(super) fn are_of_two_documents(left: &Statement, right: &Statement) -> bool {
    left.path != right.path && likeness(left, right) > TOO_ALIKE
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

/// The words that stand nowhere in what was seen, nor any of like meaning: a search for them found nothing.
fn absent(question: &ParsedQuestion, pool: &[Statement]) -> Vec<bool> {
    let is_in =
        |term: &Term, stems: &BTreeSet<String>| stems.contains(&term.stem) || !term.near.is_disjoint(stems);
    let is_there = |term: &Term| {
        pool.iter().any(|statement| is_in(term, &statement.stems) || is_in(term, &statement.context))
    };
    question.terms.iter().map(|term| !is_there(term)).collect()
}

/// The telling words that nothing chosen covers.
fn missing(
    question: &ParsedQuestion,
    weights: &[f64],
    total: f64,
    chosen: &[&Scored],
    absent: &[bool],
) -> Vec<String> {
    let shares = weights.iter().zip(absent).zip(&question.terms);
    let absent_share: f64 = shares
        .filter(|((_, absent), term)| **absent && term.tells())
        .map(|((weight, _), _)| weight / total)
        .sum();
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
        .filter(|(at, (term, weight))| {
            let is_absent = absent.get(*at).copied().unwrap_or(false) && absent_share >= SHARE_OF_ABSENT;
            term.tells() && (is_absent || **weight / total >= share) && is_missing(*at)
        })
        .map(|(_, (term, _))| term.word.clone())
        .collect()
}
