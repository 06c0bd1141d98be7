//! robots.txt as RFC 9309 has it. Pure.

/// The name under which rules for us stand.
const PRODUCT: &str = "muster";

/// So much of a file is read, RFC 9309 section 2.5.
pub(crate) const MOST_BYTES: usize = 500 * 1024;

/// Most rules that count, and the longest of them, in bytes.
const MOST_RULES: usize = 4096;
const LONGEST_RULE: usize = 2048;

/// What a site says of where we may go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    /// Whether nothing may be fetched, because nobody knows what the site says.
    closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    pattern: Vec<u8>,
    allows: bool,
}

/// How a group is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meant {
    Us,
    Everybody,
    Others,
}

impl Rules {
    /// Everything may be fetched.
    pub(crate) fn open() -> Self {
        Self::default()
    }

    /// Nothing may: the site has rules, and they could not be read.
    pub(crate) fn closed() -> Self {
        Self { rules: Vec::new(), closed: true }
    }

    /// The rules for us in a file. Those for everybody count only where there are none for us.
    pub(crate) fn read(file: &[u8]) -> Self {
        let file = &file[..file.len().min(MOST_BYTES)];
        let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
        let (mut ours, mut everybodys): (Option<Vec<Rule>>, Vec<Rule>) = (None, Vec::new());
        let mut meant: Vec<Meant> = Vec::new();
        let mut in_rules = false;
        for line in file.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let Some((key, value)) = key_and_value(line) else { continue };
            let allows = match key.as_str() {
                "user-agent" => {
                    if std::mem::take(&mut in_rules) {
                        meant.clear();
                    }
                    let whom = meant_by(value);
                    if whom == Meant::Us {
                        ours.get_or_insert_default();
                    }
                    meant.push(whom);
                    continue;
                }
                "allow" => true,
                "disallow" => false,
                // Other records, such as those of maps, say nothing of where to go.
                _ => continue,
            };
            in_rules = true;
            if value.is_empty() || value.len() > LONGEST_RULE {
                continue;
            }
            let rule = Rule { pattern: normal(value), allows };
            if let Some(ours) =
                ours.as_mut().filter(|ours| meant.contains(&Meant::Us) && ours.len() < MOST_RULES)
            {
                ours.push(rule.clone());
            }
            if meant.contains(&Meant::Everybody) && everybodys.len() < MOST_RULES {
                everybodys.push(rule);
            }
        }
        Self { rules: ours.unwrap_or(everybodys), closed: false }
    }

    /// Whether a path, with its query, may be fetched: the longest rule that fits says so, and of two that are as long the
    /// one that allows it.
    pub(crate) fn allow(&self, path: &str) -> bool {
        if path == "/robots.txt" {
            return true;
        }
        if self.closed {
            return false;
        }
        let path = normal(path.as_bytes());
        let fitting = self.rules.iter().filter(|rule| fits(&rule.pattern, &path));
        fitting.max_by_key(|rule| (rule.pattern.len(), rule.allows)).is_none_or(|rule| rule.allows)
    }
}

fn key_and_value(line: &[u8]) -> Option<(String, &[u8])> {
    let line = line.split(|byte| *byte == b'#').next()?;
    let at = line.iter().position(|byte| *byte == b':')?;
    let key = String::from_utf8_lossy(line[..at].trim_ascii()).to_ascii_lowercase();
    Some((key, line[at + 1..].trim_ascii()))
}

fn meant_by(agent: &[u8]) -> Meant {
    if agent == b"*" {
        return Meant::Everybody;
    }
    let is_of_name = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    let name: Vec<u8> = agent.iter().copied().take_while(is_of_name).collect();
    if name.eq_ignore_ascii_case(PRODUCT.as_bytes()) { Meant::Us } else { Meant::Others }
}

/// A path written in one way: letters and digits are plain, bytes beyond ASCII are not, and hexadecimal digits are large.
fn normal(path: &[u8]) -> Vec<u8> {
    let digit = |at: usize| path.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut written = Vec::with_capacity(path.len());
    let encode = |written: &mut Vec<u8>, byte: u8| written.extend(format!("%{byte:02X}").bytes());
    let mut at = 0;
    while at < path.len() {
        let (mut byte, mut was_encoded) = (path[at], false);
        if let (b'%', Some(high), Some(low)) = (byte, digit(at + 1), digit(at + 2)) {
            (byte, was_encoded) = (u8::try_from(high * 16 + low).unwrap_or(byte), true);
            at += 2;
        }
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        if is_plain || (!was_encoded && byte.is_ascii()) {
            written.push(byte);
        } else {
            encode(&mut written, byte);
        }
        at += 1;
    }
    written
}

/// Whether a path begins as a pattern says: `*` is any bytes, and `$` at the end is the end. A star that turns out to stand
/// for too little takes a byte more, so that it takes at most the product of both lengths.
fn fits(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, to_the_end) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let (mut in_pattern, mut in_path) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    loop {
        if in_pattern == pattern.len() && (!to_the_end || in_path == path.len()) {
            return true;
        }
        match pattern.get(in_pattern) {
            Some(b'*') => {
                last_star = Some((in_pattern + 1, in_path));
                in_pattern += 1;
                continue;
            }
            Some(byte) if path.get(in_path) == Some(byte) => {
                (in_pattern, in_path) = (in_pattern + 1, in_path + 1);
                continue;
            }
            _ => {}
        }
        match last_star {
            Some((after, from)) if from < path.len() => {
                last_star = Some((after, from + 1));
                (in_pattern, in_path) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
#[path = "robots_tests.rs"]
mod tests;
