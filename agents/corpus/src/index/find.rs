//! Looking within some of the documents, by words, by the very text, or by a regular expression; and their headings.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};

use super::{FileEntry, Index};
use crate::error::CorpusError;
use crate::pack::PackFolder;
use crate::readable::{Readable, Within};
use crate::unit::{BREAK, Cuts, Unit, without_breaks};
use crate::{Hit, Outline};

/// Lines shown before and after one that has what was looked for.
const AROUND: usize = 2;
/// Most bytes of documents that are looked through line by line.
const MAX_SCANNED: u64 = 64 * 1024 * 1024;
/// Largest regular expression, compiled, in bytes.
const MAX_REGEX: usize = 1024 * 1024;
/// Longest pattern, in bytes: a search may take as many steps for each byte of a document.
const MAX_PATTERN: usize = 1_000;
/// Longest line that is shown of a match, in bytes.
const MAX_LINE: usize = 600;

/// How text is looked for line by line.
pub(crate) struct LineSearch {
    pattern: Regex,
}

impl LineSearch {
    /// This very text, whatever its case.
    pub(crate) fn exact(text: &str) -> Result<Self, String> {
        Self::regex(&regex::escape(text.trim()))
    }

    /// What this regular expression matches, whatever its case.
    pub(crate) fn regex(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN {
            let bytes = pattern.len();
            return Err(format!("it has {bytes} bytes, {MAX_PATTERN} is the most: look for a part of it"));
        }
        let built = RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_REGEX).build();
        built.map(|pattern| Self { pattern }).map_err(|error| error.to_string())
    }
}

/// Whether a document is meant by what somebody gave for a path: the path, a folder, a part of it, or a pattern with `*`.
pub(crate) fn is_meant(wanted: &str, path: &str) -> bool {
    let (wanted, path) = (wanted.trim().trim_start_matches("./").to_lowercase(), path.to_lowercase());
    if !wanted.contains('*') {
        return path.contains(&wanted);
    }
    let mut rest = path.as_str();
    let parts: Vec<&str> = wanted.split('*').collect();
    let last = parts.len() - 1;
    for (at, part) in parts.into_iter().enumerate() {
        let found = match at {
            0 => rest.starts_with(part).then_some(0),
            _ if at == last => rest.ends_with(part).then(|| rest.len() - part.len()),
            _ => rest.find(part),
        };
        match found {
            Some(found) => rest = &rest[found + part.len()..],
            None => return false,
        }
    }
    true
}

impl Index {
    /// The first lines that have what is looked for, each with a few around it, within the documents that are meant.
    pub(crate) fn search_lines(
        &self,
        search: &LineSearch,
        within: &Within,
        k: usize,
        packs: &PackFolder,
    ) -> Result<Vec<Hit>, CorpusError> {
        let (mut hits, mut scanned) = (Vec::new(), 0);
        for file in self.files()? {
            if !within.has(&file.path) {
                continue;
            }
            scanned += file.bytes;
            if hits.len() >= k || scanned > MAX_SCANNED {
                break;
            }
            let text = packs.read(&file.pack, file.position, file.bytes)?;
            let before = hits.len();
            let cuts = file.unit.is_cut().then(|| Cuts::of(&text));
            in_lines(&file.path, &text, cuts.as_ref(), search, k, &mut hits);
            if let Some(cuts) = &cuts {
                hits[before..].iter_mut().for_each(|hit| by_pages(hit, cuts));
            }
            hits[before..].iter_mut().for_each(|hit| hit.unit = file.unit);
        }
        Ok(hits)
    }

    /// The documents that may be read, with their lengths and headings.
    pub(crate) fn outlines(&self, most: usize, readable: &Readable) -> Result<Vec<Outline>, CorpusError> {
        let files = self.files()?.into_iter().filter(|file| readable.is(&file.path));
        files.take(most).map(|file| self.outline(file)).collect()
    }

    fn outline(&self, file: FileEntry) -> Result<Outline, CorpusError> {
        let mut headings: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for (trail, _, _) in self.sections(file.id)? {
            if !trail.is_empty() && seen.insert(trail.clone()) {
                headings.push(trail);
            }
        }
        Ok(Outline { lines: self.length_of(&file)?, path: file.path, unit: file.unit, headings })
    }

    /// The heading trail, first and last line of each passage of a document, in order.
    fn sections(&self, file: i64) -> Result<Vec<(String, u64, u64)>, CorpusError> {
        let mut statement = self.0.prepare_cached(
            "SELECT heading, start_line, end_line FROM passages WHERE file = ?1 ORDER BY id",
        )?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        Ok(statement.query_map([file], row)?.collect::<Result<_, _>>()?)
    }

    /// The first and last line under a heading of a document, those below it among them.
    pub(crate) fn section(&self, path: &str, heading: &str) -> Result<Option<(u64, u64)>, CorpusError> {
        let Some(file) = self.file(path)? else { return Ok(None) };
        let wanted = plain(heading);
        let sections = self.sections(file.id)?;
        let is_it =
            |trail: &str| trail.split(" > ").any(|part| plain(part) == wanted) || plain(trail) == wanted;
        let begins_like = |trail: &str| trail.split(" > ").any(|part| plain(part).contains(&wanted));
        let under = |fits: &dyn Fn(&str) -> bool| {
            let first = sections.iter().position(|(trail, _, _)| fits(trail))?;
            let run = sections[first..].iter().take_while(|(trail, _, _)| fits(trail));
            Some((sections[first].1, run.last().map_or(sections[first].2, |(_, _, last)| *last)))
        };
        let found = under(&is_it).or_else(|| under(&begins_like));
        match found {
            Some((first, last)) if file.unit.is_cut() => {
                Ok(Some((self.number_of(file.id, first)?, self.number_of(file.id, last)?)))
            }
            lines => Ok(lines),
        }
    }
}

/// A heading without its marks and case.
fn plain(heading: &str) -> String {
    heading.trim().trim_start_matches('#').trim().to_lowercase()
}

fn in_lines(path: &str, text: &str, cuts: Option<&Cuts>, search: &LineSearch, k: usize, hits: &mut Vec<Hit>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut next = 0;
    for (at, line) in lines.iter().enumerate() {
        if hits.len() >= k {
            return;
        }
        if at < next || !search.pattern.is_match(line.trim_start_matches(BREAK)) {
            continue;
        }
        let (from, to) = (at.saturating_sub(AROUND).max(next), (at + AROUND + 1).min(lines.len()));
        // Of what is cited by its page nothing of another page is shown.
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let page = cuts.and_then(|cuts| cuts.lines_of(cuts.number_of(number)));
        let (from, to) = page.map_or((from, to), |(first, last)| {
            (from.max(first.saturating_sub(1) as usize), to.min(last as usize))
        });
        next = to;
        let shown = lines[from..to].iter().map(|line| &line[..line.floor_char_boundary(MAX_LINE)]);
        hits.push(Hit {
            path: path.to_owned(),
            start_line: from as u64 + 1,
            end_line: to as u64,
            unit: Unit::Line,
            numbers: Vec::new(),
            heading: String::new(),
            text: shown.collect::<Vec<_>>().join("\n"),
            score: 0.0,
        });
    }
}

/// A passage that is known by its lines, by its pages instead.
fn by_pages(hit: &mut Hit, cuts: &Cuts) {
    let number = |line: u64| u64::from(cuts.number_of(u32::try_from(line).unwrap_or(u32::MAX)));
    hit.numbers = (hit.start_line..=hit.end_line).map(number).collect();
    (hit.start_line, hit.end_line) = (number(hit.start_line), number(hit.end_line));
    hit.text = without_breaks(&hit.text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_meant_by_its_parts_and_by_patterns() {
        let table = [
            ("guide.md", "docs/guide.md", true),
            ("docs", "docs/guide.md", true),
            ("Docs/*.md", "docs/guide.md", true),
            ("*.rs", "docs/guide.md", false),
            ("docs/*/deep.md", "docs/a/deep.md", true),
            ("docs/*/deep.md", "docs/deep.md", false),
            ("./docs/", "docs/guide.md", true),
            ("other", "docs/guide.md", false),
        ];
        for (wanted, path, meant) in table {
            assert_eq!(is_meant(wanted, path), meant, "{wanted} {path}");
        }
    }

    #[test]
    fn lines_are_found_with_a_few_around_them_and_no_line_twice() {
        let text = "one\ntwo\nThree is it\nfour\nfive\nthree again\nseven\neight\nnine\nten";
        let mut hits = Vec::new();
        in_lines("a.md", text, None, &LineSearch::exact("THREE").unwrap(), 5, &mut hits);
        let shown: Vec<(u64, u64)> = hits.iter().map(|hit| (hit.start_line, hit.end_line)).collect();
        assert_eq!(shown, [(1, 5), (6, 8)]);
        let mut hits = Vec::new();
        in_lines("a.md", text, None, &LineSearch::regex("^t(wo|en)$").unwrap(), 1, &mut hits);
        assert_eq!(hits.len(), 1);
        assert!(LineSearch::regex("(").is_err());
        assert!(LineSearch::exact("(").is_ok());
    }
}
