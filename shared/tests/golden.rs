//! One example of every message and every event, in both encodings, as released versions wrote it. What was
//! written once must be read for ever: files of earlier versions are never changed, only added to.
//!
//! `UPDATE_GOLDEN=1 cargo nextest run -p muster-shared --test golden` writes files that are missing or differ.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod examples;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use muster_shared::run::{EVENT_VERSION, RunEvent};
use muster_shared::wire::{Body, Encoding, Envelope, MessageKind, decode, encode, schema};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn golden(folder: &Path, name: &str, made: &str) -> String {
    let path = folder.join(name);
    match std::fs::read_to_string(&path) {
        Ok(kept) if kept == made => kept,
        other => {
            let update = std::env::var_os("UPDATE_GOLDEN").is_some();
            assert!(update, "{name} is missing or differs; if that is meant, set UPDATE_GOLDEN=1");
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(&path, made).unwrap();
            drop(other);
            made.to_owned()
        }
    }
}

#[test]
fn every_message_is_written_and_read_as_in_the_first_version() {
    for (name, envelope) in examples::envelopes() {
        let json = serde_json::to_string_pretty(&envelope).unwrap() + "\n";
        let kept = golden(&folder("v1"), &format!("{name}.json"), &json);
        assert_eq!(decode::<Envelope>(kept.as_bytes(), Encoding::Json).unwrap(), envelope, "{name}");

        let packed = hex::encode(encode(&envelope, Encoding::MessagePack).unwrap()) + "\n";
        let kept =
            hex::decode(golden(&folder("v1"), &format!("{name}.msgpack.hex"), &packed).trim()).unwrap();
        assert_eq!(decode::<Envelope>(&kept, Encoding::MessagePack).unwrap(), envelope, "{name}");
    }
}

#[test]
fn every_kept_file_can_still_be_read() {
    let mut read = 0;
    for file in std::fs::read_dir(folder("v1")).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let result = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => decode::<Envelope>(text.as_bytes(), Encoding::Json),
            Some("hex") => decode::<Envelope>(&hex::decode(text.trim()).unwrap(), Encoding::MessagePack),
            other => panic!("{other:?} is no golden file"),
        };
        assert!(result.is_ok(), "{}: {:?}", path.display(), result.err());
        read += 1;
    }
    assert!(read >= examples::envelopes().len() * 2, "only {read} files");
}

#[test]
fn there_is_an_example_of_every_kind_and_every_run_event() {
    let examples = examples::envelopes();
    for kind in MessageKind::ALL {
        assert!(examples.iter().any(|(_, envelope)| envelope.body.kind() == kind), "{kind:?}");
    }
    let decided = examples.iter().filter_map(|(_, envelope)| match &envelope.body {
        Body::Decided(decided) => Some(&decided.events),
        _ => None,
    });
    let names: std::collections::BTreeSet<&str> = decided.flatten().map(|event| event.name()).collect();
    let declared = published()["$defs"]["RunEvent"]["oneOf"].as_array().unwrap().len();
    assert_eq!(names.len(), declared, "{names:?}");
}

/// One event of every kind, by name.
fn events() -> BTreeMap<&'static str, RunEvent> {
    let examples = examples::envelopes();
    let decided = examples.into_iter().filter_map(|(_, envelope)| match envelope.body {
        Body::Decided(decided) => Some(decided.events),
        _ => None,
    });
    let mut events = BTreeMap::new();
    for event in decided.flatten() {
        events.entry(event.name()).or_insert(event);
    }
    events
}

/// A decision that says this and nothing else.
fn deciding(event: &RunEvent) -> Envelope {
    let decided = examples::envelopes().into_iter().find_map(|(_, mut envelope)| match &mut envelope.body {
        Body::Decided(decided) => {
            decided.events = vec![event.clone()];
            Some(envelope)
        }
        _ => None,
    });
    decided.unwrap()
}

#[test]
fn every_kind_of_event_has_a_file_of_the_present_version() {
    let (present, events) = (folder(&format!("events/v{EVENT_VERSION}")), events());
    for name in RunEvent::NAMES {
        let event = events.get(name).unwrap_or_else(|| panic!("no example has the event {name}"));
        let json = serde_json::to_string_pretty(event).unwrap() + "\n";
        let kept = golden(&present, &format!("{name}.json"), &json);
        assert_eq!(serde_json::from_str::<RunEvent>(&kept).unwrap(), *event, "{name}");
        let named: serde_json::Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(named["event"], *name);

        let travels = deciding(event);
        let packed = encode(&travels, Encoding::MessagePack).unwrap();
        assert_eq!(decode::<Envelope>(&packed, Encoding::MessagePack).unwrap(), travels, "{name}");
    }
    let files = std::fs::read_dir(present).unwrap().count();
    assert_eq!(files, RunEvent::NAMES.len(), "a file of a kind that there is no more");
}

#[test]
fn events_of_every_version_can_still_be_read() {
    let mut read = 0;
    for version in std::fs::read_dir(folder("events")).unwrap() {
        for file in std::fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let event = serde_json::from_str::<RunEvent>(&text);
            let event = event.unwrap_or_else(|wrong| panic!("{}: {wrong:?}", path.display()));
            assert_eq!(Some(event.name()), path.file_stem().unwrap().to_str());
            read += 1;
        }
    }
    assert!(read >= RunEvent::NAMES.len(), "only {read} files");
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
