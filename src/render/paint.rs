//! Colour, where it is wanted. What is painted here is marked by a number that is another in each process, so that text of
//! others, which may hold the same sequences, paints nothing: at the door (`render::safe`) marks are taken out, and what has
//! none is shown as what it is.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    colour: bool,
}

/// How text looks: what begins it, and what ends it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    begin: u8,
    end: u8,
}

impl Style {
    pub(crate) const BOLD: Self = Self { begin: 1, end: 22 };
    pub(crate) const DIM: Self = Self { begin: 2, end: 22 };
    pub(crate) const ITALIC: Self = Self { begin: 3, end: 23 };
    pub(crate) const UNDERLINE: Self = Self { begin: 4, end: 24 };
    pub(crate) const STRUCK: Self = Self { begin: 9, end: 29 };
    pub(crate) const RED: Self = Self { begin: 31, end: 39 };
    pub(crate) const GREEN: Self = Self { begin: 32, end: 39 };
    pub(crate) const YELLOW: Self = Self { begin: 33, end: 39 };
    pub(crate) const CYAN: Self = Self { begin: 36, end: 39 };
}

/// A text in a style.
pub(crate) fn styled(text: &str, style: Style) -> String {
    let (Style { begin, end }, mark) = (style, mark());
    format!("\u{1b}[{begin};{mark}m{text}\u{1b}[{end};{mark}m")
}

/// What only we know.
fn mark() -> u64 {
    static MARK: OnceLock<u64> = OnceLock::new();
    *MARK.get_or_init(|| RandomState::new().hash_one(std::process::id()))
}

/// Whether what follows an escape is a style of ours: its length, and what a terminal is given for it.
pub(crate) fn own(after: &str) -> Option<(usize, String)> {
    let (within, _) = after.strip_prefix('[')?.split_once('m')?;
    let code: u8 = within.strip_suffix(&format!(";{}", mark()))?.parse().ok()?;
    Some((within.len() + 2, format!("\u{1b}[{code}m")))
}

impl Paint {
    /// For terminals.
    pub(crate) const COLOUR: Self = Self { colour: true };
    /// For files, pipes and people who set `NO_COLOR`.
    pub(crate) const PLAIN: Self = Self { colour: false };

    fn style(self, text: &str, style: Style) -> String {
        if self.colour { styled(text, style) } else { text.to_owned() }
    }

    /// Something of less importance.
    pub(crate) fn dim(self, text: &str) -> String {
        self.style(text, Style::DIM)
    }

    /// A heading.
    pub(crate) fn bold(self, text: &str) -> String {
        self.style(text, Style::BOLD)
    }

    /// Something good.
    pub(crate) fn good(self, text: &str) -> String {
        self.style(text, Style::GREEN)
    }

    /// Something to look at.
    pub(crate) fn warn(self, text: &str) -> String {
        self.style(text, Style::YELLOW)
    }

    /// Something bad.
    pub(crate) fn bad(self, text: &str) -> String {
        self.style(text, Style::RED)
    }

    /// Something in work.
    pub(crate) fn busy(self, text: &str) -> String {
        self.style(text, Style::CYAN)
    }
}
