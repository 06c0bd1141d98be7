//! Trials (B6): which tasks take part in one, on which side, and when a canary is withdrawn. All of it follows from the
//! run's limits and state: who is in the share is told by a hash of run and task.

pub(super) mod shadow;

use muster_shared::flow::{Arm, Pattern, TaskOffered, TaskStatus, TrialMark, TrialMode, TrialRule};
use muster_shared::ids::{Generation, Queue, Role, TaskId};
use muster_shared::run::event::TrialWithdrawn;
use muster_shared::run::{RunState, RunStatus, StopReason, TaskState};
use sha2::{Digest, Sha256};

use super::builder::DecisionBuilder;
use super::children;
use super::effect::Effect;
use super::schedule;
use muster_shared::run::RequestAction;

/// The part that a task takes in a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TrialPart {
    /// Which trial, and on which side.
    pub(super) mark: TrialMark,
    /// The queue where it is done by another role.
    queue: Option<Queue>,
    /// The model where it is done by another one.
    pub(super) model: Option<String>,
    /// Whether it is done once more, as a shadow.
    is_shadowed: bool,
}

impl TrialPart {
    /// Whether it goes where it would go without the trial. A canary that has to go elsewhere gives its share back: the task
    /// is done as usual then, and counts on neither side.
    pub(super) const fn goes_with_the_usual(&self) -> bool {
        self.queue.is_none()
    }
}

/// The part that the next offer of a task takes in a trial, if it takes any.
pub(super) fn part(run: &RunState, task: &TaskId) -> Option<TrialPart> {
    if run.limits.trials.is_empty() || run.goal.shadow.is_some() {
        return None;
    }
    let role = schedule::role(run, task)?;
    let rule = run.limits.trials.iter().find(|rule| rule.role == role)?;
    // Whoever names a model gets that one.
    let is_named = rule.variant.model.is_some() && run.goal.model.is_some();
    if is_named || run.trial(&rule.name).is_none() || !may_take_part(run, task) {
        return None;
    }
    let state = run.tasks.get(task);
    if !state.is_none_or(is_first_try) {
        return None;
    }
    let is_shadow = rule.mode == TrialMode::Shadow;
    let chosen = is_chosen(run, task, rule) && (!is_shadow || task.as_leaf().is_some());
    let arm = if chosen && !is_shadow { Arm::Canary } else { Arm::Control };
    let is_canary = arm == Arm::Canary;
    let lay_untaken = state.is_some_and(|state| state.status == TaskStatus::Queued);
    let queue = rule.variant.role.clone().filter(|_| is_canary).map(Queue::Role);
    if queue.is_some() && lay_untaken {
        return None;
    }
    let never_begun = state.is_none_or(|state| state.generation == Generation(0));
    Some(TrialPart {
        mark: TrialMark { trial: rule.name.clone(), arm },
        queue,
        model: rule.variant.model.clone().filter(|_| is_canary),
        is_shadowed: chosen && is_shadow && never_begun,
    })
}

/// Tasks that several do, that are bid for, or that begin with a run of their own say nothing of one role or model.
fn may_take_part(run: &RunState, task: &TaskId) -> bool {
    match task {
        TaskId::Leaf(index) => {
            let planned = run.plan_task(index);
            planned.is_some_and(|planned| {
                planned.blueprint.is_none() && run.limits.pattern_of(planned) == Pattern::Hierarchical
            })
        }
        TaskId::Plan | TaskId::Reflect(_) | TaskId::Refine(_) | TaskId::Write => true,
        TaskId::Settle(_) | TaskId::DraftReview(_) => false,
    }
}

/// Whether the next offer is still of the first try: nothing of it has ended.
fn is_first_try(state: &TaskState) -> bool {
    let goes_on = schedule::goes_on_from(state).is_some();
    let is_open = state.trial.as_ref().is_some_and(|trial| trial.sample.is_none());
    state.generation == Generation(0) || goes_on && is_open
}

/// Whether a task is in the share of a trial.
fn is_chosen(run: &RunState, task: &TaskId, rule: &TrialRule) -> bool {
    let hash = Sha256::digest(format!("trial/{}/{}/{task}", rule.name, run.id));
    let place = hash.iter().take(8).fold(0_u64, |place, byte| place << 8 | u64::from(*byte));
    place % 100 < u64::from(rule.share)
}

/// The queue of a canary that is done by another role, where that has room now. Nobody waits for it: else the task is
/// done as usual.
pub(super) fn place(decision: &mut DecisionBuilder<'_>, part: &TrialPart) -> Option<Queue> {
    let queue = part.queue.as_ref()?;
    if decision.only_looks() {
        if decision.capacity().contains_key(queue) {
            decision.want(queue.clone());
        }
        return None;
    }
    (decision.room(queue) > 0 && !decision.is_full()).then(|| queue.clone())
}

/// Whether a task was given to this role by a trial only.
pub(super) fn is_tried_by(state: &TaskState, run: &RunState, role: &Role) -> bool {
    let mark = state.trial.as_ref().map(|trial| &trial.mark).filter(|mark| mark.arm == Arm::Canary);
    let rule = mark.and_then(|mark| run.limits.trials.iter().find(|rule| rule.name == mark.trial));
    rule.is_some_and(|rule| rule.variant.role.as_ref() == Some(role) && rule.role != *role)
}

/// The queue that a task was put into last, if that is the one of another role, by a trial.
pub(super) fn queue_by_trial<'a>(state: &'a TaskState, run: &RunState) -> Option<&'a Queue> {
    let by_trial = |queue: &&Queue| matches!(queue, Queue::Role(role) if is_tried_by(state, run, role));
    state.queue.as_ref().filter(by_trial)
}

/// The roles that tasks are given to by trials only: plans name what these stand in for.
pub(super) fn only_tried(run: &RunState) -> impl Iterator<Item = &Role> {
    run.limits.trials.iter().filter_map(|rule| rule.variant.role.as_ref())
}

/// An offer as it is made: of a shadow, what was offered there with what is its own.
pub(super) fn as_offered(decision: &DecisionBuilder<'_>, offer: TaskOffered) -> TaskOffered {
    match decision.open().and_then(|run| run.goal.shadow.as_deref()) {
        Some(of) => shadow::as_offered(of, offer),
        None => offer,
    }
}

/// A trial was withdrawn elsewhere.
pub(super) fn withdrawn(decision: &mut DecisionBuilder<'_>, trial: &str, reason: &str) {
    if decision.open().is_some_and(|run| run.trial(trial).is_some()) {
        let (trial, reason) = (trial.to_owned(), reason.to_owned());
        decision.emit(TrialWithdrawn { trial, reason, by_rule: false });
    }
}

/// Withdraws canaries that do worse, as their rules say.
pub(super) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open().filter(|run| !run.limits.trials.is_empty()) else { return };
    let worse = |rule: &TrialRule| {
        let (withdraw, standing) = (rule.withdraw?, run.trial(&rule.name)?);
        let applies = rule.mode == TrialMode::Canary && !run.trials.counts.is_empty();
        let reason = applies.then(|| withdraw.against(&run.trial_counts(standing))).flatten()?;
        Some((rule.clone(), reason))
    };
    let all: Vec<(TrialRule, String)> = run.limits.trials.iter().filter_map(worse).collect();
    for (rule, reason) in all {
        decision.emit(TrialWithdrawn { trial: rule.name.clone(), reason: reason.clone(), by_rule: true });
        decision.effect(Effect::WithdrawTrial { rule: Box::new(rule), reason });
    }
}

/// Keeps what trials came to in a run that has ended. Says whether anything else of it is to be kept: of a shadow nothing is.
pub(super) fn keep(decision: &mut DecisionBuilder<'_>) -> bool {
    let Some(run) = decision.run() else { return true };
    if let Some(shadow) = &run.goal.shadow {
        let (trial, used) = (shadow.trial.clone(), run.spending.used);
        decision.effect(Effect::SettleShadow { trial, used });
        return false;
    }
    if run.trials.is_empty() {
        return true;
    }
    let counted = |rule: &TrialRule| Some((rule.clone(), *run.trials.counts.get(&rule.name)?));
    let counts: Vec<_> = run.limits.trials.iter().filter_map(counted).collect();
    // Whoever cancels a run wants nothing of it any more.
    let is_cancelled = run.status == RunStatus::Aborted(StopReason::Cancelled);
    let shadows: Vec<_> = run.trials.shadows.values().filter(|_| is_cancelled).map(|one| one.run).collect();
    if !counts.is_empty() {
        decision.effect(Effect::CountTrials { counts });
    }
    for shadow in shadows {
        let reason = "the run that it is a shadow of was cancelled".to_owned();
        children::ask_child(decision, shadow, RequestAction::Cancel, reason);
    }
    true
}
