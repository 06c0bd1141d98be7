//! Noticing that a model goes in circles (W4): the very same action, or the same kind of action again and again with
//! nothing new learnt. It is told so and must change its course; when it does not, the task is escalated. Pure.

use muster_shared::flow::response::LOOP_DETECTED;
use muster_shared::flow::{Action, Note, Observation, ObservationStatus, SpinLevel, Step};

use super::decide::{ChosenAction, NextStep, StepContext};
use super::history::History;
use super::partial::escalated;

/// What follows from an action that leads in a circle; nothing when it does not.
pub(super) fn spinning(history: &History, chosen: &ChosenAction, case: &StepContext<'_>) -> Option<NextStep> {
    let action = &chosen.action;
    if let Some(earlier) = history.same_action(action) {
        let mut told = format!(
            "You did exactly this in step {}, and nothing has changed since: `{}` was not run again. Use what step {} \
             showed, change the arguments, try another action, or submit.",
            earlier.number, action.name, earlier.number
        );
        let shown = earlier.acts().find(|(done, _)| *done == action).and_then(|(_, seen)| seen);
        if let Some(shown) = shown.filter(|_| may_be_in_short(history, earlier, case)) {
            told.push_str(&format!("\nIt showed:\n{}", shown.content));
        }
        return Some(follow(history, chosen.clone(), SpinLevel::SameAction, told, case));
    }
    let after = case.limits.stale_after;
    let in_vain = history.in_vain_by(&action.name);
    if after > 0 && in_vain >= after {
        let told = format!(
            "The last {in_vain} calls of `{}` gave nothing new, so it was not run another time. Do something else: {}, \
             or submit.",
            action.name,
            others(action, case)
        );
        return Some(follow(history, chosen.clone(), SpinLevel::SameKind, told, case));
    }
    None
}

/// Whether a step may be shown in short by now, so that the model does not see any more what came of it.
fn may_be_in_short(history: &History, step: &Step, case: &StepContext<'_>) -> bool {
    let seen = history.steps().iter().flat_map(Step::observations);
    let bytes: usize = seen.map(|seen| seen.content.len()).sum();
    let room = usize::try_from(case.limits.room).unwrap_or(usize::MAX);
    room > 0 && bytes > room / 2 && step.number + 1 < history.next_step()
}

/// The model is told, again more urgently; then a person has to look.
pub(super) fn follow(
    history: &History,
    mut chosen: ChosenAction,
    level: SpinLevel,
    mut told: String,
    case: &StepContext<'_>,
) -> NextStep {
    let times = history.spins().saturating_add(1);
    let note = Note::Spin { level, times };
    if times > case.limits.max_spins {
        let reason = format!(
            "{LOOP_DETECTED} and did not change its course after it was told {}",
            if times == 2 { "once".to_owned() } else { format!("{} times", times - 1) }
        );
        return NextStep::Conclude { submission: escalated(history, case, reason), notes: vec![note] };
    }
    if times > 1 {
        told.push_str(
            " You were told so before. Say in your thought what you tried and why it leads nowhere, then change your \
             approach. If there is no other way, submit what you have with done_partial, or end with escalate or blocked \
             and the reason. If you go on like this, the task is taken from you.",
        );
    }
    chosen.notes.push(note);
    NextStep::Refuse { chosen, observation: refused(told) }
}

fn others(action: &Action, case: &StepContext<'_>) -> String {
    let names = case.toolset.names();
    let others: Vec<String> =
        names.iter().filter(|name| **name != action.name).map(|name| format!("`{name}`")).collect();
    others.join(", ")
}

/// What a model is told of an action that was not done.
pub(super) const fn refused(content: String) -> Observation {
    Observation { status: ObservationStatus::Refused, content, millis: 0, truncated: false, cached: None }
}

#[cfg(test)]
#[path = "loop_detection_tests.rs"]
mod tests;
