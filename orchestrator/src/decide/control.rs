//! What people and programs ask of a run while it goes on.

use muster_shared::run::{RunEvent, StopReason};

use super::draft::Draft;
use super::effect::Effect;

/// Stops the run. A run that has ended stays as it is.
pub(super) fn cancel(draft: &mut Draft<'_>, reason: &str, by: &str) {
    let by = if by.is_empty() { "somebody" } else { by };
    let reason =
        if reason.is_empty() { format!("cancelled by {by}") } else { format!("cancelled by {by}: {reason}") };
    abort(draft, StopReason::Cancelled, reason);
}

/// Stops the run, whatever is in work.
pub(super) fn abort(draft: &mut Draft<'_>, why: StopReason, reason: String) {
    if draft.open().is_none() {
        return;
    }
    draft.effect(Effect::CancelRun { reason: reason.clone() });
    draft.emit(RunEvent::RunAborted { why, reason });
}
