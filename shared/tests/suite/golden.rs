//! One example of every message and every event, in both encodings: the golden set of the event version. It changes with the
//! event version until the first release.
//!
//! To add an example, append a line with `name` and `json` to `golden.jsonl`. To change one, edit its `json`. Then run
//! `UPDATE_GOLDEN=1 cargo nextest run -p muster-shared golden`: it rewrites each line as it is encoded now.

use std::collections::BTreeSet;

use crate::examples;
use muster_shared::run::RunEvent;
use muster_shared::wire::{Body, Encoding, Envelope, MessageKind, decode, encode, schema};

/// A line of the golden set.
#[derive(serde::Serialize)]
struct Line<'a> {
    name: &'a str,
    json: &'a Envelope,
    msgpack: String,
}

#[test]
fn every_message_and_event_is_written_and_read_as_in_the_golden_set() {
    let examples = examples::envelopes();
    let line = |(name, json): &(String, Envelope)| {
        let msgpack = hex::encode(encode(json, Encoding::MessagePack).unwrap());
        serde_json::to_string(&Line { name, json, msgpack }).unwrap() + "\n"
    };
    let made: String = examples.iter().map(line).collect();
    let path = examples::path();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (line, made) in kept.lines().zip(made.lines()) {
        assert_eq!(line, made, "if that is meant, set UPDATE_GOLDEN=1");
    }
    assert_eq!(kept.lines().count(), examples.len());
    for (line, (name, example)) in kept.lines().zip(examples) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let msgpack = hex::decode(line["msgpack"].as_str().unwrap()).unwrap();
        assert_eq!(decode::<Envelope>(&msgpack, Encoding::MessagePack).unwrap(), example, "{name}");
    }
}

#[test]
fn there_is_an_example_of_every_kind_and_every_run_event() {
    let examples = examples::envelopes();
    for &kind in MessageKind::ALL {
        assert!(examples.iter().any(|(_, envelope)| envelope.body.kind() == kind), "{kind:?}");
    }
    let decided = examples.iter().filter_map(|(_, envelope)| match &envelope.body {
        Body::Decided(decided) => Some(&decided.events),
        _ => None,
    });
    let names: BTreeSet<&str> = decided.flatten().map(|event| event.name()).collect();
    assert_eq!(names, <RunEvent as strum::VariantNames>::VARIANTS.iter().copied().collect::<BTreeSet<_>>());
}

fn published() -> serde_json::Value {
    serde_json::from_str(schema::JSON_SCHEMA).unwrap()
}

#[test]
fn examples_fit_the_published_schema() {
    let whole = jsonschema::validator_for(&published()).unwrap();
    for (name, envelope) in examples::envelopes() {
        let value = serde_json::to_value(&envelope).unwrap();
        let errors: Vec<String> = whole.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
    assert!(!whole.is_valid(&serde_json::json!({ "body": { "type": "nonsense" } })));
}

#[test]
fn the_asyncapi_document_refers_to_what_it_holds_only() {
    fn references<'a>(value: &'a serde_json::Value, found: &mut Vec<&'a str>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, field) in fields {
                    match field {
                        serde_json::Value::String(target) if name == "$ref" => found.push(target),
                        other => references(other, found),
                    }
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document: serde_json::Value = serde_json::from_str(schema::ASYNCAPI).unwrap();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 50);
    for target in found {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{target}");
    }
    assert_eq!(document["channels"]["commands"]["address"], "cmd.{run}.{command}");
    assert_eq!(document["components"]["messages"]["step_json"]["contentType"], "application/json");
}

#[test]
fn a_client_may_send_little() {
    let text = r#"{"body":{"type":"command","content":{"command":"submit","run":"0190a1b2c3d4700080000000000000aa","goal":{"text":"Why?"}}}}"#;
    let envelope: Envelope = decode(text.as_bytes(), Encoding::Json).unwrap();
    assert_eq!((envelope.v, envelope.sender.as_str(), envelope.sent.0), (1, "anonymous", 0));
    assert!(envelope.id.is_nil());
    let whole = jsonschema::validator_for(&published()).unwrap();
    assert!(whole.is_valid(&serde_json::from_str(text).unwrap()));
}
