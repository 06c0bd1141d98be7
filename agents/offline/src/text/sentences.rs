//! Where sentences begin and end.

use std::ops::Range;

use super::words;

/// Abbreviations after which a full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "e.g", "i.e", "etc", "cf", "vs", "approx", "fig", "figs", "eq", "sec", "ch", "no", "vol", "dr", "mr",
    "mrs", "ms", "prof", "st", "inc", "ltd", "co", "corp", "al", "resp", "incl", "excl", "max", "min", "jan",
    "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "ca", "viz", "p", "pp",
    "ed", "eds",
];

/// The sentences of a paragraph as byte ranges, in order, without the white space around them.
///
/// Full stops in numbers, file names and abbreviations do not end a sentence; neither does anything
/// between backquotes.
pub(in super::super) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut in_code = false;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '`' {
            in_code = !in_code && text[at + 1..].contains('`');
            continue;
        }
        if letter == '·' && !in_code && text[..at].ends_with(' ') && text[at..].starts_with("· ") {
            push_trimmed(&mut found, text, start..at);
            start = at + letter.len_utf8();
            continue;
        }
        if in_code || !matches!(letter, '.' | '!' | '?' | '…' | '。' | '！' | '？') {
            continue;
        }
        let mut end = at + letter.len_utf8();
        while let Some((next, closing)) = letters.next_if(|(_, next)| CLOSING.contains(next)) {
            end = next + closing.len_utf8();
        }
        if ends_here(text, at, letter, end) {
            push_trimmed(&mut found, text, start..end);
            start = end;
        }
    }
    push_trimmed(&mut found, text, start..text.len());
    found
}

const CLOSING: &[char] = &['.', '!', '?', '"', '\'', '”', '’', ')', ']', '*', '_', '»'];

fn ends_here(text: &str, at: usize, letter: char, end: usize) -> bool {
    if matches!(letter, '。' | '！' | '？') {
        return true;
    }
    let after = &text[end..];
    if after.is_empty() {
        return true;
    }
    if !after.starts_with(char::is_whitespace) {
        return false;
    }
    let next = after.trim_start().chars().find(|letter| !OPENING.contains(letter));
    // A sentence may begin with an identifier in lower case, but only if it is marked as code.
    let begins_anew = next.is_none_or(|next| !next.is_lowercase() || after.trim_start().starts_with('`'));
    if letter == '.' { begins_anew && !is_abbreviation(&text[..at]) } else { begins_anew }
}

const OPENING: &[char] = &['"', '\'', '“', '‘', '(', '[', '*', '_', '`', '«'];

fn is_abbreviation(before: &str) -> bool {
    let tail_start = before.char_indices().rev().nth(20).map_or(0, |(at, _)| at);
    let Some(last) =
        words(&before[tail_start..]).last().filter(|word| tail_start + word.range.end == before.len())
    else {
        return false;
    };
    let lower = last.text.to_lowercase();
    let initial = lower.chars().count() == 1 && last.text.chars().all(char::is_uppercase);
    initial || ABBREVIATIONS.contains(&lower.as_str())
}

fn push_trimmed(found: &mut Vec<Range<usize>>, text: &str, range: Range<usize>) {
    let slice = &text[range.clone()];
    let trimmed = slice.trim();
    if !trimmed.is_empty() {
        let start = range.start + (slice.len() - slice.trim_start().len());
        found.push(start..start + trimmed.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn splits_where_a_reader_would() {
        let table: &[(&str, &[&str])] = &[
            ("One. Two! Three?", &["One.", "Two!", "Three?"]),
            ("Set it in muster.toml. Then start.", &["Set it in muster.toml.", "Then start."]),
            ("It takes 1.5 s. The rest waits.", &["It takes 1.5 s.", "The rest waits."]),
            ("Brokers, e.g. NATS, keep it. Done.", &["Brokers, e.g. NATS, keep it.", "Done."]),
            ("Use v0.7. It works.", &["Use v0.7.", "It works."]),
            ("He said \"stop.\" They did.", &["He said \"stop.\"", "They did."]),
            ("Run `a. B` now. Next.", &["Run `a. B` now.", "Next."]),
            ("(A note.) Another.", &["(A note.)", "Another."]),
            ("No end", &["No end"]),
            ("J. Smith wrote it. Good.", &["J. Smith wrote it.", "Good."]),
            ("It stops. `apply` folds it.", &["It stops.", "`apply` folds it."]),
            ("  ", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(split(text), *expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn sentences_are_ordered_and_lose_nothing(text in "\\PC{0,300}") {
            let ranges = sentences(&text);
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
            }
            let without = |text: &str| text.split_whitespace().collect::<String>().replace('·', "");
            let kept: String = ranges.iter().flat_map(|range| text[range.clone()].split_whitespace()).collect();
            let all: String = text.split_whitespace().collect();
            prop_assert_eq!(without(&kept), without(&all));
        }
    }
}
