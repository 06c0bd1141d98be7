//! Messages and subjects.

use muster_bus::partition;
use muster_bus::subject::{Subject, is_token, matches, watched};
use muster_shared::wire::{Encoding, Envelope, decode, encode};

use super::{ensure, text_of};
use crate::{Seen, Shape, Target};

/// Words of messages.
pub(super) const WORDS: &[&str] = &["planner"];

/// Envelopes as JSON.
pub(super) const JSON: Target =
    Target::new("wire_json", Shape::Json, |input| envelope(input, Encoding::Json))
        .with_made(super::golden_json)
        .with_words(WORDS);

/// Envelopes as MessagePack.
pub(super) const MESSAGE_PACK: Target =
    Target::new("wire_message_pack", Shape::MessagePack, |input| envelope(input, Encoding::MessagePack))
        .with_made(super::golden_msgpack)
        .with_words(WORDS);

/// What is read is written and read again as the same, in either encoding.
fn envelope(input: &[u8], encoding: Encoding) -> Result<Seen, String> {
    let read: Envelope = match decode(input, encoding) {
        Ok(read) => read,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let written =
            encode(&read, encoding).map_err(|error| format!("not written as {encoding}: {error}"))?;
        ensure(Encoding::of(None, &written) == encoding, || {
            format!("{encoding} is not told by its first byte")
        })?;
        let again: Envelope =
            decode(&written, encoding).map_err(|error| format!("not read again from {encoding}: {error}"))?;
        ensure(again == read, || format!("read again from {encoding} it is another"))?;
    }
    Ok(Seen::Read)
}

/// Subjects.
pub(super) const SUBJECTS: Target = Target::new("subjects", Shape::Text, subject).with_words(&[
    "*",
    ">",
    "dlq.",
    "0190a1b2c3d4700080000000000000aa",
    "@",
    "p3",
]);

fn subject(input: &[u8]) -> Result<Seen, String> {
    let text = text_of(input);
    // A filter and a subject that are the same match, and no token steps out of its place.
    let plain = !text.is_empty() && text.split('.').all(|part| !matches!(part, "*" | ">"));
    ensure(!plain || matches(&text, &text), || "it does not match itself".to_owned())?;
    ensure(!is_token(&text) || !text.contains(['.', '*', '>', ' ']), || "it is no token".to_owned())?;
    let _plain = partition::plain(&text);
    let read = match Subject::parse(&text) {
        Ok(read) => read,
        Err(why) => return Ok(Seen::at_door(why)),
    };
    let written = read.to_string();
    let again = Subject::parse(&written).map_err(|why| format!("{written:?} is not read again: {why}"))?;
    ensure(again.to_string() == written, || format!("{written:?} is read again as {again}"))?;
    ensure(again.run() == read.run(), || format!("{written:?} is of another run"))?;
    if let Some(run) = read.run() {
        let _seen = watched(Some(run)).iter().any(|filter| matches(filter, &written));
    }
    Ok(Seen::Read)
}
