//! What a question asks for: its terms, and the kind of answer it wants.

use std::collections::BTreeSet;

use super::text::{is_identifier, is_light_word, is_stop_word, stem, synonyms, words};
use super::wanted::{self, Wanted, asks_for_many, asks_for_steps};

/// A question taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedQuestion {
    /// The question as asked.
    pub(super) text: String,
    /// The kind of answer wanted.
    pub(super) wanted: Wanted,
    /// Whether several things are asked for.
    pub(super) many: bool,
    /// Whether the way to do something is asked for.
    pub(super) steps: bool,
    /// The words that say what it is about, in order, each once.
    pub(super) terms: Vec<Term>,
}

/// A word that a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    /// As written in the question.
    pub(super) word: String,
    /// Its stem.
    pub(super) stem: String,
    /// Stems of words that mean nearly the same.
    pub(super) near: BTreeSet<String>,
    /// Whether its absence means little.
    pub(super) light: bool,
    /// Whether it says only what is measured ("how tall"): an answer gives the measure, and hardly ever the word.
    pub(super) measures: bool,
    /// Whether it says only what kind of thing is asked for: "which colour is…".
    pub(super) kind: bool,
    /// Whether it is written in capitals.
    pub(super) capitals: bool,
    /// Whether it is written as a name: it begins with a capital, and no sentence with it.
    pub(super) name: bool,
    /// Whether it names something in a program.
    pub(super) identifier: bool,
}

impl Term {
    /// Whether an answer is expected to have it.
    pub(super) fn tells(&self) -> bool {
        !self.light && !self.measures
    }
}

/// Takes a question apart; `also` are words that may stand for its own.
pub(super) fn question(asked: &str, also: &[String]) -> ParsedQuestion {
    let text = core(asked);
    let mut terms: Vec<Term> = Vec::new();
    let kinds = KIND_ASKED.captures(text).and_then(|found| found.get(1)).map(|found| found.range());
    let mut after_how = false;
    for word in words(text) {
        let measures = std::mem::replace(&mut after_how, word.text.eq_ignore_ascii_case("how"));
        let stem = stem(word.text);
        let upper = word.text.len() > 1 && word.text.chars().all(|letter| letter.is_uppercase());
        if (is_stop_word(word.text) && !upper)
            || terms.iter().any(|term| term.stem == stem)
            || stem.is_empty()
        {
            continue;
        }
        let kind = kinds.as_ref().is_some_and(|kinds| kinds.contains(&word.range.start));
        let near = synonyms(&stem).into_iter().map(super::text::stem).collect();
        terms.push(Term {
            kind,
            capitals: upper,
            name: word.text.starts_with(char::is_uppercase) && !begins_a_sentence(text, word.range.start),
            light: is_light_word(word.text) && !kind,
            measures,
            identifier: is_identifier(word.text) || is_number(word.text),
            word: word.text.to_owned(),
            near,
            stem,
        });
    }
    if terms.iter().any(|term| !term.light) {
        for word in also {
            widen(&mut terms, word);
        }
    }
    ParsedQuestion {
        text: asked.to_owned(),
        wanted: wanted::wanted(text),
        many: asks_for_many(text),
        steps: asks_for_steps(text),
        terms,
    }
}

/// What is asked, without the words that say what is to be done with it: `answer this from the sources: What is it?`.
fn core(text: &str) -> &str {
    let text = text.trim();
    let ordered = ORDERED.captures(text).and_then(|found| found.get(1)).map(|found| found.as_str());
    let asked = ordered.unwrap_or(text);
    let about = ABOUT.captures(asked).and_then(|found| found.get(1)).map(|found| found.as_str());
    about.unwrap_or(asked)
}

pattern!(ORDERED, r"(?is)^.*\b(?:answer|look|find|search|check)\b[^:?]*:\s+([^:?]+\?)\s*$");
pattern!(
    ABOUT,
    r"(?is)^find out what (?:there is to know|is known|the \w+ say) (?:about|of)\s+(.+?)(?:,?\s+and (?:cite|say) where it stands)?[.\s]*$"
);
pattern!(
    KIND_ASKED,
    r"(?i)^\s*(?:and\s+|at\s+|in\s+|for\s+|under\s+)?(?:which|what)\s+((?:\w+\s+)?\w+)\s+(?:\w+\s+)?(?:is|are|was|were|do|does|did|has|have|had|can|could|may|must|should|will|would|apply|applies|follow|followed|holds|hold)\b"
);

fn begins_a_sentence(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches(|c: char| c.is_whitespace() || "\"“(*_`".contains(c));
    before.is_empty() || before.ends_with(['.', ':', '?', '!', ';'])
}

/// Whether a word is a number, or a name with one: what has another number is another thing.
pub(super) fn is_number(word: &str) -> bool {
    word.chars().any(|letter| letter.is_ascii_digit())
}

/// Lets a word stand for the term it is a relative of.
fn widen(terms: &mut [Term], word: &str) {
    let other = stem(word);
    for term in terms.iter_mut() {
        if super::text::related(&term.stem).iter().any(|relative| stem(relative) == other) {
            term.near.insert(other.clone());
        }
    }
}

impl ParsedQuestion {
    /// How well a text has the form of the answer that is wanted.
    pub(super) fn fit(&self, text: &str) -> f64 {
        let opens = self.wanted == Wanted::Definition && self.opens(text);
        wanted::fit(self.wanted, core(&self.text), text).max(if opens { 1.14 } else { 0.0 })
    }

    /// Whether a statement begins with what the question is about ("A *fleet* is…", "fleet: all agents…").
    pub(super) fn opens(&self, statement: &str) -> bool {
        let subject: Vec<&Term> = self.terms.iter().filter(|term| !term.light).collect();
        !subject.is_empty()
            && words(statement)
                .filter(|word| !is_stop_word(word.text))
                .take(subject.len())
                .all(|word| subject.iter().any(|term| term.stem == stem(word.text)))
    }

    /// The words to search for, most telling first: those that are not light, then the rest.
    pub(super) fn search_words(&self) -> Vec<&str> {
        let telling = self.terms.iter().filter(|term| !term.light);
        let words: Vec<&str> = telling.map(|term| term.word.as_str()).collect();
        if words.is_empty() { self.terms.iter().map(|term| term.word.as_str()).collect() } else { words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_answer_is_seen() {
        for (text, expected) in [
            ("What limits delegation loops?", Wanted::Limit),
            ("How does a run survive the death of a worker?", Wanted::Manner),
            ("Why is the record the only truth?", Wanted::Reason),
            ("How many slots has a worker?", Wanted::Number(wanted::Measure::Count)),
            ("Who mends it?", Wanted::Person),
            ("May it be mended?", Wanted::Whether),
            ("What is a generation?", Wanted::Definition),
            ("When is a task parked?", Wanted::Time),
            ("Where are snapshots kept?", Wanted::Place),
            ("Summarise the design", Wanted::Anything),
        ] {
            assert_eq!(question(text, &[]).wanted, expected, "{text}");
        }
    }

    #[test]
    fn words_that_order_something_are_not_asked_for() {
        for (text, words) in [
            (
                "Look elsewhere for what was not found: With regard to loops, answer this question from the sources: What \
                 limits delegation?",
                vec!["limits", "delegation"],
            ),
            (
                "Find out what there is to know about delegation and recovery, and cite where it stands.",
                vec!["delegation", "recovery"],
            ),
            ("In the log: when was the gate shut?", vec!["log", "gate", "shut"]),
        ] {
            assert_eq!(question(text, &[]).search_words(), words, "{text}");
            assert_eq!(question(text, &[]).text, text);
        }
    }

    #[test]
    fn terms_leave_out_what_says_nothing() {
        let asked = question("How does a run survive the death of a worker?", &[]);
        assert_eq!(asked.search_words(), ["run", "survive", "death", "worker"]);
        assert!(asked.terms[2].near.contains(&stem("kill")));
        assert!(question("What is the max_depth in muster.toml?", &[]).terms[0].identifier);
        assert!(question("??", &[]).terms.is_empty());
    }
}
