//! Words put together as people write them.

/// A number with its noun: `1 run`, `2 runs`.
#[must_use]
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A word with its article: `a worker`, `an auditor`.
#[must_use]
pub fn with_article(word: &str) -> String {
    format!("{} {word}", if is_with_an(word) { "an" } else { "a" })
}

/// Whether a word is spoken with "an".
#[must_use]
pub fn is_with_an(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let vowel = lower.starts_with(['a', 'e', 'i', 'o', 'u']);
    // Spoken with a consonant before the vowel.
    let not_heard = ["uni", "us", "ut", "eu", "one"].iter().any(|start| lower.starts_with(start));
    vowel && !not_heard
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_go_by_the_sound() {
        for (word, wanted) in [
            ("worker", "a worker"),
            ("alpha", "an alpha"),
            ("Editor", "an Editor"),
            ("user_tester", "a user_tester"),
            ("umpire", "an umpire"),
            ("unit_tester", "a unit_tester"),
        ] {
            assert_eq!(with_article(word), wanted);
        }
    }
}
