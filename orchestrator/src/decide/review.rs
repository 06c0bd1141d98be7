//! What people have a say in while a run goes on: the plan before it is carried out, and whether to go on at chosen
//! points.
//!
//! A plan under review is adopted, and nothing of it is offered. Whoever rejects it says why; the refiner changes it,
//! and it is asked about again. Whoever edits it gives the plan as it is to be.

use muster_shared::flow::question::{APPROVE, EDIT, MAX_QUESTION_BYTES, REJECT};
use muster_shared::flow::{
    About, Plan, PlanDraft, PlanTask, Question, Reply, ReviewPolicy, TaskResult, TaskStatus,
};
use muster_shared::ids::{QuestionId, TaskIndex};
use muster_shared::plan;
use muster_shared::run::event::{ErrorBudgetUsedUp, FeedbackGiven, PlanEdited};
use muster_shared::run::{QuestionEnd, QuestionState, Request, RequestAction, RunState, StopReason};

use serde_json::Value;

use super::builder::DecisionBuilder;
use super::partial::line;
use super::{approvals, control, guards, outcome, planning, questions, survey};

/// Most feedback that a question keeps, as a number of texts.
const MAX_FEEDBACK: usize = 20;

/// Has a person look at the plan that was just adopted, if that is wanted.
pub(super) fn begin(decision: &mut DecisionBuilder<'_>, repairs: &[String]) {
    let Some(run) = decision.open() else { return };
    let risks = run.plan.as_ref().map(|plan| risks(run, plan, repairs)).unwrap_or_default();
    let wanted = match run.limits.people.review {
        ReviewPolicy::Auto => false,
        ReviewPolicy::Ask => true,
        ReviewPolicy::AskIfRisky => !risks.is_empty(),
    };
    if wanted {
        ask_about_plan(decision, risks.join("; "));
    }
}

/// What speaks for a look at the plan.
fn risks(run: &RunState, plan: &Plan, repairs: &[String]) -> Vec<String> {
    let leaves: Vec<_> = plan.leaves().collect();
    let critical = leaves.iter().filter(|(_, task)| task.critical && !task.criticism.trim().is_empty());
    let critical = critical.map(|(index, task)| format!("{index} is critical: {}", task.criticism.trim()));
    let needs = leaves.iter().filter(|(_, task)| !task.needs.is_empty());
    let needs = needs.map(|(index, task)| format!("{index} needs {}", task.needs.join(", ")));
    let mut risks: Vec<String> = critical.chain(needs).collect();
    if !repairs.is_empty() {
        risks.push(format!("it had to be repaired: {}", repairs.join("; ")));
    }
    if plan.tasks.len() * 2 > usize::from(run.limits.max_tasks) {
        risks.push(format!("it has {} tasks of {} that are allowed", plan.tasks.len(), run.limits.max_tasks));
    }
    risks
}

fn ask_about_plan(decision: &mut DecisionBuilder<'_>, reason: String) {
    questions::ask(decision, About::Plan, question("Is the plan to be carried out?".to_owned(), reason));
}

fn question(text: String, reason: String) -> Question {
    Question { reason, ..Question::new(text) }
}

/// Asks whether to go on after a task that ended well, where that is wanted.
pub(super) fn after_leaf(decision: &mut DecisionBuilder<'_>, index: &TaskIndex, result: &TaskResult) {
    let Some(run) = decision.open() else { return };
    let people = &run.limits.people;
    let name = run.plan.as_ref().and_then(|plan| plan.tasks.get(index)).map_or("", |task| &task.name);
    let is_named = |milestone: &String| {
        let milestone = milestone.trim().to_lowercase();
        milestone == index.to_string() || milestone == name.trim().to_lowercase()
    };
    if people.pause_at.iter().any(is_named) {
        let text = format!("{index} {name} is reached. Is the run to go on?");
        let reason = result.conclusion.clone();
        questions::ask(decision, About::Milestone(index.clone()), question(text, reason));
    }
}

/// What somebody gives in the place of what they approve.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'a> {
    /// The plan as it is to be.
    pub(super) plan: Option<&'a PlanDraft>,
    /// The arguments of a call.
    pub(super) arguments: Option<&'a Value>,
}

/// Somebody approves what is asked about, perhaps with a plan of their own: guards are asked about that first, where there
/// are some for plans.
pub(super) fn approve(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    question: Option<QuestionId>,
    given: Given<'_>,
) -> Result<(), String> {
    let run = decision.require_open()?;
    let (id, about) = under_review(run, question)?;
    match (about, given) {
        (About::Call(_), Given { plan: None, arguments }) => {
            return approvals::approve(decision, request, id, arguments);
        }
        (About::Call(_), Given { plan: Some(_), .. }) => {
            return Err("what waits is a call of a tool, and no plan: give its arguments".to_owned());
        }
        (about, Given { arguments: Some(_), .. }) => {
            return Err(format!("{about} has no arguments: approve it without"));
        }
        (_, Given { arguments: None, .. }) => {}
    }
    let Some(edited) = given.plan else { return questions::answer(decision, request, id, APPROVE) };
    may_stand(decision, question, edited)?;
    if guards::hold_edit(decision, request)? {
        return Ok(());
    }
    let_through(decision, request, edited)
}

/// The plan of whoever approves takes the place of what was asked about.
pub(super) fn let_through(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    edited: &PlanDraft,
) -> Result<(), String> {
    if decision.open().is_none() {
        return Ok(());
    }
    let plan = may_stand(decision, asked_of(request), edited)?;
    decision.emit(PlanEdited { plan, reason: control::asked_by(request) });
    let run = decision.require_open()?;
    let (id, _) = under_review(run, asked_of(request))?;
    questions::answer(decision, request, id, APPROVE)
}

/// A person's plan, if one is asked about and nothing is wrong with it.
fn may_stand(
    decision: &mut DecisionBuilder<'_>,
    question: Option<QuestionId>,
    edited: &PlanDraft,
) -> Result<Plan, String> {
    let tools = decision.nameable_tools();
    let run = decision.require_open()?;
    let (_, about) = under_review(run, question)?;
    if about != About::Plan {
        return Err(
            "the plan is being carried out: `muster edit`, `muster skip` and `muster reject` change it"
                .to_owned(),
        );
    }
    if run.goal.blueprint.is_some() {
        return Err(
            "the plan is that of a blueprint: edit the blueprint, or reject with what is to be different"
                .to_owned(),
        );
    }
    with_skipped(run, checked(decision, run, &tools, edited)?)
}

/// A plan with the tasks that were skipped while it was asked about: what became of them stays in the record.
fn with_skipped(run: &RunState, mut plan: Plan) -> Result<Plan, String> {
    for (index, task) in run.plan.iter().flat_map(|before| &before.tasks) {
        let is_skipped = run.planned(index).is_some_and(|state| state.status == TaskStatus::Skipped);
        if !is_skipped || plan.tasks.contains_key(index) {
            continue;
        }
        let has_place =
            index.parent().is_none_or(|parent| plan.tasks.contains_key(&parent) && !plan.is_leaf(&parent));
        if !has_place {
            return Err(format!("{index} {} was skipped: leave it in the plan, it is not done", task.name));
        }
        plan.tasks.insert(index.clone(), PlanTask { depends_on: Vec::new(), ..task.clone() });
    }
    Ok(plan)
}

/// Rejects what is asked about, with the reason of the request and the feedback so far.
pub(super) fn reject(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    question: Option<QuestionId>,
) -> Result<(), String> {
    let run = decision.require_open()?;
    let (id, about) = under_review(run, question)?;
    let Some(asked) = run.questions.get(&id) else { return Ok(()) };
    let why = request.reason.trim();
    let needs_reason = !matches!(about, About::Step(_) | About::Call(_));
    if needs_reason && why.is_empty() && asked.feedback.is_empty() {
        return Err("say what is to be different: the plan is changed by that".to_owned());
    }
    if let Ok(choice) = asked.question.read(why)
        && choice != REJECT
    {
        return Err(format!("{why:?} is the choice `{choice}`, not a reason: say what is to be different"));
    }
    let text = rejection(asked, why);
    questions::answer_with(decision, request, id, text, None)
}

/// Applies an answer to an approval: one of the choices, by number or name. Any other text is feedback, and the question is
/// repeated.
pub(super) fn choose(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    id: QuestionId,
    text: &str,
) -> Result<(), String> {
    let Some(asked) = decision.open().and_then(|run| run.questions.get(&id)) else { return Ok(()) };
    let text = text.trim();
    match asked.question.read(text) {
        Ok(choice) if choice == EDIT => {
            Err("an edit needs the edited plan or arguments: `muster approve RUN --edit`. The question stays open"
                .to_owned())
        }
        Ok(choice) => {
            let text = if choice == REJECT { rejection(asked, "") } else { choice };
            questions::answer_with(decision, request, id, text, None)
        }
        // A number is meant as a choice.
        Err(_)
            if (1..=MAX_QUESTION_BYTES).contains(&text.len())
                && asked.feedback.len() < MAX_FEEDBACK
                && text.parse::<u64>().is_err() =>
        {
            let by = questions::author(request).to_owned();
            decision.emit(FeedbackGiven { id, by, text: text.to_owned() });
            Ok(())
        }
        Err(why) => Err(line(&why, 300)),
    }
}

/// Rejection as it is recorded: the feedback so far and the reason; without both, the bare choice.
fn rejection(asked: &QuestionState, why: &str) -> String {
    let given = asked.feedback.iter().map(String::as_str).chain([why]).filter(|text| !text.is_empty());
    let mut text = given.collect::<Vec<_>>().join("; ");
    text.truncate(text.floor_char_boundary(MAX_QUESTION_BYTES));
    if text.is_empty() { REJECT.to_owned() } else { text }
}

/// The question that a request names.
const fn asked_of(request: &Request) -> Option<QuestionId> {
    match &request.action {
        RequestAction::Approve { question, .. } | RequestAction::Reject { question } => *question,
        RequestAction::Answer { question, .. } => Some(*question),
        RequestAction::Cancel
        | RequestAction::Pause
        | RequestAction::Resume { .. }
        | RequestAction::Skip { .. }
        | RequestAction::Redo { .. }
        | RequestAction::Edit { .. }
        | RequestAction::SetContext { .. } => None,
    }
}

/// The question that waits to be approved: the one that is named. Where none is, the oldest, unless a call is among several:
/// whoever approves has to say which.
fn under_review(run: &RunState, named: Option<QuestionId>) -> Result<(QuestionId, About), String> {
    let open = run.open_questions().filter(|(_, asked)| asked.about.is_approved());
    let open: Vec<(QuestionId, &About)> = open.map(|(id, asked)| (id, &asked.about)).collect();
    let each = || open.iter().map(|(id, about)| format!("{id} ({about})")).collect::<Vec<_>>().join(", ");
    let is_one_of_several = open.len() > 1 && open.iter().any(|(_, about)| matches!(about, About::Call(_)));
    match (open.first(), named) {
        (None, _) => Err("nothing waits to be approved: `muster questions` shows what is asked".to_owned()),
        (Some(_), Some(named)) => {
            let found = open.iter().find(|(id, _)| *id == named);
            let found = found.map(|(id, about)| (*id, (*about).clone()));
            found
                .ok_or_else(|| format!("question {named} does not wait to be approved; these do: {}", each()))
        }
        (Some(_), None) if is_one_of_several => {
            Err(format!("several questions wait to be approved: say which (--question N) of {}", each()))
        }
        (Some((id, about)), None) => Ok((*id, (*about).clone())),
    }
}

/// Whether something waits to be approved.
pub(super) fn is_open(run: &RunState) -> bool {
    run.open_questions().any(|(_, asked)| asked.about.is_approved())
}

/// Whether an answer, as it is recorded, is an approval.
pub(super) fn approves(about: &About, text: &str) -> bool {
    about.is_approved() && text == APPROVE
}

/// A person's plan, if nothing is wrong with it.
fn checked(
    decision: &DecisionBuilder<'_>,
    run: &RunState,
    tools: &[String],
    edited: &PlanDraft,
) -> Result<Plan, String> {
    let mut roles = survey::leaf_roles(decision.capacity(), &[]);
    roles.extend(survey::roles_to_come(run, survey::roles_named(&edited.tasks)));
    let (named, values) = (survey::nameable(run, tools), survey::values(run));
    let problems = planning::wrong_with(edited, &run.limits.for_people(), &roles, named, &values);
    if !problems.is_empty() {
        return Err(format!("the edited plan cannot be used: {}", problems.join("; ")));
    }
    Ok(plan::repair(edited, &run.limits.for_people(), &roles).0)
}

/// What follows from a verdict.
pub(super) fn decided(decision: &mut DecisionBuilder<'_>, about: &About, reply: &Reply) {
    let (Some(by), Some(text)) = (&reply.by, &reply.text) else {
        let failures = decision.open().map_or(0, |run| run.responses.failures);
        return decision.emit(ErrorBudgetUsedUp { failures, asked: false });
    };
    match text.as_str() {
        APPROVE => {}
        REJECT => control::abort(decision, StopReason::Cancelled, format!("{by} rejected {about}")),
        // The limit of refinements is for what agents wish, not for what people decide.
        wish => outcome::want_change(decision, format!("{by} on {about}: {}", wish.trim())),
    }
}

/// Whether a person rejected the plan and nobody approved it since: only its change goes on.
pub(super) fn is_rejected(run: &RunState) -> bool {
    let last = run.questions.values().rev().find(|asked| asked.about == About::Plan);
    match last.and_then(|asked| asked.end.as_ref()) {
        Some(QuestionEnd::Answered(reply)) => {
            reply.by.is_some() && !matches!(reply.text.as_deref(), None | Some(APPROVE | REJECT))
        }
        Some(QuestionEnd::Withdrawn(_)) | None => false,
    }
}

/// Asks about a plan that was rejected once more, as soon as it was changed or could not be.
pub(super) fn ask_again(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open().filter(|run| is_rejected(run)) else { return };
    if survey::open_refinement(run).is_some() {
        return;
    }
    let changes = run.refining.done.last().map(|(changes, _)| changes.join("; ")).unwrap_or_default();
    let reason = if changes.is_empty() { "nothing was changed".to_owned() } else { changes };
    ask_about_plan(decision, reason);
}
