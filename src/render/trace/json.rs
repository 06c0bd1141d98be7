//! Entries of a record as JSON.

use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use serde_json::{Value, json};

/// An entry as JSON. The run's secret is left out.
pub(crate) fn entry_json(entry: &Entry) -> Value {
    let mut value = match &entry.event {
        RecordEvent::Decided(decided) => json!({ "kind": "decided", "by": decided.by, "event": decided }),
        RecordEvent::Offered(offer) => {
            json!({ "kind": "offered", "task": offer.task, "generation": offer.generation, "event": offer })
        }
        RecordEvent::Agent(key, event) => {
            let body = match event {
                AgentEvent::Started(started) => json!(started),
                AgentEvent::ToolStarted(tool) => json!(tool),
                AgentEvent::Step(step) => json!(step),
                AgentEvent::Released(released) => json!(released),
                AgentEvent::Outcome(outcome) => json!(outcome),
                AgentEvent::Unreadable(unreadable) => json!({ "unreadable": unreadable.why }),
            };
            json!({
                "kind": event.kind().to_string(), "role": key.role, "by": key.agent, "task": key.task,
                "generation": key.generation, "event": body,
            })
        }
    };
    value["seq"] = json!(entry.seq);
    value["at"] = json!(entry.at);
    value["run"] = json!(entry.run);
    hide_secret(&mut value);
    value
}

/// The run's secret guards the fences of prompts; whoever may read a trace need not know it.
fn hide_secret(value: &mut Value) {
    for list in ["events", "inputs"] {
        for item in value["event"][list].as_array_mut().into_iter().flatten() {
            let fields = item.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
            for field in fields {
                if let Some(secret) = field.get_mut("secret") {
                    *secret = json!("[redacted]");
                }
            }
            if let Some(secret) = item.get_mut("secret") {
                *secret = json!("[redacted]");
            }
        }
    }
    for nonce in ["/event/nonce", "/event/offer/nonce"] {
        if let Some(nonce) = value.pointer_mut(nonce) {
            *nonce = json!("[redacted]");
        }
    }
}

/// An entry that nobody can read, and which is none of an agent about a task.
pub(crate) fn stray_json(found: &muster_bus::Unreadable) -> Value {
    json!({ "kind": "unreadable", "seq": found.seq, "subject": found.subject, "unreadable": found.reason })
}
