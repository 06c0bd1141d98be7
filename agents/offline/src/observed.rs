//! What the tools have shown so far, read back from the journal.
//!
//! Only the text of an observation is kept in the record, so an agent that takes a task over sees the same
//! as the one before it. The corpus tools number the lines they show (`12| text`) under a header
//! (`path:12-19`), which makes every line's place certain.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use muster_shared::flow::{Action, Observation, ObservationStatus, Step, Thought};
use regex::Regex;
use serde_json::json;

use super::OfflineMove;
use super::statements::is_html;

/// The tool that searches the documents.
pub(super) const SEARCH: &str = "corpus.search";
/// The tool that reads lines of a document.
pub(super) const READ: &str = "corpus.read";
/// Passages asked for in one search.
const HITS: u32 = 14;
/// Most that is kept of one line, in bytes.
const MOST_OF_A_LINE: usize = 256 * 1024;
/// Stands between pieces of a line, so that they are not read as one sentence.
const BETWEEN_PIECES: &str = ". … ";
/// The tool that computes.
pub(super) const CALCULATOR: &str = "calculator";

/// All that searches and reads of a task have shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Observed {
    /// The lines seen of each document.
    pub(super) pages: BTreeMap<String, BTreeMap<u32, String>>,
    /// The headings above the first lines of passages.
    pub(super) trails: BTreeMap<(String, u32), Vec<String>>,
    /// The searches, in order.
    pub(super) searches: Vec<SearchHits>,
    /// The places that were read, in order.
    pub(super) reads: Vec<Block>,
    /// Tool calls that failed: the tool and what it said.
    pub(super) failures: Vec<(String, String)>,
}

/// One search and its hits, best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchHits {
    /// The words searched for.
    pub(super) query: String,
    /// What was found.
    pub(super) hits: Vec<Block>,
}

/// Some lines of a document, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The document.
    pub(super) path: String,
    /// The headings above, outermost first, where the tool gave them.
    pub(super) trail: Vec<String>,
    /// The lines by number.
    pub(super) lines: Vec<(u32, String)>,
}

impl Block {
    /// The number of the first line; 0 when there is none.
    pub(super) fn first(&self) -> u32 {
        self.lines.first().map_or(0, |(number, _)| *number)
    }

    /// Takes the next line. A page has several with its number: they are one line here, whose paragraphs are kept apart.
    fn take(&mut self, number: u32, text: &str) {
        match self.lines.last_mut() {
            Some((last, page)) if *last == number => {
                let is_paragraph =
                    text.trim().is_empty() && !page.is_empty() && !page.ends_with(BETWEEN_PIECES);
                page.push_str(if is_paragraph { BETWEEN_PIECES } else { " " });
                page.push_str(text.trim());
            }
            Some((last, _)) if *last > number => {}
            _ => self.lines.push((number, text.to_owned())),
        }
    }

    /// The number of the last line; 0 when there is none.
    pub(super) fn last(&self) -> u32 {
        self.lines.last().map_or(0, |(number, _)| *number)
    }
}

impl Observed {
    /// Reads the steps of a task.
    pub(super) fn of(steps: &[Step]) -> Self {
        let mut observed = Self::default();
        for step in steps {
            for (action, observation) in step.acts() {
                if let Some(observation) = observation {
                    observed.take_in(action, observation);
                }
            }
        }
        observed
    }

    /// Whether lines of a document have been seen from `first` to `last`.
    pub(super) fn has_seen(&self, path: &str, first: u32, last: u32) -> bool {
        self.pages.get(path).is_some_and(|lines| (first..=last).all(|number| lines.contains_key(&number)))
    }

    fn take_in(&mut self, action: &Action, observation: &Observation) {
        let tool = dotted(&action.name);
        if observation.status != ObservationStatus::Success {
            self.failures.push((tool, observation.content.clone()));
            if is_search(action) {
                self.searches.push(SearchHits { query: query_of(action), hits: Vec::new() });
            }
            return;
        }
        let mut blocks = blocks(&observation.content);
        if observation.truncated {
            // The last line may have been cut in the middle.
            if let Some(block) = blocks.last_mut() {
                block.lines.pop();
            }
            blocks.retain(|block| !block.lines.is_empty());
        }
        for block in &blocks {
            let page = self.pages.entry(block.path.clone()).or_default();
            for (number, line) in &block.lines {
                // A search shows web pages without their tags, which reads better than the page itself.
                if is_html(&block.path) {
                    if tool != READ || !page.contains_key(number) {
                        page.insert(*number, line.clone());
                    }
                } else {
                    see(page.entry(*number).or_default(), line);
                }
            }
            if !block.trail.is_empty() {
                self.trails.insert((block.path.clone(), block.first()), block.trail.clone());
            }
        }
        if is_search(action) {
            self.searches.push(SearchHits { query: query_of(action), hits: blocks });
        } else if tool == READ {
            self.reads.extend(blocks);
        }
    }
}

/// A search of the documents.
pub(super) fn search_call(thought: Thought, query: &str) -> OfflineMove {
    OfflineMove::call(thought, SEARCH, json!({"query": query, "k": HITS}))
}

/// A look at some lines of a document.
pub(super) fn read_call(thought: Thought, path: &str, first: u32, last: u32) -> OfflineMove {
    OfflineMove::call(thought, READ, json!({"path": path, "from": first, "to": last}))
}

/// A look at some lines of a document for words that are to stand there.
pub(super) fn look_call(
    thought: Thought,
    path: &str,
    lines: &RangeInclusive<u32>,
    words: &str,
) -> OfflineMove {
    let (first, last) = (*lines.start(), *lines.end());
    if words.is_empty() {
        return read_call(thought, path, first, last);
    }
    OfflineMove::call(thought, READ, json!({"path": path, "from": first, "to": last, "find": words}))
}

/// A computation.
pub(super) fn calculator_call(thought: Thought, expression: &str) -> OfflineMove {
    OfflineMove::call(thought, CALCULATOR, json!({"expression": expression}))
}

/// Adds what is shown of a line to what was seen of it before: very long lines are shown in pieces.
fn see(seen: &mut String, piece: &str) {
    let whole = piece.trim_matches('…');
    if seen.contains(whole) {
        return;
    }
    if whole.contains(seen.as_str()) || seen.len() + piece.len() > MOST_OF_A_LINE {
        piece.clone_into(seen);
    } else {
        seen.push_str(BETWEEN_PIECES);
        seen.push_str(piece);
    }
}

fn is_search(action: &Action) -> bool {
    dotted(&action.name) == SEARCH
}

fn query_of(action: &Action) -> String {
    action.arguments.get("query").and_then(|query| query.as_str()).unwrap_or_default().to_owned()
}

/// A tool's name with dots, also when it was called by the form that model providers accept.
pub(super) fn dotted(name: &str) -> String {
    match name {
        "corpus_search" => SEARCH.to_owned(),
        "corpus_read" => READ.to_owned(),
        _ => name.to_owned(),
    }
}

#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?:\[?\d+[\].)]\s+)?(\S.*?):(\d+)(?:\s*[-–]\s*(\d+))?(?:\s+\((.*)\)|\s+of \d+ (?:lines|rows|pages|slides|cells)|\s{2,}.*)?$",
    )
    .expect("a valid pattern")
});

#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static NUMBERED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*(\d+)\|(?: (.*)|(.*))$").expect("a valid pattern"));

/// The numbered lines in a tool's answer, by the headers above them.
fn blocks(content: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in content.lines() {
        if let Some(found) = NUMBERED.captures(line) {
            let text = found.get(2).or_else(|| found.get(3)).map_or("", |text| text.as_str());
            if let (Some(block), Ok(number)) = (blocks.last_mut(), found[1].parse::<u32>()) {
                block.take(number, text);
            }
        } else if let Some(found) = HEADER.captures(line) {
            let trail = found.get(4).map_or("", |trail| trail.as_str());
            let trail = trail.split(" > ").filter(|part| !part.is_empty()).map(str::to_owned).collect();
            blocks.push(Block { path: found[1].to_owned(), trail, lines: Vec::new() });
        }
    }
    blocks.retain(|block| !block.lines.is_empty());
    blocks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_are_found_under_their_headers() {
        let content =
            "docs/a b.md:12-13 (A > B)\n12| see b.md:7\n13|\n\nsrc/x.rs:7-7 of 9 lines\n 7|     let x = 1;\n";
        let found = blocks(content);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].path, "docs/a b.md");
        assert_eq!(found[0].trail, ["A", "B"]);
        assert_eq!(found[0].lines, [(12, "see b.md:7".to_owned()), (13, String::new())]);
        assert_eq!(found[1].lines, [(7, "    let x = 1;".to_owned())]);
    }

    #[test]
    fn the_lines_of_a_page_are_one_and_its_paragraphs_are_apart() {
        let content =
            "report.pdf:2-3 of 9 pages\n2| Results\n2| \n2| Revenue grew\n2| by 12 percent.\n3| Outlook";
        let found = blocks(content);
        assert_eq!(found.len(), 1);
        let page = "Results. …  Revenue grew by 12 percent.".to_owned();
        assert_eq!(found[0].lines, [(2, page), (3, "Outlook".to_owned())]);
    }

    #[test]
    fn pieces_of_a_long_line_are_all_kept() {
        let mut seen = String::new();
        for piece in ["the middle is red", "the end is blue", "the middle is red", "the start…"] {
            see(&mut seen, piece);
        }
        assert_eq!(seen, "the middle is red. … the end is blue. … the start…");
        see(&mut seen, "the start");
        assert_eq!(seen.matches("the start").count(), 1);
    }

    #[test]
    fn a_sentence_is_no_block() {
        assert!(blocks("No document matches.").is_empty());
        assert!(blocks("").is_empty());
    }

    proptest! {
        #[test]
        fn no_answer_upsets_it(content in "[\\PC\\n|:0-9]{0,200}") {
            for block in blocks(&content) {
                prop_assert!(block.first() <= block.last());
            }
        }
    }
}
