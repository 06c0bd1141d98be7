//! Documents cut into paragraphs, list items, table rows and lines of code.

use std::collections::BTreeMap;

use super::super::text::{strip_markup, strip_tags};
use super::source;

/// What a block is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RawKind {
    /// A paragraph.
    #[default]
    Text,
    /// A list item.
    Item,
    /// A row of a table.
    Row,
    /// A line of code.
    Code,
}

/// Lines that belong together, without what marks them as belonging (bullets, comment signs).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RawBlock {
    /// What it is.
    pub(super) kind: RawKind,
    /// Line numbers and words.
    pub(super) pieces: Vec<(u32, String)>,
    /// The headings above, outermost first.
    pub(super) headings: Vec<String>,
    /// The words in bold it opens with, or the name that a comment describes.
    pub(super) label: String,
    /// The sentence with a colon that introduces the list it stands in.
    pub(super) lead: String,
    /// The names of a table's columns.
    pub(super) header: Vec<String>,
}

impl RawBlock {
    /// The words as one text, and where each piece begins in it.
    pub(super) fn joined(&self) -> (String, Vec<usize>) {
        let mut joined = String::new();
        let mut starts = Vec::new();
        for (_, piece) in &self.pieces {
            if !joined.is_empty() {
                joined.push(' ');
            }
            starts.push(joined.len());
            joined.push_str(piece);
        }
        (joined, starts)
    }
}

pattern!(HEADING, r"^\s{0,3}(#{1,6})\s+(.+?)\s*#*$");
pattern!(HTML_HEADING, r"(?i)^\s*<h([1-6])\b[^>]*>(.*?)(?:</h[1-6]>.*)?$");
pattern!(ITEM, r"^\s*(?:[-*+•]|\d{1,3}[.)]|[a-z]\))\s+(\S.*)$");
pattern!(OPEN_TAG, r"</?[A-Za-z!][^<>]*$");
pattern!(RULE, r"^\s*(?:[-*_=~+#]\s*){3,}$");
pattern!(SEPARATOR, r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$");
pattern!(
    BLOCK_TAG,
    r"(?i)</?(?:p|li|div|h[1-6]|tr|td|th|ul|ol|dl|dt|dd|table|section|article|header|footer|nav|main|body|head|title|br|hr|pre|blockquote|figure|figcaption|summary|details)\b[^>]*>"
);
pattern!(BOLD_LABEL, r"^(?:\*\*|__)([^*_]{2,80}?)(?:[.:]\s*(?:\*\*|__)|(?:\*\*|__)\s*[.:–—-])\s+(\S.*)$");
pattern!(
    LINK_ONLY,
    r"^\s*(?:\[[^\]]*\]:\s*\S+.*|(?:\[?!\[[^\]]*\]\([^)]*\)(?:\]\([^)]*\))?\s*)+|\[[^\]]*\]\([^)]*\))\s*$"
);

/// The blocks in the lines seen of a document.
pub(super) fn blocks(
    path: &str,
    lines: &BTreeMap<u32, String>,
    trails: &BTreeMap<(String, u32), Vec<String>>,
) -> Vec<RawBlock> {
    let language = source::language(path);
    let mut cutter = BlockSplitter::default();
    let mut reader = source::CommentReader::new(language);
    let mut last = None;
    for (&number, raw) in lines {
        if last.is_none_or(|last| last + 1 != number) {
            cutter.gap();
            cutter.in_fence = number > 1 && begins_in_fence(lines, number);
            reader = source::CommentReader::new(language);
        }
        if let Some(trail) = trails.get(&(path.to_owned(), number)) {
            cutter.begin_under(trail);
        }
        last = Some(number);
        match reader.read(raw) {
            source::Line::Prose(text) if source::is_html(path) => cutter.html_line(number, &text),
            source::Line::Prose(text) => cutter.prose_line(number, &text),
            source::Line::Code(text) => cutter.source_line(number, &text),
        }
    }
    cutter.flush();
    cutter.done
}

/// Whether the part of a document that begins at a line begins inside a code block.
///
/// A fence with the name of a language opens. One without opens or closes: then what reads more like
/// prose, before it or after it, is outside.
fn begins_in_fence(lines: &BTreeMap<u32, String>, first: u32) -> bool {
    let part: Vec<&str> = lines
        .range(first..)
        .zip(first..)
        .take_while(|((number, _), expected)| *number == expected)
        .map(|((_, line), _)| line.trim())
        .collect();
    let fence = |line: &&str| line.starts_with("```") || line.starts_with("~~~");
    let Some(at) = part.iter().position(fence) else { return false };
    if part[at].len() > 3 {
        return false;
    }
    let prose = |lines: &[&str]| {
        let told = lines
            .iter()
            .filter(|line| line.starts_with('|') || !is_aligned(line))
            .filter(|line| {
                line.starts_with('|') || line.split_whitespace().count() > 5 || line.ends_with(['.', ':'])
            })
            .count();
        told as f64 / lines.iter().filter(|line| !line.is_empty()).count().max(1) as f64
    };
    let after = &part[at + 1..];
    let until = after.iter().position(fence).unwrap_or(after.len());
    prose(&after[..until]) > prose(&part[..at])
}

/// Whether a line is set in columns or has a remark at its end, as code and listings do.
fn is_aligned(line: &str) -> bool {
    line.contains("   ") || line.contains("  #") || line.contains(" // ") || line.ends_with([';', '{', '}'])
}

#[derive(Default)]
struct BlockSplitter {
    done: Vec<RawBlock>,
    open: RawBlock,
    headings: Vec<(usize, String)>,
    lead: String,
    header: Vec<String>,
    in_table: bool,
    in_fence: bool,
    in_script: bool,
    /// Whether a tag was opened on a line before and is not closed yet.
    in_tag: bool,
}

impl BlockSplitter {
    /// Lines are missing here: nothing before belongs to what follows, except the headings.
    fn gap(&mut self) {
        self.flush();
        self.in_fence = false;
        self.in_script = false;
        self.in_tag = false;
        self.lead.clear();
        self.end_table();
    }

    /// The headings that the search gave for what begins here.
    fn begin_under(&mut self, trail: &[String]) {
        if self.open.pieces.is_empty() {
            self.headings = (1..).zip(trail.iter().cloned()).collect();
        }
    }

    fn prose_line(&mut self, number: u32, raw: &str) {
        let text = raw.trim_start_matches(['>', ' ', '\t']).trim_end();
        if text.starts_with("```") || text.starts_with("~~~") {
            self.flush();
            self.in_fence = !self.in_fence;
        } else if self.in_fence {
            self.code(number, text);
        } else if text.is_empty() {
            self.flush();
            self.end_table();
        } else if let Some(found) = HEADING.captures(raw) {
            self.heading(found[1].len(), &found[2]);
        } else if SEPARATOR.is_match(text) && (text.contains('|') || self.in_table) {
            self.table_header();
        } else if RULE.is_match(text) {
            self.underline(text);
        } else if text.starts_with('|') || (self.in_table && text.contains('|')) {
            self.row(number, text);
        } else if LINK_ONLY.is_match(text) || text.starts_with("<!--") {
            self.flush();
        } else if let Some(found) = ITEM.captures(raw) {
            self.flush();
            if LINK_ONLY.is_match(&found[1]) {
                return;
            }
            self.open.kind = RawKind::Item;
            self.text(number, &found[1]);
        } else if text.starts_with("$ ")
            || text.starts_with("# #")
            || (is_indented_code(raw) && self.open.pieces.is_empty() && self.lead.is_empty())
        {
            self.code(number, text);
        } else {
            self.end_table();
            self.text(number, text);
        }
    }

    fn html_line(&mut self, number: u32, raw: &str) {
        let raw = match (self.in_tag, raw.find('>')) {
            (true, None) => return,
            (true, Some(end)) => &raw[end + 1..],
            (false, _) => raw,
        };
        let cut = OPEN_TAG.find(raw).map_or(raw.len(), |open| open.start());
        self.in_tag = cut < raw.len();
        let raw = &raw[..cut];
        let lower = raw.to_ascii_lowercase();
        if lower.contains("<script") || lower.contains("<style") {
            self.flush();
            self.in_script = !(lower.contains("</script") || lower.contains("</style"));
            return;
        }
        if self.in_script {
            self.in_script = !(lower.contains("</script") || lower.contains("</style"));
            return;
        }
        if !raw.contains('<') {
            // The tools give web pages as text with headings marked by `#`; a space at the end of a line
            // stands where an element ended.
            self.prose_line(number, raw);
            if raw.ends_with(' ') {
                self.flush();
            }
            return;
        }
        if let Some(found) = HTML_HEADING.captures(raw) {
            let level = found[1].parse().unwrap_or(6);
            self.heading(level, &found[2]);
            return;
        }
        let mut at = 0;
        for tag in BLOCK_TAG.find_iter(raw) {
            self.text(number, strip_tags(&raw[at..tag.start()]).trim());
            self.flush();
            at = tag.end();
        }
        self.text(number, strip_tags(&raw[at..]).trim());
    }

    fn source_line(&mut self, number: u32, raw: &str) {
        if raw.trim().is_empty() {
            self.flush();
            return;
        }
        let name = source::declared_name(raw);
        if let (Some(name), false) = (&name, self.open.pieces.is_empty()) {
            self.open.label = format!("`{name}`");
        }
        self.flush();
        self.code(number, raw.trim());
    }

    fn text(&mut self, number: u32, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.open.pieces.is_empty()
            && let Some(found) = BOLD_LABEL.captures(text)
        {
            self.open.label = strip_markup(&found[1]);
            self.open.pieces.push((number, found[2].to_owned()));
            return;
        }
        self.open.pieces.push((number, text.to_owned()));
    }

    fn code(&mut self, number: u32, text: &str) {
        self.flush();
        if text.chars().filter(|letter| letter.is_alphanumeric()).count() >= 3 {
            self.open.kind = RawKind::Code;
            self.open.pieces.push((number, text.to_owned()));
            self.flush();
        }
    }

    fn row(&mut self, number: u32, text: &str) {
        self.flush();
        self.in_table = true;
        self.open.kind = RawKind::Row;
        self.open.pieces.push((number, text.to_owned()));
        self.flush();
    }

    /// The row just read turns out to be the head of a table.
    fn table_header(&mut self) {
        self.flush();
        self.in_table = true;
        if let Some(row) = self.done.pop_if(|block| block.kind == RawKind::Row) {
            self.header = super::cells(&row.joined().0).iter().map(|cell| strip_markup(cell)).collect();
        }
    }

    fn end_table(&mut self) {
        self.in_table = false;
        self.header.clear();
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.flush();
        self.lead.clear();
        self.end_table();
        self.headings.retain(|(other, _)| *other < level);
        self.headings.push((level, strip_markup(text)));
    }

    /// A line of signs: under a single line it makes a heading, else it is a rule.
    fn underline(&mut self, signs: &str) {
        let level = if signs.trim_start().starts_with('=') { 1 } else { 2 };
        let is_title = self.open.kind == RawKind::Text && self.open.pieces.len() == 1 && signs.len() > 2;
        match self.open.pieces.first().cloned() {
            Some((_, title)) if is_title => {
                self.open = RawBlock::default();
                self.heading(level, &title);
            }
            Some(_) | None => self.flush(),
        }
    }

    fn flush(&mut self) {
        let mut block = std::mem::take(&mut self.open);
        let Some((_, last)) = block.pieces.last() else { return };
        let introduces = block.kind == RawKind::Text && last.trim_end().ends_with(':');
        let is_item = block.kind == RawKind::Item;
        block.headings = self.headings.iter().map(|(_, text)| text.clone()).collect();
        block.header.clone_from(&self.header);
        if is_item {
            block.lead.clone_from(&self.lead);
        }
        if introduces {
            self.lead = strip_markup(&block.joined().0);
        } else if block.kind == RawKind::Text {
            self.lead.clear();
        }
        self.done.push(block);
    }
}

fn is_indented_code(raw: &str) -> bool {
    raw.starts_with("    ") || raw.starts_with('\t')
}
