//! Of what the record of a run is made up: bytes by kind of entry and field.

use std::collections::BTreeMap;

use muster_shared::wire::codec::decode_unbounded;
use muster_shared::wire::{Encoding, encode};
use serde_json::Value;

use super::CensusError;

/// Fields are told apart down to this depth below the entry; what lies deeper counts as theirs.
const DEEPEST: usize = 7;
/// Most parts that are told.
const MOST_TOLD: usize = 40;

/// Bytes by part, such as `step body.content.calls[].answer`. A container's own part is its keys and brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts(BTreeMap<String, u64>);

impl Parts {
    /// Adds an entry of the record.
    pub(super) fn add(&mut self, payload: &[u8], encoding: Encoding) -> Result<(), CensusError> {
        let entry: Value = decode_unbounded(payload, encoding)?;
        let kind = entry["body"]["type"].as_str().unwrap_or("?").to_owned();
        self.measure(&format!("{kind} "), &entry, 0)
    }

    fn measure(&mut self, path: &str, value: &Value, depth: usize) -> Result<(), CensusError> {
        let whole = size(value)?;
        let mut within = 0;
        let dot = if depth == 0 { "" } else { "." };
        match value {
            Value::Object(fields) if depth < DEEPEST => {
                for (name, field) in fields {
                    within += size(field)?;
                    self.measure(&format!("{path}{dot}{name}"), field, depth + 1)?;
                }
            }
            Value::Array(items) if depth < DEEPEST => {
                for item in items {
                    within += size(item)?;
                    self.measure(&format!("{path}[]"), item, depth)?;
                }
            }
            Value::Object(_)
            | Value::Array(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => {}
        }
        *self.0.entry(path.to_owned()).or_default() += whole - within;
        Ok(())
    }

    /// The largest parts, one a line.
    #[must_use]
    pub fn table(&self) -> String {
        let mut parts: Vec<(&String, &u64)> = self.0.iter().collect();
        parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let line = |(part, bytes): &(&String, &u64)| format!("{bytes:>8}  {part}\n");
        parts.iter().take(MOST_TOLD).map(line).collect()
    }
}

fn size(value: &Value) -> Result<u64, CensusError> {
    Ok(encode(value, Encoding::MessagePack)?.len() as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        let entry =
            json!({"body": {"type": "step", "content": {"calls": [{"answer": "one"}, {"answer": "two"}]}}});
        let payload = encode(&entry, Encoding::MessagePack).unwrap();
        let mut parts = Parts::default();
        parts.add(&payload, Encoding::MessagePack).unwrap();
        assert_eq!(parts.0.values().sum::<u64>(), payload.len() as u64);
        assert_eq!(parts.0["step body.content.calls[].answer"], 8);
    }
}
