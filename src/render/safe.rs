//! What models, tools, documents and the bus wrote, made harmless before it is shown: they write what they like. What could
//! steer a terminal, turn text around or hide in it is shown as what it is, `\u{1b}`.

use std::borrow::Cow;

pub(crate) use muster_shared::text::is_control;

use super::paint;
use crate::redaction::redacted;

/// Whether a joiner belongs to the writing that it stands in: letters of Arabic and Indic scripts, and emoji.
fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    let is_letter = |c: char| matches!(c, '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}');
    let is_picture = |c: char| matches!(c, '\u{2600}'..='\u{27bf}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}');
    let both = |is: &dyn Fn(char) -> bool| before.is_some_and(is) && after.is_some_and(is);
    match c {
        '\u{200c}' => both(&is_letter),
        '\u{200d}' => both(&is_letter) || both(&is_picture),
        _ => false,
    }
}

/// A text of several lines in which what could steer a terminal, or hide, is shown as what it is.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    visible(text, |_| None)
}

/// The same for text of ours, which may be painted by us. Whoever else paints does not know how: see [`paint`].
pub(crate) fn painted(text: &str) -> Cow<'_, str> {
    visible(text, paint::own)
}

/// `own` says of what begins with an escape how long it is and what a terminal is given for it, if it is ours.
fn visible(text: &str, own: impl Fn(&str) -> Option<(usize, String)>) -> Cow<'_, str> {
    if !text.chars().any(|c| is_control(c) && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let (mut kept, mut rest, mut before) = (String::with_capacity(text.len() + 64), text, None);
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let plain = matches!(c, '\n' | '\t') || !is_control(c);
        rest = after;
        if plain || joins(before, c, after.chars().next()) {
            kept.push(c);
        } else if c == '\u{1b}'
            && let Some((length, shown)) = own(after)
        {
            kept += &shown;
            rest = &after[length..];
        } else if !(c == '\r' && after.starts_with('\n')) {
            // How some write the end of a line is no more than that.
            kept.extend(c.escape_unicode());
        }
        before = Some(c);
    }
    Cow::Owned(kept)
}

/// JSON in which what could steer a terminal stands escaped, whoever prints it.
pub(crate) fn json(json: String) -> String {
    // Outside of strings there is none but line ends, and within them those are escaped already.
    let is_safe = |c: char| c == '\n' || !is_control(c);
    if json.chars().all(is_safe) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_safe(c) {
            escaped.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
        }
    }
    escaped
}

/// A report as it is delivered: what could steer a terminal is shown as what it is, and links stand in the place of pictures that lie
/// elsewhere, which whoever shows the report would fetch. Code stays as it is written.
pub(crate) fn report(body: &str) -> String {
    let body = redacted(body);
    let body = text(&body);
    let mut safe = String::with_capacity(body.len());
    let mut fence: Option<(char, usize)> = None;
    for line in body.split_inclusive('\n') {
        let marks = line.trim_start_matches(' ');
        let kind = marks.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = kind.map_or(0, |kind| marks.chars().take_while(|c| *c == kind).count());
        match (fence, kind) {
            (None, Some(kind)) if length >= 3 => fence = Some((kind, length)),
            (Some((open, least)), Some(kind)) if kind == open && length >= least => fence = None,
            (Some(_), _) => {}
            (None, _) => {
                safe += &without_pictures(line);
                continue;
            }
        }
        safe += line;
    }
    safe
}

/// A line of Markdown with links in the place of pictures that lie elsewhere.
fn without_pictures(line: &str) -> String {
    let (mut safe, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find(['`', '!', '<']) {
        safe += &rest[..at];
        rest = &rest[at..];
        let taken = match rest.as_bytes().first() {
            Some(b'`') => code(rest),
            Some(b'!') if is_remote_picture(rest) => {
                rest = &rest[1..];
                continue;
            }
            Some(b'<') => match picture_tag(rest) {
                Some((length, source)) => {
                    safe += &format!("[picture]({source})");
                    rest = &rest[length..];
                    continue;
                }
                None => 1,
            },
            _ => 1,
        };
        safe += &rest[..taken];
        rest = &rest[taken..];
    }
    safe += rest;
    safe
}

/// How long the code is that the text begins with; its ticks alone where it does not end on the line.
fn code(text: &str) -> usize {
    let ticks = text.bytes().take_while(|b| *b == b'`').count();
    let (fence, within) = text.split_at(ticks);
    let mut from = 0;
    while let Some(at) = within[from..].find(fence) {
        let end = from + at + ticks;
        if !within[end..].starts_with('`') {
            return ticks + end;
        }
        from = end + within[end..].bytes().take_while(|b| *b == b'`').count();
    }
    ticks
}

/// Whether the text begins with a picture that lies elsewhere, or by a name that may stand for one.
fn is_remote_picture(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("![") else { return false };
    let mut depth = 1_u32;
    let close = rest.char_indices().find(|(_, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let Some((close, _)) = close else { return false };
    match rest[close + 1..].strip_prefix('(') {
        Some(place) => is_elsewhere(place.trim_start().trim_start_matches('<')),
        // By the name of a link that is told elsewhere.
        None => true,
    }
}

/// Whether an address is one of another machine.
fn is_elsewhere(address: &str) -> bool {
    let scheme = address.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-')));
    let after = &address[scheme.unwrap_or(address.len())..];
    address.starts_with("//") || after.starts_with(':') && !address.starts_with("data:")
}

/// The length of a tag that shows a picture from elsewhere, and where that lies.
fn picture_tag(text: &str) -> Option<(usize, String)> {
    let tag = text.get(1..4)?;
    let end = text.find('>')?;
    if !tag.eq_ignore_ascii_case("img") {
        return None;
    }
    let inner = &text[4..end];
    let lower = inner.to_ascii_lowercase();
    let at = lower.find("src")? + 3;
    let value = inner[at..].trim_start().strip_prefix('=')?.trim_start();
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next(),
        _ => value.split(char::is_whitespace).next(),
    };
    let source = value.unwrap_or_default().trim_end_matches('/');
    is_elsewhere(source).then(|| (end + 1, source.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::paint::Paint;
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_as_what_it_is_and_our_paint_stays() {
        let evil = "a\u{1b}]0;title\u{7}b\u{9b}2Jc\u{202e}d\u{200f}\r\n\t\u{7f}e\r";
        let shown = "a\\u{1b}]0;title\\u{7}b\\u{9b}2Jc\\u{202e}d\\u{200f}\n\t\\u{7f}e\\u{d}";
        assert_eq!((text(evil).as_ref(), painted(evil).as_ref()), (shown, shown));
        let ours = Paint::COLOUR.good("done");
        assert_eq!(painted(&ours), "\u{1b}[32mdone\u{1b}[39m");
        assert!(!text(&ours).contains('\u{1b}'));
        assert_eq!(painted("\u{1b}[31mx\u{1b}[m"), "\\u{1b}[31mx\\u{1b}[m", "others do not paint");
        assert!(matches!(painted("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_hides_is_shown_and_what_joins_letters_stays() {
        assert_eq!(text("a\u{200b}b\u{feff}\u{2028}c\u{e0041}"), "a\\u{200b}b\\u{feff}\\u{2028}c\\u{e0041}");
        assert_eq!(text("a\u{200d}b"), "a\\u{200d}b");
        assert_eq!(text("a\u{ad}\u{3164}\u{e0100}\u{e01ef}"), "a\\u{ad}\\u{3164}\\u{e0100}\\u{e01ef}");
        for kept in ["می\u{200c}خواهم", "👩\u{200d}💻", "क्\u{200d}ष", "naïve – ünïcödé 漢字"]
        {
            assert_eq!(text(kept), kept);
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_steers_a_terminal(parts in vec(prop_oneof![any::<char>().prop_map(String::from),
            "[\u{0}-\u{20}\u{7f}-\u{a0}\u{200b}-\u{206f}]{1,4}", "\u{1b}[\\[\\]PX^_][0-9;]{0,6}[a-zA-Z\u{7}]"], 0..40)) {
            let written = parts.concat();
            let steers = |shown: &str| {
                let letters: Vec<char> = shown.chars().collect();
                (0..letters.len()).any(|at| {
                    let near = |by: usize| at.checked_add(by).and_then(|at| letters.get(at)).copied();
                    let before = at.checked_sub(1).and_then(|at| letters.get(at)).copied();
                    is_control(letters[at]) && !matches!(letters[at], '\n' | '\t') && !joins(before, letters[at], near(1))
                })
            };
            for shown in [text(&written), painted(&written)] {
                prop_assert!(!steers(&shown), "{written:?}: {shown:?}");
                prop_assert!(text(&shown) == shown, "once is enough: {shown:?}");
            }
            let plain: String = written.chars().filter(|c| !is_control(*c)).collect();
            prop_assert!(text(&plain) == plain, "what is harmless stays as it is: {plain:?}");
            let painted_by_us = Paint::COLOUR.warn(&written);
            let shown = painted(&painted_by_us);
            let inner = shown.strip_prefix("\u{1b}[33m").and_then(|rest| rest.strip_suffix("\u{1b}[39m"));
            prop_assert!(inner.is_some_and(|inner| !steers(inner)), "{shown:?}");
        }
    }

    #[test]
    fn json_is_the_same_value_with_everything_escaped() {
        let value =
            serde_json::json!({ "a\u{202e}": "x\u{1b}[2J\u{9b}\u{7f}\u{2066}\u{200b}\u{e0041}\n\"é" });
        let text = json(serde_json::to_string_pretty(&value).unwrap_or_default());
        assert!(!text.chars().any(|c| is_control(c) && c != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).ok(), Some(value));
    }

    #[test]
    fn pictures_from_elsewhere_become_links() {
        for (written, wanted) in [
            ("see ![a](https://e.org/x.png?q=1) end", "see [a](https://e.org/x.png?q=1) end"),
            ("![a [b] c](//e.org/x)![](<ftp://h/x>)", "[a [b] c](//e.org/x)[](<ftp://h/x>)"),
            ("![by name][far]", "[by name][far]"),
            ("![chart](charts/one.png)", "![chart](charts/one.png)"),
            ("<IMG alt='x' src=\"http://e.org/p\">!", "[picture](http://e.org/p)!"),
            ("<img src=//e.org/p />", "[picture](//e.org/p)"),
            ("<img src='here.png'> a < b", "<img src='here.png'> a < b"),
            (
                "`![a](http://h)` and ``![`](http://h)`` ![b](http://h)",
                "`![a](http://h)` and ``![`](http://h)`` [b](http://h)",
            ),
            ("wow! [a](http://h)", "wow! [a](http://h)"),
            ("no end ![a", "no end ![a"),
            ("```md\n![a](http://h)\n```\n![b](http://h)\n", "```md\n![a](http://h)\n```\n[b](http://h)\n"),
            ("~~~\n```\n![a](http://h)\n", "~~~\n```\n![a](http://h)\n"),
        ] {
            assert_eq!(report(written), wanted);
        }
        assert_eq!(report("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
    }
}
