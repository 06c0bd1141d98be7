//! Words put together as people write them.

/// A number with its noun: `1 run`, `2 runs`.
#[must_use]
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
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
            ("worker", false),
            ("alpha", true),
            ("Editor", true),
            ("user_tester", false),
            ("umpire", true),
            ("unit_tester", false),
        ] {
            assert_eq!(is_with_an(word), wanted, "{word}");
        }
    }
}
