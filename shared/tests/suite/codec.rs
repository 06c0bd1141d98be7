//! Both encodings: what comes in is limited in size and depth before anything is built from it.

use muster_shared::ids::{AgentId, Generation, Queue, Role, RunId, TaskId, TaskIndex};
use muster_shared::wire::codec::{MAX_DEPTH, MAX_MESSAGE_BYTES, decode_unbounded, read, write};
use muster_shared::wire::{CodecError, Encoding, Envelope, decode, encode};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::{Debug, Display};
use std::str::FromStr;

const BOTH: [Encoding; 2] = [Encoding::Json, Encoding::MessagePack];

fn nested(encoding: Encoding, depth: usize, object: bool) -> Vec<u8> {
    match (encoding, object) {
        (Encoding::Json, false) => [b"[".repeat(depth), b"]".repeat(depth)].concat(),
        (Encoding::Json, true) => [br#"{"a":"#.repeat(depth), b"1".to_vec(), b"}".repeat(depth)].concat(),
        (Encoding::MessagePack, false) => [vec![0x91; depth], vec![0xc0]].concat(),
        (Encoding::MessagePack, true) => [[0x81, 0xa1, b'a'].repeat(depth), vec![0xc0]].concat(),
    }
}

#[test]
fn deep_nesting_is_refused_without_overflow() {
    for encoding in BOTH {
        for object in [false, true] {
            let deep = nested(encoding, 10_000, object);
            assert!(matches!(decode::<Value>(&deep, encoding), Err(CodecError::TooDeep)), "{encoding}");
            assert!(decode::<Envelope>(&deep, encoding).is_err());
            let inside = [&b"{\"v\":1,\"body\":"[..], &nested(Encoding::Json, 10_000, object), b"}"].concat();
            assert!(matches!(decode::<Envelope>(&inside, Encoding::Json), Err(CodecError::TooDeep)));
            assert!(
                decode::<Value>(&nested(encoding, MAX_DEPTH - 2, object), encoding).is_ok(),
                "{encoding}"
            );
        }
    }
}

#[test]
fn brackets_in_strings_do_not_count() {
    let text = serde_json::to_vec(&Value::String("[{\\\"".repeat(1_000))).unwrap();
    assert!(decode::<Value>(&text, Encoding::Json).is_ok());
}

#[test]
fn the_field_at_fault_is_named_in_both_encodings() {
    let value = serde_json::json!({ "body": { "type": "outcome", "content": {
        "ending": "done", "usage": { "steps": 2.5 }
    } } });
    for encoding in BOTH {
        let bytes = encode(&value, encoding).unwrap();
        let error = decode::<Envelope>(&bytes, encoding).unwrap_err().to_string();
        assert!(error.starts_with("field body.content.usage.steps: "), "{encoding}: {error}");
    }
    let missing = br#"{"body":{"type":"started","content":{"attempt":1}}}"#;
    let error = decode::<Envelope>(missing, Encoding::Json).unwrap_err().to_string();
    assert!(error.contains("body.content") && error.contains("missing field `ack`"), "{error}");
    let error = decode::<Envelope>(b"I am done.", Encoding::Json).unwrap_err().to_string();
    assert!(error.contains("not valid json"), "{error}");
}

#[test]
fn two_megabytes_are_refused() {
    for encoding in BOTH {
        let bytes = encode(&"x".repeat(2 * MAX_MESSAGE_BYTES), encoding).unwrap();
        assert!(matches!(decode::<String>(&bytes, encoding), Err(CodecError::TooLarge { .. })));
        assert!(decode_unbounded::<String>(&bytes, encoding).is_ok());
    }
}

#[test]
fn a_length_that_promises_too_much_is_no_allocation() {
    // Array and string headers that claim 4 GiB, with nothing behind them.
    for bytes in
        [[0xdd, 0xff, 0xff, 0xff, 0xff], [0xdb, 0xff, 0xff, 0xff, 0xff], [0xdf, 0xff, 0xff, 0xff, 0xff]]
    {
        assert!(decode::<Value>(&bytes, Encoding::MessagePack).is_err());
        assert!(decode::<Envelope>(&bytes, Encoding::MessagePack).is_err());
    }
}

#[test]
fn the_encoding_is_known_by_header_or_first_byte() {
    assert_eq!(Encoding::of(Some("application/json; charset=utf-8"), b""), Encoding::Json);
    assert_eq!(Encoding::of(Some("application/msgpack"), b"{"), Encoding::MessagePack);
    assert_eq!(Encoding::of(None, b" {"), Encoding::Json);
    assert_eq!(Encoding::of(None, &[0x83]), Encoding::MessagePack);
}

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    for encoding in BOTH {
        let bytes = write(value, encoding).unwrap();
        assert_eq!(&read::<T>(&bytes, encoding).unwrap(), value);
    }
}

fn name_round_trip<T>(value: &T)
where
    T: Display + FromStr + Serialize + DeserializeOwned + PartialEq + Debug,
    T::Err: Debug,
{
    assert_eq!(&value.to_string().parse::<T>().unwrap(), value);
    assert!(!value.to_string().contains(['.', '*', '>', ' ']), "{value} is no token of a subject");
    round_trip(value);
}

fn index() -> impl Strategy<Value = TaskIndex> {
    (prop::collection::vec(1..=u16::MAX, 1..=TaskIndex::MAX_DEPTH), prop::option::of("[a-z]")).prop_map(
        |(path, member)| {
            let path: Vec<String> = path.iter().map(u16::to_string).collect();
            let member = member.map_or(String::new(), |letter| format!("~{letter}"));
            format!("{}{member}", path.join("-")).parse().unwrap()
        },
    )
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,6}", inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn names_are_read_as_they_are_written(
        bytes in any::<[u8; 16]>(),
        index in index(),
        number in 1..=u32::from(u16::MAX),
        role in "[a-z][a-z0-9_]{0,31}",
        agent in "[A-Za-z0-9_-]{1,64}",
    ) {
        name_round_trip(&RunId::from_uuid(uuid::Uuid::from_bytes(bytes)));
        name_round_trip(&index);
        for task in [TaskId::Plan, TaskId::Write, TaskId::Refine(number), TaskId::DraftReview(number), TaskId::Leaf(index.clone()), TaskId::Reflect(index.clone())] {
            name_round_trip(&task);
        }
        let (role, agent): (Role, AgentId) = (role.parse().unwrap(), agent.parse().unwrap());
        name_round_trip(&Queue::Role(role.clone()));
        name_round_trip(&Queue::Agent(agent.clone()));
        name_round_trip(&role);
        name_round_trip(&agent);
        round_trip(&Generation(number));
    }

    #[test]
    fn any_text_is_a_name_or_an_error(text in "\\PC{0,40}") {
        if let Ok(index) = text.parse::<TaskIndex>() { prop_assert_eq!(index.to_string(), text.clone()); }
        if let Ok(task) = text.parse::<TaskId>() { prop_assert_eq!(task.to_string(), text.clone()); }
        if let Ok(queue) = text.parse::<Queue>() { prop_assert_eq!(queue.to_string(), text.clone()); }
    }

    #[test]
    fn indices_order_depth_first(a in index(), b in index()) {
        if a.is_below(&b) { prop_assert!(a > b); }
        if let Some(parent) = a.parent() { prop_assert!(a.is_below(&parent)); }
        if a < b && !b.is_below(&a) && !a.is_same_place(&b) { prop_assert!(a.child(1) < b); }
    }

    #[test]
    fn values_survive_both_encodings(value in value()) {
        round_trip(&value);
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for encoding in BOTH {
            let _ = decode::<Envelope>(&bytes, encoding);
            let _ = decode::<Value>(&bytes, encoding);
        }
    }
}
