//! Passages: the pieces of a document that are searched and cited.

use super::{kind::DocumentKind, unit::BREAK};

/// Longest passage, in bytes; a longer line is cut.
const MAX_BYTES: usize = 1_600;

/// From this length on a paragraph stands by itself; shorter ones are joined with the next.
const ENOUGH_BYTES: usize = 350;

/// Most lines of a passage of prose.
const MAX_PROSE_LINES: u32 = 20;

/// Most lines of a passage of code or data, and how many are enough to end it at an empty line.
const MAX_CODE_LINES: u32 = 12;
const ENOUGH_CODE_LINES: u32 = 6;

/// Longest heading trail, in bytes.
const MAX_TRAIL: usize = 300;

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passage {
    /// First line, from 1.
    pub(super) start_line: u32,
    /// Last line.
    pub(super) end_line: u32,
    /// Where it begins in the text, in bytes.
    pub(super) start: usize,
    /// Where it ends.
    pub(super) end: usize,
    /// The headings above it, outermost first, as `A > B`.
    pub(super) heading: String,
}

/// Cuts a text into passages that cover every line that is not empty, in order.
pub(super) fn passages(kind: DocumentKind, text: &str) -> Vec<Passage> {
    let mut cutter = Cutter::new(kind, text);
    let mut start = 0;
    let mut fenced = false;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let plain = line.trim_end();
        if line.starts_with(BREAK) {
            // What is cited by its page is of one page.
            cutter.flush();
        }
        let fence = plain.trim_start().starts_with("```") || plain.trim_start().starts_with("~~~");
        if cutter.has_headings()
            && !fenced
            && let Some((level, title)) = heading(plain)
        {
            cutter.open_section(level, title);
        }
        fenced ^= fence;
        cutter.line(number, start, plain);
        start += line.len();
    }
    cutter.finish()
}

struct Cutter<'a> {
    kind: DocumentKind,
    text: &'a str,
    trail: Vec<(usize, String)>,
    current: Option<Passage>,
    done: Vec<Passage>,
}

impl<'a> Cutter<'a> {
    fn new(kind: DocumentKind, text: &'a str) -> Self {
        Self { kind, text, trail: Vec::new(), current: None, done: Vec::new() }
    }

    fn has_headings(&self) -> bool {
        matches!(self.kind, DocumentKind::Markdown | DocumentKind::Html)
    }

    fn open_section(&mut self, level: usize, title: &str) {
        self.flush();
        self.trail.retain(|(above, _)| *above < level);
        self.trail.push((level, title.to_owned()));
    }

    fn line(&mut self, number: u32, start: usize, plain: &str) {
        if plain.trim_start().is_empty() {
            if self.is_enough() {
                self.flush();
            }
            return;
        }
        if self.is_full_with(number, start + plain.len()) {
            self.flush();
        }
        if plain.len() > MAX_BYTES {
            self.flush();
            self.long_line(number, start, plain);
            return;
        }
        let end = start + plain.len();
        match &mut self.current {
            Some(passage) => {
                passage.end_line = number;
                passage.end = end;
            }
            None => {
                let heading = self.heading();
                self.current = Some(Passage { start_line: number, end_line: number, start, end, heading });
            }
        }
    }

    /// Several passages of one line, cut at spaces where there are any.
    fn long_line(&mut self, number: u32, start: usize, plain: &str) {
        let heading = self.heading();
        let mut at = 0;
        while at < plain.len() {
            let most = plain.floor_char_boundary((at + MAX_BYTES).min(plain.len()));
            let space = if most < plain.len() { plain[at..most].rfind(char::is_whitespace) } else { None };
            let end = space.filter(|space| *space > MAX_BYTES / 2).map_or(most, |space| at + space);
            self.done.push(Passage {
                start_line: number,
                end_line: number,
                start: start + at,
                end: start + end,
                heading: heading.clone(),
            });
            at = end;
        }
    }

    fn is_enough(&self) -> bool {
        self.current.as_ref().is_some_and(|passage| match self.kind {
            DocumentKind::Lines => passage.end_line - passage.start_line + 1 >= ENOUGH_CODE_LINES,
            _ => passage.end - passage.start >= ENOUGH_BYTES,
        })
    }

    fn is_full_with(&self, number: u32, end: usize) -> bool {
        let most = if self.kind == DocumentKind::Lines { MAX_CODE_LINES } else { MAX_PROSE_LINES };
        self.current
            .as_ref()
            .is_some_and(|passage| number - passage.start_line >= most || end - passage.start > MAX_BYTES)
    }

    fn heading(&self) -> String {
        let mut trail = self.trail.iter().map(|(_, title)| title.as_str()).collect::<Vec<_>>().join(" > ");
        trail.truncate(trail.floor_char_boundary(MAX_TRAIL));
        trail
    }

    fn flush(&mut self) {
        self.done.extend(self.current.take());
    }

    fn finish(mut self) -> Vec<Passage> {
        self.flush();
        debug_assert!(self.done.iter().all(|passage| self.text.is_char_boundary(passage.end)));
        self.done
    }
}

/// The level and title of a `#` heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start();
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line[level..].strip_prefix([' ', '\t'])?.trim().trim_end_matches('#').trim_end();
    (1..=6).contains(&level).then_some((level, title)).filter(|(_, title)| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(kind: DocumentKind, text: &str) -> Vec<(u32, u32, String)> {
        passages(kind, text).into_iter().map(|p| (p.start_line, p.end_line, p.heading)).collect()
    }

    #[test]
    fn markdown_is_cut_at_headings_with_their_trail() {
        let text = "intro\n\n# A\ntext\n\n## B\nmore\n```\n# no heading\n```\n# C\n";
        assert_eq!(
            shown(DocumentKind::Markdown, text),
            [
                (1, 1, String::new()),
                (3, 4, "A".to_owned()),
                (6, 10, "A > B".to_owned()),
                (11, 11, "C".to_owned())
            ]
        );
    }

    #[test]
    fn code_is_cut_at_empty_lines_or_after_twelve() {
        let text = format!("{}\n{}", "a\n".repeat(7), "b\n".repeat(20));
        let cuts: Vec<_> =
            shown(DocumentKind::Lines, &text).into_iter().map(|(from, to, _)| (from, to)).collect();
        assert_eq!(cuts, [(1, 7), (9, 20), (21, 28)]);
    }

    #[test]
    fn a_line_without_end_is_cut_and_keeps_its_number() {
        let text = format!("short\n{}\nlast", "wörter ".repeat(1_000));
        let all = passages(DocumentKind::Lines, &text);
        assert!(all.len() > 4);
        assert!(all.iter().all(|p| p.end - p.start <= MAX_BYTES));
        assert_eq!(all[1].start_line, 2);
        assert_eq!(all.last().unwrap().start_line, 3);
    }

    fn kinds() -> impl Strategy<Value = DocumentKind> {
        prop::sample::select(vec![
            DocumentKind::Markdown,
            DocumentKind::Html,
            DocumentKind::Prose,
            DocumentKind::Lines,
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn every_word_is_in_the_passage_of_its_line(
            kind in kinds(),
            lines in prop::collection::vec("(#{0,3} ?[a-zü]{0,12}|```|[ \t]*|[a-z ]{1700,1800})\r?", 0..25),
        ) {
            let text = lines.join("\n");
            let all = passages(kind, &text);
            for pair in all.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
                prop_assert!(pair[0].end_line <= pair[1].start_line);
            }
            for passage in &all {
                let first = text[..passage.start].matches('\n').count() + 1;
                let last = text[..passage.end].matches('\n').count() + 1;
                prop_assert_eq!((first, last), (passage.start_line as usize, passage.end_line as usize));
            }
            let covered: usize = all.iter().map(|p| text[p.start..p.end].split_whitespace().map(str::len).sum::<usize>()).sum();
            prop_assert_eq!(covered, text.split_whitespace().map(str::len).sum::<usize>());
        }
    }
}
