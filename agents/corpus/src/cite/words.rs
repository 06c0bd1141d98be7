//! The telling words of a text, in a form in which a paraphrase has them too.

use muster_shared::text::stop::{is_light_in_search, is_link};
use muster_shared::text::{MONTHS, number_in_words, numerals};

/// Letters of a word that are compared: endings differ between a text and what is said of it.
const STEM: usize = 6;

/// Most telling words of one statement.
const MOST: usize = 60;

/// What a statement says, as far as a rule can look for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Telling {
    /// Telling words, cut to their stem, each once.
    pub(super) words: Vec<String>,
    /// Names of several parts, or with digits: `max_deliver`, `sha256`. In lower case, without `_`.
    pub(super) names: Vec<String>,
    /// Numbers.
    pub(super) numbers: Vec<String>,
}

impl Telling {
    /// Whether it says anything that could be looked for.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.names.is_empty() && self.numbers.is_empty()
    }

    pub(super) fn of(text: &str) -> Self {
        let mut telling = Self::default();
        for chunk in chunks(text) {
            if is_name(chunk) {
                add(&mut telling.names, chunk.replace('_', "").to_lowercase());
            }
            for word in words_of(chunk) {
                // "See a.md:3" says nothing of it.
                if word != "see" && !is_link(&word) && !is_light_in_search(&word) && word.chars().count() > 2
                {
                    add(&mut telling.words, stem(&word));
                }
            }
        }
        numerals(text).into_iter().for_each(|number| add(&mut telling.numbers, number.digits));
        telling
    }
}

fn add(list: &mut Vec<String>, word: String) {
    if list.len() < MOST && !list.contains(&word) {
        list.push(word);
    }
}

/// Runs of letters, digits and `_`.
pub(super) fn chunks(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|chunk| !chunk.is_empty())
}

/// Whether a chunk is a name that a text has as it is, or does not have.
pub(super) fn is_name(chunk: &str) -> bool {
    let letters = chunk.chars().filter(|c| c.is_alphabetic()).count();
    let begins_with_letter = chunk.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let digits = chunk.chars().any(|c| c.is_ascii_digit()) && begins_with_letter;
    let joined = chunk.trim_matches('_').contains('_');
    let pairs = || chunk.chars().zip(chunk.chars().skip(1));
    let camel = pairs().any(|(one, next)| one.is_lowercase() && next.is_uppercase());
    letters > 1 && (digits || joined || camel)
}

/// The words of a chunk in lower case: parts of names one by one, digits left out.
pub(super) fn words_of(chunk: &str) -> impl Iterator<Item = String> + '_ {
    let parts = chunk.split(|c: char| !c.is_alphabetic()).filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        let mut cuts = vec![0];
        let pairs = part.char_indices().zip(part.char_indices().skip(1));
        cuts.extend(
            pairs
                .filter(|((_, one), (_, next))| one.is_lowercase() && next.is_uppercase())
                .map(|(_, (at, _))| at),
        );
        cuts.push(part.len());
        cuts.windows(2).map(|cut| part[cut[0]..cut[1]].to_lowercase()).collect::<Vec<_>>()
    })
}

/// A word without its ending.
pub(super) fn stem(word: &str) -> String {
    const ENDINGS: [&str; 13] =
        ["ations", "ation", "ating", "ated", "ates", "ate", "ators", "ings", "ing", "ies", "ed", "es", "s"];
    let long = |rest: &str| rest.chars().count() >= 3;
    let cut = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending).filter(|rest| long(rest)));
    let cut = if word.ends_with("ss") { word } else { cut.unwrap_or(word) };
    let cut =
        cut.strip_suffix('e').or_else(|| cut.strip_suffix('y')).filter(|rest| long(rest)).unwrap_or(cut);
    cut.chars().take(STEM).collect()
}

/// Numbers that are written as words, and months.
pub(super) fn number_of(word: &str) -> Option<usize> {
    const FURTHER: [(&str, usize); 12] = [
        ("thirty", 30),
        ("forty", 40),
        ("fifty", 50),
        ("sixty", 60),
        ("seventy", 70),
        ("eighty", 80),
        ("ninety", 90),
        ("hundred", 100),
        ("thousand", 1_000),
        ("million", 1_000_000),
        ("once", 1),
        ("twice", 2),
    ];
    let further = || FURTHER.iter().find(|(known, _)| *known == word).map(|(_, number)| *number);
    let month = || MONTHS.iter().position(|known| *known == word).map(|month| month + 1);
    number_in_words(word).or_else(further).or_else(month)
}

/// Whether a word in lower case turns what is said into its opposite.
pub(super) fn negates(word: &str) -> bool {
    [
        "not", "no", "never", "none", "cannot", "without", "unless", "neither", "nor", "nothing", "nobody",
        "don", "doesn", "isn", "won", "didn", "aren", "can",
    ]
    .contains(&word)
        && word != "can"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_taken_apart() {
        let telling =
            Telling::of("Delegations are limited by `max_depth` to 2,009 levels of sha256, in AckWait.");
        assert_eq!(telling.numbers, ["2009"]);
        assert_eq!(telling.names, ["maxdepth", "sha256", "ackwait"]);
        for word in ["deleg", "limit", "depth", "level", "wait"] {
            assert!(telling.words.contains(&word.to_owned()), "{word}: {telling:?}");
        }
        assert!(Telling::of("of the (…)").is_empty());
        for (one, other) in [("limits", "limited"), ("policy", "policies"), ("delegation", "delegate")] {
            assert_eq!(stem(one), stem(other));
        }
    }
}
