//! `muster dead`.

use muster_bus::DeadLetter;
use muster_shared::wire::{Encoding, decode};
use serde_json::{Value, json};

use super::{figures, table};

/// Most characters of a payload that nobody can read.
const MOST_SHOWN: usize = 2000;

/// Dead letters as a table.
pub(crate) fn table(letters: &[DeadLetter]) -> String {
    if letters.is_empty() {
        return "there are no dead letters".to_owned();
    }
    let rows = letters.iter().map(|letter| {
        vec![
            letter.seq.to_string(),
            figures::date(letter.at),
            figures::one_line(&letter.subject, 48),
            figures::one_line(&letter.reason, 80),
        ]
    });
    table::plain(&["SEQ", "GIVEN UP (UTC)", "CAME ON", "WHY"], rows.collect(), &[0])
}

/// One dead letter with all that is known of it.
pub(crate) fn letter(letter: &DeadLetter) -> String {
    let mut text = format!(
        "dead letter {}\ngiven up  {}\nwriter    {}\ncame on   {}\nwhy       {}\nsize      {}\n",
        letter.seq,
        figures::date(letter.at),
        figures::harmless(&letter.writer),
        figures::harmless(&letter.subject),
        figures::harmless(&letter.reason),
        figures::bytes(letter.payload.len() as u64),
    );
    for (name, value) in &letter.headers {
        text += &figures::harmless(&format!("header    {name}: {value}\n"));
    }
    text.push('\n');
    text += &match content(letter) {
        Some(content) => figures::harmless(&format!("{content:#}")),
        None => figures::cut(&figures::harmless(&String::from_utf8_lossy(&letter.payload)), MOST_SHOWN),
    };
    text
}

/// The same for programs.
pub(crate) fn json(letter: &DeadLetter) -> Value {
    let headers: serde_json::Map<String, Value> =
        letter.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut value = json!({
        "seq": letter.seq, "at": letter.at, "writer": letter.writer, "subject": letter.subject, "reason": letter.reason,
        "headers": headers, "bytes": letter.payload.len(),
    });
    match content(letter) {
        Some(content) => value["content"] = content,
        None => value["text"] = json!(String::from_utf8_lossy(&letter.payload)),
    }
    value
}

/// What it says, if it can be read at all.
fn content(letter: &DeadLetter) -> Option<Value> {
    let of_type = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
    let content_type = letter.headers.iter().find(of_type).map(|(_, value)| value.as_str());
    let encoding = Encoding::of(content_type, &letter.payload);
    let value: Value = decode(&letter.payload, encoding).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use muster_shared::ids::Seq;
    use muster_shared::time::Millis;

    use super::*;

    fn dead(payload: &'static str) -> DeadLetter {
        DeadLetter {
            subject: "cmd.x.submit".into(),
            reason: "it is not JSON\u{1b}[2J".into(),
            payload: Bytes::from_static(payload.as_bytes()),
            headers: vec![("Content-Type".into(), "application/json".into())],
            at: Millis(1_700_000_000_000),
            seq: Seq(7),
            writer: "worker-1\u{1b}[2J".into(),
            is_attested: true,
        }
    }

    #[test]
    fn what_can_be_read_is_shown_as_it_reads_and_the_rest_as_it_is() {
        assert!(letter(&dead(r#"{"a":[1]}"#)).contains("\"a\": ["));
        assert_eq!(json(&dead(r#"{"a":[1]}"#))["content"]["a"][0], 1);
        assert!(letter(&dead("{half a")).ends_with("{half a"));
        assert_eq!(json(&dead("{half a"))["text"], "{half a");
    }

    #[test]
    fn a_letter_cannot_clear_the_screen() {
        assert!(!letter(&dead("\u{1b}[2J")).contains('\u{1b}'));
        assert!(!table(&[dead("")]).contains('\u{1b}'));
        assert!(table(&[]).contains("no dead letters"));
    }
}
