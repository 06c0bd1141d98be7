//! What models, tools and documents wrote, made harmless before it is shown: they write what they like.

use std::borrow::Cow;

/// Control characters, and those that turn the direction of text around.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of several lines without what could move the cursor or hide what is written.
pub(crate) fn text(text: &str) -> String {
    text.chars().filter(|c| *c == '\n' || *c == '\t' || !is_control(*c)).collect()
}

/// Text of our own, which may be painted: whatever else could steer a terminal is taken out.
pub(crate) fn painted(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_control(c) && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let taken = match paint(rest) {
            0 => {
                if c == '\n' || c == '\t' || !is_control(c) {
                    kept.push(c);
                }
                c.len_utf8()
            }
            length => {
                kept.push_str(&rest[..length]);
                length
            }
        };
        rest = &rest[taken..];
    }
    Cow::Owned(kept)
}

/// How long the sequence is that sets colours and nothing else, if the text begins with one; else 0.
fn paint(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let numbers = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b';').count();
    if rest[numbers..].starts_with('m') { numbers + 3 } else { 0 }
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
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    escaped
}

/// A report as it is delivered: without what could steer a terminal, and with links in the place of pictures that lie
/// elsewhere, which whoever shows the report would fetch. Code stays as it is written.
pub(crate) fn report(body: &str) -> String {
    let body = text(body);
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
                safe.push_str(&without_pictures(line));
                continue;
            }
        }
        safe.push_str(line);
    }
    safe
}

/// A line of Markdown with links in the place of pictures that lie elsewhere.
fn without_pictures(line: &str) -> String {
    let (mut safe, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find(['`', '!', '<']) {
        safe.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match rest.as_bytes().first() {
            Some(b'`') => code(rest),
            Some(b'!') if is_remote_picture(rest) => {
                rest = &rest[1..];
                continue;
            }
            Some(b'<') => match picture_tag(rest) {
                Some((length, source)) => {
                    safe.push_str(&format!("[picture]({source})"));
                    rest = &rest[length..];
                    continue;
                }
                None => 1,
            },
            Some(_) | None => 1,
        };
        safe.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    safe.push_str(rest);
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
        Some(_) | None => value.split(char::is_whitespace).next(),
    };
    let source = value.unwrap_or_default().trim_end_matches('/');
    is_elsewhere(source).then(|| (end + 1, source.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_taken_out_and_paint_stays() {
        let evil = "a\u{1b}]0;title\u{7}b\u{9b}2Jc\u{202e}d\u{200f}\r\n\t\u{7f}e";
        assert_eq!(text(evil), "a]0;titleb2Jcd\n\te");
        assert_eq!(painted(evil), "a]0;titleb2Jcd\n\te");
        let ours = "\u{1b}[1;32mdone\u{1b}[0m";
        assert_eq!(painted(ours), ours);
        assert_eq!(painted("\u{1b}[2Jx\u{1b}[31my\u{1b}[m\u{1b}[31"), "[2Jx\u{1b}[31my\u{1b}[m[31");
        assert!(matches!(painted("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_is_the_same_value_with_everything_escaped() {
        let value = serde_json::json!({ "a\u{202e}": "x\u{1b}[2J\u{9b}\u{7f}\u{2066}\n\"é" });
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
        assert_eq!(report("a\u{1b}[2J\u{202e}b"), "a[2Jb");
    }
}
