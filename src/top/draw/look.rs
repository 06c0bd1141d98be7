//! Colours: those that a terminal gives by name, so that they fit light and dark ones; none where nobody wants any.

use ratatui::style::{Color, Modifier, Style};

use super::super::rows::Tone;

/// How things look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    colour: bool,
}

impl Look {
    /// With colours, or without.
    pub(crate) const fn new(colour: bool) -> Self {
        Self { colour }
    }

    /// How a tone looks. Without colours it is told by words and marks alone, and headings are bold.
    pub(super) fn of(self, tone: Tone) -> Style {
        let coloured = |colour: Color| if self.colour { Style::new().fg(colour) } else { Style::new() };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Dim if self.colour => Style::new().add_modifier(Modifier::DIM),
            Tone::Dim => Style::new(),
            Tone::Busy => coloured(Color::Cyan),
            Tone::Good => coloured(Color::Green),
            Tone::Warn => coloured(Color::Yellow),
            Tone::Bad => coloured(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    /// What is chosen.
    pub(super) const fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The bar at the top.
    pub(super) const fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED).add_modifier(Modifier::BOLD)
    }
}
