//! Numbers as they stand in a text, in one form: `2,009`, `2 009` and `2009` are one number, `17.5` and `175` are two.

use std::ops::Range;

/// A number that stands in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numeral {
    /// Where it stands, in bytes.
    pub at: Range<usize>,
    /// It without what parts thousands, and with a decimal point: `-2009`, `17.5`, `3.1.2`.
    pub digits: String,
    /// The letters that follow at once, in lower case: `mb` of `39MB`.
    pub suffix: String,
}

impl Numeral {
    /// Its value; nothing for a version or the like.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.digits.parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// How many decimal places it was written with.
    #[must_use]
    pub fn decimals(&self) -> usize {
        self.digits.split_once('.').map_or(0, |(_, after)| after.len())
    }
}

/// The numbers of a text, in order. Digits within a name are none: `sha256`, `max_5`, `3f2a`.
#[must_use]
pub fn numerals(text: &str) -> Vec<Numeral> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let (_, letter) = chars[at];
        if letter.is_ascii_digit() {
            at = read(text, &chars, at, &mut found);
        } else if is_of_name(letter) {
            at = end_of(&chars, at, is_of_name);
        } else {
            at += 1;
        }
    }
    found
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn end_of(chars: &[(usize, char)], from: usize, is_part: impl Fn(char) -> bool) -> usize {
    (from..chars.len()).find(|at| !is_part(chars[*at].1)).unwrap_or(chars.len())
}

/// Reads what begins with a digit; gives where it ends.
fn read(text: &str, chars: &[(usize, char)], from: usize, found: &mut Vec<Numeral>) -> usize {
    let byte = |at: usize| chars.get(at).map_or(text.len(), |(byte, _)| *byte);
    let digits = |from: usize| end_of(chars, from, |c| c.is_ascii_digit());
    let mut groups = vec![(None, from..digits(from))];
    let mut end = digits(from);
    while let Some((_, separator)) = chars.get(end).copied().filter(|(_, c)| is_separator(*c)) {
        let next = end + 1..digits(end + 1);
        let is_time = separator == ':' && groups.iter().all(|(_, group)| group.len() <= 2) && next.len() == 2;
        if separator == ':' && !is_time {
            break;
        }
        let is_space = matches!(separator, '\u{a0}' | '\u{202f}' | '\'' | '’');
        if next.is_empty() || is_space && next.len() != 3 {
            break;
        }
        end = next.end;
        groups.push((Some(separator), next));
    }
    let rest = end_of(chars, end, is_of_name);
    let suffix: String = chars[end..rest].iter().flat_map(|(_, c)| c.to_lowercase()).collect();
    if suffix.chars().any(|c| c.is_ascii_digit() || c == '_') {
        return rest;
    }
    let sign = sign_before(chars, from);
    let parts: Vec<(Option<char>, &str)> =
        groups.iter().map(|(by, group)| (*by, &text[byte(group.start)..byte(group.end)])).collect();
    match joined(&parts) {
        Some(digits) => {
            let start = if sign { byte(from - 1) } else { byte(from) };
            let digits = if sign { format!("-{digits}") } else { digits };
            found.push(Numeral { at: start..byte(end), digits, suffix });
        }
        // A list: each is a number of its own.
        None => found.extend(groups.iter().map(|(_, group)| Numeral {
            at: byte(group.start)..byte(group.end),
            digits: plain(&text[byte(group.start)..byte(group.end)]),
            suffix: String::new(),
        })),
    }
    rest
}

const fn is_separator(letter: char) -> bool {
    matches!(letter, '.' | ',' | ':' | '\'' | '’' | '\u{a0}' | '\u{202f}')
}

/// Whether a minus sign stands right before, that parts no range, date or name.
fn sign_before(chars: &[(usize, char)], from: usize) -> bool {
    let is_minus = from > 0 && matches!(chars[from - 1].1, '-' | '−');
    let before = from.checked_sub(2).map(|at| chars[at].1);
    is_minus
        && before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '|' | '=' | '`' | '"' | ','))
}

/// The groups as one number; nothing when they are a list.
fn joined(parts: &[(Option<char>, &str)]) -> Option<String> {
    let by = |wanted: char| parts.iter().filter(|(by, _)| *by == Some(wanted)).count();
    if by(':') > 0 {
        let parts: Vec<String> = parts.iter().map(|(_, group)| plain(group)).collect();
        return Some(parts.join(":"));
    }
    let (commas, dots) = (by(','), by('.'));
    let first = parts.first().map_or(0, |(_, group)| group.len());
    let in_thousands = |wanted: char| {
        (1..=3).contains(&first)
            && parts.iter().filter(|(by, _)| *by == Some(wanted)).all(|(_, group)| group.len() == 3)
    };
    let whole = |skip: Option<char>| {
        let mut text = String::new();
        for (by, group) in parts {
            if by.is_some() && *by == skip {
                text.push('.');
            }
            text.push_str(group);
        }
        text
    };
    let is_zero = parts.first().is_some_and(|(_, group)| group.starts_with('0'));
    match (commas, dots) {
        (0, 0) => Some(plain(&whole(None))),
        (0, 1) => Some(decimal(&whole(Some('.')))),
        (0, _) if in_thousands('.') && !is_zero => Some(plain(&whole(None))),
        (0, _) => Some(whole(Some('.'))),
        (_, 0) if in_thousands(',') && !is_zero => Some(plain(&whole(None))),
        (1, 0) => Some(decimal(&whole(Some(',')))),
        (_, 0) => None,
        (_, 1) if parts.last().is_some_and(|(by, _)| *by == Some('.')) => Some(decimal(&whole(Some('.')))),
        (1, _) if parts.last().is_some_and(|(by, _)| *by == Some(',')) => Some(decimal(&whole(Some(',')))),
        (_, _) => None,
    }
}

/// Without zeros that say nothing.
fn plain(digits: &str) -> String {
    let rest = digits.trim_start_matches('0');
    if rest.is_empty() { "0".to_owned() } else { rest.to_owned() }
}

fn decimal(digits: &str) -> String {
    match digits.split_once('.') {
        Some((whole, after)) if after.bytes().all(|digit| digit == b'0') => plain(whole),
        Some((whole, after)) => format!("{}.{after}", plain(whole)),
        None => plain(digits),
    }
}

/// Value of a number in words: zero to twenty, in lower case.
#[must_use]
pub fn number_in_words(word: &str) -> Option<usize> {
    const NUMBERS: [&str; 21] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    NUMBERS.iter().position(|known| *known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_one_form() {
        for (text, expected) in [
            ("2,009 and 2009 and 2\u{202f}009", &["2009", "2009", "2009"][..]),
            ("17.5 % of 175", &["17.5", "175"]),
            ("1.000.000,50 and 1,000,000.50", &["1000000.50", "1000000.50"]),
            ("version 3.1.2, Rust 1.90", &["3.1.2", "1.90"]),
            ("5.0 and 5,00", &["5", "5"]),
            ("0,5 and 0.125", &["0.5", "0.125"]),
            ("[1,2,3]", &["1", "2", "3"]),
            ("-5 is not 3-5, nor 2026-03-05", &["-5", "3", "5", "2026", "3", "5"]),
            ("39MB, 20k, sha256, max_5, 3f2a", &["39", "20"]),
            ("at 08:30 or 7:05:09, item 7, 3:1.", &["8:30", "7:5:9", "7", "3", "1"]),
            ("none", &[]),
        ] {
            let found: Vec<String> = numerals(text).into_iter().map(|number| number.digits).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(numerals("39MB")[0].suffix, "mb");
        assert_eq!(numerals("a −5 b").first().map(|n| n.digits.as_str()), Some("-5"));
    }
}
