//! Spans in the form that OTLP sends: as protobuf, and as JSON, by version 1 of its messages. Written out here since it is
//! little: ids that follow from what a span is about are none of what an SDK makes.
//!
//! <https://github.com/open-telemetry/opentelemetry-proto>.

mod json;
mod protobuf;

pub use json::json;
pub use protobuf::{Refusal, protobuf, refused};

use super::Span;

/// Who sends: the attributes of its resource, `service.name` among them.
pub type Resource = [(String, String)];

/// Under which name spans are sent.
const SCOPE: &str = "muster";

/// Version of the conventions that attributes follow.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";

/// What OTLP calls the kind of a span.
const fn kind(span: &Span) -> u64 {
    match span.kind {
        super::SpanKind::Internal => 1,
        super::SpanKind::Client => 3,
    }
}

/// What OTLP calls a status of which something went wrong.
const STATUS_ERROR: u64 = 2;

/// The flag of a trace that is recorded, for spans and links.
const SAMPLED: u32 = 1;

/// Milliseconds as nanoseconds.
const fn nanos(millis: crate::time::Millis) -> u64 {
    millis.0.saturating_mul(1_000_000)
}
