//! What elements mean for text.

use super::tags::Attributes;

/// Words in classes and identifiers of what surrounds the content.
const AROUND: [&str; 28] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "consent",
    "cookie",
    "cookies",
    "footer",
    "masthead",
    "menu",
    "nav",
    "navbar",
    "navigation",
    "newsletter",
    "pager",
    "pagination",
    "popup",
    "promo",
    "related",
    "share",
    "sharing",
    "sidebar",
    "skip",
    "social",
    "subscribe",
];

/// What an element does to the text in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    /// Its text is not shown.
    Hidden,
    /// Its text stands apart from what is before and after.
    Block,
    Paragraph,
    Heading(u8),
    List {
        counts: bool,
    },
    Item,
    Term,
    Quote,
    Preformatted,
    Table,
    Row,
    Cell,
    /// Code within a line.
    Code,
    Link,
    /// The line ends.
    Break,
    Rule,
    Image,
    Title,
    Base,
    /// Text flows through it, and it has to be closed.
    Inline,
    /// Text flows through it, and nobody looks whether it is closed.
    Passing,
}

/// How an element stands to the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// It has an end, and its text is apart from what is around.
    Apart,
    /// It has an end, and text flows through it.
    Within,
    /// It has no end, and text before and after it is apart.
    Divider,
    /// It has no end, and text flows past it.
    Point,
}

impl Element {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "script" | "style" | "noscript" | "template" | "svg" | "iframe" | "object" | "canvas"
            | "select" | "button" | "textarea" | "datalist" | "audio" | "video" | "dialog" => Self::Hidden,
            "p" => Self::Paragraph,
            "h1" => Self::Heading(1),
            "h2" => Self::Heading(2),
            "h3" => Self::Heading(3),
            "h4" => Self::Heading(4),
            "h5" => Self::Heading(5),
            "h6" => Self::Heading(6),
            "ol" => Self::List { counts: true },
            "ul" | "menu" | "dir" => Self::List { counts: false },
            "li" => Self::Item,
            "dt" | "dd" => Self::Term,
            "blockquote" => Self::Quote,
            "pre" | "listing" | "xmp" => Self::Preformatted,
            "table" => Self::Table,
            "tr" => Self::Row,
            "td" | "th" => Self::Cell,
            "code" | "kbd" | "samp" => Self::Code,
            "a" => Self::Link,
            "br" => Self::Break,
            "hr" => Self::Rule,
            "img" => Self::Image,
            "title" => Self::Title,
            "base" => Self::Base,
            "html" | "head" | "body" | "main" | "article" | "section" | "nav" | "aside" | "header"
            | "footer" | "div" | "form" | "fieldset" | "figure" | "figcaption" | "details" | "summary"
            | "address" | "dl" | "center" | "caption" | "hgroup" | "search" | "thead" | "tbody" | "tfoot" => {
                Self::Block
            }
            "span" | "label" | "q" | "cite" | "time" => Self::Inline,
            // The rest is a matter of looks.
            _ => Self::Passing,
        }
    }

    const fn shape(self) -> Shape {
        match self {
            Self::Block
            | Self::Paragraph
            | Self::Heading(_)
            | Self::List { .. }
            | Self::Item
            | Self::Term
            | Self::Quote
            | Self::Preformatted
            | Self::Table
            | Self::Row
            | Self::Cell => Shape::Apart,
            Self::Hidden | Self::Code | Self::Link | Self::Title | Self::Inline => Shape::Within,
            Self::Rule => Shape::Divider,
            Self::Break | Self::Image | Self::Base | Self::Passing => Shape::Point,
        }
    }

    /// Whether it has an end.
    pub(super) const fn is_open(self) -> bool {
        matches!(self.shape(), Shape::Apart | Shape::Within)
    }

    /// Whether text before and after it is apart.
    pub(super) const fn parts_text(self) -> bool {
        matches!(self.shape(), Shape::Apart | Shape::Divider)
    }

    /// Whether one that is open ends where this one begins: people leave the end tags of these out.
    pub(super) const fn ends_before(self, begun: Self) -> bool {
        match self {
            Self::Paragraph => begun.parts_text(),
            Self::Item => matches!(begun, Self::Item),
            Self::Term => matches!(begun, Self::Term),
            Self::Row => matches!(begun, Self::Row),
            Self::Cell => matches!(begun, Self::Cell | Self::Row),
            Self::Link => matches!(begun, Self::Link),
            _ => false,
        }
    }

    /// Whether what is open around it stays open whatever begins within.
    pub(super) const fn is_boundary(self) -> bool {
        matches!(self, Self::List { .. } | Self::Table)
    }
}

/// Whether an element holds what surrounds the content.
pub(super) fn is_around(name: &str, attributes: &Attributes) -> bool {
    match name {
        "nav" | "aside" | "footer" | "form" | "search" | "menu" => return true,
        "html" | "body" | "main" | "article" => return false,
        // Others by what they are called.
        _ => {}
    }
    let by_role =
        ["navigation", "banner", "contentinfo", "complementary", "search", "dialog", "menu", "menubar"];
    let words =
        |names: &str| names.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| AROUND.contains(&word));
    by_role.contains(&attributes.role.as_str()) || words(&attributes.names)
}

/// Whether an element is what the page says is its content.
pub(super) fn is_main(name: &str, attributes: &Attributes) -> bool {
    matches!(name, "main" | "article") || matches!(attributes.role.as_str(), "main" | "article")
}
