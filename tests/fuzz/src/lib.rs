//! Fuzzers on every door: what comes from outside is read and refused, whatever it is.
//!
//! A [`Target`] is a door with what must hold of it. Inputs are made of a corpus by mutation ([`mutate`]), by a seed:
//! the same seed makes the same inputs. [`fuzz`] runs a target in this process, for tests; the binary runs each in a
//! process of its own, so that a stack that overflows is a finding too.

mod corpus;
mod minimise;
pub mod mutate;
mod run;
pub mod targets;

pub use corpus::{corpus, found, keep, root};
pub use minimise::minimise;
pub use run::{Figures, Finding, Kind, Plan, fuzz, replay, try_one};

/// Longest input, in bytes.
pub const MAX_INPUT: usize = 64 * 1024;

/// A door, and what must hold of whatever comes in by it.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folders of inputs.
    pub name: &'static str,
    /// What its inputs look like.
    pub shape: Shape,
    /// Folders with inputs besides its own, from the root of the repository.
    pub fixtures: &'static [&'static str],
    /// Makes inputs that do not stand in files.
    pub made: fn() -> Result<Vec<Vec<u8>>, String>,
    /// Words that mean something there and are missing from its inputs.
    pub words: &'static [&'static str],
    /// Reads an input, and looks at what became of it. An error is a finding.
    pub check: fn(&[u8]) -> Result<Seen, String>,
}

impl Target {
    /// A target all of whose inputs are in its own folder.
    #[must_use]
    pub const fn new(name: &'static str, shape: Shape, check: fn(&[u8]) -> Result<Seen, String>) -> Self {
        Self { name, shape, fixtures: &[], made: || Ok(Vec::new()), words: &[], check }
    }

    /// Adds folders of inputs.
    #[must_use]
    pub const fn with_fixtures(self, fixtures: &'static [&'static str]) -> Self {
        Self { fixtures, ..self }
    }

    /// Adds inputs that are not in files.
    #[must_use]
    pub const fn with_made(self, made: fn() -> Result<Vec<Vec<u8>>, String>) -> Self {
        Self { made, ..self }
    }

    /// Adds words that are not in its inputs.
    #[must_use]
    pub const fn with_words(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }
}

/// What inputs look like, so that mutations keep enough of it to come past the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Bytes.
    Bytes,
    /// Lines of text.
    Text,
    /// A JSON document.
    Json,
    /// A MessagePack document.
    MessagePack,
    /// A TOML document.
    Toml,
}

/// What became of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// It was read.
    Read,
    /// Of several that were to read it, some refused it, in these words.
    Partly(String),
    /// It was refused, in these words.
    Refused(String),
}

impl Seen {
    /// Refused in words that are kept as they came, since records hold them, and are made visible at the door of whoever
    /// shows them.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "the shape that callers want")]
    pub fn at_door(why: impl ToString) -> Self {
        Self::Refused(muster_shared::text::quoted(&why.to_string(), usize::MAX))
    }

    /// The same where several were to read it: some have, or none.
    #[must_use]
    pub fn by_several(was_read: bool, refused: &[String]) -> Self {
        if refused.is_empty() {
            return Self::Read;
        }
        let why = muster_shared::text::quoted(&refused.join("\n"), usize::MAX);
        if was_read { Self::Partly(why) } else { Self::Refused(why) }
    }

    /// Refused for several reasons.
    pub fn refused(why: impl IntoIterator<Item = impl ToString>) -> Self {
        Self::Refused(why.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join("\n"))
    }
}
