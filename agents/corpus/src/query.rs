//! From what a model or a rule writes to a query that FTS5 always accepts.
//!
//! FTS5 has operators, column filters and quotes of its own. Nothing of what comes in reaches it but
//! letters and digits, always within quotes, joined by `OR`; BM25 ranks what has more and rarer words.

use muster_shared::text::stop::is_light_in_search;

/// Most terms of a query.
const MAX_TERMS: usize = 32;

/// Longest word, in characters.
const MAX_WORD: usize = 64;

/// Most words of a phrase.
const MAX_PHRASE: usize = 8;

/// Longest query that is looked at, in bytes.
const MAX_QUERY: usize = 4_000;

/// The FTS5 query for free text; none when it has no word in it.
///
/// A name such as `max_deliver` or `maxDeliver` is looked for as a whole and by its parts; what stands
/// in double quotes is looked for as a phrase too. Stop words are left out unless there is nothing else.
pub(super) fn free_text(query: &str) -> Option<String> {
    let query = &query[..query.floor_char_boundary(MAX_QUERY)];
    let mut terms = Terms::default();
    for (index, piece) in query.split('"').enumerate() {
        if index % 2 == 1 {
            terms.phrase(&words(piece));
        }
        piece.split_whitespace().for_each(|chunk| terms.chunk(chunk, true));
    }
    if terms.0.is_empty() {
        query.split_whitespace().for_each(|chunk| terms.chunk(chunk, false));
    }
    terms.query()
}

/// The parts of names in camel case within a text, such as `max Deliver` for `maxDeliver`.
pub(super) fn camel_parts(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        if is_camel(word) {
            for part in split_camel(word) {
                out.push_str(part);
                out.push(' ');
            }
        }
    }
    out
}

#[derive(Default)]
struct Terms(Vec<String>);

impl Terms {
    /// A run of characters without a space: a word, or a name of several.
    fn chunk(&mut self, chunk: &str, skip_stop_words: bool) {
        let chunk = chunk.trim_matches(|c: char| !c.is_alphanumeric());
        let chunk = chunk.strip_suffix("'s").or_else(|| chunk.strip_suffix("’s")).unwrap_or(chunk);
        let parts = words(chunk);
        if parts.len() > 1 {
            self.phrase(&parts);
        }
        for part in parts {
            let lower = part.to_lowercase();
            if skip_stop_words && is_light_in_search(&lower) {
                continue;
            }
            self.phrase(&[part]);
            if is_camel(part) {
                let pieces: Vec<&str> = split_camel(part);
                self.phrase(&pieces);
                pieces.iter().filter(|piece| piece.len() > 2).for_each(|piece| self.phrase(&[piece]));
            }
        }
    }

    fn phrase(&mut self, words: &[&str]) {
        if words.is_empty() || self.0.len() >= MAX_TERMS {
            return;
        }
        let words: Vec<String> = words
            .iter()
            .take(MAX_PHRASE)
            .map(|word| word.chars().take(MAX_WORD).collect::<String>())
            .collect();
        let term = words.join(" ").to_lowercase();
        if !self.0.contains(&term) {
            self.0.push(term);
        }
    }

    fn query(self) -> Option<String> {
        let quoted: Vec<String> = self.0.iter().map(|term| format!("\"{term}\"")).collect();
        (!quoted.is_empty()).then(|| quoted.join(" OR "))
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

fn is_camel(word: &str) -> bool {
    word.len() <= MAX_WORD
        && word.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

fn split_camel(word: &str) -> Vec<&str> {
    let bytes = word.as_bytes();
    let mut cuts = vec![0];
    cuts.extend(
        (1..bytes.len()).filter(|at| bytes[at - 1].is_ascii_lowercase() && bytes[*at].is_ascii_uppercase()),
    );
    cuts.push(word.len());
    cuts.windows(2).map(|pair| &word[pair[0]..pair[1]]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn free_text_becomes_quoted_words() {
        for (query, expected) in [
            ("What limits delegation loops?", Some("\"limits\" OR \"delegation\" OR \"loops\"")),
            ("max_deliver", Some("\"max deliver\" OR \"max\" OR \"deliver\"")),
            ("maxDeliver", Some("\"maxdeliver\" OR \"max deliver\" OR \"max\" OR \"deliver\"")),
            ("say \"hot spot\" now", Some("\"say\" OR \"hot spot\" OR \"hot\" OR \"spot\" OR \"now\"")),
            ("the worker's death", Some("\"worker\" OR \"death\"")),
            (
                "NEAR(a b) AND c* OR -d ^e col:f",
                Some(
                    "\"near a\" OR \"near\" OR \"b\" OR \"c\" OR \"d\" OR \"e\" OR \"col f\" OR \"col\" OR \"f\"",
                ),
            ),
            ("what is it", Some("\"what\" OR \"is\" OR \"it\"")),
            ("", None),
            ("?!\"'", None),
        ] {
            assert_eq!(free_text(query).as_deref(), expected, "{query}");
        }
        assert!(free_text(&"word7 ".repeat(10_000)).unwrap().len() < 100);
        let many: String = (0..1_000).map(|n| format!("w{n} ")).collect();
        assert_eq!(free_text(&many).unwrap().matches(" OR ").count(), MAX_TERMS - 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn fts_accepts_whatever_comes_in(text in "(\\PC|[\"'*^:(){}\\-+\0]|AND|OR|NOT|NEAR){0,40}") {
            thread_local! {
                static DB: rusqlite::Connection = {
                    let db = rusqlite::Connection::open_in_memory().unwrap();
                    db.execute_batch(crate::index::SCHEMA).unwrap();
                    db
                };
            }
            DB.with(|db| -> Result<(), TestCaseError> {
                if let Some(query) = free_text(&text) {
                    let found = db.query_row("SELECT count(*) FROM words WHERE words MATCH ?1", [&query], |row| row.get::<_, i64>(0));
                    prop_assert!(found.is_ok(), "{query}: {found:?}");
                }
                Ok(())
            })?;
        }
    }
}
