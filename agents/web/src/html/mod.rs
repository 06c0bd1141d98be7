//! What stands in a page of HTML, as text. Pure.
//!
//! The page is read as a stream of tags, and no tree is built of it: time and memory grow with its size alone, and nesting
//! however deep costs no stack. What the article is follows from the elements and from how much of a block is links.

mod article;
mod build;
mod element;
mod table;
mod tags;

pub(crate) use self::article::{Shown, text};
pub(crate) use self::tags::plain;

/// A page as blocks of text in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) title: Option<String>,
    /// Where relative links begin, where the page says so.
    pub(crate) base: Option<String>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) links: Vec<Link>,
    /// Whether the page was too large to be read to its end.
    pub(crate) is_cut: bool,
}

/// A link as it is written in the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) to: String,
    /// Whether it stands in what surrounds the article.
    pub(crate) is_around: bool,
}

/// A block of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) kind: BlockKind,
    pub(crate) text: String,
    /// Characters of the text that are links.
    pub(crate) linked: usize,
    pub(crate) place: Place,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// A heading of this level, from 1.
    Heading(u8),
    Paragraph,
    /// An item of a list, so many lists deep, with its number in one that counts.
    Item {
        depth: usize,
        number: Option<u32>,
    },
    Quote,
    /// Text whose spaces and lines count.
    Preformatted,
    /// A table, written already.
    Table,
}

/// Where in the page a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Within what the page says is its main part or an article.
    Main,
    /// Anywhere else.
    Body,
    /// In what surrounds the content: navigation, footers, asides, forms.
    Around,
}

/// Reads a page.
pub(crate) fn read(html: &str) -> Document {
    let mut builder = build::Builder::default();
    tags::each(html, &mut builder);
    builder.finish()
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
