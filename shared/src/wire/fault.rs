//! Which field of a message is at fault. The way to it is found from the place where reading stopped, so that nothing
//! is compiled a second time for it and nothing is kept while all is well.

use serde_json::{Map, Value};

use super::codec::{CodecError, Take, from_json, said};

/// The field by which a value is not what is to be taken; nothing when it is at fault as a whole, or not at all.
pub(super) fn at_fault(mut value: Value, take: &mut Take<'_>) -> Option<CodecError> {
    type_first(&mut value);
    let text = serde_json::to_vec(&value).ok()?;
    let error = from_json(&text, take).err()?;
    told(&text, &error)
}

fn told(text: &[u8], error: &serde_json::Error) -> Option<CodecError> {
    // Written by us, it is one line.
    let field = way(text.get(..error.column()).unwrap_or(text));
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = error.to_string().replace(&place, "");
    (!field.is_empty()).then(|| CodecError::Field { field: said(&field), reason: said(&reason) })
}

/// A body is read as it comes only where its type is known before its content.
fn type_first(value: &mut Value) {
    let Some(Value::Object(body)) = value.get_mut("body") else { return };
    let Some(kind) = body.remove("type") else { return };
    let rest = std::mem::take(body);
    *body = Map::from_iter([("type".to_owned(), kind)]);
    body.extend(rest);
}

/// A list or an object that was begun and has not ended.
enum Open {
    Object { key: String, is_key_next: bool },
    List { at: usize },
}

/// The way to where well-formed JSON stops, such as `body.content.claims[2].value`.
fn way(text: &[u8]) -> String {
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, open.last_mut()) {
            (b'{', _) => open.push(Open::Object { key: String::new(), is_key_next: true }),
            (b'[', _) => open.push(Open::List { at: 0 }),
            (b'}' | b']', _) => drop(open.pop()),
            (b',', Some(Open::Object { key, is_key_next })) => {
                key.clear();
                *is_key_next = true;
            }
            (b',', Some(Open::List { at })) => *at += 1,
            (b':', Some(Open::Object { is_key_next, .. })) => *is_key_next = false,
            (b'"', last) => {
                let string = string(&text[at..]);
                if let Some(Open::Object { key, is_key_next: true }) = last {
                    *key = serde_json::from_slice(string).unwrap_or_default();
                }
                at += string.len().saturating_sub(1);
            }
            (_, _) => {}
        }
        at += 1;
    }
    let mut way = String::new();
    for part in &open {
        match part {
            Open::Object { key, .. } if key.is_empty() => {}
            Open::Object { key, .. } if way.is_empty() => way.push_str(key),
            Open::Object { key, .. } => way.extend([".", key]),
            Open::List { at } => way.push_str(&format!("[{at}]")),
        }
    }
    way
}

/// The string that a text begins with, its quotation marks included.
fn string(text: &[u8]) -> &[u8] {
    let mut is_escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text, |end| &text[..end + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_leads_to_where_a_text_stops() {
        for (text, expected) in [
            (r#"{"a":{"b":[1,{"c":2.5"#, "a.b[1].c"),
            (r#"{"a":{"b":1}"#, "a"),
            (r#"{"a":{"b":1},"c":[[1],["x,{"#, "c[1][0]"),
            (r#"{"say \"a.b\"":"}\\\"]","n":1"#, "n"),
            (r#"{"a":1}"#, ""),
            ("17", ""),
            ("", ""),
        ] {
            assert_eq!(way(text.as_bytes()), expected, "{text}");
        }
    }
}
