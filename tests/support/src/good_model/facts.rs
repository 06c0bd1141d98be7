//! Lines of documents as they were shown, and which of them says what is asked.

use std::collections::BTreeSet;

use super::words;

/// A line of a document as it was shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub(super) path: String,
    pub(super) number: u32,
    pub(super) text: String,
    /// The headings above it, as far as they were shown.
    pub(super) heading: String,
}

/// Reads the lines of documents out of what a tool showed: passages under their place, each line with its number.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let (mut path, mut heading, mut section) = (String::new(), String::new(), String::new());
    let mut in_code = false;
    for line in text.lines() {
        if let Some((number, said)) = numbered(line) {
            let said = said.trim();
            in_code ^= said.starts_with("```");
            if !in_code && said.starts_with('#') {
                section = said.trim_start_matches('#').trim().to_owned();
            }
            if !path.is_empty() {
                let heading = format!("{heading} {section}").trim().to_owned();
                found.push(Line { path: path.clone(), number, text: said.to_owned(), heading });
            }
        } else if let Some((place, above)) = place(line) {
            (path, heading, section, in_code) = (place, above, String::new(), false);
        }
    }
    found
}

/// `12| text`.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let (number, text) = line.trim_start().split_once('|')?;
    Some((number.trim().parse().ok()?, text))
}

/// `path:12-40 (heading)`, or `path:12-40 of 90 lines`.
fn place(line: &str) -> Option<(String, String)> {
    let line = line.trim().trim_start_matches(['-', '*', ' ', '`']);
    let (path, rest) = line.split_once(':')?;
    let numbers = rest.trim_start();
    if path.is_empty()
        || path.contains(' ')
        || !path.contains('.')
        || !numbers.starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let heading = rest.split_once('(').map_or("", |(_, heading)| heading.trim_end_matches(')'));
    Some((path.to_owned(), heading.to_owned()))
}

/// How well a line says something about an aspect, from 0; nothing where it does not.
fn fit(line: &Line, aspect: &BTreeSet<String>) -> Option<u32> {
    let text = &line.text;
    let is_prose = text.chars().filter(|c| c.is_alphabetic()).count() >= 12
        && !text.starts_with('#')
        && !text.starts_with("```");
    if aspect.is_empty() || !is_prose {
        return None;
    }
    let (said, above) = (words::stems(text), words::stems(&line.heading));
    let own = aspect.intersection(&said).count();
    let by_heading = aspect.iter().filter(|word| !said.contains(*word) && above.contains(*word)).count();
    let needed = (aspect.len() * 3).div_ceil(5);
    if own + by_heading < needed || own + by_heading == 0 {
        return None;
    }
    let telling = u32::from(text.chars().any(|c| c.is_ascii_digit()));
    u32::try_from(own * 10 + by_heading * 7).ok().map(|fit| fit + telling * 4)
}

/// The line that says most about an aspect, of those of one document or of all.
pub(super) fn best<'a>(lines: &'a [Line], aspect: &str, path: Option<&str>) -> Option<(&'a Line, u32)> {
    let aspect = words::stems(aspect);
    let of_path = lines.iter().filter(|line| path.is_none_or(|path| line.path == path));
    let fitting = of_path.filter_map(|line| Some((line, fit(line, &aspect)?)));
    // The first of equals: what is said first is said in full.
    fitting.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// Whether a line says all that the words of a question name.
pub(super) fn is_whole(fit: u32, aspect: &str) -> bool {
    usize::try_from(fit).unwrap_or(0) >= words::stems(aspect).len() * 7
}
