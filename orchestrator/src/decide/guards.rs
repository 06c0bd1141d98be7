//! Guards are asked about what the run is about to adopt or deliver: what an agent gave waits for their verdict, as does a
//! report that was put together by rule. What they refuse goes back to whoever made it, with their reason.

use std::time::Duration;

use muster_shared::flow::{
    DraftRemark, DraftReview, DraftVerdict, Ending, FailureKind, GuardRule, Guarded, Hook, Outcome,
    PlanDraft, Product, Reflection, Report, Revision,
};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::event::{
    AskedAbout, GuardsAnswered, GuardsAsked, PlanRefused, RunAborted, RunFailed, Stopped, TaskRetried,
    WritingBegan,
};
use muster_shared::run::{AgentKey, GUARDS_WAITED_FOR_SINCE, Held, HeldBack, Phase, RunState};
use muster_shared::time::Millis;
use serde_json::{Value, json};

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::failure::{self, Failure};
use super::{deadline, outcome, partial, planning, report};

/// How long after all guards have had their time somebody has to bring what they said.
const GRACE: Duration = Duration::from_secs(5);

/// How long after one gave no verdict guards are asked again; twice as long each time after that, so often at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MOST_DOUBLINGS: u32 = 5;

/// Most times that a report is refused before the run fails.
const MOST_REFUSED: u32 = 3;

/// At which hook guards are asked about a product, and what they are shown; nothing of what they are not asked about.
pub(crate) fn asked_about(product: &Product) -> Option<(Hook, Value)> {
    match product {
        Product::Plan(plan) if !plan.tasks.is_empty() => Some((Hook::BeforePlan, json!({ "plan": plan }))),
        Product::Refinement(operations) if !operations.is_empty() => {
            Some((Hook::BeforePlan, json!({ "refinement": operations })))
        }
        Product::Reflection(Reflection { operations, .. }) if !operations.is_empty() => {
            Some((Hook::BeforePlan, json!({ "refinement": operations })))
        }
        Product::Report(report) => Some((Hook::BeforeReport, json!({ "report": report }))),
        Product::Plan(_)
        | Product::Refinement(_)
        | Product::Reflection(_)
        | Product::Result(_)
        | Product::DraftReview(_) => None,
    }
}

/// The product with what guards made of it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn changed(product: &Product, changed: &Value) -> Result<Product, String> {
    fn part<T: serde::de::DeserializeOwned>(changed: &Value, name: &str) -> Result<T, String> {
        serde_json::from_value(changed[name].clone()).map_err(|error| format!("`{name}`: {error}"))
    }
    match product {
        Product::Plan(_) => part(changed, "plan").map(Product::Plan),
        Product::Refinement(_) => part(changed, "refinement").map(Product::Refinement),
        Product::Reflection(reflection) => {
            let operations = part(changed, "refinement")?;
            Ok(Product::Reflection(Reflection { operations, ..reflection.clone() }))
        }
        // What came of tasks is no text of the report: it stays as it is.
        Product::Report(was) => {
            let report: Report = part(changed, "report")?;
            let (offline, partial, artifacts) = (was.offline, was.partial, was.artifacts.clone());
            Ok(Product::Report(Report { offline, partial, artifacts, ..report }))
        }
        Product::Result(_) | Product::DraftReview(_) => Err("nobody was asked about it".to_owned()),
    }
}

/// Has guards asked about an outcome, if the run has some for it. Tells whether it waits for them.
pub(super) fn hold(decision: &mut DecisionBuilder<'_>, key: &AgentKey, seq: Seq, outcome: &Outcome) -> bool {
    if !has_guards(decision) {
        return false;
    }
    let product = outcome.product.as_ref().filter(|_| outcome.counts());
    let Some((product, (hook, _))) = product.and_then(|product| Some((product, asked_about(product)?)))
    else {
        return false;
    };
    let (task, generation) = (key.task.clone(), key.generation);
    let about = AskedAbout::Outcome { task, generation, outcome: seq };
    let rules = |run: &RunState| run.limits.guards_at(hook, Some(&key.role), None).cloned().collect();
    ask(
        decision,
        Question { number: 0, hook, product, role: key.role.to_string(), outcome: Some(seq) },
        about,
        rules,
    )
}

/// The same for a report that was put together by rule. One that was refused is left to a writer.
pub(super) fn hold_report(decision: &mut DecisionBuilder<'_>, report: &Report) -> bool {
    if !has_guards(decision) {
        return false;
    }
    let hook = Hook::BeforeReport;
    let rules = |run: &RunState| run.limits.guards_at(hook, None, None).cloned().collect();
    let product = Product::Report(report.clone());
    let about = AskedAbout::Report(Box::new(report.clone()));
    ask(
        decision,
        Question { number: 0, hook, product: &product, role: String::new(), outcome: None },
        about,
        rules,
    )
}

/// The same for the plan that came with the goal.
pub(super) fn hold_brought(decision: &mut DecisionBuilder<'_>, brought: &PlanDraft) -> bool {
    if !has_guards(decision) || !waits_for_guards(decision) {
        return false;
    }
    let hook = Hook::BeforePlan;
    let rules = |run: &RunState| run.limits.guards_at(hook, None, None).cloned().collect();
    let product = Product::Plan(brought.clone());
    let question = Question { number: 0, hook, product: &product, role: String::new(), outcome: None };
    ask(decision, question, AskedAbout::BroughtPlan, rules)
}

/// The same for the report of a run that is stopped: the run ends with what they say of it. Work on it ends at once.
pub(super) fn hold_stop(decision: &mut DecisionBuilder<'_>, stopped: Stopped) -> bool {
    if !has_guards(decision) || !waits_for_guards(decision) {
        return false;
    }
    if is_stopping(decision) {
        return true;
    }
    let hook = Hook::BeforeReport;
    let rules = |run: &RunState| run.limits.guards_at(hook, None, None).cloned().collect();
    let product = Product::Report(stopped.report.clone());
    let question = Question { number: 0, hook, product: &product, role: String::new(), outcome: None };
    let reason = stopped.reason.clone();
    let is_held = ask(decision, question, AskedAbout::Stopped(Box::new(stopped)), rules);
    if is_held {
        decision.effect(Effect::CancelRun { reason });
    }
    is_held
}

/// Whether the run is being stopped: nothing else becomes of it.
pub(super) fn is_stopping(decision: &DecisionBuilder<'_>) -> bool {
    decision.open().is_some_and(|run| run.guarding.stopping().is_some())
}

/// Whether nothing is decided before guards have answered.
pub(super) fn hold_all_up(decision: &DecisionBuilder<'_>) -> bool {
    is_stopping(decision) || decision.open().is_some_and(|run| run.guarding.holds_plan())
}

/// Whether reports of the run are guarded: what nobody can be asked about any more tells nothing of what was found.
pub(super) fn watch_reports(run: &RunState) -> bool {
    run.event_version >= GUARDS_WAITED_FOR_SINCE
        && run.limits.guards_at(Hook::BeforeReport, None, None).next().is_some()
}

fn waits_for_guards(decision: &DecisionBuilder<'_>) -> bool {
    decision.open().is_some_and(|run| run.event_version >= GUARDS_WAITED_FOR_SINCE)
}

fn has_guards(decision: &DecisionBuilder<'_>) -> bool {
    decision.open().is_some_and(|run| !run.limits.guards.is_empty())
}

/// Whether a report was refused: what only a rule made of results is not tried again.
pub(super) const fn was_refused(run: &RunState) -> bool {
    run.guarding.reports_refused > 0
}

struct Question<'a> {
    number: u32,
    hook: Hook,
    product: &'a Product,
    role: String,
    outcome: Option<Seq>,
}

fn ask(
    decision: &mut DecisionBuilder<'_>,
    question: Question<'_>,
    about: AskedAbout,
    rules: impl Fn(&RunState) -> Vec<GuardRule>,
) -> bool {
    let Some(run) = decision.open() else { return false };
    let rules = rules(run);
    if rules.is_empty() {
        return false;
    }
    let number = run.guarding.asked.saturating_add(1);
    put(decision, Question { number, ..question }, Some(about), rules);
    true
}

fn put(
    decision: &mut DecisionBuilder<'_>,
    Question { number, hook, product, role, outcome }: Question<'_>,
    about: Option<AskedAbout>,
    rules: Vec<GuardRule>,
) {
    let whole: u64 = rules.iter().map(|rule| rule.timeout_ms).sum();
    let until = decision.now().after(Duration::from_millis(whole)).after(GRACE);
    decision.emit(GuardsAsked { number, hook, about, until });
    let product = Box::new(product.clone());
    decision.effect(Effect::AskGuards { number, hook, role, outcome, product, rules });
}

/// Asks again where nobody brought what guards said: whoever asked has died.
pub(super) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let due = run.guarding.open.iter().filter(|(_, held)| held.until <= now);
    let due: Vec<_> = due.map(|(number, held)| (*number, held.clone())).collect();
    for (number, held) in due {
        let hook = held.hook;
        match held.what {
            Held::Outcome { seq, key, outcome } => {
                let Some(product) = outcome.product.as_ref() else { continue };
                let Some(run) = decision.open() else { return };
                let rules = run.limits.guards_at(hook, Some(&key.role), None).cloned().collect();
                let question =
                    Question { number, hook, product, role: key.role.to_string(), outcome: Some(seq) };
                put(decision, question, None, rules);
            }
            Held::Report(report) => {
                let Some(run) = decision.open() else { return };
                let rules = run.limits.guards_at(hook, None, None).cloned().collect();
                let product = Product::Report(*report);
                let question =
                    Question { number, hook, product: &product, role: String::new(), outcome: None };
                put(decision, question, None, rules);
            }
            Held::BroughtPlan => {
                let Some(run) = decision.open() else { return };
                let rules = run.limits.guards_at(hook, None, None).cloned().collect();
                let Some(product) = brought(run).map(Product::Plan) else { continue };
                let question =
                    Question { number, hook, product: &product, role: String::new(), outcome: None };
                put(decision, question, None, rules);
            }
            // Nobody waits for ever for the end of what is stopped.
            Held::Stopped(stopped) => return stop(decision, *stopped, None),
        }
    }
}

/// When guards are asked again, should nobody bring what they said.
pub(super) fn next_deadline(run: &RunState) -> Option<Millis> {
    run.guarding.next_asking()
}

/// When a run that is being stopped ends whatever guards say; nothing while it goes on.
pub(super) fn stops_at(run: &RunState) -> Option<Millis> {
    run.guarding.stopping().map(|(_, held)| held.until)
}

/// Takes in what guards said. What nobody waits for any more changes nothing.
pub(super) fn answered(decision: &mut DecisionBuilder<'_>, number: u32, said: &Guarded) {
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

/// The plan that came with the goal.
fn brought(run: &RunState) -> Option<PlanDraft> {
    run.goal.plan.as_deref().cloned()
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
    let last = match &held.what {
        Held::Stopped(_) => return None,
        Held::Outcome { key, .. } => run.tasks.get(&key.task).and_then(|task| task.deadline),
        Held::Report(_) | Held::BroughtPlan => None,
    };
    let ends = deadline::ends_at(run).map_or(run.deadline, |end| end.min(run.deadline));
    let pause = FIRST_PAUSE.saturating_mul(1 << held.again.min(MOST_DOUBLINGS));
    let again = decision.now().after(pause);
    let role = match &held.what {
        Held::Outcome { key, .. } => Some(&key.role),
        Held::Report(_) | Held::BroughtPlan | Held::Stopped(_) => None,
    };
    let whole: u64 = run.limits.guards_at(held.hook, role, None).map(|rule| rule.timeout_ms).sum();
    (again.after(Duration::from_millis(whole)) < last.map_or(ends, |last| last.min(ends))).then_some(again)
}

/// Ends a run that was to be stopped, with the report that guards left of it; else with no more than that, and why.
fn stop(decision: &mut DecisionBuilder<'_>, stopped: Stopped, report: Option<Report>) {
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

/// The report that guards refused last, for whoever writes it again.
pub(super) fn revision(run: &RunState) -> Option<Revision> {
    let (report, why) = run.guarding.refused_report.as_deref()?;
    let remark = DraftRemark { place: String::new(), text: why.chars().take(DraftReview::LONGEST).collect() };
    let review =
        DraftReview { verdict: DraftVerdict::Revise, remarks: vec![remark], ..DraftReview::default() };
    Some(Revision { draft: report.body.clone(), review })
}
