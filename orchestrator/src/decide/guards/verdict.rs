//! What follows from what guards said: it goes on, as it was or as they changed it; it goes back to whoever made it; or they are
//! asked again, where one gave no verdict.

use std::time::Duration;

use muster_shared::flow::{Ending, FailureKind, Guarded, Product, Reflection, Report};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::event::{GuardsAnswered, GuardsAsked, RunFailed, TaskRetried, WritingBegan};
use muster_shared::run::{AgentKey, Held, HeldBack, Phase, RunState};
use muster_shared::time::Millis;

use super::super::builder::DecisionBuilder;
use super::super::failure::{self, Failure};
use super::super::{deadline, draft_review, outcome, planning, report};
use super::{changed, ends, is_stopping, plans, product_of};

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
    let left = decision.open().and_then(|run| left_of(run, &held.what, said));
    let told = Guarded { changed: None, ..said.clone() };
    let product = left.clone().map(Box::new);
    let stops = is_stopping(decision);
    decision.emit(GuardsAnswered { number, hook, said: told, product });
    match held.what {
        Held::Stopped(_) | Held::GivenUp(_) => ends::answered(decision, &held.what, left, refused.is_some()),
        // The run ends without it.
        Held::Outcome { .. }
        | Held::Report(_)
        | Held::BroughtPlan
        | Held::TakenOver
        | Held::Steps(_)
        | Held::Edit(_)
        | Held::HandOver(_)
            if stops => {}
        Held::Outcome { seq, key, .. } => match refused {
            Some(refused) => refuse(decision, &key, seq, refused),
            None => outcome::take_in_guarded(decision, seq),
        },
        Held::Report(report) => of_report(decision, *report, left, refused),
        what @ (Held::BroughtPlan | Held::TakenOver | Held::Steps(_) | Held::Edit(_) | Held::HandOver(_)) => {
            plans::answered(decision, what, left, refused)
        }
    }
}

/// What follows for a report that was put together by rule.
fn of_report(
    decision: &mut DecisionBuilder<'_>,
    report: Report,
    left: Option<Product>,
    refused: Option<Refused>,
) {
    match refused {
        None => {
            let report = match left {
                Some(Product::Report(changed)) => changed,
                Some(_) | None => report,
            };
            deliver(decision, report);
        }
        // A writer would be as little guarded.
        Some(Refused { why, failed: true }) => {
            decision.emit(RunFailed { reason: undelivered(&why) });
        }
        // A writer is asked, and told why.
        Some(_) => {
            if decision.open().is_some_and(|run| run.phase == Phase::Executing) {
                decision.emit(WritingBegan { from: None });
            }
        }
    }
}

/// What guards left of what they were asked about; nothing where it stays as it is.
fn left_of(run: &RunState, held: &Held, said: &Guarded) -> Option<Product> {
    let product = product_of(run, held)?;
    match (product, said.refusal().is_some()) {
        // What was learnt counts without the change that it brings.
        (Product::Reflection(reflection), true) => {
            Some(Product::Reflection(Reflection { operations: Vec::new(), ..reflection }))
        }
        (_, true) => None,
        (product, false) => changed(&product, said.changed.as_ref()?).ok(),
    }
}

/// Why something may not go on.
pub(super) struct Refused {
    pub(super) why: String,
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
    let run = decision.open()?;
    said.refusal().filter(|verdict| verdict.failed)?;
    let (role, last) = match &held.what {
        // Nobody waits for ever for the end of what is stopped; whoever hands work over can do it by himself.
        Held::Stopped(_) | Held::GivenUp(_) | Held::HandOver(_) => return None,
        Held::Outcome { key, .. } => {
            (Some(&key.role), run.tasks.get(&key.task).and_then(|task| task.deadline))
        }
        Held::Report(_) | Held::BroughtPlan | Held::TakenOver | Held::Steps(_) | Held::Edit(_) => {
            (None, None)
        }
    };
    let ends = deadline::ends_at(run).map_or(run.deadline, |end| end.min(run.deadline));
    let pause = FIRST_PAUSE.saturating_mul(1 << held.again.min(MOST_DOUBLINGS));
    let again = decision.now().after(pause);
    let whole: u64 = run.limits.guards_at(held.hook, role, None).map(|rule| rule.timeout_ms).sum();
    (again.after(Duration::from_millis(whole)) < last.map_or(ends, |last| last.min(ends))).then_some(again)
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
    let refused = run.guarding.reports_refused;
    let failure = |reason: String| {
        let (kind, ending) = (FailureKind::NotAccepted, Ending::Done);
        Failure { kind, ending, outcome: Some(seq), part: None, reason }
    };
    decision.was_refused_by_guard(seq);
    match &key.task {
        TaskId::Plan if failed => {
            let reason = format!("the plan was {why}");
            if !failure::spare(decision, key.generation, Some(seq), &reason) {
                decision.emit(RunFailed { reason });
            }
        }
        TaskId::Plan => planning::refuse(decision, seq, vec![why]),
        // What was learnt counts, without the change that it brings.
        TaskId::Reflect(_) => outcome::take_in_guarded(decision, seq),
        TaskId::Write if failed => undeliverable(decision, undelivered(&why)),
        TaskId::Write if refused >= MOST_REFUSED => {
            let reason = format!(
                "the report was {why}; it was refused {MOST_REFUSED} times. What the tasks found is kept: see `muster show`"
            );
            undeliverable(decision, reason);
        }
        // So often as that, however often other things are tried.
        TaskId::Write => {
            let (task, generation, reason) = (TaskId::Write, key.generation, format!("the report was {why}"));
            decision.emit(TaskRetried { task, generation, outcome: Some(seq), reason, keeps_steps: false });
        }
        TaskId::Refine(_) | TaskId::Leaf(_) | TaskId::Settle(_) | TaskId::DraftReview(_) => {
            failure::failed(decision, &key.task, failure(format!("what it gave was {why}")));
        }
    }
}

/// There will be no other report: the one that guards let through before, and whose review asked for more, is delivered.
fn undeliverable(decision: &mut DecisionBuilder<'_>, reason: String) {
    if !draft_review::rescue(decision, &reason) {
        decision.emit(RunFailed { reason });
    }
}

fn undelivered(why: &str) -> String {
    format!("the report was {why}. What the tasks found is kept: see `muster show`")
}
