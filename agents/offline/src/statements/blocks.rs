//! Documents cut into paragraphs, list items, table rows and lines of code.

use std::collections::BTreeMap;

use super::super::text::strip_markup;
use super::shapes::{self, Columns};
use super::source;

mod html;
mod unmarked;

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
    /// A line of a log or of a timeline.
    Entry,
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
    /// How the cells of a row are told apart.
    pub(super) columns: Columns,
    /// The value that a comment describes: the line below it.
    pub(super) value: String,
    /// Whether the label is a term, and the words say what it means.
    pub(super) defines: bool,
}

impl RawBlock {
    /// Its first line.
    pub(super) fn first(&self) -> u32 {
        self.pieces.first().map_or(0, |(line, _)| *line)
    }

    /// Its last line.
    pub(super) fn last(&self) -> u32 {
        self.pieces.last().map_or(0, |(line, _)| *line)
    }

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
pattern!(ITEM, r"^\s*(?:[-*+•]|\d{1,3}[.)]|[a-z]\))\s+(\S.*)$");
pattern!(RULE, r"^\s*(?:[-*_=~+#]\s*){3,}$");
pattern!(SEPARATOR, r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$");
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
    let mut cutter = BlockSplitter {
        separated: shapes::separated(path),
        plain: shapes::is_plain_text(path),
        nesting: source::nesting(path),
        ..BlockSplitter::default()
    };
    if cutter.separated.is_some() {
        cutter.name_columns(lines);
    }
    let is_empty = |number: Option<u32>| {
        number.and_then(|number| lines.get(&number)).is_none_or(|line| line.trim().is_empty())
    };
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
            source::Line::Prose(text) => {
                cutter.alone = is_empty(number.checked_sub(1)) && is_empty(number.checked_add(1));
                cutter.prose_line(number, &text);
            }
            source::Line::Code(text) => {
                cutter.nest(&text, raw);
                cutter.source_line(number, &text);
            }
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
    if part[at].len() > 3 || part[..at].iter().filter(|line| is_marked(line)).count() > 1 {
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

/// Whether a line is a heading below the first, or an item of a list: outside code.
fn is_marked(line: &str) -> bool {
    line.starts_with("## ") || line.starts_with("### ") || ITEM.is_match(line)
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
    /// How cells are told apart where all of the document is one table.
    separated: Option<Columns>,
    /// Whether headings stand without a mark.
    plain: bool,
    /// What the lines of code stand under is told by.
    nesting: source::Nesting,
    /// Whether the line that is read stands between empty ones.
    alone: bool,
    /// How the cells of the table that is open are told apart.
    columns: Columns,
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
        if self.unmarked(number, raw, text) {
            return;
        }
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
            || (!self.plain && is_indented_code(raw) && self.open.pieces.is_empty() && self.lead.is_empty())
        {
            self.code(number, text);
        } else {
            self.end_table();
            self.text(number, text);
        }
    }

    /// Notes what the following lines of settings or code stand under.
    fn nest(&mut self, text: &str, raw: &str) {
        let Some(found) = source::nested(self.nesting, text, raw) else { return };
        // A comment above belongs to what begins here, not to what was open.
        let open = std::mem::take(&mut self.open);
        self.headings.retain(|(level, _)| *level < found.level);
        if let Some(name) = found.name {
            self.headings.push((found.level, name));
        }
        self.open = open;
    }

    fn source_line(&mut self, number: u32, raw: &str) {
        if raw.trim().is_empty() {
            self.flush();
            return;
        }
        let name = source::declared_name(raw);
        if let (Some(name), false) = (&name, self.open.pieces.is_empty()) {
            self.open.label = format!("`{name}`");
            if source::is_value(raw) {
                self.open.value = raw.trim().to_owned();
            }
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
            self.open.defines = !found[0].contains(&format!("{}.", &found[1]));
            self.open.pieces.push((number, found[2].to_owned()));
            return;
        }
        if self.open.pieces.is_empty()
            && self.plain
            && let Some(label) = shapes::run_in_heading(text)
        {
            self.open.label = label.to_owned();
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
        self.open.columns = self.columns;
        self.open.pieces.push((number, text.to_owned()));
        self.flush();
    }

    /// The row just read turns out to be the head of a table.
    fn table_header(&mut self) {
        self.flush();
        self.in_table = true;
        if let Some(row) = self.done.pop_if(|block| block.kind == RawKind::Row) {
            self.header =
                shapes::cells(&row.joined().0, row.columns).iter().map(|cell| strip_markup(cell)).collect();
        }
    }

    fn end_table(&mut self) {
        if self.separated.is_none() {
            self.in_table = false;
            self.header.clear();
            self.columns = Columns::Pipes;
        }
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
            _ => self.flush(),
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
