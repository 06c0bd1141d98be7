//! One value of a table.

use muster_shared::text::WholeNumber;
use serde_json::{Number, Value};

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes, of which only the number is told.
    Blob(usize),
}

impl Cell {
    /// As JSON; a number that JSON cannot write is a text.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Integer(number) => Value::from(*number),
            Self::Real(number) => {
                Number::from_f64(*number).map_or_else(|| Value::from(number.to_string()), Value::Number)
            }
            Self::Text(text) => Value::from(text.as_str()),
            Self::Blob(bytes) => Value::from(format!("({bytes} bytes)")),
        }
    }

    /// A value of JSON; what is neither number nor text is written as JSON.
    pub(crate) fn of_json(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Integer(i64::from(*flag)),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Self::Integer(whole),
                (None, Some(real)) => Self::Real(real),
                (None, None) => Self::Text(number.to_string()),
            },
            Value::String(text) => Self::Text(text.clone()),
            _ => Self::Text(value.to_string()),
        }
    }

    /// As words; nothing for what is not there.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Integer(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::Blob(bytes) => format!("({bytes} bytes)"),
        }
    }

    /// As a number, where it is one or is written like one.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "drawn or compared, not counted")]
            Self::Integer(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            Self::Text(text) => {
                let written = || WholeNumber::read(text).and_then(|number| number.value(None));
                text.trim().parse().ok().or_else(written)
            }
            Self::Null | Self::Blob(_) => None,
        }
    }
}
