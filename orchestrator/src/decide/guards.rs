//! Guards are asked about what the run is about to adopt or deliver: what an agent gave waits for their verdict, as does
//! what people give and what is put together by rule. What they refuse goes back to whoever made it, with their reason.

mod ends;
mod plans;
mod verdict;

use std::time::Duration;

use muster_shared::flow::{
    DraftRemark, DraftReview, DraftVerdict, GuardRule, Hook, Outcome, Product, Reflection, Report, Revision,
};
use muster_shared::ids::{Role, Seq};
use muster_shared::run::event::{AskedAbout, GuardsAsked};
use muster_shared::run::{AgentKey, Held, RunState};
use muster_shared::time::Millis;
use serde_json::{Value, json};

pub(super) use self::ends::{hold_end, hold_stop, is_stopping, stops_at};
pub(super) use self::plans::{
    cannot_be_carried_out, check_free, hold_brought, hold_edit, hold_hand_over, hold_steps, hold_taken_over,
};
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
    let product = outcome.product.as_ref().filter(|_| outcome.counts());
    let Some(product) = product.filter(|_| has_guards(decision)) else { return false };
    let (task, generation) = (key.task.clone(), key.generation);
    let about = AskedAbout::Outcome { task, generation, outcome: seq };
    ask(decision, Question { product, maker: Some(key.role.clone()), outcome: Some(seq) }, about)
}

/// The same for a report that was put together by rule. One that was refused is left to a writer.
pub(super) fn hold_report(decision: &mut DecisionBuilder<'_>, report: &Report) -> bool {
    if !has_guards(decision) {
        return false;
    }
    let about = AskedAbout::Report(Box::new(report.clone()));
    ask(decision, Question::of_nobody(&Product::Report(report.clone())), about)
}

/// Whether nothing is decided before guards have answered.
pub(super) fn hold_all_up(decision: &DecisionBuilder<'_>) -> bool {
    is_stopping(decision) || decision.open().is_some_and(|run| run.guarding.holds_plan())
}

fn has_guards(decision: &DecisionBuilder<'_>) -> bool {
    decision.open().is_some_and(|run| !run.limits.guards.is_empty())
}

/// Whether a report was refused: what only a rule made of results is not tried again.
pub(super) const fn was_refused(run: &RunState) -> bool {
    run.guarding.reports_refused > 0
}

/// What guards are asked.
struct Question<'a> {
    product: &'a Product,
    /// The role of the agent that made it; nothing where none did.
    maker: Option<Role>,
    outcome: Option<Seq>,
}

impl<'a> Question<'a> {
    /// About what no agent gave.
    const fn of_nobody(product: &'a Product) -> Self {
        Self { product, maker: None, outcome: None }
    }
}

/// Asks the guards of the run. Tells whether there are any: what there is nothing of is asked of nobody, and nobody would
/// answer.
fn ask(decision: &mut DecisionBuilder<'_>, question: Question<'_>, about: AskedAbout) -> bool {
    let Some(run) = decision.open() else { return false };
    let Some((hook, _)) = asked_about(question.product) else { return false };
    let rules = rules(run, hook, question.maker.as_ref());
    if rules.is_empty() {
        return false;
    }
    let number = run.guarding.asked.saturating_add(1);
    put(decision, number, hook, question, Some(about), rules);
    true
}

/// The guards of a hook that are asked about what agents of this role give, or what none gave.
fn rules(run: &RunState, hook: Hook, maker: Option<&Role>) -> Vec<GuardRule> {
    run.limits.guards_at(hook, maker, None).cloned().collect()
}

fn put(
    decision: &mut DecisionBuilder<'_>,
    number: u32,
    hook: Hook,
    Question { product, maker, outcome }: Question<'_>,
    about: Option<AskedAbout>,
    rules: Vec<GuardRule>,
) {
    let whole: u64 = rules.iter().map(|rule| rule.timeout_ms).sum();
    let until = decision.now().after(Duration::from_millis(whole)).after(GRACE);
    decision.emit(GuardsAsked { number, hook, about, until });
    let (role, product) = (maker.map(|role| role.to_string()).unwrap_or_default(), Box::new(product.clone()));
    decision.effect(Effect::AskGuards { number, hook, role, outcome, product, rules });
}

/// Asks again where nobody brought what guards said: whoever asked has died.
pub(super) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let due = run.guarding.open.iter().filter(|(_, held)| held.until <= now);
    let due: Vec<_> = due.map(|(number, held)| (*number, held.clone())).collect();
    for (number, held) in due {
        match &held.what {
            // Nobody waits for ever for the end of what is stopped.
            Held::Stopped(stopped) => return ends::stop(decision, stopped, None),
            Held::GivenUp(given_up) => return ends::give_up(decision, given_up, None),
            Held::Outcome { .. }
            | Held::Report(_)
            | Held::BroughtPlan
            | Held::TakenOver
            | Held::Steps(_)
            | Held::Edit(_)
            | Held::HandOver(_) => {}
        }
        let Some(run) = decision.open() else { return };
        let Some(product) = product_of(run, &held.what) else { continue };
        let maker = maker_of(run, &held.what);
        let rules = rules(run, held.hook, maker.as_ref());
        let question = Question { product: &product, maker, outcome: outcome_of(&held.what) };
        put(decision, number, held.hook, question, None, rules);
    }
}

/// What guards are shown of what waits for them.
fn product_of(run: &RunState, held: &Held) -> Option<Product> {
    match held {
        Held::Outcome { outcome, .. } => outcome.product.clone(),
        Held::Report(report) => Some(Product::Report((**report).clone())),
        Held::BroughtPlan => run.goal.plan.as_deref().cloned().map(Product::Plan),
        Held::TakenOver => plans::taken_over(run).map(Product::Plan),
        Held::Steps(steps) => plans::of_steps(run, steps).map(Product::Plan),
        Held::Edit(request) => plans::of_edit(run, request).map(Product::Plan),
        Held::HandOver(wanted) => Some(Product::Plan(plans::one(&wanted.part))),
        Held::Stopped(stopped) => Some(Product::Report(stopped.report.clone())),
        Held::GivenUp(given_up) => given_up.given_up.report.as_deref().cloned().map(Product::Report),
    }
}

/// The role of the agent that made it, where one did.
fn maker_of(run: &RunState, held: &Held) -> Option<Role> {
    match held {
        Held::Outcome { key, .. } => Some(key.role.clone()),
        Held::HandOver(wanted) => plans::role_of(run, &wanted.task),
        Held::Report(_)
        | Held::BroughtPlan
        | Held::TakenOver
        | Held::Steps(_)
        | Held::Edit(_)
        | Held::Stopped(_)
        | Held::GivenUp(_) => None,
    }
}

/// Where the outcome stands that it is, if it is one.
const fn outcome_of(held: &Held) -> Option<Seq> {
    if let Held::Outcome { seq, .. } = held { Some(*seq) } else { None }
}

/// When guards are asked again, should nobody bring what they said.
pub(super) fn next_deadline(run: &RunState) -> Option<Millis> {
    run.guarding.next_asking()
}

/// The report that guards refused last, for whoever writes it again.
pub(super) fn revision(run: &RunState) -> Option<Revision> {
    let (report, why) = run.guarding.refused_report.as_deref()?;
    let remark = DraftRemark { place: String::new(), text: why.chars().take(DraftReview::LONGEST).collect() };
    let review =
        DraftReview { verdict: DraftVerdict::Revise, remarks: vec![remark], ..DraftReview::default() };
    Some(Revision { draft: report.body.clone(), review })
}
