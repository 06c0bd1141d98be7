//! OTLP as protobuf: `ExportTraceServiceRequest`, and the little that is read of its answer.

use super::{Resource, SAMPLED, SCHEMA, SCOPE, STATUS_ERROR, kind, nanos};
use crate::traces::{Span, SpanLink, Value};

/// Writes fields of a message one after the other.
#[derive(Default)]
struct Writer(Vec<u8>);

/// How a field is written.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }

    fn whole(&mut self, field: u32, value: u64) {
        self.key(field, Wire::Varint);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, Wire::Fixed64);
        self.0.extend(value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u32, value: u32) {
        self.key(field, Wire::Fixed32);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, Wire::Bytes);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn attribute(&mut self, field: u32, key: &str, value: &Value) {
        self.message(field, |pair| {
            pair.bytes(1, key.as_bytes());
            pair.message(2, |any| any.any(value));
        });
    }

    fn any(&mut self, value: &Value) {
        match value {
            Value::Text(text) => self.bytes(1, text.as_bytes()),
            Value::Is(is) => self.whole(2, u64::from(*is)),
            // A negative number is written as its two's complement.
            Value::Whole(number) => self.whole(3, number.cast_unsigned()),
            Value::Number(number) => self.fixed64(4, number.to_bits()),
            Value::Texts(texts) => self.message(5, |array| {
                for text in texts {
                    array.message(1, |any| any.bytes(1, text.as_bytes()));
                }
            }),
        }
    }

    fn span(&mut self, field: u32, span: &Span) {
        self.message(field, |out| {
            out.bytes(1, &span.trace.0.to_be_bytes());
            out.bytes(2, &span.id.0.to_be_bytes());
            if let Some(parent) = span.parent {
                out.bytes(4, &parent.0.to_be_bytes());
            }
            out.bytes(5, span.name.as_bytes());
            out.whole(6, kind(span));
            out.fixed64(7, nanos(span.start));
            out.fixed64(8, nanos(span.end));
            for (key, value) in &span.attributes {
                out.attribute(9, key, value);
            }
            for link in &span.links {
                out.link(13, link);
            }
            if let Some(error) = &span.error {
                out.message(15, |status| {
                    status.bytes(2, error.as_bytes());
                    status.whole(3, STATUS_ERROR);
                });
            }
            out.fixed32(16, SAMPLED);
        });
    }

    fn link(&mut self, field: u32, link: &SpanLink) {
        self.message(field, |out| {
            out.bytes(1, &link.trace.0.to_be_bytes());
            out.bytes(2, &link.span.0.to_be_bytes());
            out.attribute(4, "muster.link", &Value::Text(link.why.to_owned()));
            out.fixed32(6, SAMPLED);
        });
    }
}

/// Spans as a request of OTLP.
#[must_use]
pub fn protobuf(spans: &[Span], resource: &Resource) -> Vec<u8> {
    let mut request = Writer::default();
    request.message(1, |of_resource| {
        of_resource.message(1, |out| {
            for (key, value) in resource {
                out.attribute(1, key, &Value::Text(value.clone()));
            }
        });
        of_resource.message(2, |of_scope| {
            of_scope.message(1, |scope| scope.bytes(1, SCOPE.as_bytes()));
            for span in spans {
                of_scope.span(2, span);
            }
            of_scope.bytes(3, SCHEMA.as_bytes());
        });
        of_resource.bytes(3, SCHEMA.as_bytes());
    });
    request.0
}

/// What a receiver did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// How many spans.
    pub spans: u64,
    /// Why, in its words.
    pub reason: String,
}

/// Longest answer that is looked into, in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;

/// What of a request was refused, by the answer to it (`ExportTraceServiceResponse`). What cannot be read refuses nothing.
#[must_use]
pub fn refused(answer: &[u8]) -> Option<Refusal> {
    let answer = answer.get(..answer.len().min(LONGEST_ANSWER))?;
    let partial = fields(answer).find_map(|(field, value)| match (field, value) {
        (1, Field::Bytes(bytes)) => Some(bytes),
        (_, Field::Bytes(_) | Field::Whole(_)) => None,
    })?;
    let mut refusal = Refusal { spans: 0, reason: String::new() };
    for (field, value) in fields(partial) {
        match (field, value) {
            (1, Field::Whole(count)) => refusal.spans = count,
            (2, Field::Bytes(words)) => refusal.reason = String::from_utf8_lossy(words).into_owned(),
            (_, Field::Bytes(_) | Field::Whole(_)) => {}
        }
    }
    (refusal.spans > 0 || !refusal.reason.is_empty()).then_some(refusal)
}

/// A field as it was read.
enum Field<'a> {
    Whole(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, up to what cannot be read.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        let (key, after) = read_varint(rest)?;
        let (field, wire) = (key >> 3, key & 7);
        let (value, after) = match wire {
            0 => read_varint(after).map(|(value, after)| (Field::Whole(value), after))?,
            1 => (Field::Bytes(after.get(..8)?), after.get(8..)?),
            2 => {
                let (length, after) = read_varint(after)?;
                let length = usize::try_from(length).ok()?;
                (Field::Bytes(after.get(..length)?), after.get(length..)?)
            }
            5 => (Field::Bytes(after.get(..4)?), after.get(4..)?),
            _ => return None,
        };
        rest = after;
        Some((field, value))
    })
}

fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(u32::try_from(at).ok()? * 7)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_read_and_what_is_none_refuses_nothing() {
        let mut answer = Writer::default();
        answer.message(1, |partial| {
            partial.whole(1, 300);
            partial.bytes(2, b"too old");
        });
        assert_eq!(refused(&answer.0), Some(Refusal { spans: 300, reason: "too old".into() }));
        for nothing in
            [&b""[..], b"\x0a\x00", b"{}", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0a\x7f"]
        {
            assert_eq!(refused(nothing), None, "{nothing:?}");
        }
    }
}
