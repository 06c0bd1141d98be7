//! HTML as text, line by line: what stands on line n of the source stands on line n of the text.

/// Removes tags, scripts, styles and comments; headings become `#` headings. Keeps every line break.
pub(super) fn to_text(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let used = if rest.starts_with('<') { tag(rest, &mut out) } else { entity(rest, &mut out) };
        rest = &rest[used..];
    }
    out.push_str(rest);
    out
}

/// Handles what begins with `<` and gives how many bytes it takes.
fn tag(rest: &str, out: &mut String) -> usize {
    let used = if rest.starts_with("<!--") {
        rest.find("-->").map_or(rest.len(), |end| end + 3)
    } else if !rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
        out.push('<');
        return 1;
    } else {
        element(rest, out)
    };
    out.extend(rest[..used].matches('\n'));
    used
}

fn element(rest: &str, out: &mut String) -> usize {
    let end = rest.find('>').map_or(rest.len(), |end| end + 1);
    let name: String = rest[1..]
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '/')
        .collect::<String>()
        .to_ascii_lowercase();
    match name.as_str() {
        "script" | "style" => skip_element(rest, end, &name),
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
            let level = usize::from(name.as_bytes()[1] - b'0');
            out.push_str(&"#".repeat(level));
            out.push(' ');
            end
        }
        "b" | "i" | "em" | "strong" | "a" | "span" | "code" | "/b" | "/i" | "/em" | "/strong" | "/a"
        | "/span" | "/code" => end,
        _ => {
            if !out.ends_with([' ', '\n']) {
                out.push(' ');
            }
            end
        }
    }
}

/// Where the content of a script or style ends, its closing tag included.
fn skip_element(rest: &str, from: usize, name: &str) -> usize {
    let bytes = rest.as_bytes();
    let closing = format!("</{name}");
    let at = (from..bytes.len().saturating_sub(closing.len() - 1))
        .find(|at| bytes[*at..*at + closing.len()].eq_ignore_ascii_case(closing.as_bytes()));
    match at {
        Some(at) => rest[at..].find('>').map_or(rest.len(), |end| at + end + 1),
        None => rest.len(),
    }
}

fn entity(rest: &str, out: &mut String) -> usize {
    let name: String =
        rest[1..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '#').take(10).collect();
    let known = match name.as_str() {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        other => numbered(other),
    };
    let Some(c) = known.filter(|_| rest[1 + name.len()..].starts_with(';')) else {
        out.push('&');
        return 1;
    };
    out.push(c);
    name.len() + 2
}

fn numbered(name: &str) -> Option<char> {
    let digits = name.strip_prefix('#')?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    char::from_u32(code).filter(|c| !c.is_control())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_go_and_lines_stay() {
        for (source, text) in [
            ("<p>One &amp; two</p>", " One & two "),
            ("<h2 id=x>Title</h2>\n<p\nclass=a>text", "## Title \n\ntext"),
            ("a<script>\nif (1 < 2) {}\n</SCRIPT>b", "a\n\nb"),
            ("a<!-- \n x > y -->b", "a\nb"),
            ("1 < 2 & 3 &unknown; &#252; &#x41;", "1 < 2 & 3 &unknown; ü A"),
            ("<b>bold</b>er", "bolder"),
            ("unclosed <div", "unclosed "),
        ] {
            assert_eq!(to_text(source), text, "{source}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_lost_or_made(source in "([a-z<>&;#/!\\-\n ü]|<script>|</script>|<!--|-->|&#10;){0,60}") {
            prop_assert_eq!(to_text(&source).matches('\n').count(), source.matches('\n').count());
        }
    }
}
