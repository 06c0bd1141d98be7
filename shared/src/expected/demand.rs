//! What an expected output demands, as far as its words say so beyond doubt.

use super::count::{Bound, Measure, count, counts};

/// Something that a rule can look for in a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Demand {
    /// JSON of a form, with these keys.
    Json(Form, Vec<String>),
    /// So many of something.
    Count(Measure, Bound),
    /// A number, or a number and nothing else.
    Number {
        /// Whether nothing else may be said.
        only: bool,
    },
    /// Yes or no.
    YesOrNo,
    /// Rows and columns.
    Table,
    /// A file of this name.
    File(String),
}

/// What JSON it is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Any,
    Array,
    Object,
}

impl Form {
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Any => "JSON",
            Self::Array => "JSON array",
            Self::Object => "JSON object",
        }
    }
}

/// Words that leave it to whoever does the task: nothing of the clause is demanded.
const LOOSE: [&str; 16] = [
    "if",
    "optional",
    "optionally",
    "ideally",
    "preferably",
    "possibly",
    "perhaps",
    "unless",
    "not",
    "without",
    "instead",
    "rather",
    "e.g",
    "either",
    "similar",
    "like",
];

/// Words that have a number count for one of several.
const OF_SEVERAL: [&str; 4] = ["each", "every", "per", "apiece"];

/// What is demanded; nothing where the words leave doubt.
pub(super) fn read(expected: &str) -> Vec<Demand> {
    let mut demands: Vec<Demand> = Vec::new();
    for clause in clauses(expected) {
        for demand in of_clause(&clause) {
            if !demands.contains(&demand) {
                demands.push(demand);
            }
        }
    }
    // What stands in a file is looked at by nobody here: how long it is says nothing of the words around it.
    if demands.iter().any(|demand| matches!(demand, Demand::File(_))) {
        demands.retain(|demand| matches!(demand, Demand::File(_)));
    }
    demands
}

/// The parts of a text that say something by themselves, each in words and commas.
fn clauses(text: &str) -> Vec<Vec<String>> {
    let mut clauses: Vec<Vec<String>> = vec![Vec::new()];
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !(c.is_alphanumeric() || "~%".contains(c)));
        let ends = word.ends_with(['.', ';', '!', ')']) || word.starts_with('(');
        if word.starts_with('(') {
            clauses.push(Vec::new());
        }
        if let Some(clause) = clauses.last_mut().filter(|_| !bare.is_empty()) {
            clause.push(bare.to_owned());
            if word.ends_with([',', ':']) {
                clause.push(",".to_owned());
            }
        }
        if ends && !word.starts_with('(') {
            clauses.push(Vec::new());
        }
    }
    clauses.retain(|clause| !clause.is_empty());
    clauses
}

fn of_clause(words: &[String]) -> Vec<Demand> {
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    if let Some(verdict) = yes_or_no(&lower) {
        return vec![verdict];
    }
    let is_negated = |word: &&str| LOOSE.contains(word);
    // "No more than" and its like say how many; any other no leaves doubt.
    let denies =
        lower.windows(2).any(|pair| pair[0] == "no" && !["more", "fewer", "less"].contains(&pair[1]));
    if denies || lower.iter().any(is_negated) || chooses(&lower) {
        return Vec::new();
    }
    let of_several = lower.iter().any(|word| OF_SEVERAL.contains(word));
    let json = json(words, &lower);
    let of_json = matches!(json, Some(Demand::Json(Form::Array, _)));
    let counts = if of_several { Vec::new() } else { counts(&lower, of_json) };
    let file = file(words, &lower);
    json.into_iter().chain(number(&lower)).chain(table(&lower)).chain(file).chain(counts).collect()
}

/// Whether the clause leaves a choice, other than between two numbers.
fn chooses(words: &[&str]) -> bool {
    let at = words.iter().enumerate().filter(|(_, word)| **word == "or");
    at.map(|(at, _)| (at.checked_sub(1).and_then(|at| words.get(at)), words.get(at + 1))).any(|around| {
        let of_numbers = matches!(around, (Some(one), Some(other)) if count(one).is_some()
            && (count(other).is_some() || ["more", "fewer", "less"].contains(other)));
        !of_numbers
    })
}

fn yes_or_no(words: &[&str]) -> Option<Demand> {
    let said = ["yes/no", "true/false"].iter().any(|pair| words.contains(pair));
    let in_words = [["yes", "or", "no"], ["true", "or", "false"], ["yes", "and", "no"]];
    let spelled = words.windows(3).any(|three| in_words[..2].iter().any(|known| known == three));
    let boolean =
        words.windows(2).any(|pair| ["a", "one", "single"].contains(&pair[0]) && pair[1] == "boolean");
    (said || spelled || boolean).then_some(Demand::YesOrNo)
}

/// `a JSON array`, `as JSON`, `a JSON object with the keys a, b and c`.
fn json(words: &[String], lower: &[&str]) -> Option<Demand> {
    const BEFORE: [&str; 12] =
        ["a", "an", "one", "the", "as", "in", "valid", "plain", "single", "pure", "only", "compact"];
    let at = lower.iter().position(|word| *word == "json")?;
    let begins = at == 0 || lower.get(at - 1).is_some_and(|before| BEFORE.contains(before));
    let (form, after) = match lower.get(at + 1).copied() {
        Some("array" | "list") => (Form::Array, at + 2),
        Some("object") => (Form::Object, at + 2),
        None | Some("," | "with" | "containing" | "only" | "document" | "value" | "and" | "holding") => {
            (Form::Any, at + 1)
        }
        Some(_) => return None,
    };
    let named = lower.get(at + 1).is_some_and(|next| ["array", "list", "object"].contains(next));
    (begins || named).then(|| Demand::Json(form, keys(words, lower, after)))
}

/// The keys that are named after `keys`, `fields` or `properties`.
fn keys(words: &[String], lower: &[&str], from: usize) -> Vec<String> {
    const NAMES: [&str; 6] = ["keys", "fields", "properties", "key", "field", "property"];
    let Some(at) = lower.iter().skip(from).position(|word| NAMES.contains(word)) else { return Vec::new() };
    let rest = words.get(from + at + 1..).unwrap_or_default();
    let parts = rest.split(|word| [",", "and", "&"].contains(&word.as_str()));
    let mut keys = Vec::new();
    for part in parts {
        match part {
            [] => {}
            [key] => keys.push(key.clone()),
            // More words than one are no key; nor is what follows.
            [_, _, ..] => break,
        }
    }
    keys
}

fn number(words: &[&str]) -> Option<Demand> {
    const ADJECTIVES: [&str; 8] = ["one", "single", "exact", "just", "only", "plain", "bare", "the"];
    const NOUNS: [&str; 4] = ["number", "integer", "percentage", "figure"];
    let at = words.iter().position(|word| NOUNS.contains(word))?;
    let before = &words[..at];
    let article = before.iter().all(|word| ADJECTIVES.contains(word) || ["a", "an"].contains(word));
    // "A number of" says several.
    let several = before.last() == Some(&"a") && words.get(at + 1) == Some(&"of");
    let ends = matches!(
        words.get(at + 1).copied(),
        None | Some("," | "of" | "only" | "and" | "in" | "between" | "with")
    );
    let only = before.iter().any(|word| ["only", "just", "bare", "plain"].contains(word))
        || words[at..].contains(&"only")
        || words[at..].windows(2).any(|pair| pair == ["nothing", "else"]);
    (article && ends && !several).then_some(Demand::Number { only })
}

fn table(words: &[&str]) -> Option<Demand> {
    const BEFORE: [&str; 13] = [
        "a",
        "an",
        "one",
        "the",
        "as",
        "markdown",
        "comparison",
        "summary",
        "short",
        "small",
        "simple",
        "single",
        "csv",
    ];
    const AFTER: [&str; 12] = [
        ",",
        "of",
        "with",
        "that",
        "comparing",
        "listing",
        "containing",
        "showing",
        "and",
        "which",
        "in",
        "for",
    ];
    let at = words.iter().position(|word| *word == "table")?;
    let before = words[..at].iter().all(|word| BEFORE.contains(word))
        || at > 1 && ["as", "in"].contains(&words[at - 2]) && BEFORE.contains(&words[at - 1])
        || at > 0 && ["markdown", "as"].contains(&words[at - 1]);
    let after = words.get(at + 1).is_none_or(|word| AFTER.contains(word));
    (before && after).then_some(Demand::Table)
}

/// `a file named X`, `written to X`, `saved as X`.
fn file(words: &[String], lower: &[&str]) -> Option<Demand> {
    const NAMED: [[&str; 2]; 9] = [
        ["file", "named"],
        ["file", "called"],
        ["written", "to"],
        ["saved", "as"],
        ["saved", "to"],
        ["saved", "in"],
        ["written", "as"],
        ["the", "file"],
        ["a", "file"],
    ];
    let is_name = |name: &&String| {
        name.rsplit_once('.').is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && (1..=5).contains(&extension.len())
                && extension.chars().all(char::is_alphanumeric)
                && extension.chars().any(char::is_alphabetic)
        })
    };
    let named = lower.windows(2).enumerate().filter(|(_, pair)| NAMED.iter().any(|known| known == pair));
    let mut names = named.filter_map(|(at, _)| words.get(at + 2).filter(is_name));
    names.next().map(|name| Demand::File(name.clone()))
}
