//! A lexical pass over broken JSON, before the repair library sees it.
//!
//! It finds where a value ends and rewrites every string into a proper one: quotes of any kind, quotes inside strings
//! that nobody escaped, raw line breaks, stray backslashes. What is left (missing commas, bare words, Python's
//! constants, comments) the library does well.

/// A value cut out of a text.
pub(super) struct Scanned {
    /// The value with proper strings; every bracket is closed.
    pub(super) text: String,
    /// Where the value ends in the input.
    pub(super) end: usize,
    /// Whether the brackets were closed by the text itself.
    pub(super) closed: bool,
    /// Whether the text ended within a string, so that nobody knows how it goes on.
    pub(super) torn: bool,
}

/// Scans the value that begins `text` with a bracket.
///
/// `trusting` takes every unescaped quote for the end of a string; otherwise a quote ends it only where JSON could go on.
pub(super) fn scan(text: &str, trusting: bool) -> Scanned {
    let mut scanner = Scanner {
        text,
        at: 0,
        out: String::with_capacity(text.len() + 16),
        open: Vec::new(),
        last: ' ',
        torn: false,
        trusting,
    };
    let closed = scanner.run();
    let (end, torn) = (scanner.at, scanner.torn);
    let mut out = scanner.out;
    while let Some(bracket) = scanner.open.pop() {
        out.push(closer(bracket));
    }
    Scanned { text: out, end, closed, torn }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    out: String,
    open: Vec<char>,
    /// The last character that means something.
    last: char,
    /// Whether the text ended within a string.
    torn: bool,
    trusting: bool,
}

impl Scanner<'_> {
    fn run(&mut self) -> bool {
        while let Some(c) = self.rest().chars().next() {
            match c {
                '{' | '[' => {
                    self.open.push(c);
                    self.put(c);
                }
                '}' | ']' => {
                    self.close(c);
                    if self.open.is_empty() {
                        return true;
                    }
                }
                '"' | '“' | '”' | '„' => {
                    if !self.string(c) {
                        return false;
                    }
                }
                '\'' | '‘' | '’' | '`' if self.expects_token() => {
                    if !self.string(c) {
                        return false;
                    }
                }
                '/' if self.rest().starts_with("//") && self.last != ':' => self.skip_line(),
                '/' if self.rest().starts_with("/*") => self.skip_comment(),
                '#' if matches!(self.last, ',' | '{' | '[' | '"' | '}' | ']') => self.skip_line(),
                // A comma too many.
                ',' if matches!(self.last, ',' | '{' | '[') => self.at += 1,
                '=' if self.in_object() && self.last == '"' => {
                    let width = if self.rest().starts_with("=>") { 2 } else { 1 };
                    self.at += width;
                    self.emit(':');
                }
                ';' if self.in_object() => {
                    self.at += 1;
                    self.emit(',');
                }
                other => self.put(other),
            }
        }
        false
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn in_object(&self) -> bool {
        self.open.last() == Some(&'{')
    }

    fn expects_token(&self) -> bool {
        matches!(self.last, '{' | '[' | ',' | ':' | '(' | '"' | '}' | ']')
    }

    fn put(&mut self, c: char) {
        self.at += c.len_utf8();
        self.emit(c);
    }

    fn emit(&mut self, c: char) {
        self.out.push(c);
        if !c.is_whitespace() {
            self.last = c;
        }
    }

    /// Closes up to the bracket that `c` belongs to; one that belongs to none is dropped.
    fn close(&mut self, c: char) {
        self.at += c.len_utf8();
        let opener = if c == '}' { '{' } else { '[' };
        let Some(place) = self.open.iter().rposition(|open| *open == opener) else {
            return;
        };
        if self.last == ',' {
            let end = self.out.trim_end().len().saturating_sub(1);
            self.out.truncate(end);
        }
        while self.open.len() > place {
            if let Some(open) = self.open.pop() {
                self.emit(closer(open));
            }
        }
    }

    fn skip_line(&mut self) {
        let length = self.rest().find('\n').unwrap_or(self.rest().len());
        self.at += length;
    }

    fn skip_comment(&mut self) {
        let length = self.rest().find("*/").map_or(self.rest().len(), |end| end + 2);
        self.at += length;
    }

    /// Rewrites the string that begins here; `false` when the text ends first.
    fn string(&mut self, quote: char) -> bool {
        let key = self.in_object() && !matches!(self.last, ':' | '+');
        if key && !matches!(self.last, '{' | ',') {
            self.emit(',');
        }
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let is_triple = self.rest().starts_with(&triple);
        self.at += if is_triple { triple.len() } else { quote.len_utf8() };
        self.out.push('"');
        self.last = '"';
        while let Some(c) = self.rest().chars().next() {
            if is_triple && self.rest().starts_with(&triple) {
                self.at += triple.len();
                self.out.push('"');
                return true;
            }
            if !is_triple && ends(quote, c) && self.closes_here(c, key) {
                self.at += c.len_utf8();
                self.out.push('"');
                return true;
            }
            self.string_character(c);
        }
        self.out.push('"');
        self.torn = true;
        false
    }

    fn string_character(&mut self, c: char) {
        self.at += c.len_utf8();
        match c {
            '\\' => self.escape(),
            '"' => self.out.push_str("\\\""),
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            c if c.is_control() => self.out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => self.out.push(c),
        }
    }

    /// What follows a backslash: an escape JSON knows, or a backslash that was meant as one.
    fn escape(&mut self) {
        let rest = self.rest();
        match rest.chars().next() {
            Some(c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
                self.out.push('\\');
                self.out.push(c);
                self.at += 1;
            }
            Some('u') if rest.len() >= 5 && rest.as_bytes()[1..5].iter().all(u8::is_ascii_hexdigit) => {
                self.out.push_str("\\u");
                self.at += 1;
            }
            Some(c @ ('\'' | '`' | '$')) => {
                self.out.push(c);
                self.at += 1;
            }
            Some('\n') => self.at += 1,
            _ => self.out.push_str("\\\\"),
        }
    }

    fn closes_here(&self, quote: char, key: bool) -> bool {
        let after = &self.rest()[quote.len_utf8()..];
        if self.trusting {
            return true;
        }
        let next = after.trim_start();
        let gap = &after[..after.len() - next.len()];
        match next.chars().next() {
            None => true,
            Some(':' | '=') => key,
            Some('}' | ']') => !key,
            Some(',' | ';') => !key && (!self.in_object() || begins_member(&next[1..])),
            Some('"' | '\'' | '“') => !key && !gap.is_empty() && self.in_object() && begins_member(next),
            Some('+') => next[1..].trim_start().starts_with(['"', '\'']),
            Some('/') => next.starts_with("//") || next.starts_with("/*"),
            Some('#') => !gap.is_empty() && !key,
            Some(_) => !key && gap.contains('\n') && self.in_object() && begins_member(next),
        }
    }
}

fn ends(quote: char, c: char) -> bool {
    match quote {
        '“' | '”' | '„' => matches!(c, '“' | '”' | '"'),
        '‘' | '’' => matches!(c, '‘' | '’' | '\''),
        other => c == other,
    }
}

fn closer(open: char) -> char {
    if open == '{' { '}' } else { ']' }
}

/// Whether `text` looks like the next member of an object: a key and a colon, a comment, or the object's end.
fn begins_member(text: &str) -> bool {
    let text = text.trim_start();
    if text.is_empty() || text.starts_with(['}', ',', '/', '#']) || text.starts_with("...") {
        return true;
    }
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '“' | '”' | '‘' | '`'))
    {
        let inner = &text[quote.len_utf8()..];
        return inner
            .char_indices()
            .take(80)
            .find(|(_, c)| ends(quote, *c))
            .is_some_and(|(at, c)| inner[at + c.len_utf8()..].trim_start().starts_with([':', '=']));
    }
    let word: usize =
        text.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).map(char::len_utf8).sum();
    word > 0 && text[word..].trim_start().starts_with([':', '='])
}
