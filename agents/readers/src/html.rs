//! HTML as text: blocks as lines, headings marked, rows of tables with tabs. For pages of the web, mail and books; it takes
//! whatever comes.

use crate::lines::Lines;

/// Elements whose content is no text for people.
const SKIPPED: [&str; 7] = ["script", "style", "head", "template", "noscript", "svg", "math"];
/// Elements that stand within a line.
const INLINE: [&str; 30] = [
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins",
    "kbd", "label", "mark", "q", "ruby", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "u",
    "var",
];

/// The text of HTML, at most so many bytes, and its title.
pub(crate) fn to_text(source: &str, most: usize) -> (String, Option<String>) {
    let mut reading = Reading { lines: Lines::new(most), skipping: None, is_verbatim: false };
    let mut rest = source;
    while !rest.is_empty() && reading.lines.len() < most {
        let end = rest.find('<').unwrap_or(rest.len());
        if end > 0 {
            reading.text(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let used = reading.tag(rest);
        rest = &rest[used..];
    }
    (reading.lines.finish(), title(source))
}

struct Reading {
    lines: Lines,
    /// The element whose end is waited for.
    skipping: Option<String>,
    is_verbatim: bool,
}

impl Reading {
    fn text(&mut self, text: &str) {
        if self.skipping.is_some() {
            return;
        }
        let text = unescaped(text);
        if self.is_verbatim { self.lines.verbatim(&text) } else { self.lines.text(&text) }
    }

    /// Takes what begins with `<`, and gives how many bytes it has.
    fn tag(&mut self, rest: &str) -> usize {
        if rest.starts_with("<!--") {
            return rest.find("-->").map_or(rest.len(), |end| end + 3);
        }
        let is_tag = rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        if !is_tag {
            self.text("<");
            return 1;
        }
        let used = rest.find('>').map_or(rest.len(), |end| end + 1);
        let inside = rest[1..used].trim_end_matches('>');
        let is_end = inside.starts_with('/');
        let name: String = inside
            .trim_start_matches('/')
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric())
            .take(20)
            .collect::<String>()
            .to_ascii_lowercase();
        match &self.skipping {
            Some(skipped) if is_end && *skipped == name => self.skipping = None,
            Some(_) => {}
            None if is_end => self.end(&name),
            None => self.begin(&name, inside.ends_with('/')),
        }
        used
    }

    fn begin(&mut self, name: &str, is_empty: bool) {
        match name {
            name if SKIPPED.contains(&name) => {
                self.skipping = (!is_empty).then(|| name.to_owned());
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.lines.heading(usize::from(name.as_bytes()[1] - b'0'));
            }
            "p" | "table" | "ul" | "ol" | "dl" | "blockquote" | "figure" => self.lines.gap(),
            "li" => self.lines.mark("- "),
            "pre" => {
                self.lines.gap();
                self.is_verbatim = true;
            }
            "td" | "th" | "" => {}
            name if INLINE.contains(&name) => {}
            _ => self.lines.end_line(),
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "td" | "th" => self.lines.tab(),
            "pre" => {
                self.is_verbatim = false;
                self.lines.gap();
            }
            "p" | "table" | "ul" | "ol" | "dl" | "blockquote" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.lines.gap();
            }
            "" => {}
            name if INLINE.contains(&name) => {}
            _ => self.lines.end_line(),
        }
    }
}

fn title(source: &str) -> Option<String> {
    const FAR: usize = 64 * 1024;
    let head = &source[..source.floor_char_boundary(FAR.min(source.len()))];
    let lower = head.to_ascii_lowercase();
    let begin = lower.find("<title")?;
    let from = begin + lower[begin..].find('>')? + 1;
    let to = from + lower[from..].find("</title")?;
    let words: Vec<String> =
        unescaped(&head[from..to]).split_whitespace().map(str::to_owned).take(50).collect();
    Some(words.join(" ")).filter(|title| !title.is_empty())
}

/// Text with its references to characters replaced.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let name: String =
            rest[at + 1..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '#').take(10).collect();
        match character(&name) {
            Some(c) => {
                out.push(c);
                rest = &rest[at + 1 + name.len()..];
                rest = rest.strip_prefix(';').unwrap_or(rest);
            }
            None => {
                out.push('&');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    if let Some(digits) = name.strip_prefix('#') {
        let code = match digits.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => digits.parse().ok()?,
        };
        return char::from_u32(code).filter(|c| !c.is_control() || *c == '\n');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "bdquo" => '„',
        "laquo" => '«',
        "raquo" => '»',
        "bull" => '•',
        "middot" => '·',
        "times" => '×',
        "euro" => '€',
        "pound" => '£',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "deg" => '°',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        "agrave" => 'à',
        "ccedil" => 'ç',
        "ntilde" => 'ñ',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_are_lines_and_rows_have_tabs() {
        let page = "<html><head><title> The  &amp; title</title><style>p {}</style></head><body>\n<h1>One</h1><p>First\n \
                    <b>bold</b>er.</p><ul><li>a<li>b</ul><table><tr><td>x</td><td>1</td></tr><tr><th>y</th><td>2</td></tr>\
                    </table><pre>a  b\n  c</pre><script>no()</script>&uuml;&#252; 1 < 2 &unknown;";
        let (text, title) = to_text(page, 10_000);
        assert_eq!(
            text,
            "# One\n\nFirst bolder.\n\n- a\n- b\n\nx\t1\ny\t2\n\na  b\n  c\n\nüü 1 < 2 &unknown;"
        );
        assert_eq!(title.as_deref(), Some("The & title"));
        assert!(to_text(&page.repeat(50), 300).0.len() <= 300);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read(source in "([a-z<>&;#/!\\-\n ü]|<script>|</script>|<!--|-->|<td>|<pre>|</h2>){0,80}") {
            let _ = to_text(&source, 100);
        }
    }
}
