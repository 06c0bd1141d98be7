//! Where a task stands, for logs: lines that are written as JSON say which run, task, step and trace they belong to. Who logs
//! text asks for none of this, and nothing is made.

use muster_shared::flow::TaskOffered;
use muster_shared::ids::RunId;
use muster_shared::run::{AgentEvent, AgentKey};
use muster_shared::traces::{attempt_span, trace_of_offer};
use tracing::Span;
use tracing::field::{Empty, display};

/// The span of a task in hand.
pub(crate) fn of_task(offer: &TaskOffered) -> Span {
    tracing::trace_span!(
        target: "muster_log",
        "task",
        run = %offer.run,
        task = %offer.task,
        generation = offer.generation.0,
        trace_id = %trace_of_offer(offer),
        attempt = Empty,
        span_id = Empty,
        step = Empty,
    )
}

/// Notes how far the task in hand is, by what was written of it.
pub(super) fn note(run: RunId, key: &AgentKey, event: &AgentEvent) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    match event {
        AgentEvent::Started(started) => {
            span.record("attempt", started.attempt.0);
            span.record("span_id", display(attempt_span(run, key, started.attempt)));
            // The step that comes next is what is being worked on.
            span.record("step", started.after_step.saturating_add(1));
        }
        AgentEvent::Step(step) => {
            span.record("step", step.number.saturating_add(1));
        }
        _ => {}
    }
}
