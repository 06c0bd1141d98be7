//! Log lines as JSON: one object each, with the run, task, step and trace that it belongs to beside what it says.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// What says where something is done, below everything else that is logged: off unless lines are JSON.
pub(crate) const PLACES: &str = "muster_log=trace";

/// What a span says, kept beside it.
#[derive(Default)]
struct Said(Map<String, Value>);

impl Visit for Said {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

impl Said {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().trim_start_matches("r#").to_owned(), value.into());
    }
}

/// Keeps what spans say.
pub(crate) struct Places;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Places {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut said = Said::default();
        attributes.record(&mut said);
        span.extensions_mut().insert(said);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(said) = span.extensions_mut().get_mut::<Said>() {
            values.record(said);
        }
    }
}

/// Writes a line.
pub(crate) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Map::new();
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        line.insert("timestamp".to_owned(), time.into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        for span in context.event_scope().into_iter().flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            if let Some(Said(said)) = span.extensions().get::<Said>() {
                line.extend(said.clone());
            }
        }
        // What the line itself says of its run counts.
        let mut said = Said::default();
        event.record(&mut said);
        line.extend(said.0);
        if !line.contains_key("trace_id")
            && let Some(run) = line.get("run").cloned()
        {
            line.insert("trace_id".to_owned(), run);
        }
        line.insert("target".to_owned(), event.metadata().target().into());
        writeln!(out, "{}", Value::Object(line))
    }
}
