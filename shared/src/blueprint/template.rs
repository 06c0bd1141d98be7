//! Texts with references in double braces.

use std::sync::LazyLock;

use regex::Regex;

use super::names::Path;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextPiece<'a> {
    /// Words, as they stand.
    Words(&'a str),
    /// A reference.
    Path(Path),
    /// Double braces around what is no reference, and why it is none.
    Wrong(String),
}

/// The pieces of a text, in order.
pub(super) fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let (mut pieces, mut from) = (Vec::new(), 0);
    for found in BRACES.captures_iter(text) {
        let whole = found.get_match();
        if whole.start() > from {
            pieces.push(TextPiece::Words(&text[from..whole.start()]));
        }
        pieces.push(match Path::read(found["path"].trim()) {
            Ok(path) => TextPiece::Path(path),
            Err(why) => TextPiece::Wrong(why),
        });
        from = whole.end();
    }
    if from < text.len() {
        pieces.push(TextPiece::Words(&text[from..]));
    }
    pieces
}

/// The references of a text.
pub(super) fn paths(text: &str) -> impl Iterator<Item = Path> + '_ {
    pieces(text)
        .into_iter()
        .filter_map(|piece| if let TextPiece::Path(path) = piece { Some(path) } else { None })
}

#[expect(clippy::expect_used, reason = "a constant pattern, used by tests")]
static BRACES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\{\{(?<path>[^{}]*)\}\}").expect("a pattern"));
