//! The first decision: a goal becomes a run, or is refused with the reason on record.

use std::time::Duration;

use muster_shared::flow::{Goal, RunLimits};
use muster_shared::run::event::{LessonsRecalled, RunAborted, RunCreated, RunFailed};
use muster_shared::run::{EVENT_VERSION, RunEvent, StopReason};

use super::blueprint;
use super::builder::DecisionBuilder;

/// Creates the run. A goal that was submitted before changes nothing.
pub(super) fn create(decision: &mut DecisionBuilder<'_>, goal: &Goal, limits: &RunLimits, secret: &str) {
    if decision.run().is_some() {
        return;
    }
    let span = Duration::from_millis(goal.deadline_ms.unwrap_or(limits.run_deadline_ms));
    let deadline = decision.now().after(span);
    decision.emit(RunCreated {
        goal: Box::new(goal.clone()),
        limits: blueprint::limits(goal, limits),
        event_version: EVENT_VERSION,
        secret: secret.to_owned(),
        deadline,
    });
    if let Err(wrong) = goal.check() {
        decision.emit(RunFailed { reason: wrong.to_string() });
    }
}

/// Gives a run that was just created what earlier runs taught.
pub(super) fn recall(decision: &mut DecisionBuilder<'_>, lessons: &[String]) {
    if !lessons.is_empty() && decision.open().is_some() {
        decision.emit(LessonsRecalled { lessons: lessons.to_vec() });
    }
}

/// Puts a goal that cannot be worked on into the record, with the reason, so that the asker sees it there.
pub(super) fn refuse(
    decision: &mut DecisionBuilder<'_>,
    goal: &Goal,
    limits: &RunLimits,
    (reason, busy): (&str, bool),
) {
    if decision.run().is_some() {
        return;
    }
    decision.emit(RunCreated {
        goal: Box::new(goal.clone()),
        limits: limits.clone(),
        event_version: EVENT_VERSION,
        secret: String::new(),
        deadline: decision.now(),
    });
    let reason = reason.to_owned();
    decision.emit(if busy {
        RunEvent::RunAborted(RunAborted { why: StopReason::Refused, reason, report: None })
    } else {
        RunEvent::RunFailed(RunFailed { reason })
    });
}
