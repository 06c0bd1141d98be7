//! Names in blueprints, and the paths by which texts and conditions refer to things.

use std::fmt;

use crate::text::nearest_name;

/// Longest name of a blueprint, a parameter or a step.
const MAX_NAME: usize = 40;

/// Whether this may be a name: a lower case letter, then lower case letters, digits and `_`.
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

/// Names that mean something else.
pub(super) const RESERVED: [&str; 8] = ["params", "item", "and", "or", "not", "in", "contains", "count"];

/// What a text or a condition refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Path {
    /// `params.topic`
    Param(String),
    /// `item`
    Item,
    /// `scan.result`
    Step(String, StepField),
}

/// A part of what a step gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub(super) enum StepField {
    /// Its conclusion.
    Result,
    /// Its findings.
    Findings,
    /// What it could not answer.
    Unanswered,
    /// Whether it gave anything.
    Ok,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param(name) => write!(f, "params.{name}"),
            Self::Item => f.write_str("item"),
            Self::Step(step, field) => write!(f, "{step}.{field}"),
        }
    }
}

impl Path {
    /// Reads a path.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} refers to nothing: write params.NAME, item, or STEP.result, STEP.findings, STEP.unanswered \
                 or STEP.ok"
            )
        };
        if text == "item" {
            return Ok(Self::Item);
        }
        let (head, tail) = text.split_once('.').ok_or_else(wrong)?;
        if !is_name(head) {
            return Err(wrong());
        }
        if head == "params" {
            return if is_name(tail) { Ok(Self::Param(tail.to_owned())) } else { Err(wrong()) };
        }
        tail.parse().map(|field| Self::Step(head.to_owned(), field)).map_err(|_| wrong())
    }

    /// The step that it refers to.
    pub(super) fn step(&self) -> Option<&str> {
        if let Self::Step(step, _) = self { Some(step) } else { None }
    }
}

/// The name most like this one, as a hint to append to a message.
pub(super) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest_name(name, known).map(|other| format!("; did you mean {other:?}?")).unwrap_or_default()
}
