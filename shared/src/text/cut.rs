//! Texts cut to a length. A cut is marked with an ellipsis, and never falls within a character.

/// Stands where something is missing.
pub const ELLIPSIS: &str = "…";

/// The first `most` characters of a text, followed by an ellipsis when there are more.
#[must_use]
pub fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}{ELLIPSIS}", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text on one line, with the words one space apart.
#[must_use]
pub fn normalise_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first `most` characters of a text on one line, with an ellipsis when there are more. Control characters stand for
/// spaces: nothing that a model writes breaks a list or a terminal.
#[must_use]
pub fn one_line(text: &str, most: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    beginning(&words.collect::<Vec<_>>().join(" "), most)
}

/// What an error quotes of others: the first `most` characters, with control characters written out, but for line breaks
/// and tabs.
#[must_use]
pub fn quoted(text: &str, most: usize) -> String {
    let mut quoted = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == most {
            quoted.push_str(ELLIPSIS);
            break;
        }
        match c {
            '\n' | '\t' => quoted.push(c),
            c if c.is_control() => quoted.extend(c.escape_default()),
            c => quoted.push(c),
        }
    }
    quoted
}

/// The first line of a text, of at most `most` characters.
#[must_use]
pub fn first_line(text: &str, most: usize) -> String {
    beginning(text.trim().lines().next().unwrap_or_default(), most)
}

/// The text in at most `most` bytes, the ellipsis included; the ellipsis alone where there is no room for more.
#[must_use]
pub fn within_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(ELLIPSIS.len()));
    format!("{}{ELLIPSIS}", &text[..end])
}

/// The text cut at a word to at most `most` characters, the ellipsis included.
#[must_use]
pub fn at_word(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    let end = cut.rfind(char::is_whitespace).unwrap_or(cut.len());
    format!("{}{ELLIPSIS}", cut[..end].trim_end_matches([',', ';', ':', ' ', '–', '—']))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_is_marked_and_a_text_that_fits_is_not() {
        assert_eq!((beginning("äöü", 2).as_str(), beginning("äöü", 3).as_str()), ("äö…", "äöü"));
        assert_eq!(one_line(" a\n\u{1b}b\t c ", 9), "a b c");
        assert_eq!(first_line("\n one two\nthree", 3), "one…");
        assert_eq!(quoted("a\n\u{1b}[31m\u{9b}\tb", 7), "a\n\\u{1b}[31m…");
        assert_eq!((within_bytes("äöü", 5).as_str(), within_bytes("äöü", 6).as_str()), ("ä…", "äöü"));
        assert_eq!(
            (at_word("one two three", 9).as_str(), at_word("short", 9).as_str()),
            ("one two…", "short")
        );
    }

    proptest! {
        #[test]
        fn lengths_are_kept(text in "\\PC{0,60}", most in 0usize..50) {
            prop_assert!(beginning(&text, most).chars().count() <= most + 1);
            prop_assert!(one_line(&text, most).chars().count() <= most + 1);
            prop_assert!(within_bytes(&text, most).len() <= most.max(ELLIPSIS.len()));
            prop_assert!(at_word(&text, most).chars().count() <= most.max(1));
        }
    }
}
