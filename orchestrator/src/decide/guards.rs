//! Guards are asked about what the run is about to adopt or deliver: what an agent gave waits for their verdict, as does a
//! report that was put together by rule. What they refuse goes back to whoever made it, with their reason.

mod verdict;

use std::time::Duration;

use muster_shared::flow::{
    DraftRemark, DraftReview, DraftVerdict, GuardRule, Hook, Outcome, PlanDraft, Product, Reflection, Report,
    Revision,
};
use muster_shared::ids::Seq;
use muster_shared::run::event::{AskedAbout, GuardsAsked, Stopped};
use muster_shared::run::{AgentKey, GUARDS_WAITED_FOR_SINCE, Held, RunState};
use muster_shared::time::Millis;
use serde_json::{Value, json};

pub(super) use self::verdict::answered;
use super::builder::DecisionBuilder;
use super::effect::Effect;

/// How long after all guards have had their time somebody has to bring what they said.
const GRACE: Duration = Duration::from_secs(5);

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
    let about = AskedAbout::Report(Box::new(report.clone()));
    ask_about(decision, Hook::BeforeReport, &Product::Report(report.clone()), about)
}

/// Has guards asked about what no agent gave. Tells whether it waits for them.
fn ask_about(decision: &mut DecisionBuilder<'_>, hook: Hook, product: &Product, about: AskedAbout) -> bool {
    ask(decision, Question::of_nobody(0, hook, product), about, |run| rules_of_nobody(run, hook))
}

/// The guards of a hook that are asked about what no agent gave.
fn rules_of_nobody(run: &RunState, hook: Hook) -> Vec<GuardRule> {
    run.limits.guards_at(hook, None, None).cloned().collect()
}

/// The same for the plan that came with the goal.
pub(super) fn hold_brought(decision: &mut DecisionBuilder<'_>, brought: &PlanDraft) -> bool {
    has_guards(decision)
        && waits_for_guards(decision)
        && ask_about(decision, Hook::BeforePlan, &Product::Plan(brought.clone()), AskedAbout::BroughtPlan)
}

/// The same for the report of a run that is stopped: the run ends with what they say of it. Work on it ends at once.
pub(super) fn hold_stop(decision: &mut DecisionBuilder<'_>, stopped: Stopped) -> bool {
    if !has_guards(decision) || !waits_for_guards(decision) {
        return false;
    }
    if is_stopping(decision) {
        return true;
    }
    let (product, reason) = (Product::Report(stopped.report.clone()), stopped.reason.clone());
    let is_held = ask_about(decision, Hook::BeforeReport, &product, AskedAbout::Stopped(Box::new(stopped)));
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

impl<'a> Question<'a> {
    /// About what no agent gave.
    const fn of_nobody(number: u32, hook: Hook, product: &'a Product) -> Self {
        Self { number, hook, product, role: String::new(), outcome: None }
    }
}

fn ask(
    decision: &mut DecisionBuilder<'_>,
    question: Question<'_>,
    about: AskedAbout,
    rules: impl Fn(&RunState) -> Vec<GuardRule>,
) -> bool {
    let Some(run) = decision.open() else { return false };
    let rules = rules(run);
    // What there is nothing of is asked of nobody, and nobody would answer.
    if rules.is_empty() || asked_about(question.product).is_none() {
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
                let (rules, product) = (rules_of_nobody(run, hook), Product::Report(*report));
                put(decision, Question::of_nobody(number, hook, &product), None, rules);
            }
            Held::BroughtPlan => {
                let Some(run) = decision.open() else { return };
                let Some(product) = brought(run).map(Product::Plan) else { continue };
                let rules = rules_of_nobody(run, hook);
                put(decision, Question::of_nobody(number, hook, &product), None, rules);
            }
            // Nobody waits for ever for the end of what is stopped.
            Held::Stopped(stopped) => return verdict::stop(decision, *stopped, None),
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

/// The plan that came with the goal.
fn brought(run: &RunState) -> Option<PlanDraft> {
    run.goal.plan.as_deref().cloned()
}

/// The report that guards refused last, for whoever writes it again.
pub(super) fn revision(run: &RunState) -> Option<Revision> {
    let (report, why) = run.guarding.refused_report.as_deref()?;
    let remark = DraftRemark { place: String::new(), text: why.chars().take(DraftReview::LONGEST).collect() };
    let review =
        DraftReview { verdict: DraftVerdict::Revise, remarks: vec![remark], ..DraftReview::default() };
    Some(Revision { draft: report.body.clone(), review })
}
