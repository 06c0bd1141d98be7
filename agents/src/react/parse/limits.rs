//! Size and depth limits, checked on the raw text before anything parses or repairs it.

use serde_json::Value;

use super::answer::ParseFailure;

/// The longest answer that is read, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;
/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;

pub(super) fn check(text: &str) -> Result<(), ParseFailure> {
    if text.len() > MAX_BYTES {
        return Err(ParseFailure::TooLarge { bytes: text.len(), limit: MAX_BYTES });
    }
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Brackets in strings count too: what is a string is not known before parsing.
        if depth > MAX_DEPTH {
            return Err(ParseFailure::TooDeep { limit: MAX_DEPTH });
        }
    }
    Ok(())
}

/// The same for a value that a provider has parsed already.
pub(super) fn check_value(value: &Value) -> Result<(), ParseFailure> {
    let mut level: Vec<&Value> = vec![value];
    for _ in 0..=MAX_DEPTH {
        level = level
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(items) => items.iter().collect::<Vec<_>>(),
                Value::Object(map) => map.values().collect(),
                _ => Vec::new(),
            })
            .collect();
        if level.is_empty() {
            return Ok(());
        }
    }
    Err(ParseFailure::TooDeep { limit: MAX_DEPTH })
}
