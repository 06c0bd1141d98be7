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

/// A report as it is delivered: characters that control a terminal are visible, links replace pictures outside of the
/// report's directory, which a viewer would fetch, and markup is text, as in the dashboard. Code stays unchanged.
pub(crate) fn report(body: &str) -> String {
    let body = redacted(body);
    let body = text(&body);
    let mut safe = String::with_capacity(body.len());
    let mut fence: Option<(char, usize)> = None;
    let mut has_code = true;
    for line in body.split_inclusive('\n') {
        let marks = line.trim_start_matches(' ');
        let kind = marks.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = kind.map_or(0, |kind| marks.chars().take_while(|c| *c == kind).count());
        let info = marks[length..].trim();
        match (fence, kind) {
            (None, Some(kind)) if length >= 3 && !info.contains('`') => fence = Some((kind, length)),
            (Some((open, least)), Some(kind)) if kind == open && length >= least && info.is_empty() => {
                fence = None;
            }
            (Some(_), _) => {}
            (None, _) => {
                has_code |= marks.trim().is_empty();
                safe += &without_markup(line, &mut has_code);
                continue;
            }
        }
        has_code = true;
        safe += line;
    }
    safe
}

/// A line of Markdown without pictures from elsewhere and without markup. `has_code` becomes false if code does not end
/// on the line: what follows in the paragraph is checked as if it were no code.
fn without_markup(line: &str, has_code: &mut bool) -> String {
    let (mut safe, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find(['`', '!', '<', '\\']) {
        safe += &rest[..at];
        rest = &rest[at..];
        let length = match rest.as_bytes() {
            [b'`', ..] => {
                let (length, is_whole) = code(rest);
                *has_code &= is_whole;
                if *has_code { length } else { 1 }
            }
            [b'!', ..] if is_remote_picture(rest) => {
                rest = &rest[1..];
                continue;
            }
            [b'<', ..] if is_markup(&rest[1..], &safe) => {
                safe += "\\<";
                rest = &rest[1..];
                continue;
            }
            [b'\\', b'`' | b'!' | b'<' | b'\\', ..] => 2,
            _ => 1,
        };
        safe += &rest[..length];
        rest = &rest[length..];
    }
    safe + rest
}

/// Length of the code that the text begins with, and whether it ends on the line; else that of its ticks.
fn code(text: &str) -> (usize, bool) {
    let ticks = text.bytes().take_while(|b| *b == b'`').count();
    let (fence, within) = text.split_at(ticks);
    let mut from = 0;
    while let Some(at) = within[from..].find(fence) {
        let end = from + at + ticks;
        if !within[end..].starts_with('`') {
            return (ticks + end, true);
        }
        from = end + within[end..].bytes().take_while(|b| *b == b'`').count();
    }
    (ticks, false)
}

/// Returns true if the text begins with a picture, unless it names a file of the report's directory on the same line.
fn is_remote_picture(text: &str) -> bool {
    let Some((label, place)) =
        text.strip_prefix("![").map(|rest| rest.split_once("](").unwrap_or((rest, "")))
    else {
        return false;
    };
    let place = place.split([')', ' ', '\n']).next().unwrap_or_default();
    let is_path = |c: char| c.is_alphanumeric() || "/._-%".contains(c);
    // In such a label, another bracket may end it.
    label.contains(['[', ']', '`', '\\', '<'])
        || place.is_empty()
        || place.starts_with("//")
        || !place.chars().all(is_path)
}

/// Returns true if a `<` after `before` begins markup. An address in `<>` is none, and a line break within text may stay.
fn is_markup(text: &str, before: &str) -> bool {
    let name = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
    let is_tag = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && (name.is_empty() || name.starts_with(|c: char| c.is_whitespace() || c == '/' || c == '>'));
    let is_break = ["br>", "br/>", "br />"].iter().any(|tag| text.starts_with(tag));
    let is_within = before.contains(char::is_alphabetic);
    text.starts_with(['/', '!', '?']) || is_tag && !(is_break && is_within)
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
            ("![a](\nhttp://h) ![a](http&#58;//h)", "[a](\nhttp://h) [a](http&#58;//h)"),
            ("![a [b](x.png) c](//h) ![`](x.png)`](//h)", "[a [b](x.png) c](//h) [`](x.png)`](//h)"),
            ("<IMG alt='x' src=\"http://e.org/p\">!", "\\<IMG alt='x' src=\"http://e.org/p\">!"),
            ("<video\nsrc=//h></video> <!-- <?x", "\\<video\nsrc=//h>\\</video> \\<!-- \\<?x"),
            ("a < b, 1 <2, <https://e.org?a=b>, |a<br>b|", "a < b, 1 <2, <https://e.org?a=b>, |a<br>b|"),
            ("<br>\n\\<i> \\`<i>`", "\\<br>\n\\<i> \\`\\<i>`"),
            ("a `b\nc` ![x](http://h) `d\n\n`<i>`", "a `b\nc` [x](http://h) `d\n\n`<i>`"),
            (
                "`![a](http://h)` and ``![`](http://h)`` ![b](http://h)",
                "`![a](http://h)` and ``![`](http://h)`` [b](http://h)",
            ),
            ("wow! [a](http://h)", "wow! [a](http://h)"),
            ("no end ![a", "no end [a"),
            ("```md\n![a](http://h)\n```\n![b](http://h)\n", "```md\n![a](http://h)\n```\n[b](http://h)\n"),
            ("~~~\n```\n![a](http://h)\n", "~~~\n```\n![a](http://h)\n"),
            ("```\n``` x\n```\n![a](http://h)\n", "```\n``` x\n```\n[a](http://h)\n"),
        ] {
            assert_eq!(report(written), wanted);
        }
        assert_eq!(report("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
    }
}
