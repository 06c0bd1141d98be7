//! OTLP as JSON: ids as hexadecimal digits, 64-bit numbers as texts.

use serde_json::{Map, Value as Json, json};

use super::{Resource, SAMPLED, SCHEMA, SCOPE, STATUS_ERROR, kind, nanos};
use crate::traces::{Span, SpanLink, Value};

/// Spans as a request of OTLP, which is also what files of the collector have in a line.
#[must_use]
pub fn json(spans: &[Span], resource: &Resource) -> Json {
    let resource = resource.iter().map(|(key, value)| attribute(key, &Value::Text(value.clone())));
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource.collect::<Vec<_>>() },
        "scopeSpans": [{
            "scope": { "name": SCOPE },
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
            "schemaUrl": SCHEMA,
        }],
        "schemaUrl": SCHEMA,
    }] })
}

fn attribute(key: &str, value: &Value) -> Json {
    json!({ "key": key, "value": any(value) })
}

fn any(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Is(is) => json!({ "boolValue": is }),
        Value::Whole(number) => json!({ "intValue": number.to_string() }),
        Value::Number(number) => json!({ "doubleValue": number }),
        Value::Texts(texts) => {
            let values: Vec<Json> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    }
}

fn span(span: &Span) -> Json {
    let mut said = Map::new();
    said.insert("traceId".into(), span.trace.to_string().into());
    said.insert("spanId".into(), span.id.to_string().into());
    if let Some(parent) = span.parent {
        said.insert("parentSpanId".into(), parent.to_string().into());
    }
    said.insert("name".into(), span.name.clone().into());
    said.insert("kind".into(), kind(span).into());
    said.insert("startTimeUnixNano".into(), nanos(span.start).to_string().into());
    said.insert("endTimeUnixNano".into(), nanos(span.end).to_string().into());
    let attributes = span.attributes.iter().map(|(key, value)| attribute(key, value));
    said.insert("attributes".into(), attributes.collect());
    said.insert("links".into(), span.links.iter().map(link).collect());
    if let Some(error) = &span.error {
        said.insert("status".into(), json!({ "message": error, "code": STATUS_ERROR }));
    }
    said.insert("flags".into(), SAMPLED.into());
    Json::Object(said)
}

fn link(link: &SpanLink) -> Json {
    json!({
        "traceId": link.trace.to_string(),
        "spanId": link.span.to_string(),
        "attributes": [attribute("muster.link", &Value::Text(link.why.to_owned()))],
        "flags": SAMPLED,
    })
}
