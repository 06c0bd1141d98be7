//! A receiver of OTLP over HTTP, which reads what comes by the published types, and holds it against the conventions.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// Receives until the test is over.
pub(super) struct Receiver {
    url: String,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    spans: Mutex<Vec<Span>>,
    services: Mutex<Vec<String>>,
    is_away: AtomicBool,
    refused: AtomicUsize,
    keys: Mutex<Vec<String>>,
}

impl Receiver {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Heard::default());
        let own = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = Arc::clone(&own);
                std::thread::spawn(move || own.talk(stream));
            }
        });
        Self { url, heard }
    }

    /// Where it is, for all signals.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Whether it answers that it cannot take anything now.
    pub(super) fn be_away(&self, is_away: bool) {
        self.heard.is_away.store(is_away, Ordering::SeqCst);
    }

    /// How many requests it did not take.
    pub(super) fn refused(&self) -> usize {
        self.heard.refused.load(Ordering::SeqCst)
    }

    /// All spans as they came.
    pub(super) fn spans(&self) -> Vec<Span> {
        self.heard.spans.lock().unwrap().clone()
    }

    /// The spans of a trace, each once. One that came twice must be the same both times.
    pub(super) fn trace(&self, trace: &str) -> BTreeMap<String, Span> {
        let mut found = BTreeMap::new();
        for span in self.spans().into_iter().filter(|span| hex(&span.trace_id) == trace) {
            if let Some(before) = found.insert(hex(&span.span_id), span.clone()) {
                assert_eq!(before, span, "a span that is sent again is the same");
            }
        }
        found
    }

    /// What senders are called, and what they said in the header `x-key`.
    pub(super) fn senders(&self) -> (Vec<String>, Vec<String>) {
        (self.heard.services.lock().unwrap().clone(), self.heard.keys.lock().unwrap().clone())
    }
}

impl Heard {
    fn talk(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let (mut length, mut first, mut key, mut line) = (0, String::new(), String::new(), String::new());
            loop {
                line.clear();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                let text = line.trim();
                if text.is_empty() {
                    break;
                }
                if first.is_empty() {
                    first = text.to_owned();
                }
                match text.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value)) {
                    Some((name, value)) if name == "content-length" => length = value.parse().unwrap(),
                    Some((name, value)) if name == "x-key" => key = value.to_owned(),
                    Some((name, value)) if name == "content-type" => {
                        assert_eq!(value, "application/x-protobuf")
                    }
                    Some(_) | None => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            assert!(first.starts_with("POST /v1/traces "), "{first}");
            let status = if self.is_away.load(Ordering::SeqCst) {
                self.refused.fetch_add(1, Ordering::SeqCst);
                "503 Service Unavailable"
            } else {
                self.take(&body, key);
                "200 OK"
            };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn take(&self, body: &[u8], key: String) {
        let request = ExportTraceServiceRequest::decode(body).expect("it is OTLP");
        self.keys.lock().unwrap().push(key);
        for of_resource in request.resource_spans {
            let attributes = of_resource.resource.unwrap().attributes;
            let name = attributes.iter().find(|pair| pair.key == "service.name").unwrap();
            self.services.lock().unwrap().push(format!("{:?}", name.value));
            for of_scope in of_resource.scope_spans {
                assert_eq!(of_scope.scope.unwrap().name, "muster");
                self.spans.lock().unwrap().extend(of_scope.spans);
            }
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of an attribute; a number as a text.
pub(super) fn said(span: &Span, key: &str) -> Option<String> {
    let value = span.attributes.iter().find(|pair| pair.key == key)?.value.clone()?.value?;
    Some(match value {
        any_value::Value::StringValue(text) => text,
        any_value::Value::IntValue(number) => number.to_string(),
        any_value::Value::DoubleValue(number) => number.to_string(),
        any_value::Value::BoolValue(is) => is.to_string(),
        other => format!("{other:?}"),
    })
}

/// Holds the spans of a trace against the conventions. `above` is the span of somebody else that may stand above.
pub(super) fn check(spans: &BTreeMap<String, Span>, above: Option<&str>) {
    for (id, span) in spans {
        let told =
            |key: &str| said(span, key).unwrap_or_else(|| panic!("{} has no {key}: {span:#?}", span.name));
        let operation = told("gen_ai.operation.name");
        let (name, kind, above_is) = match operation.as_str() {
            "invoke_workflow" => (told("gen_ai.workflow.name"), 1, None),
            "invoke_agent" | "plan" => (told("gen_ai.agent.name"), 1, Some("invoke_workflow")),
            "chat" => (told("gen_ai.request.model"), 3, Some("")),
            "execute_tool" => (told("gen_ai.tool.name"), 1, Some("")),
            other => panic!("{other} is no operation of the conventions"),
        };
        assert_eq!(span.name, format!("{operation} {name}"));
        assert_eq!(span.kind, kind, "{}", span.name);
        if operation == "chat" {
            told("gen_ai.provider.name");
            told("gen_ai.usage.input_tokens");
            told("gen_ai.usage.output_tokens");
        }
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        let failed = span.status.as_ref().is_some_and(|status| status.code == 2);
        assert_eq!(failed, said(span, "error.type").is_some(), "{span:#?}");
        let parent = hex(&span.parent_span_id);
        match above_is {
            None => assert_eq!(parent, above.unwrap_or_default(), "{id}"),
            Some(wanted) => {
                let parent = spans.get(&parent).unwrap_or_else(|| panic!("{} has no parent", span.name));
                assert!(parent.name.starts_with(wanted), "{} below {}", span.name, parent.name);
                assert!(
                    parent.start_time_unix_nano <= span.start_time_unix_nano
                        && span.end_time_unix_nano <= parent.end_time_unix_nano,
                    "{} lies within {}",
                    span.name,
                    parent.name
                );
            }
        }
        for attribute in &span.attributes {
            let content = ["messages", "arguments", "result", "instructions"];
            assert!(
                !content.iter().any(|word| attribute.key.ends_with(word)),
                "nobody asked for {}",
                attribute.key
            );
        }
    }
}
