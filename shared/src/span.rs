//! Spans of time as text: `500ms`, `30s`, `10m`, `2h`, `30d`. For settings, by `#[serde(with = "muster_shared::span")]`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

use crate::time::millis;

/// Units, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Writes a span in the largest unit that leaves nothing over; below a millisecond it is cut.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&text(*span))
}

/// Reads a span.
///
/// # Errors
/// When the text is no whole number with one of the units `ms`, `s`, `m`, `h`, `d`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| {
        D::Error::custom(format!("{text:?} is not a span of time such as 500ms, 30s, 10m, 2h or 30d"))
    })
}

/// A span as settings write it.
#[must_use]
pub fn text(span: Duration) -> String {
    let millis = millis(span);
    if millis == 0 {
        return "0s".to_owned();
    }
    let (unit, size) = UNITS.into_iter().find(|(_, size)| millis.is_multiple_of(*size)).unwrap_or(("ms", 1));
    format!("{}{unit}", millis / size)
}

/// The span that a text names; none when it names none.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, size) = UNITS.into_iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(size).map(Duration::from_millis)
}

/// The same for a span that may be left unsaid.
pub mod option {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes a span, or nothing.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(span: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => super::serialize(span, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a span, or nothing.
    ///
    /// # Errors
    /// When a text is no span.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let span = text.map(|text| {
            super::parse(&text).ok_or_else(|| {
                D::Error::custom(format!("{text:?} is not a span of time such as 500ms, 30s, 10m, 2h or 30d"))
            })
        });
        span.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_written() {
        let cases = [("0s", 0), ("500ms", 500), ("30s", 30_000), ("10m", 600_000), ("2h", 7_200_000)];
        for (written, millis) in cases {
            let span = Duration::from_millis(millis);
            assert_eq!(parse(written), Some(span), "{written}");
            assert_eq!(text(span), written);
        }
        assert_eq!(text(Duration::from_millis(1500)), "1500ms");
        for text in ["", "30", "s", "-1s", "1y", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
