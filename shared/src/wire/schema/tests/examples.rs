//! Examples of what programs in other languages write: as short as each may be, and whole.

use serde_json::{Value, json};

use crate::wire::envelope::MessageKind;
use crate::wire::{Encoding, Envelope, decode};

const RUN: &str = "0193f0c0c0c070008000000000000001";
const AGENT: &str = "word_counter-5f3a9c21";

/// Envelopes of a kind, as JSON; none of kinds that only the fleet writes.
pub(super) fn of(kind: MessageKind) -> Vec<Value> {
    let contents = match kind {
        MessageKind::Command => vec![
            json!({ "command": "submit", "run": RUN, "goal": { "text": "What is 6 * 7?", "encoding": "json" } }),
            json!({
                "command": "request", "run": RUN, "reason": "not needed any more", "action": { "type": "cancel" },
            }),
        ],
        MessageKind::Profile => vec![json!({
            "agent": AGENT, "role": "word_counter", "pid": 4711, "slots": 2,
            "specialist": {
                "description": "Counts the words of a text.",
                "capabilities": ["word count"],
                "contract": { "output": { "type": "object", "required": ["words"] } },
            },
        })],
        MessageKind::Heartbeat => vec![json!({ "agent": AGENT, "busy": 1, "slots": 2 })],
        MessageKind::Started => {
            vec![json!({ "ack": "$JS.ACK.TASKS.word_counter.1.12.9.1763800000000000000.0", "after_step": 0 })]
        }
        MessageKind::ToolStarted => vec![json!({
            "step": step(json!({})),
            "idempotency_key": format!("{RUN}/1/1/1"),
        })],
        MessageKind::Step => {
            vec![step(json!({ "observation": { "status": "success", "content": "7", "millis": 3 } }))]
        }
        MessageKind::Released => {
            vec![json!({ "reason": "put down", "parked": true }), json!({ "reason": "this program ends" })]
        }
        MessageKind::Outcome => vec![json!({
            "ending": "done",
            "product": { "result": { "conclusion": "7 words.", "data": { "words": 7 } } },
            "usage": { "steps": 1 },
        })],
        MessageKind::Bid => vec![json!({
            "agent": AGENT, "run": RUN, "task": "1", "number": 1, "millis": 3000, "cost_micros": 0, "confidence": 90,
        })],
        MessageKind::Ask => vec![
            json!({ "ask": "submit", "id": "order-4711", "goal": { "text": "What is 6 * 7?", "encoding": "json" } }),
        ],
        MessageKind::Decided
        | MessageKind::Offered
        | MessageKind::Live
        | MessageKind::Control
        | MessageKind::Call
        | MessageKind::Accepted
        | MessageKind::Error
        | MessageKind::Stored => Vec::new(),
    };
    let envelope = |content| json!({ "body": { "type": kind.name(), "content": content } });
    contents.into_iter().map(envelope).collect()
}

fn step(more: Value) -> Value {
    let mut step =
        json!({ "number": 1, "thought": { "text": "Count, to be sure." }, "action": { "name": "count" } });
    if let (Some(step), Value::Object(more)) = (step.as_object_mut(), more) {
        step.extend(more);
    }
    step
}

#[test]
fn examples_are_read_as_what_they_are_said_to_be() {
    let mut read = 0;
    for kind in MessageKind::ALL {
        for example in of(kind) {
            let text = example.to_string();
            let envelope: Envelope =
                decode(text.as_bytes(), Encoding::Json).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(envelope.body.kind(), kind, "{text}");
            read += 1;
        }
    }
    assert!(read >= 11, "{read}");
}
