//! What a setting may be, as [`settings!`](crate::settings) writes it after `=>`.

use serde::Serialize;
use serde_json::json;
use strum::{EnumMessage, VariantArray};

use super::{Attributes, Kind, Reach, Sensitivity, Setting, Takes, Word, Zero};

/// Milliseconds of a second.
pub const SECOND: u64 = 1000;
/// Milliseconds of a minute.
pub const MINUTE: u64 = 60 * SECOND;
/// Milliseconds of an hour.
pub const HOUR: u64 = 60 * MINUTE;
/// Milliseconds of a day.
pub const DAY: u64 = 24 * HOUR;
/// Bytes of a kibibyte.
pub const KIB: u64 = 1024;
/// Bytes of a mebibyte.
pub const MIB: u64 = 1024 * KIB;
/// Bytes of a gibibyte.
pub const GIB: u64 = 1024 * MIB;
/// Bytes of a pebibyte.
pub const PIB: u64 = 1024 * 1024 * GIB;
/// The most of what is counted where nothing speaks for a smaller number.
pub const MANY: u64 = 1_000_000_000_000;

const fn of(kind: Kind) -> Takes {
    Takes { kind, unit: "", zero: Zero::Number, example: "", attributes: None, bounds: None }
}

/// Whole numbers.
#[must_use]
pub const fn whole(least: u64, most: u64) -> Takes {
    of(Kind::Whole { least, most })
}

/// Numbers of bytes.
#[must_use]
pub const fn bytes(least: u64, most: u64) -> Takes {
    whole(least, most).unit("bytes")
}

/// Whole percents from 0.
#[must_use]
pub const fn percent(most: u64) -> Takes {
    whole(0, most).unit("percent")
}

/// One of these numbers.
#[must_use]
pub const fn one_of(numbers: &'static [u64]) -> Takes {
    of(Kind::OneOf(numbers))
}

/// Numbers.
#[must_use]
pub const fn real(least: f64, most: f64) -> Takes {
    of(Kind::Real { least, most })
}

/// An amount of money. More than anybody has.
#[must_use]
pub const fn dollars(most: f64) -> Takes {
    real(0.0, most).unit("US dollars")
}

/// Spans of time, in milliseconds.
#[must_use]
pub const fn span(least: u64, most: u64) -> Takes {
    of(Kind::Span { least, most }).unit("a span of time such as 500ms, 30s, 10m, 2h or 30d")
}

/// True or false.
#[must_use]
pub const fn flag() -> Takes {
    of(Kind::Flag)
}

/// Any text.
#[must_use]
pub const fn text() -> Takes {
    of(Kind::Text)
}

/// The words of an enum.
#[must_use]
pub const fn words<T: Serialize + EnumMessage + VariantArray>() -> Takes {
    of(Kind::Words(words_of::<T>))
}

/// A list of texts.
#[must_use]
pub const fn list() -> Takes {
    of(Kind::List { most: usize::MAX, words: Vec::new })
}

/// A list of the words of an enum.
#[must_use]
pub const fn list_of<T: Serialize + EnumMessage + VariantArray>() -> Takes {
    of(Kind::List { most: usize::MAX, words: words_of::<T> })
}

/// A text that is never shown.
#[must_use]
pub const fn secret() -> Takes {
    of(Kind::Secret)
}

/// Values under names, such as this one.
#[must_use]
pub const fn named(example: &'static str, takes: &'static Takes) -> Takes {
    of(Kind::Named(takes)).example(example)
}

/// Further settings.
#[must_use]
pub const fn group(settings: &'static [Setting]) -> Takes {
    of(Kind::Group(settings))
}

/// No setting.
#[must_use]
pub const fn internal() -> Takes {
    of(Kind::Internal)
}

/// Not a setting, but a number in messages, which is clamped to these bounds.
#[must_use]
pub const fn bounded(least: u64, most: u64) -> Takes {
    Takes { bounds: Some((least, most)), ..internal() }
}

impl Takes {
    /// Says what is counted.
    #[must_use]
    pub const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// Lets 0 stand for something of its own, below the least.
    #[must_use]
    pub const fn or_zero(self) -> Self {
        Self { zero: Zero::Special, ..self }
    }

    /// Lets 0 stand for no limit, which the field holds as nothing.
    #[must_use]
    pub const fn or_nothing_at_zero(self) -> Self {
        Self { zero: Zero::Nothing, ..self }
    }

    /// Shows this value in the example file, as TOML.
    #[must_use]
    pub const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Sets reach and sensitivity.
    #[must_use]
    pub const fn attributed(self, reach: Reach, sensitivity: Sensitivity) -> Self {
        Self { attributes: Some(Attributes { reach, sensitivity }), ..self }
    }

    /// Keeps the first items of a list.
    #[must_use]
    pub const fn at_most(self, most: usize) -> Self {
        match self.kind {
            Kind::List { words, .. } => Self { kind: Kind::List { most, words }, ..self },
            _ => self,
        }
    }
}

/// The serialized form of each variant, with its documentation.
fn words_of<T: Serialize + EnumMessage + VariantArray>() -> Vec<Word> {
    let word = |variant: &T| Word {
        word: json!(variant).as_str().unwrap_or_default().to_owned(),
        meaning: variant.get_documentation().unwrap_or_default().trim_end().replace('\n', " "),
    };
    T::VARIANTS.iter().map(word).collect()
}
