//! Text by rule: words, stems, sentences, and the removal of markup. Pure.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::LazyLock;

use muster_shared::text::stop::is_light_in_search;
use regex::Regex;
use rust_stemmers::{Algorithm, Stemmer};

mod markup;
mod sentences;
mod synonyms;

pub(super) use markup::{strip_markup, strip_tags};
pub(super) use muster_shared::text::{at_word as shorten, counted, normalise_space};
pub(super) use sentences::sentences;
pub(super) use synonyms::{opposites, related, synonyms};

/// A word and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// As it is written.
    pub(super) text: &'a str,
    /// Its bytes in the text.
    pub(super) range: Range<usize>,
}

/// Identifiers, file names, paths and numbers are one word: `muster.toml`, `max_depth`, `a::b`, `1.5`.
#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static WORD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[\p{L}\p{N}_]+(?:(?:::|[.\-/'’])[\p{L}\p{N}_]+)*").expect("a valid pattern")
});

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// The words of a text, in order.
pub(super) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    WORD.find_iter(text).map(|found| Word { text: found.as_str(), range: found.range() })
}

/// The stem of one word, in lower case. Words that are not plain letters stay whole.
pub(super) fn stem(word: &str) -> String {
    let lower = word.to_lowercase();
    let bare = lower.trim_end_matches("'s").trim_end_matches("’s");
    let bare = irregular(bare).unwrap_or(bare);
    if bare.len() > 2 && bare.bytes().all(|byte| byte.is_ascii_lowercase()) {
        stem_of_plain(bare)
    } else {
        bare.to_owned()
    }
}

/// Stems that are remembered on each thread: texts have the same few thousand words over and over.
const MOST_REMEMBERED: usize = 16_384;
/// Longest word that is remembered, in bytes.
const LONGEST_REMEMBERED: usize = 32;

fn stem_of_plain(word: &str) -> String {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, String>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(stem) = known.get(word) {
            return stem.clone();
        }
        let stem = STEMMER.stem(word).into_owned();
        if known.len() < MOST_REMEMBERED && word.len() <= LONGEST_REMEMBERED {
            known.insert(word.to_owned(), stem.clone());
        }
        stem
    })
}

/// The plain form of a verb or a noun whose other forms no rule gives.
fn irregular(word: &str) -> Option<&'static str> {
    IRREGULAR.binary_search_by(|(form, _)| (*form).cmp(word)).ok().map(|at| IRREGULAR[at].1)
}

/// Forms that no rule gives, with the plain ones. Sorted.
const IRREGULAR: &[(&str, &str)] = &[
    ("became", "become"),
    ("began", "begin"),
    ("begun", "begin"),
    ("bought", "buy"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("drawn", "draw"),
    ("drew", "draw"),
    ("driven", "drive"),
    ("drove", "drive"),
    ("fallen", "fall"),
    ("fed", "feed"),
    ("fell", "fall"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("found", "find"),
    ("froze", "freeze"),
    ("frozen", "freeze"),
    ("gave", "give"),
    ("given", "give"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("held", "hold"),
    ("hidden", "hide"),
    ("kept", "keep"),
    ("knew", "know"),
    ("known", "know"),
    ("laid", "lay"),
    ("led", "lead"),
    ("lost", "lose"),
    ("made", "make"),
    ("men", "man"),
    ("met", "meet"),
    ("mice", "mouse"),
    ("paid", "pay"),
    ("ran", "run"),
    ("risen", "rise"),
    ("rose", "rise"),
    ("rung", "ring"),
    ("said", "say"),
    ("sent", "send"),
    ("shown", "show"),
    ("slept", "sleep"),
    ("sold", "sell"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("stole", "steal"),
    ("stolen", "steal"),
    ("stood", "stand"),
    ("taken", "take"),
    ("taught", "teach"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("understood", "understand"),
    ("went", "go"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("written", "write"),
    ("wrote", "write"),
];

/// The stems of a word: of the whole, and of its parts when it is put together (`ack_wait`, `re-offer`).
pub(super) fn stems_of_word(word: &str) -> Vec<String> {
    let whole = stem(word);
    let mut stems: Vec<String> = parts(word).into_iter().map(|part| stem(&part)).collect();
    if stems.len() == 1 {
        stems.clear();
    }
    stems.insert(0, whole);
    stems
}

/// The set of all stems in a text, with those of its phrasal verbs.
pub(super) fn stem_set(text: &str) -> BTreeSet<String> {
    let single = words(text).flat_map(|word| stems_of_word(word.text));
    single.chain(phrases(text).into_iter().map(|(_, phrase)| phrase)).collect()
}

/// Phrasal verbs ("takes over", "went on") as one stem each, with the number of the word they begin at.
pub(super) fn phrases(text: &str) -> Vec<(usize, String)> {
    let found: Vec<Word<'_>> = words(text).collect();
    let mut phrases = Vec::new();
    for (at, word) in found.iter().enumerate() {
        let Some((_, verb)) = VERBS.iter().find(|(form, _)| word.text.eq_ignore_ascii_case(form)) else {
            continue;
        };
        // "takes the task over": a few words may stand between, but no end of a clause.
        let clause = found[at + 1..].iter().take(4).take_while(|next| {
            !text[word.range.end..next.range.start].contains([',', ';', '.', ':', '(', ')'])
        });
        let particle = clause.map(|next| next.text).find(|next| PARTICLES.contains(next));
        phrases.extend(particle.map(|particle| (at, format!("{verb}_{particle}"))));
    }
    if let Some(kept) = NOTHING_LOST.find(text) {
        let at = found.iter().position(|word| word.range.start >= kept.start()).unwrap_or_default();
        phrases.push((at, "nothing_lost".to_owned()));
    }
    phrases
}

const PARTICLES: &[&str] = &["on", "over", "up", "back", "again", "down"];

/// Forms of the verbs that mean something of their own with a particle.
const VERBS: &[(&str, &str)] = &[
    ("take", "take"),
    ("takes", "take"),
    ("took", "take"),
    ("taken", "take"),
    ("taking", "take"),
    ("go", "go"),
    ("goes", "go"),
    ("went", "go"),
    ("going", "go"),
    ("carry", "carry"),
    ("carries", "carry"),
    ("carried", "carry"),
    ("pick", "pick"),
    ("picks", "pick"),
    ("picked", "pick"),
    ("come", "come"),
    ("comes", "come"),
    ("came", "come"),
    ("bring", "bring"),
    ("brings", "bring"),
    ("shut", "shut"),
    ("shuts", "shut"),
    ("try", "try"),
    ("tries", "try"),
    ("tried", "try"),
];

#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static NOTHING_LOST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:nothing|never|not|no\s+\w+)\s+(?:\w+\s+){0,2}lost\b|\bwithout\s+(?:any\s+)?loss\b")
        .expect("a valid pattern")
});

/// Whether a word is written like the name of something in a program or a file system.
pub(super) fn is_identifier(word: &str) -> bool {
    let inner_capital = word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase);
    let joined = word.contains("::")
        || word.contains('_')
        || word.contains('/')
        || (word.contains('.') && word.chars().any(char::is_alphabetic));
    joined || inner_capital
}

fn parts(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut previous_lower = false;
    for letter in word.chars() {
        if !letter.is_alphanumeric() {
            parts.push(String::new());
        } else {
            if letter.is_uppercase() && previous_lower {
                parts.push(String::new());
            }
            if let Some(last) = parts.last_mut() {
                last.push(letter);
            }
        }
        previous_lower = letter.is_lowercase();
    }
    parts.retain(|part| part.chars().count() > 1);
    parts
}

/// Whether a word says nothing about the subject: articles, pronouns, auxiliaries, question words.
pub(super) fn is_stop_word(word: &str) -> bool {
    is_light_in_search(&word.to_lowercase())
}

/// Whether a word is so general that its absence means little: "work", "happen", "use".
pub(super) fn is_light_word(word: &str) -> bool {
    LIGHT_STEMS.contains(&stem(word))
}

static LIGHT_STEMS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    "work works happen happens use used uses using mean means make makes made get gets give gives given take \
     takes need needs want wants way ways thing things kind kinds explain describe tell list show say says \
     said do done go goes going come comes called call main important different various many several exactly \
     possible available difference purpose reason example exist exists there know find found look looks \
     please operation operations compare compared comparison versus does actual actually really currently like help helps deal deals handle handles handled happen \
     compute computed computes calculate calculated calculates determine determined time times \
     around among during within towards near beside besides onto upon via ever still yet also too very even just same \
     provide provides contain contains include includes involve document documents file project system \
     support supports supported documentation"
        .split_whitespace()
        .map(stem)
        .collect()
});

/// The text with its first letter in upper case, unless its first word is an identifier.
pub(super) fn capitalise(text: &str) -> String {
    let first_word = text.split_whitespace().next().unwrap_or_default();
    if is_identifier(first_word.trim_end_matches([',', ':', '.'])) || first_word.contains('`') {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_keep_identifiers_whole() {
        let text = "Set `max_depth` in muster.toml to 1.5, or a::b; it's O'Brien's.";
        let found: Vec<&str> = words(text).map(|word| word.text).collect();
        assert_eq!(
            found,
            ["Set", "max_depth", "in", "muster.toml", "to", "1.5", "or", "a::b", "it's", "O'Brien's"]
        );
    }

    #[test]
    fn stems_join_forms_of_a_word() {
        for (left, right) in
            [("limits", "limited"), ("delegation", "delegated"), ("loops", "loop"), ("retries", "retry")]
        {
            assert_eq!(stem(left), stem(right), "{left} and {right}");
        }
        assert!(stems_of_word("ack_wait").contains(&"wait".to_owned()));
        assert!(stems_of_word("TaskOffered").contains(&"offer".to_owned()));
        assert_eq!(stem("v0.7.2"), "v0.7.2");
        for (text, phrase) in [
            ("another one took the task over", "take_over"),
            ("It goes on, unharmed", "go_on"),
            ("nothing is ever lost", "nothing_lost"),
        ] {
            assert!(stem_set(text).contains(phrase), "{text}");
        }
        assert!(phrases("It went; on and on").is_empty());
    }

    #[test]
    fn identifiers_are_recognised() {
        for word in ["max_depth", "muster.toml", "a::b", "JetStream", "src/main.rs"] {
            assert!(is_identifier(word), "{word}");
        }
        for word in ["Worker", "delegation", "NATS", "2.5"] {
            assert!(!is_identifier(word), "{word}");
        }
    }

    #[test]
    fn shortening_keeps_whole_words() {
        assert_eq!(shorten("one two three", 9), "one two…");
        assert_eq!(shorten("short", 9), "short");
        assert_eq!(capitalise("every run"), "Every run");
        assert_eq!(capitalise("max_depth is 3"), "max_depth is 3");
    }

    proptest! {
        #[test]
        fn no_text_upsets_the_rules(text in "\\PC{0,200}", limit in 0usize..50) {
            let _ = stem_set(&text);
            let _ = capitalise(&text);
            prop_assert!(shorten(&text, limit).chars().count() <= limit.max(1));
            for word in words(&text) {
                prop_assert_eq!(&text[word.range.clone()], word.text);
                let _ = is_stop_word(word.text) || is_light_word(word.text) || is_identifier(word.text);
            }
        }
    }
}
