//! Whether a result is what was asked for (O10). One that is not does not count: its task is done again, told why.

use muster_shared::flow::{Acceptance, Ending, TaskResult};
use muster_shared::ids::TaskIndex;
use muster_shared::run::{RunState, TEAMS_SINCE};

/// What is wrong with the result of a task, by rule; nothing when it counts.
pub(super) fn fault(
    run: &RunState,
    index: &TaskIndex,
    ending: Ending,
    result: &TaskResult,
) -> Option<String> {
    if run.event_version < TEAMS_SINCE {
        return None;
    }
    match run.limits.responses.acceptance {
        Acceptance::Off => return None,
        Acceptance::Rules => {}
    }
    let task = run.plan.as_ref()?.tasks.get(index)?;
    if is_empty(result) {
        return Some(format!(
            "it was called done and nothing was given; expected was: {}",
            task.expected_output
        ));
    }
    // Whoever names milestones means them; one that says it is not done has said what is missing.
    let (reached, set) = (result.milestones.len(), task.milestones.len());
    (ending == Ending::Done && reached > 0 && reached < set).then(|| {
        format!(
            "{reached} of {set} milestones were reached ({}); set were: {}",
            result.milestones.join("; "),
            task.milestones.join("; ")
        )
    })
}

/// Whether nothing was given.
pub(super) fn is_empty(result: &TaskResult) -> bool {
    result.conclusion.trim().is_empty()
        && result.findings.is_empty()
        && result.claims.is_empty()
        && result.data.is_none()
}
