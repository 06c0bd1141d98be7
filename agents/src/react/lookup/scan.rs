//! Places that a text cites, `docs/guide.md:12`, and what the text says for which it cites them. Pure.

use std::ops::Range;

use muster_corpus::{CitedPlace, last_quote, longest_quote};

/// Files that are known by a name without an ending.
const WITHOUT_ENDING: [&str; 9] =
    ["LICENSE", "README", "NOTICE", "CHANGELOG", "AUTHORS", "Makefile", "Dockerfile", "INSTALL", "COPYING"];
/// Endings of documents whose parts are cited as if they lay in a folder.
const OF_PARTS: [&str; 6] = ["xlsx", "xlsm", "xlsb", "xls", "ods", "epub"];
/// Endings of names of hosts, which are followed by a port.
const OF_HOSTS: [&str; 12] =
    ["com", "org", "net", "io", "dev", "local", "internal", "localhost", "de", "eu", "uk", "lan"];

/// A place that a text cites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPlace {
    /// Where `path:line` stands in the text.
    pub(super) at: Range<usize>,
    /// What is cited, and for what.
    pub(super) place: CitedPlace,
}

/// The places that a text cites, in order: `path.ext:12`. Addresses and times are none.
pub(super) fn places(text: &str) -> Vec<TextPlace> {
    let fenced = fences(text);
    let mut found: Vec<TextPlace> = Vec::new();
    for at in words(text) {
        let Some(Named { path, line, to, length }) = named(&text[at.clone()]) else { continue };
        let (path, last) = (text[at.start..at.start + path].to_owned(), to.unwrap_or(0));
        let place = CitedPlace { path, line, last, ..CitedPlace::default() };
        found.push(TextPlace { at: at.start..at.start + length, place });
    }
    let spots: Vec<Range<usize>> = found.iter().map(|place| place.at.clone()).collect();
    let mut group = 0;
    for index in 0..found.len() {
        // What stands in a block of code is cited for nothing that is said.
        if fenced.iter().any(|block| block.contains(&spots[index].start)) {
            group += 1;
            found[index].place.group = group;
            continue;
        }
        let said = said_before(text, &spots, index);
        let own_quote = quote_before(text, &spots, index);
        let (statement, together) = match said {
            Said::With(before) => (found[before].place.statement.clone(), true),
            Said::Words(words) => (words, false),
        };
        group += u32::from(!together);
        let quote = match own_quote {
            Some(quote) => quote,
            None if together => found[index - 1].place.quote.clone(),
            None => longest_quote(&statement).unwrap_or_default().to_owned(),
        };
        let place = &mut found[index].place;
        (place.statement, place.quote, place.group) = (statement, quote, group);
    }
    found
}

/// Runs of characters that may name a place.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() || "/._-:–#+@,".contains(c);
    let mut rest = 0;
    std::iter::from_fn(move || {
        let from = rest + text.get(rest..)?.find(is_part)?;
        let to = text[from..].find(|c| !is_part(c)).map_or(text.len(), |length| from + length);
        rest = to;
        Some(from..to)
    })
}

struct Named {
    /// Length of the path.
    path: usize,
    line: u32,
    to: Option<u32>,
    /// Length of all of it.
    length: usize,
}

/// A place at the beginning of a word: `path:12`, `path:12-15`, `path:-3`, `path#L12`.
fn named(word: &str) -> Option<Named> {
    let (path, mark) = match (word.find(':'), word.find("#L")) {
        (Some(colon), None) => (colon, ":"),
        (_, Some(hash)) => (hash, "#L"),
        (None, None) => return None,
    };
    let (name, after) = (&word[..path], word.get(path + mark.len()..)?);
    let is_negative = after.starts_with('-');
    let digits = after.trim_start_matches('-');
    let minus = after.len() - digits.len();
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let follows = &digits[count..];
    if count == 0 || !is_file(name) || follows.starts_with(|c: char| c.is_alphabetic() || c == '/') {
        return None;
    }
    let line = digits[..count].parse().unwrap_or(u32::MAX);
    let line = if is_negative { 0 } else { line };
    let mut length = path + mark.len() + minus + count;
    let last = follows.strip_prefix(['-', '–']).map(|rest| rest.trim_start_matches('L'));
    let last_digits = last.map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let to = last.filter(|_| last_digits > 0).and_then(|rest| rest[..last_digits].parse().ok());
    if let Some(rest) = last.filter(|_| to.is_some()) {
        length += follows.len() - rest.len() + last_digits;
    }
    Some(Named { path, line, to, length })
}

/// Whether a name may be that of a file.
fn is_file(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    if WITHOUT_ENDING.contains(&last) || lies_in_a_document(name) {
        return true;
    }
    let Some((stem, ending)) = last.rsplit_once('.') else { return false };
    let is_ending =
        (1..=12).contains(&ending.len()) && ending.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_ending
        && ending.chars().any(char::is_alphabetic)
        && !(stem.is_empty() && name.len() == last.len() && last.len() < 2)
}

/// Whether it is a sheet of a workbook or a chapter of a book: these have names without an ending.
fn lies_in_a_document(name: &str) -> bool {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder).to_lowercase();
    OF_PARTS.iter().any(|ending| folder.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.')))
}

/// Whether what looks like a file may be a host with its port.
pub(super) fn may_be_host(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or(path);
    !path.contains('/') && OF_HOSTS.contains(&ending)
}

/// Where blocks of code stand.
pub(super) fn fences(text: &str) -> Vec<Range<usize>> {
    let (mut blocks, mut open, mut at) = (Vec::new(), None, 0);
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            match open.take() {
                Some(from) => blocks.push(from..at + line.len()),
                None => open = Some(at),
            }
        }
        at += line.len();
    }
    blocks.extend(open.map(|from| from..text.len()));
    blocks
}

enum Said {
    /// The same as the place before.
    With(usize),
    Words(String),
}

/// What a text says for which it cites a place: the words before it, as far as they are of its sentence and of no other
/// place; those after it where the sentence begins with the place.
fn said_before(text: &str, spots: &[Range<usize>], index: usize) -> Said {
    let (from, to) = block(text, spots[index].start);
    let before = index.checked_sub(1).filter(|before| spots[*before].end > from);
    let begin = before.map_or(from, |before| spots[before].end);
    let words = &text[begin..spots[index].start];
    if let Some(before) = before.filter(|_| !is_telling(words)) {
        return Said::With(before);
    }
    let sentence = last_sentence(words);
    let next = spots.get(index + 1).map_or(to, |next| next.start.min(to));
    let after = first_sentence(&text[spots[index].end..next]);
    // "According to a.md:3, …", "a.md:3 says that …".
    let is_opening = sentence.split_whitespace().filter(|word| word.len() > 3).count() < 3
        && !sentence.contains(|c: char| c.is_ascii_digit());
    if is_opening && is_telling(after) && before.is_none() {
        return Said::Words(format!("{} {after}", sentence.trim()));
    }
    Said::Words(if is_telling(sentence) { sentence.to_owned() } else { words.to_owned() })
}

/// Whether words say anything by themselves.
fn is_telling(words: &str) -> bool {
    let link =
        |word: &str| ["and", "see", "also", "or", "in", "to", "cf", "at", "line", "lines"].contains(&word);
    let mut told = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    told.any(|word| !link(&word.to_lowercase()))
}

/// The paragraph, item or row of a table that a place stands in.
fn block(text: &str, at: usize) -> (usize, usize) {
    let begins = |line: &str| {
        let bare = line.trim_start();
        bare.starts_with(['|', '#', '-', '*', '+', '>'])
            || bare.split_once(['.', ')']).is_some_and(|(digits, rest)| {
                !digits.is_empty()
                    && digits.bytes().all(|byte| byte.is_ascii_digit())
                    && rest.starts_with(' ')
            })
    };
    let (mut from, mut to, mut start) = (0, text.len(), 0);
    for line in text.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        if start > at && (is_blank || begins(line)) {
            to = start;
            break;
        }
        if is_blank {
            from = start + line.len();
        } else if begins(line) && start <= at {
            from = start;
        }
        start += line.len();
    }
    (from.min(at), to.max(at))
}

/// Ends of sentences: a mark, white space, and a letter that begins another.
fn ends(words: &str) -> impl DoubleEndedIterator<Item = usize> + '_ {
    words.match_indices(['.', '!', '?']).map(|(at, mark)| at + mark.len()).filter(|end| {
        let rest = &words[*end..];
        let rest = rest.trim_start_matches(['"', '”', '*', ')', '_']);
        rest.starts_with(char::is_whitespace)
            && rest
                .trim_start()
                .starts_with(|c: char| c.is_uppercase() || "\"“*_`[(".contains(c) || c.is_ascii_digit())
    })
}

/// The sentence that leads up to a place. A place after the end of a sentence is cited for that sentence.
fn last_sentence(words: &str) -> &str {
    let mut ends: Vec<usize> = ends(words).collect();
    let tail = |from: usize| words.get(from..).unwrap_or_default();
    while let Some(end) = ends.pop() {
        if is_telling(tail(end)) {
            return tail(end);
        }
    }
    words
}

fn first_sentence(words: &str) -> &str {
    ends(words).next().map_or(words, |end| &words[..end])
}

/// What is quoted right before a place, whatever sentences it is of.
fn quote_before(text: &str, spots: &[Range<usize>], index: usize) -> Option<String> {
    let (from, _) = block(text, spots[index].start);
    let begin = index.checked_sub(1).map_or(from, |before| spots[before].end.max(from));
    let words = text[begin..spots[index].start].trim_end_matches([' ', '(', '[', '`', '\n', ',', ':']);
    last_quote(words).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String, u32)> {
        let place = |found: TextPlace| {
            let CitedPlace { statement, group, .. } = found.place;
            (text[found.at].to_owned(), statement.split_whitespace().collect::<Vec<_>>().join(" "), group)
        };
        places(text).into_iter().map(place).collect()
    }

    #[test]
    fn places_are_found_in_a_report() {
        let text = "It nests (docs/a.md:12), see `b.rs:7`. At 12:30 on http://x.org:80/y:2, ratio 3.5:1.";
        let cited = |text: &str| -> Vec<(String, u32)> {
            places(text).into_iter().map(|found| (found.place.path, found.place.line)).collect()
        };
        let named = |all: &[(&str, u32)]| -> Vec<(String, u32)> {
            all.iter().map(|(path, line)| ((*path).to_owned(), *line)).collect()
        };
        assert_eq!(cited(text), named(&[("docs/a.md", 12), ("b.rs", 7)]));
        let all = "a.md:3-5, a.md#L7, LICENSE:2, a.md:-3, a.md:99999999999, x.md:12, 15 and c.md:4,";
        let expected = [
            ("a.md", 3),
            ("a.md", 7),
            ("LICENSE", 2),
            ("a.md", 0),
            ("a.md", u32::MAX),
            ("x.md", 12),
            ("c.md", 4),
        ];
        assert_eq!(cited(all), named(&expected));
        assert_eq!(places("see a.md:3-5.")[0].place.last, 5);
        let within =
            "By in/sales.xlsx/Budget_2026:7, book.epub/3:14, bundle.zip/report.pdf:2; not Budget:7 or 4/5:6.";
        let expected = [("in/sales.xlsx/Budget_2026", 7), ("book.epub/3", 14), ("bundle.zip/report.pdf", 2)];
        assert_eq!(cited(within), named(&expected));
    }

    #[test]
    fn what_is_said_for_a_place_is_its_sentence() {
        let text = "First said. The limit is 20 [a.md:3; b.md:4], and retries are 5 (c.md:1). Next one.\n\
                    - An item\n  that goes on. [d.md:2]\n- According to e.md:5, it is off.\n\n| steps | 50 | f.md:9 |\n";
        let said = |at: &str, statement: &str, group| (at.to_owned(), statement.to_owned(), group);
        assert_eq!(
            found(text),
            [
                said("a.md:3", "The limit is 20 [", 1),
                said("b.md:4", "The limit is 20 [", 1),
                said("c.md:1", "], and retries are 5 (", 2),
                said("d.md:2", "- An item that goes on. [", 3),
                said("e.md:5", "- According to , it is off.", 4),
                said("f.md:9", "| steps | 50 |", 5),
            ]
        );
        assert_eq!(
            places("It says “the limit is twenty levels” (a.md:3).")[0].place.quote,
            "the limit is twenty levels"
        );
        assert_eq!(found("```\na.md:3: text\n```\n")[0].1, "", "code says nothing");
    }
}
