//! Dictionary for mutations: listed words, and those in a corpus.

use std::collections::BTreeSet;

use mutatis::Context;

/// Longest word that is taken from a corpus, in bytes: hashes and ids of runs are longer.
const LONGEST: usize = 24;

/// Words that mutations insert.
#[derive(Debug)]
pub(super) struct Words {
    own: &'static [&'static str],
    of_corpus: Vec<String>,
}

impl Words {
    /// Collects the parts between spaces of each text, and the names and marks in these parts.
    pub(super) fn new(own: &'static [&'static str], texts: impl Iterator<Item = String>) -> Self {
        let mut found = BTreeSet::new();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
        for text in texts {
            for part in text.split_whitespace() {
                let words = part.split(is_name).chain(part.split(|c: char| !is_name(c))).chain([part]);
                let short = words.filter(|word| (1..=LONGEST).contains(&word.len()));
                found.extend(short.map(str::to_owned));
            }
        }
        Self { own, of_corpus: found.into_iter().collect() }
    }

    /// One of them: a target's own are drawn as often as all others.
    pub(super) fn draw(&self, context: &mut Context) -> Option<&str> {
        let mut below = |end| context.rng().gen_index(end).unwrap_or(0);
        if self.of_corpus.is_empty() || (!self.own.is_empty() && below(2) == 0) {
            return self.own.get(below(self.own.len())).copied();
        }
        self.of_corpus.get(below(self.of_corpus.len())).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_corpus_are_names_marks_and_short_parts() {
        let long = "x".repeat(LONGEST + 1);
        let words = Words::new(&[], [format!("{{\"a_b\": \"{long}\"}} {{{{1.c}}}}")].into_iter());
        assert_eq!(
            words.of_corpus,
            ["\"", "\":", "\"}", ".", "1", "a_b", "c", "{\"", "{\"a_b\":", "{{", "{{1.c}}", "}}"]
        );
    }
}
