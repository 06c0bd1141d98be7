//! Colour, where it is wanted.

use owo_colors::OwoColorize;

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    colour: bool,
}

impl Paint {
    /// For terminals.
    pub(crate) const COLOUR: Self = Self { colour: true };
    /// For files, pipes and people who set `NO_COLOR`.
    pub(crate) const PLAIN: Self = Self { colour: false };

    /// Something of less importance.
    pub(crate) fn dim(self, text: &str) -> String {
        if self.colour { text.dimmed().to_string() } else { text.to_owned() }
    }

    /// A heading.
    pub(crate) fn bold(self, text: &str) -> String {
        if self.colour { text.bold().to_string() } else { text.to_owned() }
    }

    /// Something good.
    pub(crate) fn good(self, text: &str) -> String {
        if self.colour { text.green().to_string() } else { text.to_owned() }
    }

    /// Something to look at.
    pub(crate) fn warn(self, text: &str) -> String {
        if self.colour { text.yellow().to_string() } else { text.to_owned() }
    }

    /// Something bad.
    pub(crate) fn bad(self, text: &str) -> String {
        if self.colour { text.red().to_string() } else { text.to_owned() }
    }

    /// Something in work.
    pub(crate) fn busy(self, text: &str) -> String {
        if self.colour { text.cyan().to_string() } else { text.to_owned() }
    }
}
