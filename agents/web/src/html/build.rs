//! Blocks out of tags and text.

use muster_shared::text::{normalise_space, one_line};

use super::element::{Element, is_around, is_main};
use super::table::{Table, Written};
use super::tags::Attributes;
use super::{Block, BlockKind, Document, Link, Place};

/// Elements that are open at once. Deeper ones are let pass: their text counts, and what they are does not.
const MOST_OPEN: usize = 256;

/// Most blocks, bytes of text, and links of a page.
const MOST_BLOCKS: usize = 50_000;
const MOST_TEXT: usize = 16 * 1024 * 1024;
const MOST_LINKS: usize = 2_000;

/// Longest text of a link and longest title that are kept, in characters.
const LONGEST_TITLE: usize = 300;

/// An element that is open.
#[derive(Debug)]
struct Open {
    name: String,
    element: Element,
    hides: bool,
    is_around: bool,
    is_main: bool,
}

/// How many of a kind are open.
#[derive(Debug, Default)]
struct Within {
    hidden: usize,
    around: usize,
    main: usize,
    quotes: usize,
    preformatted: usize,
    links: usize,
}

#[derive(Debug, Default)]
pub(super) struct Builder {
    document: Document,
    open: Vec<Open>,
    /// Elements that are open beyond those that are looked at.
    too_deep: usize,
    within: Within,
    /// The next number of each list that is open; none in one that does not count.
    lists: Vec<Option<u32>>,
    /// What the block that is being read is.
    kind: Option<BlockKind>,
    text: String,
    linked: usize,
    /// The link that is open: where it leads and where its text begins.
    link: Option<(String, usize)>,
    table: Option<Table>,
    title: Option<String>,
    bytes: usize,
}

impl Builder {
    pub(super) fn start(&mut self, name: &str, attributes: Attributes) {
        let element = Element::of(name);
        self.end_what_ends_before(element);
        if element.parts_text() {
            self.part();
        }
        if element.is_open() && !self.enter(name, element, &attributes) {
            return;
        }
        self.begin(element, attributes);
    }

    fn begin(&mut self, element: Element, attributes: Attributes) {
        match element {
            Element::Heading(level) => self.kind = Some(BlockKind::Heading(level)),
            Element::List { counts } => self.lists.push(counts.then(|| attributes.start.unwrap_or(1))),
            Element::Item => self.kind = Some(self.item()),
            Element::Preformatted => self.kind = Some(BlockKind::Preformatted),
            Element::Table => match &mut self.table {
                Some(table) => table.within += 1,
                None => self.table = Some(Table::default()),
            },
            Element::Row => self.in_table(Table::begin_row),
            Element::Cell => self.in_table(|table| table.begin_cell(attributes.columns)),
            Element::Code if self.within.preformatted == 0 => self.push("`"),
            Element::Link => {
                let at = self.into().len();
                self.link = attributes.href.filter(|to| !to.is_empty()).map(|to| (to, at));
            }
            Element::Break => self.push("\n"),
            Element::Image if !attributes.alt.is_empty() => {
                let alt = one_line(&attributes.alt, LONGEST_TITLE);
                self.text(&format!("[image: {alt}]"));
            }
            Element::Title if self.title.is_none() => self.title = Some(String::new()),
            Element::Base => self.document.base = self.document.base.take().or(attributes.href),
            Element::Hidden
            | Element::Block
            | Element::Paragraph
            | Element::Term
            | Element::Quote
            | Element::Code
            | Element::Rule
            | Element::Image
            | Element::Title
            | Element::Inline
            | Element::Passing => {}
        }
    }

    /// Opens an element. False when there are too many.
    fn enter(&mut self, name: &str, element: Element, attributes: &Attributes) -> bool {
        if self.open.len() >= MOST_OPEN {
            self.too_deep += 1;
            return false;
        }
        // A header that stands in an article is the article's.
        let is_head = name == "header" && self.within.main == 0;
        let open = Open {
            name: name.to_owned(),
            element,
            hides: element == Element::Hidden || attributes.is_hidden,
            is_around: is_head || is_around(name, attributes),
            is_main: is_main(name, attributes),
        };
        self.count(&open, 1);
        self.open.push(open);
        true
    }

    fn count(&mut self, open: &Open, by: isize) {
        let add = |number: &mut usize, counts: bool| {
            if counts {
                *number = number.saturating_add_signed(by);
            }
        };
        add(&mut self.within.hidden, open.hides);
        add(&mut self.within.around, open.is_around);
        add(&mut self.within.main, open.is_main);
        add(&mut self.within.quotes, open.element == Element::Quote);
        add(&mut self.within.preformatted, open.element == Element::Preformatted);
        add(&mut self.within.links, open.element == Element::Link);
    }

    fn item(&mut self) -> BlockKind {
        let depth = self.lists.len().max(1);
        let number = self.lists.last_mut().and_then(Option::as_mut).map(|next| {
            let number = *next;
            *next = next.saturating_add(1);
            number
        });
        BlockKind::Item { depth, number }
    }

    fn in_table(&mut self, change: impl FnOnce(&mut Table)) {
        if let Some(table) = self.table.as_mut().filter(|table| table.within == 0) {
            change(table);
        }
    }

    pub(super) fn end(&mut self, name: &str) {
        let element = Element::of(name);
        if !element.is_open() {
            // `</p>` and `</br>` without a beginning part text in browsers; others are nothing.
            return;
        }
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let Some(at) = self.open.iter().rposition(|open| open.name == name) else { return };
        // What is open beyond a table's cell is not closed from within it.
        let crosses = self.open[at..].iter().skip(1).any(|open| open.element == Element::Table);
        if crosses && !matches!(element, Element::Block | Element::Table) {
            return;
        }
        self.close_to(at);
    }

    fn end_what_ends_before(&mut self, begun: Element) {
        if !begun.parts_text() && begun != Element::Link {
            return;
        }
        let reachable = self.open.iter().rev().take_while(|open| !open.element.is_boundary());
        let found =
            reachable.map(|open| open.element).enumerate().filter(|(_, open)| open.ends_before(begun)).last();
        if let Some((from_top, _)) = found {
            self.close_to(self.open.len() - 1 - from_top);
        }
    }

    fn close_to(&mut self, at: usize) {
        while self.open.len() > at {
            let Some(open) = self.open.last() else { return };
            let element = open.element;
            self.leave(element);
            if let Some(open) = self.open.pop() {
                self.count(&open, -1);
            }
        }
    }

    fn leave(&mut self, element: Element) {
        if element.parts_text() {
            self.part();
        }
        if matches!(element, Element::Heading(_) | Element::Item | Element::Preformatted) {
            // One without text says nothing of what comes after it.
            self.kind = None;
        }
        match element {
            Element::List { .. } => {
                self.lists.pop();
            }
            Element::Cell => self.in_table(Table::end_cell),
            Element::Table => match self.table.take() {
                Some(mut table) if table.within > 0 => {
                    table.within -= 1;
                    self.table = Some(table);
                }
                Some(table) => self.write_table(table),
                None => {}
            },
            Element::Code if self.within.preformatted == 0 => self.push("`"),
            Element::Link => self.end_link(),
            Element::Title => {
                let title = self.title.take().map(|title| one_line(&title, LONGEST_TITLE));
                self.document.title = self.document.title.take().or(title.filter(|title| !title.is_empty()));
            }
            Element::Hidden
            | Element::Block
            | Element::Paragraph
            | Element::Heading(_)
            | Element::Item
            | Element::Term
            | Element::Quote
            | Element::Preformatted
            | Element::Row
            | Element::Code
            | Element::Break
            | Element::Rule
            | Element::Image
            | Element::Base
            | Element::Inline
            | Element::Passing => {}
        }
    }

    fn end_link(&mut self) {
        let Some((to, at)) = self.link.take() else { return };
        if self.within.hidden > 0 || self.document.links.len() >= MOST_LINKS {
            return;
        }
        let text = self.into().get(at..).unwrap_or_default();
        let said = one_line(text, LONGEST_TITLE);
        let is_around = self.within.around > 0;
        self.document.links.push(Link { text: said, to, is_around });
    }

    pub(super) fn text(&mut self, text: &str) {
        if let Some(title) = &mut self.title {
            if title.len() < 4 * LONGEST_TITLE {
                title.push_str(text);
            }
            return;
        }
        if self.within.hidden > 0 {
            return;
        }
        if self.within.links > 0 {
            self.linked += text.chars().filter(|c| !c.is_whitespace()).count();
        }
        self.push(text);
    }

    /// Adds text; what is white is one space, but where it counts.
    fn push(&mut self, text: &str) {
        if self.within.hidden > 0 {
            return;
        }
        self.bytes += text.len();
        if self.bytes > MOST_TEXT {
            self.document.is_cut = true;
            return;
        }
        let is_preformatted = self.within.preformatted > 0;
        let into = self.into();
        if is_preformatted {
            into.push_str(text);
            return;
        }
        if text == "\n" {
            into.push('\n');
            return;
        }
        for c in text.chars() {
            if !c.is_whitespace() {
                into.push(c);
            } else if !into.ends_with([' ', '\n']) && !into.is_empty() {
                into.push(' ');
            }
        }
    }

    /// Where text goes: into the cell that is open, else into the block.
    fn into(&mut self) -> &mut String {
        self.table.as_mut().and_then(Table::cell).unwrap_or(&mut self.text)
    }

    /// Ends the block that is being read.
    fn part(&mut self) {
        if let Some(cell) = self.table.as_mut().and_then(Table::cell) {
            if !cell.is_empty() && !cell.ends_with(' ') {
                cell.push(' ');
            }
            return;
        }
        if self.text.trim().is_empty() {
            self.text.clear();
            return;
        }
        let kind = self.kind.take().unwrap_or({
            if self.within.preformatted > 0 {
                BlockKind::Preformatted
            } else if self.within.quotes > 0 {
                BlockKind::Quote
            } else {
                BlockKind::Paragraph
            }
        });
        let text = std::mem::take(&mut self.text);
        let text = match kind {
            BlockKind::Preformatted => text.trim_end().trim_start_matches('\n').to_owned(),
            BlockKind::Heading(_) => normalise_space(&text),
            BlockKind::Paragraph | BlockKind::Item { .. } | BlockKind::Quote | BlockKind::Table => {
                text.trim().to_owned()
            }
        };
        self.link = self.link.take().map(|(to, _)| (to, 0));
        self.add(kind, text);
    }

    fn write_table(&mut self, table: Table) {
        match table.finish() {
            Written::Table(text) => self.add(BlockKind::Table, text),
            Written::Arranged(texts) => {
                for text in texts {
                    self.add(BlockKind::Paragraph, text);
                }
            }
        }
    }

    fn add(&mut self, kind: BlockKind, text: String) {
        let linked = std::mem::take(&mut self.linked);
        if self.document.blocks.len() >= MOST_BLOCKS {
            self.document.is_cut = true;
            return;
        }
        let place = if self.within.around > 0 {
            Place::Around
        } else if self.within.main > 0 {
            Place::Main
        } else {
            Place::Body
        };
        self.document.blocks.push(Block { kind, text, linked, place });
    }

    pub(super) fn finish(mut self) -> Document {
        self.close_to(0);
        self.part();
        self.document
    }
}
