//! Claims: statements in a form that can be compared with what others say of the same subject (O3).

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::Citation;

/// A statement of a result in a form that can be compared with what others say of the same subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Claim {
    /// What it is about, in a few words: `chance of rain, Paris, 2026-11-22`.
    pub subject: String,
    /// What is claimed of it.
    pub value: ClaimValue,
    /// How sure, in percent.
    #[serde(default)]
    pub confidence: u8,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Citation>,
    /// How the value was come by, where that is said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
}

impl Claim {
    /// Most claims of one result.
    pub const MOST: usize = 64;
    /// Longest subject and longest value in words, in characters.
    pub const MAX_TEXT: usize = 400;
}

/// What is claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClaimValue {
    /// A number, with its unit if it has one.
    Number {
        /// The number.
        value: Finite,
        /// Its unit, as it was written: `%`, `km`, `EUR`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        unit: String,
    },
    /// A day, as `2026-11-22`.
    Date(String),
    /// One of a few kinds, in a word or two.
    Category(String),
    /// Yes or no.
    Verdict(bool),
    /// Anything else, in words.
    Text(String),
}

/// A number that is neither infinite nor undefined, and so equals itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(try_from = "f64", into = "f64")]
#[cfg_attr(test, schemars(with = "f64"))]
pub struct Finite(f64);

impl Finite {
    /// The number, unless it is infinite or undefined.
    #[must_use]
    pub const fn new(number: f64) -> Option<Self> {
        if number.is_finite() { Some(Self(number)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Every number that is not undefined equals itself.
impl Eq for Finite {}

impl TryFrom<f64> for Finite {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        Self::new(number).ok_or_else(|| format!("{number} is no finite number"))
    }
}

impl From<Finite> for f64 {
    fn from(number: Finite) -> Self {
        number.0
    }
}

/// `30 %`, `2026-11-22`, `yes`, or the words.
impl std::fmt::Display for ClaimValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number { value, unit } if unit.is_empty() => write!(f, "{}", value.get()),
            Self::Number { value, unit } => write!(f, "{} {unit}", value.get()),
            Self::Date(text) | Self::Category(text) | Self::Text(text) => f.write_str(text),
            Self::Verdict(true) => f.write_str("yes"),
            Self::Verdict(false) => f.write_str("no"),
        }
    }
}
