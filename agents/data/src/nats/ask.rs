//! What a model asks for, read from its arguments. Pure.

use std::time::Duration;

use muster_shared::span;
use muster_shared::time::Millis;
use serde_json::Value;

/// Entries that are given where nothing is said.
pub(super) const USUAL: u64 = 10;

/// Which entries of a stream are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// From a place on, up to another one.
    Places { from: u64, to: Option<u64> },
    /// The last so many.
    Last(u64),
    /// The last so many of each subject.
    LastPerSubject(u64),
    /// From a time on.
    Since(Since),
}

/// From when on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// This time.
    Time(Millis),
    /// So long before the server is asked.
    Ago(Duration),
}

impl Since {
    /// The moment, by the server's clock.
    pub(super) fn at(self, now: Millis) -> Millis {
        match self {
            Self::Time(at) => at,
            Self::Ago(ago) => {
                Millis(now.0.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)))
            }
        }
    }
}

/// What is wanted, and how many entries at the most.
///
/// # Errors
/// What is wrong, in words for a model.
pub(super) fn which(args: &Value, max_rows: u64) -> Result<(Which, u64), String> {
    let number = |name: &str| args.get(name).and_then(Value::as_u64);
    let limit = number("limit").unwrap_or(USUAL.max(number("last").unwrap_or(0))).min(max_rows);
    let places = number("from").is_some() || number("to").is_some();
    let since = args.get("since").and_then(Value::as_str);
    let ways = [places, number("last").is_some(), number("last_per_subject").is_some(), since.is_some()];
    if ways.into_iter().filter(|is_named| *is_named).count() > 1 {
        return Err("name one of `from` (with `to`), `last`, `last_per_subject` and `since`".to_owned());
    }
    if let (Some(from), Some(to)) = (number("from"), number("to"))
        && from > to
    {
        return Err(format!("`from` ({from}) is after `to` ({to})"));
    }
    let which = match (number("last"), number("last_per_subject"), since) {
        _ if places => Which::Places { from: number("from").unwrap_or(1), to: number("to") },
        (Some(count), _, _) => Which::Last(count.min(limit)),
        (None, Some(count), _) => Which::LastPerSubject(count),
        (None, None, Some(text)) => Which::Since(moment(text)?),
        (None, None, None) => Which::Last(limit),
    };
    Ok((which, limit))
}

fn moment(text: &str) -> Result<Since, String> {
    let text = text.trim();
    if let Some(ago) = span::parse(text) {
        return Ok(Since::Ago(ago));
    }
    let at: Option<jiff::Timestamp> = text.parse().ok();
    let at = at.and_then(|at| u64::try_from(at.as_millisecond()).ok());
    at.map(|at| Since::Time(Millis(at))).ok_or_else(|| {
        format!("`{text}` is no time: write `2026-11-22T10:00:00Z`, or how long ago, such as `30s`, `10m`, `2h` or `3d`")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_say_which_entries_are_meant() {
        for (args, wanted) in [
            (json!({}), (Which::Last(10), 10)),
            (json!({"last": 30}), (Which::Last(30), 30)),
            (json!({"last": 900}), (Which::Last(200), 200)),
            (json!({"limit": 3}), (Which::Last(3), 3)),
            (json!({"from": 7}), (Which::Places { from: 7, to: None }, 10)),
            (json!({"to": 9, "limit": 50}), (Which::Places { from: 1, to: Some(9) }, 50)),
            (json!({"last_per_subject": 2}), (Which::LastPerSubject(2), 10)),
            (json!({"since": "10m"}), (Which::Since(Since::Ago(Duration::from_secs(600))), 10)),
            (json!({"since": "1970-01-01T00:00:05Z"}), (Which::Since(Since::Time(Millis(5_000))), 10)),
        ] {
            assert_eq!(which(&args, 200).unwrap(), wanted, "{args}");
        }
        for (args, said) in [
            (json!({"from": 1, "last": 2}), "name one of"),
            (json!({"last": 1, "since": "1h"}), "name one of"),
            (json!({"from": 3, "to": 2}), "after `to`"),
            (json!({"since": "yesterday"}), "is no time"),
            (json!({"since": "-5m"}), "is no time"),
        ] {
            assert!(which(&args, 200).unwrap_err().contains(said), "{args}");
        }
        assert_eq!(Since::Ago(Duration::from_secs(9)).at(Millis(5_000)), Millis(0));
    }
}
