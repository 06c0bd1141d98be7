//! Example messages: the JSON of the golden set, decoded.

use std::path::PathBuf;

use muster_shared::wire::{Encoding, Envelope, decode};
use serde_json::Value;

/// Path of the golden set: one JSON object per line, with the name, the JSON, and the MessagePack of a message.
pub(crate) fn path() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden.jsonl"].iter().collect()
}

/// Each example with its name.
pub(crate) fn envelopes() -> Vec<(String, Envelope)> {
    let example = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let name = line["name"].as_str().unwrap().to_owned();
        let json = line["json"].to_string();
        let envelope = decode::<Envelope>(json.as_bytes(), Encoding::Json);
        let envelope = envelope.unwrap_or_else(|error| panic!("cannot decode the example {name}: {error}"));
        (name, envelope)
    };
    let golden = std::fs::read_to_string(path()).unwrap();
    golden.lines().map(example).collect()
}
