//! A run as spans of OpenTelemetry, by its GenAI conventions: made from the record alone, by rule. Pure.
//!
//! One trace for each run. Its root is the run (`invoke_workflow`); below it stands every try of a task (`invoke_agent`, or
//! `plan` where a plan is made or changed), below that each call of a model (`chat`) and of a tool (`execute_tool`). Ids are
//! derived from what a span is about, so that whoever makes the spans of a record, and whenever, makes the same ones: while
//! the run goes on, after a takeover, or months later from an export.
//!
//! [`Course`] goes through the record and knows which tries there are, and what was done in them when. [`Tracer`] makes spans of
//! those that are over; the dashboard draws them, and those that go on.
//!
//! The conventions: <https://github.com/open-telemetry/semantic-conventions-genai>.

mod attempt;
mod attributes;
mod content;
mod course;
mod ids;
pub mod otlp;
mod seen;
mod step;
mod tracer;
mod tries;

pub use attributes::provider;
pub use course::{Attempted, Before, Course, Why};
pub use ids::{ParentSpan, SpanId, TraceId, attempt_span, root_span, trace_of_offer};
pub use seen::{Call, Called, Stage, StepSeen};
pub use tracer::{Closed, Tracer};
pub use tries::{End, How, Try};

use crate::run::Entry;
use crate::time::Millis;

/// What an attribute says.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Is(bool),
    /// Several texts.
    Texts(Vec<String>),
}

/// An attribute: its key by the conventions, or one of ours, which begin with `muster.`.
pub type Attribute = (&'static str, Value);

/// On which side of a call a span stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Within the program.
    Internal,
    /// Something elsewhere is called.
    Client,
}

/// What a span has to do with another that is not above it.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanLink {
    /// The trace of the other.
    pub trace: TraceId,
    /// The other.
    pub span: SpanId,
    /// What it has to do with it: `takeover`, `earlier_generation`, `handed_over`, `child_run`, `parent_run`, `forked_from`.
    pub why: &'static str,
}

/// One span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its trace.
    pub trace: TraceId,
    /// Itself.
    pub id: SpanId,
    /// The span above it.
    pub parent: Option<SpanId>,
    /// What it is called: the operation, and upon what.
    pub name: String,
    /// On which side of a call it stands.
    pub kind: SpanKind,
    /// When it began.
    pub start: Millis,
    /// When it ended; not before it began.
    pub end: Millis,
    /// What it says.
    pub attributes: Vec<Attribute>,
    /// What it has to do with others.
    pub links: Vec<SpanLink>,
    /// What went wrong, in words of ours; nothing when it went well.
    pub error: Option<String>,
}

impl Span {
    /// The span with each of its texts replaced.
    #[must_use]
    pub fn with_texts(mut self, replace: impl Fn(&str) -> String) -> Self {
        let attributes = self.attributes.iter_mut().flat_map(|(_, value)| match value {
            Value::Text(text) => std::slice::from_mut(text),
            Value::Texts(texts) => texts.as_mut_slice(),
            Value::Whole(_) | Value::Number(_) | Value::Is(_) => &mut [],
        });
        for text in attributes.chain(&mut self.error).chain([&mut self.name]) {
            *text = replace(text);
        }
        self
    }
}

/// All spans of a record, as far as they are over: those of a run that goes on are left out with what goes on in it.
/// `content` says whether what people, models and tools said is told too.
#[must_use]
pub fn spans(entries: &[Entry], content: bool) -> Vec<Span> {
    let mut tracer = Tracer::new(content);
    entries.iter().flat_map(|entry| tracer.read(entry).spans).collect()
}
