//! The trace of somebody else that a run belongs to.

use muster_shared::run::RunState;
use muster_shared::traces::{ParentSpan, root_span};
use muster_shared::wire::TraceContext;

/// What stands below the run in the trace of whoever asked for it; nothing where the run has a trace of its own.
pub(super) fn below(run: &RunState) -> Option<TraceContext> {
    let above = run.goal.trace.as_ref().and_then(ParentSpan::read)?;
    Some(ParentSpan { span: root_span(run.id), ..above }.written())
}
