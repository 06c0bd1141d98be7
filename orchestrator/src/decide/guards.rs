//! Guards are asked about what the run is about to adopt or deliver: what an agent gave waits for their verdict, as does a
//! report that was put together by rule. What they refuse goes back to whoever made it, with their reason.

use std::time::Duration;

use muster_shared::flow::{
    DraftRemark, DraftReview, DraftVerdict, Ending, FailureKind, GuardRule, Guarded, Hook, Outcome, Product,
    Reflection, Report, Revision,
};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::event::{AskedAbout, GuardsAnswered, GuardsAsked, RunFailed, WritingBegan};
use muster_shared::run::{AgentKey, Held, Phase, RunState};
use muster_shared::time::Millis;
use serde_json::{Value, json};

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::failure::{self, Failure};
use super::{outcome, planning, report};

/// How long after all guards have had their time somebody has to bring what they said.
const GRACE: Duration = Duration::from_secs(5);

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
        }
    }
}

/// When guards are asked again, should nobody bring what they said.
pub(super) fn next_deadline(run: &RunState) -> Option<Millis> {
    run.guarding.next_asking()
}

/// Takes in what guards said. What nobody waits for any more changes nothing.
pub(super) fn answered(decision: &mut DecisionBuilder<'_>, number: u32, said: &Guarded) {
    let held = decision.open().and_then(|run| run.guarding.open.get(&number).cloned());
    let Some(held) = held else { return };
    let (hook, refused) = (held.hook, said.refused());
    let made = |product: &Product| {
        let changed_by = said.changed.as_ref().filter(|_| refused.is_none())?;
        changed(product, changed_by).ok()
    };
    let product = match &held.what {
        Held::Report(report) => made(&Product::Report((**report).clone())),
        Held::Outcome { outcome, .. } => match (&outcome.product, &refused) {
            // What was learnt counts without the change that it brings.
            (Some(Product::Reflection(reflection)), Some(_)) => {
                Some(Product::Reflection(Reflection { operations: Vec::new(), ..reflection.clone() }))
            }
            (Some(product), _) => made(product),
            (None, _) => None,
        },
    };
    let told = Guarded { changed: None, ..said.clone() };
    let kept = product.clone().map(Box::new);
    decision.emit(GuardsAnswered { number, hook, said: told, product: kept });
    match (held.what, refused) {
        (Held::Outcome { seq, key, .. }, Some(why)) => refuse(decision, &key, seq, why),
        (Held::Outcome { seq, .. }, None) => outcome::take_in_guarded(decision, seq),
        (Held::Report(report), None) => {
            let report = match product {
                Some(Product::Report(changed)) => changed,
                Some(_) | None => *report,
            };
            deliver(decision, report);
        }
        // A writer is asked, and told why.
        (Held::Report(_), Some(_)) => {
            if decision.open().is_some_and(|run| run.phase == Phase::Executing) {
                decision.emit(WritingBegan { from: None });
            }
        }
    }
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

/// What an agent gave goes back to it, with the reason.
fn refuse(decision: &mut DecisionBuilder<'_>, key: &AgentKey, seq: Seq, why: String) {
    if !decision.open().is_some_and(|run| outcome::is_current(run, key)) {
        return;
    }
    let failure = |reason: String| {
        let (kind, ending) = (FailureKind::NotAccepted, Ending::Done);
        Failure { kind, ending, outcome: Some(seq), part: None, reason }
    };
    match &key.task {
        TaskId::Plan => planning::refuse(decision, seq, vec![why]),
        // What was learnt counts, without the change that it brings.
        TaskId::Reflect(_) => outcome::take_in_guarded(decision, seq),
        TaskId::Write if decision.open().is_some_and(|run| run.guarding.reports_refused >= MOST_REFUSED) => {
            let reason = format!(
                "the report was {why}; it was refused {MOST_REFUSED} times. What the tasks found is kept: see `muster show`"
            );
            decision.emit(RunFailed { reason });
        }
        TaskId::Write => failure::failed(decision, &key.task, failure(format!("the report was {why}"))),
        TaskId::Refine(_) | TaskId::Leaf(_) | TaskId::Settle(_) | TaskId::DraftReview(_) => {
            failure::failed(decision, &key.task, failure(format!("what it gave was {why}")));
        }
    }
}

/// The report that guards refused last, for whoever writes it again.
pub(super) fn revision(run: &RunState) -> Option<Revision> {
    let (report, why) = run.guarding.refused_report.as_deref()?;
    let remark = DraftRemark { place: String::new(), text: why.chars().take(DraftReview::LONGEST).collect() };
    let review =
        DraftReview { verdict: DraftVerdict::Revise, remarks: vec![remark], ..DraftReview::default() };
    Some(Revision { draft: report.body.clone(), review })
}
