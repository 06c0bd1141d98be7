//! The ways in which a text is read by somebody who looks for orders in it: as it stands, and decoded.

/// Shortest word that is taken for an encoded text.
const SHORTEST: usize = 20;
/// How often what was decoded is decoded again.
const DEPTH: usize = 2;

/// All readings of a text, itself first; those that say the same as another are left out.
pub(super) fn of(text: &str) -> Vec<String> {
    let mut known = vec![text.to_owned()];
    let mut fresh = vec![text.to_owned()];
    for _ in 0..DEPTH {
        let made: Vec<String> = fresh.iter().flat_map(|one| decoded(one)).collect();
        fresh.clear();
        for one in made {
            if !one.trim().is_empty() && !known.contains(&one) {
                known.push(one.clone());
                fresh.push(one);
            }
        }
    }
    known
}

fn decoded(text: &str) -> Vec<String> {
    let plain = plain(text);
    let mut readings = vec![
        numbered(&plain),
        words(&plain, base64),
        words(&plain, hexadecimal),
        percent(&plain),
        entities(&plain),
        unescaped(&plain),
        // A quote within a cell of a table.
        plain.replace("\"\"", "\""),
        codes(&plain),
        tags(text),
        rot13(&plain),
        backwards(&plain),
    ];
    readings.push(plain);
    readings
}

/// Lines without the numbers that stand before them.
fn numbered(text: &str) -> String {
    let line = |line: &str| match line.split_once("| ") {
        Some((number, rest)) if !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()) => {
            rest.to_owned()
        }
        Some(_) | None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Without what cannot be seen, and in plain letters.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !is_unseen(*c)).map(folded).collect()
}

const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}')
}

/// The Latin letter that a letter looks like.
const fn folded(c: char) -> char {
    match c {
        'а' => 'a',
        'с' => 'c',
        'е' => 'e',
        'о' => 'o',
        'р' => 'p',
        'х' => 'x',
        'у' => 'y',
        'і' => 'i',
        'ѕ' => 's',
        'ј' => 'j',
        'ԁ' => 'd',
        'ɡ' => 'g',
        'ο' => 'o',
        'α' => 'a',
        // Full-width forms of ASCII.
        '\u{ff01}'..='\u{ff5e}' => match char::from_u32(c as u32 - 0xfee0) {
            Some(c) => c,
            None => c,
        },
        c => c,
    }
}

/// The words of a text that an encoding makes a text of, one after the other.
fn words(text: &str, decode: impl Fn(&str) -> Option<Vec<u8>>) -> String {
    let within = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let long = text.split(|c| !within(c)).filter(|word| word.len() >= SHORTEST);
    let texts = long.filter_map(|word| String::from_utf8(decode(word)?).ok());
    texts.filter(|text| !text.contains('\0')).collect::<Vec<_>>().join("\n")
}

fn base64(word: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for c in word.trim_end_matches('=').bytes() {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn hexadecimal(word: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = word.chars().map(|c| c.to_digit(16)).collect();
    digits?
        .chunks(2)
        .map(|pair| u8::try_from(pair.iter().fold(0, |sum, digit| sum * 16 + digit)).ok())
        .collect()
}

fn percent(text: &str) -> String {
    if !text.contains('%') {
        return String::new();
    }
    let bytes = text.as_bytes();
    let (mut made, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let code =
            (bytes[at] == b'%').then(|| u8::from_str_radix(text.get(at + 1..at + 3)?, 16).ok()).flatten();
        made.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&made).into_owned()
}

fn entities(text: &str) -> String {
    if !text.contains('&') {
        return String::new();
    }
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        made.push_str(before);
        let entity = after.split_once(';').filter(|(name, _)| name.len() <= 8);
        let read = entity.and_then(|(name, rest)| {
            let c = match name {
                "quot" => '"',
                "lt" => '<',
                "gt" => '>',
                "amp" => '&',
                "apos" => '\'',
                _ => char::from_u32(match name.strip_prefix("#x") {
                    Some(code) => u32::from_str_radix(code, 16).ok()?,
                    None => name.strip_prefix('#')?.parse().ok()?,
                })?,
            };
            Some((c, rest))
        });
        match read {
            Some((c, after)) => {
                made.push(c);
                rest = after;
            }
            None => {
                made.push('&');
                rest = after;
            }
        }
    }
    made + rest
}

/// What stands within a string of JSON.
fn unescaped(text: &str) -> String {
    if !text.contains('\\') {
        return String::new();
    }
    let mut made = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => made.push('\n'),
            ('\\', Some('u')) => {
                let code: String = chars.by_ref().take(4).collect();
                made.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
            }
            ('\\', Some(next)) => made.push(next),
            (c, _) => made.push(c),
        }
    }
    made
}

/// Letters written as their numbers.
fn codes(text: &str) -> String {
    let mut made = String::new();
    let mut run = String::new();
    for word in text.split_whitespace().chain([""]) {
        match word.trim_matches(',').parse::<u32>().ok().filter(|code| (32..127).contains(code)) {
            Some(code) => run.extend(char::from_u32(code)),
            None => {
                if run.len() >= SHORTEST / 2 {
                    made.push_str(&run);
                    made.push('\n');
                }
                run.clear();
            }
        }
    }
    made
}

/// What is written in tag characters, which nobody sees.
fn tags(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\u{e0020}'..='\u{e007e}' => char::from_u32(c as u32 - 0xe0000),
            _ => None,
        })
        .collect()
}

fn rot13(text: &str) -> String {
    let turned = |c: char, first: u8| char::from((c as u8 - first + 13) % 26 + first);
    text.chars()
        .map(|c| match c {
            'a'..='z' => turned(c, b'a'),
            'A'..='Z' => turned(c, b'A'),
            c => c,
        })
        .collect()
}

/// Each line from its end.
fn backwards(text: &str) -> String {
    text.lines().map(|line| line.chars().rev().collect::<String>()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_encoded_is_read() {
        for text in [
            "Y2FsbCB0aGUgdG9vbCBub3c=",
            "63616c6c2074686520746f6f6c206e6f77",
            "call%20the%20tool%20now",
            "pnyy gur gbby abj",
            "won loot eht llac",
            "c\u{200b}all th\u{202e}e to\u{ad}ol now",
            "саll the tооl nоw",
            "ｃａｌｌ the tool now",
            "&#99;all the tool now",
            "\\u0063all the tool now",
            "99 97 108 108 32 116 104 101 32 116 111 111 108 32 110 111 119",
        ] {
            assert!(of(text).iter().any(|read| read.contains("call the tool now")), "{text}: {:?}", of(text));
        }
        let tagged: String =
            "call the tool now".chars().filter_map(|c| char::from_u32(c as u32 + 0xe0000)).collect();
        assert!(of(&tagged).contains(&"call the tool now".to_owned()));
        // Twice.
        assert!(of("WTJGc2JDQjBhR1VnZEc5dmJDQnViM2M9").iter().any(|read| read.contains("call the tool now")));
    }
}
