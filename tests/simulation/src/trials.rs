//! Trials: what is tried beside the usual, who does it, and the rule that nothing of a shadow reaches another run.

use std::collections::BTreeMap;

use muster_shared::flow::{
    Arm, Budget, Measure, RunLimits, TrialCounts, TrialMode, TrialRule, Variant, WithdrawRule,
};
use muster_shared::ids::Role;
use muster_shared::run::{Entry, RecordEvent, RunEvent, RunState};

use crate::fleet::Conduct;
use crate::random::Random;
use crate::scenario::Kind;

/// What stands in for workers in a trial.
const TRIED: &str = "worker_b";

/// Some fleets try something.
pub(crate) fn tried(seed: u64, limits: RunLimits) -> RunLimits {
    let mut random = Random::of(seed, "trials");
    if !random.chance(300) {
        return limits;
    }
    let mode = if random.chance(500) { TrialMode::Shadow } else { TrialMode::Canary };
    let role = random.chance(700).then(|| TRIED.parse().ok()).flatten();
    let model = (role.is_none() || random.chance(300)).then(|| "tried/model".to_owned());
    let rule = TrialRule {
        name: "trial".to_owned(),
        role: Role::Worker,
        mode,
        variant: Variant { role, model },
        share: u8::try_from(random.between(10, 100)).unwrap_or(50),
        task_budget: Budget {
            model_calls: random.chance(500).then(|| random.between(1, 9)),
            ..Budget::default()
        },
        budget: Budget { model_calls: Some(50), ..Budget::default() },
        withdraw: random.chance(700).then_some(WithdrawRule { measure: Measure::Success, after: 1, by: 10 }),
        before: TrialCounts::default(),
    };
    RunLimits { trials: vec![rule], ..limits }
}

/// Those who do what is tried. In some fleets there are none: nobody waits for them.
pub(crate) fn those_who_try(seed: u64, limits: &RunLimits) -> Option<Kind> {
    let role = limits.trials.first()?.variant.role.clone()?;
    let agent =
        Kind::Agent { role, slots: 1, capabilities: Vec::new(), is_deaf: false, conduct: Conduct::Sound };
    Random::of(seed, "those who try").chance(600).then_some(agent)
}

/// What is broken by what an entry says of trials.
pub(crate) fn broken(entry: &Entry, after: &RunState, seen: &mut BTreeMap<&'static str, u64>) -> Vec<String> {
    let RecordEvent::Decided(decided) = &entry.event else { return Vec::new() };
    let mut broken = Vec::new();
    let of_shadow = after.goal.shadow.is_some();
    for event in decided.events.iter().filter(|_| of_shadow) {
        let reaches_others = matches!(
            event,
            RunEvent::ChildBegun(_)
                | RunEvent::QuestionAsked(_)
                | RunEvent::ShadowAsked(_)
                | RunEvent::TaskDelegated(_)
                | RunEvent::ContextWritten(_)
                | RunEvent::Reflected(_)
                | RunEvent::ConflictFound(_)
        );
        if reaches_others {
            broken.push(format!("a shadow changes nothing and asks nobody: {}", event.name()));
        }
    }
    for (task, state) in after.tasks.iter().filter(|_| !of_shadow) {
        let arm = state.trial.as_ref().map(|trial| trial.mark.arm);
        let by = state.ended_by.as_ref().is_some_and(|by| by.to_string().starts_with(TRIED));
        if arm == Some(Arm::Shadow) {
            broken.push(format!("no task of a run is a shadow of itself: {task}"));
        }
        if by && state.status.is_ended() && arm != Some(Arm::Canary) && state.generation.0 == 1 {
            broken.push(format!("only canaries are done by who tries: {task}"));
        }
        if arm == Some(Arm::Canary) {
            *seen.entry("canary").or_default() += 1;
        }
    }
    if of_shadow && after.status.is_ended() {
        *seen.entry("shadow ended").or_default() += 1;
    }
    let at = |how: String| format!("at {}: {how}", entry.seq);
    broken.into_iter().map(at).collect()
}
