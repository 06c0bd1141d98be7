//! Ids of traces and spans, derived from what they are about.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::flow::TaskOffered;
use crate::ids::{Attempt, Generation, RunId, TaskId};
use crate::run::AgentKey;
use crate::wire::TraceContext;

/// A trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId(pub u128);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl From<RunId> for TraceId {
    fn from(run: RunId) -> Self {
        Self(run.as_uuid().as_u128())
    }
}

/// A span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanId(pub u64);

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The root of a run's spans. Cheap, and told with every message of the run (`traceparent`): what programs of others send
/// stands below it.
#[must_use]
pub const fn root_span(run: RunId) -> SpanId {
    let (_, low) = run.as_uuid().as_u64_pair();
    SpanId(low | 1)
}

/// Which part of a step a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The try as a whole.
    Attempt,
    /// A call of a model, by its place in the step.
    Chat(u32, usize),
    /// A call of a tool, by its place in the step.
    Tool(u32, usize),
}

/// The span of a try of a task, or of a part of it.
pub(super) fn span_of(
    run: RunId,
    task: &TaskId,
    generation: Generation,
    attempt: Attempt,
    part: Part,
) -> SpanId {
    let part = match part {
        Part::Attempt => String::new(),
        Part::Chat(step, at) => format!("{step}/chat/{at}"),
        Part::Tool(step, at) => format!("{step}/tool/{at}"),
    };
    let about = format!("muster span\n{run}/{task}/{generation}/{attempt}/{part}");
    let hash = Sha256::digest(about.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    // No span has the id 0.
    SpanId(u64::from_be_bytes(first).max(1))
}

/// The span of a try of a task.
#[must_use]
pub fn attempt_span(run: RunId, key: &AgentKey, attempt: Attempt) -> SpanId {
    span_of(run, &key.task, key.generation, attempt, Part::Attempt)
}

/// The trace that a task belongs to.
#[must_use]
pub fn trace_of_offer(offer: &TaskOffered) -> TraceId {
    let above = offer.trace.as_ref().and_then(ParentSpan::read);
    above.map_or_else(|| offer.run.into(), |above| above.trace)
}

/// The span of somebody else below which a run stands: a `traceparent` (W3C Trace Context), read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParentSpan {
    /// Its trace.
    pub trace: TraceId,
    /// Itself.
    pub span: SpanId,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

impl ParentSpan {
    /// Reads a `traceparent`; nothing where it is none.
    #[must_use]
    pub fn read(context: &TraceContext) -> Option<Self> {
        let mut parts = context.0.split('-');
        let [version, trace, span, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let is_hex = |text: &str, digits: usize| {
            text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let fits = is_hex(version, 2)
            && is_hex(trace, 32)
            && is_hex(span, 16)
            && is_hex(flags, 2)
            && version != "ff";
        // Later versions may say more, the first may not.
        if !fits || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
        let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        Some(Self { trace: TraceId(trace), span: SpanId(span), is_sampled })
    }

    /// It in its header form.
    #[must_use]
    pub fn written(&self) -> TraceContext {
        let Self { trace, span, is_sampled } = self;
        TraceContext(format!("00-{trace}-{span}-{:02x}", u8::from(*is_sampled)))
    }
}
