//! Answers of tools that serve again: how long a tool says that they do, how a call is named, and what is told of one that was
//! answered so.

use std::collections::BTreeMap;
use std::time::Duration;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::time::millis;

/// Longest version of a tool, in bytes.
pub const MOST_VERSION: usize = 128;

/// How long an answer of a pure tool serves others that make the same call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolCache {
    /// How long, in milliseconds. Settings may say less.
    pub serves_ms: u64,
    /// Tells one tool from another that is described alike: an answer of another version serves nobody.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

impl ToolCache {
    /// Answers of a tool of this version that serve for so long; nothing where they serve nobody.
    #[must_use]
    pub fn serving(serves: Duration, version: String) -> Option<Self> {
        let serves_ms = millis(serves);
        (serves_ms > 0).then_some(Self { serves_ms, version })
    }

    /// How long an answer serves.
    #[must_use]
    pub const fn serves(&self) -> Duration {
        Duration::from_millis(self.serves_ms)
    }
}

/// Where the answer to a call came from, if the tool was not called: the same call was answered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CachedAnswer {
    /// How old the answer is, in milliseconds.
    pub age_ms: u64,
    /// How long the call took that it is the answer to, in milliseconds: what was spared.
    pub saved_ms: u64,
}

/// SHA-256 of several parts, in hexadecimal: other parts give another, also where they are the same when put together.
#[must_use]
pub fn digest_of<T: AsRef<[u8]>>(parts: &[T]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// JSON in one form, whatever the order in which the fields of its objects stand.
#[must_use]
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let fields: Vec<String> = sorted
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_fields_changes_nothing_and_all_else_does() {
        let read = |text: &str| canonical(&serde_json::from_str(text).unwrap());
        let (one, other) =
            (r#"{"b":[1,{"y":2,"x":null}],"a":"\"q"}"#, r#"{"a":"\"q","b":[1,{"x":null,"y":2}]}"#);
        assert_eq!(read(one), read(other));
        assert_eq!(read(one), other, "and it is JSON");
        for changed in
            [r#"{"a":"\"q","b":[{"x":null,"y":2},1]}"#, r#"{"a":"\"q","b":[1,{"x":null,"y":2.5}]}"#]
        {
            assert_ne!(read(one), read(changed), "{changed}");
        }
    }

    #[test]
    fn parts_that_are_divided_otherwise_have_another_digest() {
        let all =
            [digest_of(&["ab", "c"]), digest_of(&["a", "bc"]), digest_of(&["abc"]), digest_of(&["abc", ""])];
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(all[0].len(), 64);
    }

    #[test]
    fn a_tool_whose_answers_serve_for_no_time_has_no_cache() {
        assert_eq!(ToolCache::serving(Duration::ZERO, String::new()), None);
        let cache = ToolCache::serving(Duration::from_secs(60), "v1".to_owned()).unwrap();
        assert_eq!(serde_json::to_string(&cache).unwrap(), r#"{"serves_ms":60000,"version":"v1"}"#);
        assert_eq!(cache.serves(), Duration::from_secs(60));
    }
}
