//! How well a statement reads as an answer, whatever it is about.

use super::super::question::{ParsedQuestion, Term};
use super::super::statements::{Statement, StatementKind, begins_with_a_pointer, ends_like_a_sentence};
use super::super::text::{is_stop_word, opposites, phrases, stem, stem_set, words};
use super::super::wanted::Wanted;

/// How well a statement reads as an answer, around 1.
pub(super) fn form(question: &ParsedQuestion, statement: &Statement) -> f64 {
    let text = statement.text.as_str();
    if statement.kind.is_whole() {
        return whole(question, statement) * place(&statement.path);
    }
    let count = words(text).count();
    let is_setting = statement.kind == StatementKind::Code && is_setting(text);
    let length = match count {
        _ if is_setting => 1.0,
        0..=2 => 0.55,
        3..=5 => 0.85,
        6..=45 => 1.0,
        46..=60 => 0.92,
        _ => 0.85,
    };
    let is_number = matches!(question.wanted, Wanted::Number(_));
    let kind = match statement.kind {
        StatementKind::Sentence if ends_like_a_sentence(text) => 1.06,
        StatementKind::Sentence | StatementKind::Item | StatementKind::Code
            if !is_number && figures(text) > 3 =>
        {
            0.6
        }
        StatementKind::Row if count > 45 => 0.85,
        StatementKind::Row if count > 2 => 1.03,
        StatementKind::Item => 0.97,
        StatementKind::Code if is_setting => 0.97,
        StatementKind::Code if question.terms.iter().any(|term| term.identifier) => 0.75,
        StatementKind::Code => 0.4,
        _ => 1.0,
    };
    let parts = match statement.parts {
        0 | 1 => 1.0,
        2 => 0.96,
        _ => 0.91,
    };
    let asks = if text.ends_with('?') { 0.5 } else { 1.0 };
    let pointer = if begins_with_a_pointer(text) { 0.85 } else { 1.0 };
    let opens = if question.wanted == Wanted::Definition && question.opens(text) { 1.15 } else { 1.0 };
    let defines = if statement.defines && is_the_term(question, statement) { 1.5 } else { 1.0 };
    let listing = if statement.kind == StatementKind::Row { 1.0 } else { listing(text, count) };
    let asks = if echoes(question, text) { 0.2 } else { asks };
    let gives_number = is_number && text.chars().any(|letter| letter.is_ascii_digit());
    let news = if !gives_number && says_nothing_new(question, statement) { 0.75 } else { 1.0 };
    let other = if names_another(question, statement) { 0.55 } else { 1.0 };
    let nameless = if lacks_the_name(question, statement) { 0.75 } else { 1.0 };
    let opposite = if says_the_opposite(question, statement) { 0.7 } else { 1.0 };
    length
        * parts
        * kind
        * asks
        * pointer
        * question.fit(text)
        * opens
        * defines
        * news
        * other
        * opposite
        * negated(question, statement)
        * nameless
        * listing
        * plainness(text)
        * place(&statement.path)
}

/// How well a list, a table or a piece of code as a whole answers: where several things are asked for, or the way to do
/// something.
fn whole(question: &ParsedQuestion, statement: &Statement) -> f64 {
    let steps = question.steps && question.wanted != Wanted::Reason;
    let otherwise = if question.wanted == Wanted::Anything { 0.8 } else { 0.45 };
    let fits = match statement.kind {
        StatementKind::List if steps => 1.42,
        StatementKind::List if question.many => 1.2,
        StatementKind::Table if question.many => 1.15,
        StatementKind::Table if steps => 0.7,
        StatementKind::Section if steps => 1.08,
        StatementKind::Section if question.many => 0.8,
        StatementKind::Section if question.wanted == Wanted::Manner => 0.85,
        StatementKind::Listing if question.many => 0.95,
        StatementKind::Listing if steps => 0.9,
        StatementKind::List | StatementKind::Table | StatementKind::Section | StatementKind::Listing => {
            otherwise
        }
        _ => 1.0,
    };
    // "Which settings": a table with a column of settings.
    let of_the_kind =
        question.many && question.terms.iter().any(|term| term.kind && statement.main.contains(&term.stem));
    let fits = if of_the_kind { fits * 1.2 } else { fits } * negated(question, statement);
    if names_another(question, statement) { fits * 0.55 } else { fits }
}

/// Whether the term that a statement explains is what the question is about.
pub(super) fn is_the_term(question: &ParsedQuestion, statement: &Statement) -> bool {
    let few = question.terms.iter().filter(|term| term.tells()).count() < 3;
    let asks_what = question.wanted == Wanted::Definition || (question.wanted == Wanted::Anything && few);
    let term = stem_set(&statement.heading);
    let asked: Vec<&Term> = question.terms.iter().filter(|term| term.tells()).collect();
    let named = asked.iter().filter(|asked| term.contains(&asked.stem)).count();
    let first = asked.first().is_some_and(|first| term.contains(&first.stem));
    asks_what
        && first
        && !lacks_the_name(question, statement)
        && named >= words(&statement.heading).count().min(asked.len())
}

/// Whether a line of code gives a name a value.
fn is_setting(text: &str) -> bool {
    let bare = text.trim_matches('`');
    let value = bare.split_once(" = ").or_else(|| bare.split_once(": "));
    value.is_some_and(|(name, value)| !name.contains(['(', '{']) && !value.ends_with(['{', '(', ',']))
}

/// Whether a statement stands neither with nor below the number, or the name with one, that is asked about.
pub(super) fn lacks_the_name(question: &ParsedQuestion, statement: &Statement) -> bool {
    let places =
        [&statement.stems, &statement.context, &statement.around, &statement.near, &statement.opening];
    let asked = question.terms.iter().filter(|term| super::super::question::is_number(&term.word));
    asked.into_iter().any(|term| places.iter().all(|stems| !stems.contains(&term.stem)))
}

/// Whether a statement is about a thing with another number than the one asked for: "model 250", "E22".
fn names_another(question: &ParsedQuestion, statement: &Statement) -> bool {
    let asked = question.terms.iter().filter(|term| super::super::question::is_number(&term.word));
    let mut missing = asked.filter(|term| !statement.stems.contains(&term.stem)).peekable();
    if missing.peek().is_none() {
        return false;
    }
    let said: Vec<&str> = words(&statement.text).map(|word| word.text).collect();
    missing.any(|term| {
        let before = word_before(&question.text, &term.word);
        said.iter().enumerate().any(|(at, word)| {
            let same_place = || {
                let beside = at.checked_sub(1).and_then(|at| said.get(at));
                before.as_ref().zip(beside).is_some_and(|(asked, beside)| *asked == stem(beside))
            };
            is_like(word, &term.word) && (word.contains(char::is_alphabetic) || same_place())
        })
    })
}

pattern!(NEGATED, r"(?i)\b(?:not|never|no|none|without|cannot|except|n't)\b|n[’']t\b");

/// Less than 1 where a question asks what is not so, and a statement tells what is.
fn negated(question: &ParsedQuestion, statement: &Statement) -> f64 {
    let asks = NEGATED.is_match(&question.text);
    if asks && !NEGATED.is_match(&statement.text) && !NEGATED.is_match(&statement.heading) {
        0.7
    } else {
        1.0
    }
}

/// Whether a statement has the opposite of a word of the question, and not the word.
fn says_the_opposite(question: &ParsedQuestion, statement: &Statement) -> bool {
    question.terms.iter().any(|term| {
        !statement.stems.contains(&term.stem)
            && opposites(&term.stem).iter().any(|other| statement.stems.contains(other))
    })
}

/// Whether two words differ in their digits only.
fn is_like(left: &str, right: &str) -> bool {
    let shape = |word: &str| -> String {
        let masked = word.chars().map(|letter| if letter.is_ascii_digit() { '9' } else { letter });
        let mut shape: Vec<char> = masked.flat_map(char::to_lowercase).collect();
        shape.dedup_by(|next, before| *next == '9' && *before == '9');
        shape.into_iter().collect()
    };
    super::super::question::is_number(left) && shape(left) == shape(right)
}

/// The stem of the word before another.
fn word_before(text: &str, word: &str) -> Option<String> {
    let all: Vec<&str> = words(text).map(|word| word.text).collect();
    let at = all.iter().position(|other| *other == word)?;
    all.get(at.checked_sub(1)?).map(|before| stem(before))
}

/// Whether a statement has hardly a word that the question has not.
fn says_nothing_new(question: &ParsedQuestion, statement: &Statement) -> bool {
    let asked = stem_set(&question.text);
    let is_new = |word: &str| !is_stop_word(word) && !asked.contains(&stem(word));
    words(&statement.text).filter(|word| is_new(word.text)).count() < 2
}

/// Whether a text only puts the question again, as an example of how to ask it does.
pub(super) fn echoes(question: &ParsedQuestion, text: &str) -> bool {
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
pub(super) fn places(question: &ParsedQuestion, text: &str) -> Vec<Vec<usize>> {
    let mut found: Vec<(usize, String)> =
        words(text).enumerate().map(|(at, word)| (at, stem(word.text))).collect();
    found.extend(phrases(text));
    let of = |term: &Term| -> Vec<usize> {
        let is_it = |stem: &String| *stem == term.stem || term.near.contains(stem);
        found.iter().filter(|(_, stem)| is_it(stem)).map(|(at, _)| *at).collect()
    };
    question.terms.iter().filter(|term| term.tells()).map(of).collect()
}

/// A bonus for terms that stand side by side as they do in the question.
pub(super) fn nearness(places: &[Vec<usize>]) -> f64 {
    let near = places
        .windows(2)
        .filter(|pair| pair[0].iter().any(|at| pair[1].iter().any(|other| at.abs_diff(*other) <= 3)))
        .count();
    (near as f64 * 0.09).min(0.18)
}

/// Less than 1 when the terms that a text has stand far apart in it.
pub(super) fn closeness(places: &[Vec<usize>]) -> f64 {
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
