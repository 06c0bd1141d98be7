//! What follows from what guards said: it goes on, as it was or as they changed it; it goes back to whoever made it; or they are
//! asked again, where one gave no verdict.

use std::time::Duration;

use muster_shared::flow::{Ending, FailureKind, Guarded, Product, Reflection, Report};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::event::{
    GuardsAnswered, GuardsAsked, PlanRefused, RunAborted, RunFailed, Stopped, TaskRetried, WritingBegan,
};
use muster_shared::run::{AgentKey, GUARDS_WAITED_FOR_SINCE, Held, HeldBack, Phase, RunState};
use muster_shared::time::Millis;

use super::super::builder::DecisionBuilder;
use super::super::failure::{self, Failure};
use super::super::{deadline, outcome, partial, planning, report};
use super::{brought, changed, is_stopping, waits_for_guards};

/// How long after one gave no verdict guards are asked again; twice as long each time after that, so often at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MOST_DOUBLINGS: u32 = 5;

/// Most times that a report is refused before the run fails.
const MOST_REFUSED: u32 = 3;

/// Takes in what guards said. What nobody waits for any more changes nothing.
pub(in crate::decide) fn answered(decision: &mut DecisionBuilder<'_>, number: u32, said: &Guarded) {
    let held = decision.open().and_then(|run| run.guarding.open.get(&number).cloned());
    let Some(held) = held else { return };
    if let Some(again) = asked_again(decision, &held, said) {
        return decision.emit(GuardsAsked { number, hook: held.hook, about: None, until: again });
    }
    let (hook, refused) = (held.hook, Refused::of(said));
    let product = decision.open().and_then(|run| left_of(run, &held.what, said));
    let told = Guarded { changed: None, ..said.clone() };
    let kept = product.clone().map(Box::new);
    let stops = is_stopping(decision);
    decision.emit(GuardsAnswered { number, hook, said: told, product: kept });
    match (held.what, refused) {
        (Held::Stopped(stopped), Some(_)) => stop(decision, *stopped, None),
        (Held::Stopped(stopped), None) => {
            let report = match product {
                Some(Product::Report(changed)) => changed,
                Some(_) | None => stopped.report.clone(),
            };
            stop(decision, *stopped, Some(report));
        }
        // The run ends without it.
        (Held::Outcome { .. } | Held::Report(_) | Held::BroughtPlan, _) if stops => {}
        (Held::Outcome { seq, key, .. }, Some(refused)) => refuse(decision, &key, seq, refused),
        (Held::Outcome { seq, .. }, None) => outcome::take_in_guarded(decision, seq),
        (Held::Report(report), None) => {
            let report = match product {
                Some(Product::Report(changed)) => changed,
                Some(_) | None => *report,
            };
            deliver(decision, report);
        }
        // A writer would be as little guarded.
        (Held::Report(_), Some(Refused { why, failed: true })) if waits_for_guards(decision) => {
            decision.emit(RunFailed { reason: undelivered(&why) });
        }
        // A writer is asked, and told why.
        (Held::Report(_), Some(_)) => {
            if decision.open().is_some_and(|run| run.phase == Phase::Executing) {
                decision.emit(WritingBegan { from: None });
            }
        }
        (Held::BroughtPlan, Some(Refused { why, .. })) => {
            let reason = format!("the plan that was brought was {why}");
            decision.emit(PlanRefused { reasons: vec![why] });
            decision.emit(RunFailed { reason });
        }
        (Held::BroughtPlan, None) => {
            let plan = match product {
                Some(Product::Plan(changed)) => Some(changed),
                Some(_) | None => decision.open().and_then(brought),
            };
            if let Some(plan) = plan {
                planning::take_over(decision, &plan);
            }
        }
    }
}

/// What guards left of what they were asked about; nothing where it stays as it is.
fn left_of(run: &RunState, held: &Held, said: &Guarded) -> Option<Product> {
    let is_refused = said.refusal().is_some();
    let made = |product: &Product| {
        let changed_by = said.changed.as_ref().filter(|_| !is_refused)?;
        changed(product, changed_by).ok()
    };
    match held {
        Held::Report(report) => made(&Product::Report((**report).clone())),
        Held::Stopped(stopped) => made(&Product::Report(stopped.report.clone())),
        Held::BroughtPlan => made(&Product::Plan(brought(run)?)),
        Held::Outcome { outcome, .. } => match (outcome.product.as_ref()?, is_refused) {
            // What was learnt counts without the change that it brings.
            (Product::Reflection(reflection), true) => {
                Some(Product::Reflection(Reflection { operations: Vec::new(), ..reflection.clone() }))
            }
            (product, _) => made(product),
        },
    }
}

/// Why something may not go on.
struct Refused {
    why: String,
    /// Whether that is so for want of a verdict only.
    failed: bool,
}

impl Refused {
    fn of(said: &Guarded) -> Option<Self> {
        said.refusal().map(|verdict| Self { why: verdict.to_string(), failed: verdict.failed })
    }
}

/// When guards are asked again of whom one gave no verdict: whoever made what they are asked about is not to blame, and the
/// guard may be there in a moment. Nothing where they gave one, or there is no time left.
fn asked_again(decision: &DecisionBuilder<'_>, held: &HeldBack, said: &Guarded) -> Option<Millis> {
    let run = decision.open().filter(|run| run.event_version >= GUARDS_WAITED_FOR_SINCE)?;
    said.refusal().filter(|verdict| verdict.failed)?;
    let (role, last) = match &held.what {
        Held::Stopped(_) => return None,
        Held::Outcome { key, .. } => {
            (Some(&key.role), run.tasks.get(&key.task).and_then(|task| task.deadline))
        }
        Held::Report(_) | Held::BroughtPlan => (None, None),
    };
    let ends = deadline::ends_at(run).map_or(run.deadline, |end| end.min(run.deadline));
    let pause = FIRST_PAUSE.saturating_mul(1 << held.again.min(MOST_DOUBLINGS));
    let again = decision.now().after(pause);
    let whole: u64 = run.limits.guards_at(held.hook, role, None).map(|rule| rule.timeout_ms).sum();
    (again.after(Duration::from_millis(whole)) < last.map_or(ends, |last| last.min(ends))).then_some(again)
}

/// Ends a run that was to be stopped, with the report that guards left of it; else with no more than that, and why.
pub(super) fn stop(decision: &mut DecisionBuilder<'_>, stopped: Stopped, report: Option<Report>) {
    let Stopped { why, reason, .. } = stopped;
    let report = report.or_else(|| decision.open().map(|run| partial::withheld(run, &reason)));
    decision.emit(RunAborted { why, reason, report: report.map(Box::new) });
}

/// Ends the run with the report of its only task, unless its plan has grown meanwhile.
fn deliver(decision: &mut DecisionBuilder<'_>, made: Report) {
    let is_due = |run: &&RunState| run.phase == Phase::Executing;
    let from = decision.open().filter(is_due).and_then(RunState::only_task).cloned();
    if from.is_some() {
        decision.emit(WritingBegan { from });
        report::deliver(decision, made, None);
    }
}

/// What an agent gave goes back to it, with the reason. For want of a verdict nobody is asked to make it anew.
fn refuse(decision: &mut DecisionBuilder<'_>, key: &AgentKey, seq: Seq, Refused { why, failed }: Refused) {
    let Some(run) = decision.open().filter(|run| outcome::is_current(run, key)) else { return };
    let waits = run.event_version >= GUARDS_WAITED_FOR_SINCE;
    let refused = run.guarding.reports_refused;
    let failure = |reason: String| {
        let (kind, ending) = (FailureKind::NotAccepted, Ending::Done);
        Failure { kind, ending, outcome: Some(seq), part: None, reason }
    };
    if waits {
        decision.was_refused_by_guard(seq);
    }
    match &key.task {
        TaskId::Plan if failed && waits => {
            let reason = format!("the plan was {why}");
            if !failure::spare(decision, key.generation, Some(seq), &reason) {
                decision.emit(RunFailed { reason });
            }
        }
        TaskId::Plan => planning::refuse(decision, seq, vec![why]),
        // What was learnt counts, without the change that it brings.
        TaskId::Reflect(_) => outcome::take_in_guarded(decision, seq),
        TaskId::Write if failed && waits => decision.emit(RunFailed { reason: undelivered(&why) }),
        TaskId::Write if refused >= MOST_REFUSED => {
            let reason = format!(
                "the report was {why}; it was refused {MOST_REFUSED} times. What the tasks found is kept: see `muster show`"
            );
            decision.emit(RunFailed { reason });
        }
        // So often as that, however often other things are tried.
        TaskId::Write if waits => {
            let (task, generation, reason) = (TaskId::Write, key.generation, format!("the report was {why}"));
            decision.emit(TaskRetried { task, generation, outcome: Some(seq), reason, keeps_steps: false });
        }
        TaskId::Write => failure::failed(decision, &key.task, failure(format!("the report was {why}"))),
        TaskId::Refine(_) | TaskId::Leaf(_) | TaskId::Settle(_) | TaskId::DraftReview(_) => {
            failure::failed(decision, &key.task, failure(format!("what it gave was {why}")));
        }
    }
}

fn undelivered(why: &str) -> String {
    format!("the report was {why}. What the tasks found is kept: see `muster show`")
}
