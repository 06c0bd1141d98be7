//! Text of servers in which nothing hides. Pure.

use muster_shared::text::is_control;
use serde_json::Value;

/// The text with each character that hides or steers shown as its number: `⟨U+202E⟩`. Line breaks and tabs stay.
#[must_use]
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\n' | '\t') || !is_control(c) {
            shown.push(c);
        } else if c != '\r' {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
        }
    }
    shown
}

/// Whether a text carries words that only a machine can read: letters of the tag block (U+E0000 to U+E007F), or bytes
/// written as variation selectors, of which two never follow each other in honest text.
#[must_use]
pub(crate) fn hides_words(text: &str) -> bool {
    let is_selector = |c: char| matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
    let mut before = '\0';
    for c in text.chars() {
        if matches!(c, '\u{e0000}'..='\u{e007f}') || (is_selector(c) && is_selector(before)) {
            return true;
        }
        before = c;
    }
    false
}

/// The same for every text and key in a value.
#[must_use]
pub(crate) fn value_hides_words(value: &Value) -> bool {
    match value {
        Value::String(text) => hides_words(text),
        Value::Array(items) => items.iter().any(value_hides_words),
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| hides_words(key) || value_hides_words(value))
        }
        _ => false,
    }
}

/// The value with every text in it made [`visible`]. Keys stay: arguments are named by them.
#[must_use]
pub(crate) fn visible_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(visible_value).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (key, visible_value(value))).collect())
        }
        _ => value,
    }
}

/// Whether a value is nested no deeper than this. Looks no deeper itself.
#[must_use]
pub(crate) fn is_within_depth(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => most > 0 && items.iter().all(|item| is_within_depth(item, most - 1)),
        Value::Object(fields) => most > 0 && fields.values().all(|item| is_within_depth(item, most - 1)),
        _ => true,
    }
}

/// The text cut to a number of bytes, with the cut marked.
#[must_use]
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{} [cut: {} bytes in all]", &text[..text.floor_char_boundary(most)], text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_hides_is_shown_as_its_number() {
        for (given, shown) in [
            ("two\nlines\tand a tab\r\n", "two\nlines\tand a tab\n"),
            ("a\u{202e}b", "a⟨U+202E⟩b"),
            ("zero\u{200b}width", "zero⟨U+200B⟩width"),
            ("\u{1b}[2J", "⟨U+001B⟩[2J"),
            ("\u{e0041}", "⟨U+E0041⟩"),
            ("äöü 漢字 👍", "äöü 漢字 👍"),
        ] {
            assert_eq!(visible(given), shown);
        }
    }

    #[test]
    fn words_for_machines_alone_are_found_wherever_they_stand() {
        assert!(hides_words("fine\u{e0049}\u{e0067}"));
        assert!(hides_words("x\u{fe00}\u{fe01}"));
        assert!(!hides_words("❤\u{fe0f} and ☎\u{fe0e}"));
        assert!(value_hides_words(&json!({"properties": {"a": {"description": "\u{e0041}"}}})));
        assert!(value_hides_words(&json!({"a\u{e0041}": 1})));
        assert!(!value_hides_words(&json!({"a": ["b", 1, null]})));
    }

    #[test]
    fn depth_is_counted_by_lists_and_objects() {
        assert!(is_within_depth(&json!("x"), 0));
        assert!(!is_within_depth(&json!([]), 0));
        assert!(is_within_depth(&json!([{"a": 1}]), 2));
        assert!(!is_within_depth(&json!([{"a": [1]}]), 2));
    }

    proptest! {
        #[test]
        fn nothing_that_hides_is_left(text in ".*") {
            prop_assert!(visible(&text).chars().all(|c| matches!(c, '\n' | '\t') || !is_control(c)));
        }

        #[test]
        fn a_cut_text_begins_as_the_whole_does(text in ".*", most in 0_usize..40) {
            let cut = cut(&text, most);
            let kept = text.floor_char_boundary(most.min(text.len()));
            prop_assert!(cut.starts_with(&text[..kept]));
        }
    }
}
