//! What single lines look like: entries of logs, rows in columns, clauses, headings without a mark.

use super::super::text::words;

/// How the cells of a row are told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Columns {
    /// `|`, as in Markdown.
    #[default]
    Pipes,
    /// `,`, with quotes around cells that have one.
    Commas,
    /// Tabs.
    Tabs,
    /// Two spaces or more.
    Gaps,
}

/// Longest row whose cells gaps set apart, in bytes.
const LONGEST_ROW: usize = 240;
/// Most words of a heading without a mark.
const HEADING_WORDS: usize = 9;

pattern!(
    ENTRY,
    r"^\[?(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|\])|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\]?\s|[A-Z][a-z]{2}\s+\d{1,2}\s\d\d:\d\d:\d\d\s)"
);
pattern!(CLAUSE, r"^\s{0,4}(?:§\s*)?\d{1,3}(?:\.\d{1,3})+\.?\s+(\S.*)$");
pattern!(LABELLED, r"^(?:[A-Z]{1,3}-?\d{1,4})[.:)]?\s+\S");
pattern!(GAP, r"[^\s.!?:;,…](?:\s{2,}|\t+)\S");
pattern!(CELL_GAP, r"\s{2,}|\t+");
pattern!(NUMBERED, r"^(?:(?:\d{1,2}(?:\.\d{1,2})*|[IVX]{1,5})\.?|[A-Z]\.)\s+(\S.*)$");
pattern!(RUN_IN, r"^([A-Z][a-z]+(?: [a-z]+)?)\. [A-Z]");

/// How the cells of files of this name are told apart, where all of the file is one table.
pub(super) fn separated(path: &str) -> Option<Columns> {
    let lower = path.to_ascii_lowercase();
    let folder = lower.rsplit_once('/').map_or("", |(folder, _)| folder);
    if [".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"].iter().any(|ending| folder.ends_with(ending)) {
        // A sheet of a workbook.
        return Some(Columns::Tabs);
    }
    match lower.rsplit_once('.').map(|(_, extension)| extension) {
        Some("csv") => Some(Columns::Commas),
        Some("tsv" | "tab") => Some(Columns::Tabs),
        _ => None,
    }
}

/// Whether headings stand without a mark in files of this name.
pub(in super::super) fn is_plain_text(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    name.rsplit_once('.').is_none_or(|(_, extension)| matches!(extension, "txt" | "text" | "rst" | "eml"))
}

/// Whether a line begins with a time, as entries of logs and timelines do.
pub(super) fn is_entry(line: &str) -> bool {
    ENTRY.is_match(line)
}

/// The words of a numbered clause ("4.2 The Landlord…").
pub(super) fn clause(line: &str) -> Option<&str> {
    CLAUSE.captures(line).and_then(|found| found.get(1)).map(|words| words.as_str())
}

/// Whether a line begins with a label of its own ("A3  …").
pub(super) fn is_labelled(line: &str) -> bool {
    LABELLED.is_match(line)
}

/// Whether a line has cells that gaps set apart.
pub(super) fn has_gap(line: &str) -> bool {
    line.len() <= LONGEST_ROW && GAP.is_match(line.trim())
}

/// The title that a line is, where it stands alone between empty lines, or is in capitals.
pub(super) fn plain_heading(line: &str, alone: bool) -> Option<&str> {
    let text = line.trim();
    let bare = NUMBERED.captures(text).and_then(|found| found.get(1)).map_or(text, |bare| bare.as_str());
    let letters = bare.chars().filter(|letter| letter.is_alphabetic());
    let capitals = letters.clone().all(char::is_uppercase) && letters.count() > 2;
    let short = words(bare).count() <= HEADING_WORDS;
    let titled = bare.starts_with(char::is_uppercase) && !bare.ends_with(['.', ',', ';', ':', '?', '!', '"']);
    // The dots or the gap of a table of contents lead to the number of a page.
    let plain = !bare.contains("...") && !bare.contains("://") && !has_gap(bare) && !bare.contains('|');
    (short && titled && plain && (alone || capitals)).then_some(bare)
}

/// A word or two with a full stop that name what a paragraph is about.
pub(super) fn run_in_heading(line: &str) -> Option<&str> {
    RUN_IN.captures(line).and_then(|found| found.get(1)).map(|name| name.as_str())
}

/// The cells of a row.
pub(super) fn cells(raw: &str, columns: Columns) -> Vec<String> {
    match columns {
        Columns::Pipes => {
            let inner = raw.trim().trim_start_matches('|').trim_end_matches('|');
            let cells = inner.replace("\\|", "\u{1}");
            cells.split('|').map(|cell| cell.replace('\u{1}', "|").trim().to_owned()).collect()
        }
        Columns::Tabs => raw.split('\t').map(|cell| cell.trim().to_owned()).collect(),
        Columns::Gaps => CELL_GAP.split(raw.trim()).map(str::to_owned).collect(),
        Columns::Commas => between_commas(raw),
    }
}

fn between_commas(raw: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for letter in raw.trim().chars() {
        match (letter, quoted, cells.last_mut()) {
            ('"', _, _) => quoted = !quoted,
            (',', false, _) => cells.push(String::new()),
            (letter, _, Some(cell)) => cell.push(letter),
            (_, _, None) => {}
        }
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Whether the cells of a first row name columns rather than being values.
pub(super) fn are_names(cells: &[String]) -> bool {
    cells.len() > 1
        && cells.iter().all(|cell| {
            !cell.is_empty()
                && cell.starts_with(char::is_alphabetic)
                && words(cell).count() <= 4
                && !cell.ends_with('.')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_known_by_their_looks() {
        for line in [
            "2024-03-18T04:39:40Z ERROR x",
            "[2024-03-18] x",
            "09:40  Dagny finds it",
            "Mar  3 09:40:12 host x",
        ] {
            assert!(is_entry(line), "{line}");
        }
        assert!(!is_entry("2024 was a good year") && !is_entry("At 09:40 it broke"));
        assert_eq!(clause("4.2 The Landlord keeps the roof."), Some("The Landlord keeps the roof."));
        assert_eq!(clause("3.5 % of all"), Some("% of all"));
        assert_eq!(plain_heading("1. TERM", false), Some("TERM"));
        assert_eq!(plain_heading("III. Building", true), Some("Building"));
        assert_eq!(plain_heading("Root cause", true), Some("Root cause"));
        for (line, alone) in
            [("Root cause", false), ("It is done.", true), ("name    value", true), ("9 MA", false)]
        {
            assert_eq!(plain_heading(line, alone), None, "{line}");
        }
        assert_eq!(run_in_heading("Sowing. Sow indoors."), Some("Sowing"));
        assert_eq!(cells("a,\"b, c\",d", Columns::Commas), ["a", "b, c", "d"]);
        assert_eq!(cells("0x01   FULL   no slot left", Columns::Gaps), ["0x01", "FULL", "no slot left"]);
        assert!(are_names(&cells("code   name   meaning", Columns::Gaps)));
        assert!(!are_names(&cells("0x01   FULL", Columns::Gaps)));
    }
}
