//! One declaration for each setting: its type, its default, what it may be, its unit and its help.
//!
//! [`settings!`](crate::settings) makes of it the type, its `Default` and the table `SETTINGS`. From the table come the
//! keys of the settings file and of the environment, what is refused and what is clamped, the help of
//! `muster config --explain`, and the example file.

pub mod kinds;
mod macros;

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::{span, time};

/// What can be set under one name: a value, or a group of settings.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The field that holds it.
    pub field: &'static str,
    /// What it does, as it stands above the field.
    pub doc: &'static str,
    /// What the field holds where nobody sets it.
    pub default: fn() -> Value,
    /// What it may be.
    pub takes: Takes,
}

/// What a setting may be.
#[derive(Debug, Clone, Copy)]
pub struct Takes {
    /// The kind of its values.
    pub kind: Kind,
    /// The unit of a number.
    pub unit: &'static str,
    /// What 0 means.
    pub zero: Zero,
    /// A value for the example file where there is none by default; of what has names, a name.
    pub example: &'static str,
    /// Reach and sensitivity; `None` for a group whose settings have them.
    pub attributes: Option<Attributes>,
    /// Minimum and maximum of a number that is not a setting.
    pub bounds: Option<(u64, u64)>,
}

/// Attributes of a setting that each declaration states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Where it takes effect.
    pub reach: Reach,
    /// How much trust a value in the file of a project needs.
    pub sensitivity: Sensitivity,
}

/// Where a setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// In the process that reads it, for the user who started it.
    User,
    /// In the run: it goes with the goal.
    Project,
    /// In the processes of a fleet: it cannot be set for one run.
    Fleet,
}

impl Reach {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Fleet => "fleet",
        }
    }
}

/// How much trust a value in the settings file of a project needs. The owner of the project does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sensitivity {
    /// Each value takes effect.
    Harmless,
    /// A value takes effect if the user's own settings have none. To replace theirs needs the user's consent.
    Narrowing,
    /// A value takes effect if it is not larger than the user's own value, or the default. No value is the largest.
    Lower,
    /// A value takes effect if it is not smaller than the user's own value, or the default. No value is the smallest.
    Higher,
    /// A list takes effect if the user's own list, or the default, covers it.
    Fewer,
    /// A list takes effect if it covers the user's own list, or the default.
    More,
    /// A value needs the user's consent (`muster trust`).
    Trust,
}

impl Sensitivity {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Harmless => "harmless",
            Self::Narrowing | Self::Lower | Self::Higher | Self::Fewer | Self::More => "narrowing",
            Self::Trust => "needs trust",
        }
    }
}

/// Fails at compile time if a setting has no attributes.
pub const fn check(settings: &[Setting]) {
    let mut rest = settings;
    while let [setting, others @ ..] = rest {
        let leaves_it_to_others = match setting.takes.kind {
            Kind::Group(_) | Kind::Internal => true,
            Kind::Named(takes) => matches!(takes.kind, Kind::Group(_)),
            _ => false,
        };
        assert!(
            setting.takes.attributes.is_some() || leaves_it_to_others,
            "a setting has no reach and no sensitivity: add them after what it may be, such as `; Project Harmless`"
        );
        rest = others;
    }
}

/// The kind of a setting's values.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Whole numbers from the least to the most.
    Whole {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// One of these numbers.
    OneOf(&'static [u64]),
    /// Numbers from the least to the most.
    Real {
        /// The least.
        least: f64,
        /// The most.
        most: f64,
    },
    /// Spans of time, in milliseconds; people write `500ms` or `10m`.
    Span {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// True or false.
    Flag,
    /// Any text.
    Text,
    /// One of some words, each with what it means.
    Words(fn() -> Vec<Word>),
    /// A list.
    List {
        /// The most items that count.
        most: usize,
        /// The words that its items may be; any text when there are none.
        words: fn() -> Vec<Word>,
    },
    /// A text that is never shown, and does not stand in a settings file.
    Secret,
    /// Values under names that people choose, such as those of roles.
    Named(&'static Takes),
    /// Further settings.
    Group(&'static [Setting]),
    /// No setting: whoever makes the type decides.
    Internal,
}

/// What 0 means to a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zero {
    /// A number like any other.
    Number,
    /// Something of its own, which may be set although it is less than the least.
    Special,
    /// That there is no limit: nothing is held in its place.
    Nothing,
}

/// A word that a setting may be, with what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub word: String,
    /// What it means; empty when nothing is said of it.
    pub meaning: String,
}

/// Endings of fields that hold a number in the unit of this name. People write the unit with the value instead, so that
/// their name for the setting goes without.
const UNITS_OF_FIELDS: [&str; 3] = ["_ms", "_micros", "_percent"];

impl Setting {
    /// The last part of its key.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let plain = |unit: &&str| self.field.strip_suffix(*unit);
        UNITS_OF_FIELDS.iter().find_map(plain).unwrap_or(self.field)
    }

    /// What it does, in a line.
    #[must_use]
    pub fn help(&self) -> &'static str {
        self.doc.trim()
    }

    /// A value that people wrote, as the field holds it; none when it is no value of this setting. What has the same
    /// form in both is not looked at.
    #[must_use]
    pub fn held(&self, written: &Value) -> Option<Value> {
        let zero_is_nothing = self.takes.zero == Zero::Nothing;
        match self.takes.kind {
            Kind::Span { .. } if self.field.ends_with("_ms") => {
                let millis = millis(written)?;
                Some(if zero_is_nothing && millis == 0 { Value::Null } else { json!(millis) })
            }
            Kind::Real { .. } if self.field.ends_with("_micros") => {
                Some(if written.is_null() { Value::Null } else { json!(micros(number(written)?)?) })
            }
            Kind::Whole { .. } if zero_is_nothing && number(written) == Some(0.0) => Some(Value::Null),
            Kind::Whole { .. }
            | Kind::OneOf(_)
            | Kind::Real { .. }
            | Kind::Span { .. }
            | Kind::Flag
            | Kind::Text
            | Kind::Words(_)
            | Kind::List { .. }
            | Kind::Secret
            | Kind::Named(_)
            | Kind::Group(_)
            | Kind::Internal => Some(written.clone()),
        }
    }

    /// What a field holds, as people write it; what it holds by default where nothing is held.
    #[must_use]
    pub fn written(&self, held: Option<&Value>) -> Value {
        let held = held.cloned().unwrap_or_else(self.default);
        let zero_is_nothing = self.takes.zero == Zero::Nothing;
        match (self.takes.kind, &held) {
            (Kind::Span { .. }, Value::Null) if zero_is_nothing => json!("0s"),
            (Kind::Whole { .. }, Value::Null) if zero_is_nothing => json!(0),
            (Kind::Span { .. }, Value::Number(millis)) => {
                json!(span::text(Duration::from_millis(millis.as_u64().unwrap_or(u64::MAX))))
            }
            #[expect(clippy::cast_precision_loss, reason = "an amount of money for people to read")]
            (Kind::Real { .. }, Value::Number(micros)) if self.field.ends_with("_micros") => {
                json!(micros.as_u64().unwrap_or(0) as f64 / MICROS)
            }
            _ => held,
        }
    }
}

impl Takes {
    /// Whether a value, as people write it, is one that the setting may have. A number that JSON cannot write (nan, inf)
    /// has become null, and nothing that is counted may be that.
    #[must_use]
    pub fn allows(&self, written: &Value) -> bool {
        let is_special_zero =
            self.zero != Zero::Number && (number(written) == Some(0.0) || millis(written) == Some(0));
        is_special_zero
            || match self.kind {
                Kind::Whole { least, most } => written.as_u64().is_some_and(|n| (least..=most).contains(&n)),
                Kind::OneOf(all) => written.as_u64().is_some_and(|n| all.contains(&n)),
                Kind::Real { least, most } => written.as_f64().is_some_and(|n| (least..=most).contains(&n)),
                Kind::Span { least, most } => millis(written).is_some_and(|n| (least..=most).contains(&n)),
                Kind::Named(takes) => takes.allows(written),
                Kind::Flag
                | Kind::Text
                | Kind::Words(_)
                | Kind::List { .. }
                | Kind::Secret
                | Kind::Group(_)
                | Kind::Internal => true,
            }
    }

    /// Whether its values are bounded by numbers.
    #[must_use]
    pub const fn is_bounded(&self) -> bool {
        matches!(self.kind, Kind::Whole { .. } | Kind::OneOf(_) | Kind::Real { .. } | Kind::Span { .. })
    }

    /// Brings what a field holds within what the setting may be.
    fn clamp(&self, held: &mut Value) {
        match (self.kind, held) {
            (Kind::Whole { least, most } | Kind::Span { least, most }, held) => {
                self.clamp_number(held, least, most);
            }
            (Kind::Internal, held) => {
                if let Some((least, most)) = self.bounds {
                    self.clamp_number(held, least, most);
                }
            }
            (Kind::List { most, .. }, Value::Array(items)) => items.truncate(most),
            (Kind::Group(settings), held) => clamp(held, settings),
            // Other kinds hold what they may or cannot be read at all.
            _ => {}
        }
    }
}

impl Takes {
    fn clamp_number(&self, held: &mut Value, least: u64, most: u64) {
        if let Some(number) = held.as_u64().filter(|n| *n != 0 || self.zero != Zero::Special) {
            *held = json!(number.clamp(least, most));
        }
    }
}

/// Brings every number of a type within what its setting may be, and cuts lists that are too long. For values that come
/// from elsewhere and have to be lived with: what people set is refused instead.
pub fn clamp(held: &mut Value, settings: &[Setting]) {
    let Value::Object(fields) = held else { return };
    for setting in settings {
        if let Some(held) = fields.get_mut(setting.field) {
            setting.takes.clamp(held);
        }
    }
}

/// The first number of a type that its setting may not be, with what it is; of groups that which is within.
#[must_use]
pub fn out_of_bounds<'a>(held: &Value, settings: &'a [Setting]) -> Option<(&'a Setting, Value)> {
    settings.iter().find_map(|setting| {
        let held = held.get(setting.field)?;
        match setting.takes.kind {
            Kind::Group(inner) => out_of_bounds(held, inner),
            _ => {
                let written = setting.written(Some(held));
                let is_wrong =
                    setting.takes.is_bounded() && !written.is_null() && !setting.takes.allows(&written);
                is_wrong.then_some((setting, written))
            }
        }
    })
}

/// What the value must be, after "it must be".
impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |millis: u64| span::text(Duration::from_millis(millis));
        if self.zero != Zero::Number {
            match self.kind {
                Kind::Whole { least, .. } if least > 0 => f.write_str("0 or ")?,
                Kind::Span { least, .. } if least > 0 => f.write_str("0s or ")?,
                _ => {}
            }
        }
        match self.kind {
            Kind::Whole { least, most } => write!(f, "a whole number from {least} to {most}"),
            Kind::Real { least, most } => write!(f, "a number from {least} to {most}"),
            Kind::Span { least, most } => write!(f, "a span of time from {} to {}", time(least), time(most)),
            Kind::OneOf(values) => {
                let words: Vec<String> = values.iter().map(u64::to_string).collect();
                write!(f, "one of {}", words.join(", "))
            }
            Kind::Flag => f.write_str("true or false"),
            Kind::Text | Kind::Secret => f.write_str("a text"),
            Kind::Words(words) => f.write_str(&one_of(&words(), "a text")),
            Kind::List { words, .. } => match one_of(&words(), "") {
                none if none.is_empty() => f.write_str("a list of texts"),
                some => write!(f, "a list of {some}"),
            },
            Kind::Named(takes) => write!(f, "under each name {takes}"),
            Kind::Group(_) | Kind::Internal => f.write_str("a group of settings"),
        }
    }
}

fn one_of(words: &[Word], if_none: &str) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.word.as_str()).collect();
    if words.is_empty() { if_none.to_owned() } else { words.join(", ") }
}

/// A value as people write it: spans of time as text.
pub fn value_of<T: Serialize + Any>(value: &T) -> Value {
    let span = (value as &dyn Any).downcast_ref::<Duration>();
    span.map_or_else(|| json!(value), |span| json!(span::text(*span)))
}

const MICROS: f64 = 1_000_000.0;

/// Millionths of an amount; none for what is no amount.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and a float cast saturates"
)]
#[must_use]
pub fn micros(amount: f64) -> Option<u64> {
    (amount.is_finite() && amount >= 0.0).then(|| (amount * MICROS).round() as u64)
}

/// A number, also one that is written as a text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// The milliseconds of a span that is written as a text.
#[must_use]
pub fn millis(value: &Value) -> Option<u64> {
    value.as_str().and_then(span::parse).map(time::millis)
}

/// A secret among settings: read as any text, and never written.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Secret(SecretString);

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_none()
    }
}

impl Deref for Secret {
    type Target = SecretString;

    fn deref(&self) -> &SecretString {
        &self.0
    }
}

impl From<SecretString> for Secret {
    fn from(secret: SecretString) -> Self {
        Self(secret)
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret.into())
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self(secret.into())
    }
}

#[cfg(test)]
mod tests;
