//! Examples of the messages that clients send: each has the required fields only.

use serde_json::{Value, json};

use crate::wire::envelope::MessageKind;
use crate::wire::{Encoding, Envelope, decode};

const RUN: &str = "0193f0c0c0c070008000000000000001";

/// Envelopes of a kind, as JSON; none of kinds that only the fleet writes.
pub(super) fn of(kind: MessageKind) -> Vec<Value> {
    let contents = match kind {
        MessageKind::Command => vec![
            json!({ "command": "submit", "run": RUN, "goal": { "text": "What is 6 * 7?", "encoding": "json" } }),
            json!({
                "command": "request", "run": RUN, "reason": "not needed any more", "action": { "type": "cancel" },
            }),
        ],
        MessageKind::Ask => vec![
            json!({ "ask": "submit", "id": "order-4711", "goal": { "text": "What is 6 * 7?", "encoding": "json" } }),
        ],
        _ => Vec::new(),
    };
    let envelope = |content| json!({ "body": { "type": kind.name(), "content": content } });
    contents.into_iter().map(envelope).collect()
}

#[test]
fn examples_are_read_as_what_they_are_said_to_be() {
    let mut read = 0;
    for &kind in MessageKind::ALL {
        for example in of(kind) {
            let text = example.to_string();
            let envelope: Envelope =
                decode(text.as_bytes(), Encoding::Json).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(envelope.body.kind(), kind, "{text}");
            read += 1;
        }
    }
    assert!(read >= 3, "{read}");
}
