//! Shadows: a task is done once more, by what a trial tries, in a run of its own. That run has a record, a budget and a
//! deadline of its own and may change nothing, so that nothing of it can reach the run whose task it does: nobody waits for
//! it, and whatever becomes of it concerns nobody.

use muster_shared::flow::{
    Arm, DraftReviewPolicy, Goal, Pattern, Plan, PlanTask, Planning, ReflectionLevel, RunLimits, ShadowOf,
    TaskOffered, TrialMark, TrialRule, Work, Writing,
};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::event::{PlanAdopted, PlanningSkipped, ShadowAsked};
use muster_shared::wire::Command;

use super::super::builder::DecisionBuilder;
use super::super::children;
use super::super::effect::Effect;
use super::TrialPart;

/// What a task is told that waits for others.
pub(in crate::decide) const REFUSED: &str = "Not done: this task is a trial beside the real one. It may look, and ask for or change nothing. Go on without it.";

/// What shadows want is done after what anybody else wants.
const PRIORITY: i8 = i8::MIN;

/// Has the task of an offer done once more, if it is to be.
pub(in crate::decide) fn ask(decision: &mut DecisionBuilder<'_>, part: &TrialPart, offer: &TaskOffered) {
    let Some(run) = decision.open().filter(|_| part.is_shadowed) else { return };
    let Some(rule) = run.trial(&part.mark.trial).cloned() else { return };
    let TaskOffered { task, generation, .. } = offer;
    let shadow = children::derived_run(run, &format!("shadow/{}/{task}/{generation}/{}", run.id, rule.name));
    let goal = Box::new(goal(&run.goal, &rule, offer));
    if goal.check().is_err() {
        return;
    }
    let (trial, task, generation) = (rule.name.clone(), task.clone(), *generation);
    decision.emit(ShadowAsked { trial, task, generation, run: shadow });
    let id = Some(children::derived(shadow, "shadow", decision.now()));
    let command = Box::new(Command::Attend { run: shadow, goal, id });
    decision.effect(Effect::AskShadow { rule: Box::new(rule), command });
}

/// The goal of the run that does it.
fn goal(asked: &Goal, rule: &TrialRule, offer: &TaskOffered) -> Goal {
    let budget = rule.of_one_shadow();
    let role = match (&rule.variant.role, &offer.work) {
        (Some(role), _) => role.clone(),
        (None, Work::Execute { task, .. }) => task.role.clone(),
        (
            None,
            Work::Plan { .. }
            | Work::Reflect { .. }
            | Work::Refine { .. }
            | Work::Write { .. }
            | Work::DraftReview { .. },
        ) => rule.role.clone(),
    };
    let copy = TaskOffered { nonce: String::new(), trial: None, ..offer.clone() };
    let shadow = ShadowOf {
        trial: rule.name.clone(),
        run: offer.run,
        task: offer.task.clone(),
        generation: offer.generation,
        role,
        offer: Box::new(copy),
    };
    let time = offer.limits.task_deadline_ms;
    let own_rights = offer.rights.effective().narrowed_by(&ShadowOf::rights());
    let limits = RunLimits {
        budget,
        run_deadline_ms: time,
        planning: Planning::Never,
        writer: Writing::UnlessSingle,
        reflection: ReflectionLevel::None,
        draft_review: DraftReviewPolicy::Off,
        max_generations: 1,
        max_refinements: 0,
        max_replans: 0,
        max_nesting: 0,
        rights: Box::new(own_rights),
        trials: Vec::new(),
        ..offer.limits.clone()
    };
    Goal {
        corpus: asked.corpus.clone(),
        deadline_ms: Some(time),
        model: rule.variant.model.clone().or_else(|| offer.model.clone()),
        asked_by: asked.asked_by.clone(),
        encoding: asked.encoding,
        limits: Some(limits),
        budget,
        planning: Some(Planning::Never),
        role_name: asked.role_name.clone(),
        priority: PRIORITY,
        domain: asked.domain.clone(),
        draft_review: Some(DraftReviewPolicy::Off),
        shadow: Some(Box::new(shadow)),
        ..Goal::new(asked.text.clone())
    }
}

/// What a shadow's run begins with: the one task that it does. Nobody looks at that plan: it was looked at where the task
/// stands.
pub(in crate::decide) fn begin(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    let Some(shadow) = run.goal.shadow.as_deref() else { return };
    let Work::Execute { task, .. } = &shadow.offer.work else { return };
    let alone = PlanTask {
        role: shadow.role.clone(),
        depends_on: Vec::new(),
        pattern: Some(Pattern::Hierarchical),
        blueprint: None,
        ..task.clone()
    };
    let plan = Plan { goal: run.goal.text.clone(), tasks: [(TaskIndex::top(1), alone)].into() };
    let of = format!("trial {}: shadow of task {} of run {}", shadow.trial, shadow.task, shadow.run.short());
    decision.emit(PlanningSkipped { reason: of });
    decision.emit(PlanAdopted { plan, repairs: Vec::new() });
}

/// What this run offers, with what is told there: whoever does it is told the same.
pub(super) fn as_offered(shadow: &ShadowOf, own: TaskOffered) -> TaskOffered {
    let TaskOffered { work, goal, role_name, conversation, heard, withheld, background, trace, .. } =
        (*shadow.offer).clone();
    let mark = TrialMark { trial: shadow.trial.clone(), arm: Arm::Shadow };
    let is_leaf = matches!(own.task, TaskId::Leaf(_));
    TaskOffered {
        work,
        goal,
        role_name,
        conversation,
        heard,
        withheld,
        background,
        trace,
        may_ask_peers: false,
        chain: Vec::new(),
        trial: is_leaf.then(|| Box::new(mark)),
        ..own
    }
}
