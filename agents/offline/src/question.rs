//! What a question asks for: its terms, and the kind of answer it wants.

use std::collections::BTreeSet;

use regex::Regex;

use super::text::{is_identifier, is_light_word, is_stop_word, stem, synonyms, words};

/// The kind of answer that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What something is.
    Definition,
    /// What keeps something within bounds.
    Limit,
    /// By what means.
    Manner,
    /// For what reason.
    Reason,
    /// At what time or on what condition.
    Time,
    /// In what place.
    Place,
    /// A number.
    Number,
    /// Anything on the subject.
    Anything,
}

/// A question taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedQuestion {
    /// The question as asked.
    pub(super) text: String,
    /// The kind of answer wanted.
    pub(super) wanted: Wanted,
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
    /// Whether it names something in a program.
    pub(super) identifier: bool,
}

/// Takes a question apart; `also` are words that may stand for its own.
pub(super) fn question(text: &str, also: &[String]) -> ParsedQuestion {
    let mut terms: Vec<Term> = Vec::new();
    for word in words(text) {
        let stem = stem(word.text);
        let upper = word.text.len() > 1 && word.text.chars().all(|letter| letter.is_uppercase());
        if (is_stop_word(word.text) && !upper)
            || terms.iter().any(|term| term.stem == stem)
            || stem.is_empty()
        {
            continue;
        }
        let near = synonyms(&stem).into_iter().map(super::text::stem).collect();
        terms.push(Term {
            light: is_light_word(word.text),
            identifier: is_identifier(word.text),
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
    ParsedQuestion { text: text.to_owned(), wanted: wanted(text), terms }
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

pattern!(
    NUMBER_ASKED,
    r"(?i)\bhow (?:many|much|long|large|big|fast|often|old|far|high)\b|\b(?:number|percentage|size|value) of\b|\bwhich (?:port|number|version)\b|\bwhat (?:port|number|version|percentage)\b|\bdefault\b"
);
pattern!(
    LIMIT_ASKED,
    r"(?i)\b(?:what|which)\b.{0,30}\b(?:limits?|bounds?|caps?|restricts?|prevents?|stops?|maximum|limitations?)\b|\blimits? (?:on|of|to|for)\b"
);
pattern!(REASON_ASKED, r"(?i)\bwhy\b|\breasons?\b|\bwhat for\b|\bbecause of what\b");
pattern!(
    TIME_ASKED,
    r"(?i)^(?:and\s+)?when\b|\bsince when\b|\bat what (?:time|point)\b|\bunder (?:what|which) conditions?\b"
);
pattern!(PLACE_ASKED, r"(?i)^(?:and\s+)?where\b");
pattern!(MANNER_ASKED, r"(?i)\bhow\b");
pattern!(
    DEFINITION_ASKED,
    r"(?i)\bwhat(?:'s| is| are| does .* mean)\b|\bdefine\b|\bdefinition\b|\bmeaning of\b|\bwho (?:is|are)\b"
);

fn wanted(text: &str) -> Wanted {
    let rules: [(&Regex, Wanted); 7] = [
        (&NUMBER_ASKED, Wanted::Number),
        (&LIMIT_ASKED, Wanted::Limit),
        (&REASON_ASKED, Wanted::Reason),
        (&TIME_ASKED, Wanted::Time),
        (&PLACE_ASKED, Wanted::Place),
        (&MANNER_ASKED, Wanted::Manner),
        (&DEFINITION_ASKED, Wanted::Definition),
    ];
    let text = text.trim();
    rules.iter().find(|(rule, _)| rule.is_match(text)).map_or(Wanted::Anything, |(_, wanted)| *wanted)
}

pattern!(
    SAYS_LIMIT,
    r"(?i)\b(?:limit\w*|at most|no more than|maximum|max|refus\w+|cap(?:ped|s)?|bound(?:ed|s)?|must not|may not|never|only|up to|exceed\w*|restrict\w*|reject\w*|prevent\w*|depth)\b|≤|<="
);
pattern!(
    SAYS_MANNER,
    r"(?i)\b(?:by|through|via|using|then|so that|so no|when|once|if|after|another|instead|until|again|takes? (?:\w+ ){0,3}over|goes on|from the last)\b|→"
);
pattern!(
    SAYS_REASON,
    r"(?i)\b(?:because|since|so that|otherwise|else|in order to|to avoid|to keep|reason|therefore|hence|thus|as it|would)\b"
);
pattern!(
    SAYS_TIME,
    r"(?i)\b(?:when|after|before|once|as soon as|until|if|whenever|while|every)\b|\b(?:19|20)\d\d\b"
);
pattern!(SAYS_PLACE, r"(?i)\b(?:in|at|under|inside|on|stored|folder|directory|located|path)\b|/");
pattern!(
    SAYS_NUMBER,
    r"\d|(?i)\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|half|unlimited|zero)\b"
);
pattern!(
    SAYS_DEFINITION,
    r"(?i)\b(?:is|are) (?:an?|the|one|any|what)\b|\bmeans?\b|\bstands? for\b|\brefers? to\b|\bconsists? of\b|\bdefined as\b"
);

impl ParsedQuestion {
    /// Whether a statement has the form of the answer that is wanted.
    pub(super) fn is_answered_in_form_by(&self, statement: &str) -> bool {
        match self.wanted {
            Wanted::Definition => SAYS_DEFINITION.is_match(statement) || self.opens(statement),
            Wanted::Limit => SAYS_LIMIT.is_match(statement),
            Wanted::Manner => SAYS_MANNER.is_match(statement),
            Wanted::Reason => SAYS_REASON.is_match(statement),
            Wanted::Time => SAYS_TIME.is_match(statement),
            Wanted::Place => SAYS_PLACE.is_match(statement),
            Wanted::Number => SAYS_NUMBER.is_match(statement),
            Wanted::Anything => false,
        }
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
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_kind_of_answer_is_seen() {
        for (text, expected) in [
            ("What limits delegation loops?", Wanted::Limit),
            ("How does a run survive the death of a worker?", Wanted::Manner),
            ("Why is the record the only truth?", Wanted::Reason),
            ("How many slots has a worker?", Wanted::Number),
            ("What is a generation?", Wanted::Definition),
            ("When is a task parked?", Wanted::Time),
            ("Where are snapshots kept?", Wanted::Place),
            ("Summarise the design", Wanted::Anything),
        ] {
            assert_eq!(question(text, &[]).wanted, expected, "{text}");
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
