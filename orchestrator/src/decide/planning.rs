//! Plans: whether one is asked for, and what follows from a planner's proposal. It is adopted, asked for again with the
//! reasons, or repaired by rule; what earlier runs taught improves it before it is carried out.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::{
    About, Ending, FailureKind, Goal, Plan, PlanDraft, PlanTask, Planning, Question, ReviewPolicy, RunLimits,
    Writing,
};
use muster_shared::ids::{Role, Seq, TaskId, TaskIndex};
use muster_shared::plan::{self, PlanProblem, Values, complexity, tools};
use muster_shared::run::event::{
    GoalUncovered, PlanAdopted, PlanDrafted, PlanIterated, PlanRefused, PlanningSkipped, RunFailed,
    TaskRetried,
};
use muster_shared::run::{Phase, RunState};

use super::builder::DecisionBuilder;
use super::failure::{self, Failure};
use super::outcome::completed;
use super::trials::shadow;
use super::{guards, questions, replan, review, survey};

/// Most questions about what a goal means.
const MOST_QUESTIONS: usize = 3;

/// What a new run begins with: a plan that the person brought, a single task where no plan is needed, or nothing yet.
pub(super) fn begin(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    if run.goal.shadow.is_some() {
        return shadow::begin(decision);
    }
    if run.goal.blueprint.is_some() {
        return;
    }
    let goal = run.goal.clone();
    match &goal.plan {
        Some(brought) => {
            if !guards::hold_brought(decision, brought) {
                take_over(decision, brought);
            }
        }
        None => {
            let role = whoever_does(&goal, &run.limits);
            if let Some(reason) = needs_no_plan(run) {
                decision.emit(PlanningSkipped { reason });
                let plan = complexity::single_task(&goal, role);
                decision.emit(PlanAdopted { plan, repairs: Vec::new() });
                review::begin(decision, &[]);
            }
        }
    }
}

/// What a fork begins with: the plan that it took over. Where its origin still waited for guards to look at what the person
/// brought, it begins with that.
pub(super) fn go_on(decision: &mut DecisionBuilder<'_>) {
    let waited =
        |run: &RunState| run.phase == Phase::Planning && run.plan.is_none() && run.goal.plan.is_some();
    if decision.open().is_some_and(waited) {
        begin(decision);
    } else {
        guards::hold_taken_over(decision);
    }
}

fn needs_no_plan(run: &RunState) -> Option<String> {
    match run.limits.planning {
        // Whoever wants to see the plan wants one to be made.
        Planning::Auto if run.limits.people.review == ReviewPolicy::Ask => None,
        Planning::Auto => match complexity::separable(&run.goal) {
            Some(_) => None,
            None => Some("one agent starts with it: its goal lists no separate items".to_owned()),
        },
        Planning::Always => None,
        Planning::Never => Some("no plan is wanted: one task does the whole".to_owned()),
    }
}

/// Who does a goal without a plan. One whose result is the report has to be able to do all that is to be done.
fn whoever_does(goal: &Goal, limits: &RunLimits) -> Role {
    let reads_only = goal.corpus.is_some() && limits.writer == Writing::Always;
    if reads_only { Role::Researcher } else { Role::Worker }
}

/// A plan that the person brought is carried out as it is, or not at all.
pub(super) fn take_over(decision: &mut DecisionBuilder<'_>, brought: &PlanDraft) {
    let tools = decision.nameable_tools();
    let Some(run) = decision.open() else { return };
    let mut roles = survey::leaf_roles(decision.capacity(), &[]);
    roles.extend(survey::roles_to_come(run, survey::roles_named(&brought.tasks)));
    let limits = run.limits.for_people();
    let named = survey::nameable(run, &tools);
    let reasons = wrong_with(brought, &limits, &roles, named, &survey::values(run));
    if reasons.is_empty() {
        // What is in order is left as the person wrote it.
        let plan = plan::as_given(brought);
        decision.emit(PlanningSkipped { reason: "a plan was brought with the goal".to_owned() });
        decision.emit(PlanAdopted { plan, repairs: Vec::new() });
        return review::begin(decision, &[]);
    }
    let reason = format!("the plan that was brought cannot be carried out: {}", reasons.join("; "));
    decision.emit(PlanRefused { reasons });
    decision.emit(RunFailed { reason });
}

/// Judges a plan. The first one that is refused is asked for again; later ones are repaired as far as rules can.
pub(super) fn propose(decision: &mut DecisionBuilder<'_>, seq: Seq, proposal: &PlanDraft) {
    let Some(run) = decision.open() else { return };
    if run.planning.is_replanning() {
        return replan::propose(decision, seq, proposal);
    }
    if proposal.tasks.is_empty() && !proposal.questions.is_empty() {
        return ask_about_goal(decision, seq, &proposal.questions);
    }
    let limits = run.limits.for_planners();
    let may_ask_again = may_ask_again(run);
    let values = survey::values(run);
    let specialists = decision.situation().specialists;
    let roles = survey::roles_for_planners(run, decision.capacity(), specialists);
    let mut proposal = proposal.clone();
    plan::matching::give_to_specialists(&mut proposal, &roles, specialists);
    let tools = decision.nameable_tools();
    let Some(run) = decision.open() else { return };
    let named = survey::nameable(run, &tools);
    let wrong = wrong_with(&proposal, &limits, &roles, named, &values);
    if !wrong.is_empty() && may_ask_again {
        return refuse(decision, seq, wrong);
    }
    let mut repairs = tools::fit(&mut proposal, named);
    let (plan, mended) = plan::repair_knowing(&proposal, &limits, &roles, Some(&values));
    repairs.extend(mended);
    let (plan, repairs) = or_single(run, plan, repairs);
    let left = plan::check_plan(&plan, &limits, &roles);
    if left.is_empty() {
        sound(decision, seq, (plan, proposal.uncovered), repairs);
    } else {
        refuse(decision, seq, reasons(&left));
    }
}

/// Where nothing that could be done is left of a plan, one task does the whole: asking on and on costs more.
fn or_single(run: &RunState, plan: Plan, mut repairs: Vec<String>) -> (Plan, Vec<String>) {
    if !plan.tasks.is_empty() {
        return (plan, repairs);
    }
    repairs.push("the plan held nothing that could be done: one task does the whole".to_owned());
    (complexity::single_task(&run.goal, whoever_does(&run.goal, &run.limits)), repairs)
}

/// The planner wants to know what the goal means (P8). People are asked once, if that is wanted; the planner goes on
/// with their answers, else with what it assumes.
fn ask_about_goal(decision: &mut DecisionBuilder<'_>, seq: Seq, wanted: &[String]) {
    let Some(run) = decision.open() else { return };
    let asked_before = run.questions.values().any(|asked| asked.about == About::Goal);
    if !run.limits.people.ask_about_goal || asked_before {
        let reason = "nobody can be asked what the goal means: plan for what is most likely meant, and say in the goals of \
                      the tasks what you assume";
        return refuse(decision, seq, vec![reason.to_owned()]);
    }
    let Some(generation) = run.tasks.get(&TaskId::Plan).map(|task| task.generation) else { return };
    let reason = "what the goal means is asked first".to_owned();
    decision.emit(TaskRetried {
        task: TaskId::Plan,
        generation,
        outcome: Some(seq),
        reason,
        keeps_steps: false,
    });
    for text in wanted.iter().take(MOST_QUESTIONS) {
        questions::ask(decision, About::Goal, Question::new(text.clone()));
    }
}

/// Whether a plan that is not in order is asked for again, with the reasons.
pub(super) fn may_ask_again(run: &RunState) -> bool {
    run.planning.refused.len() <= run.planning.refused_before && run.limits.max_generations > 1
}

/// All that is wrong with a plan as somebody proposes it.
pub(super) fn wrong_with(
    proposal: &PlanDraft,
    limits: &RunLimits,
    roles: &[Role],
    known: tools::Nameable<'_>,
    values: &Values,
) -> Vec<String> {
    let mut problems = plan::check(proposal, limits, roles);
    problems.extend(values.unwritten_in(proposal, limits));
    let mut wrong = reasons(&problems);
    wrong.extend(tools::problems(proposal, known));
    wrong
}

/// Tasks of a plan as guards changed them, if the plan is as good as it was.
///
/// # Errors
/// What is wrong with it that was not wrong before.
pub(super) fn changed(
    decision: &mut DecisionBuilder<'_>,
    before: &Plan,
    these: &BTreeSet<TaskIndex>,
    changed: &PlanDraft,
) -> Result<BTreeMap<TaskIndex, PlanTask>, String> {
    let tasks = plan::reworded(before, these, changed)?;
    let known = decision.nameable_tools();
    let roles = survey::leaf_roles(decision.capacity(), decision.situation().specialists);
    let Some(run) = decision.open() else { return Ok(tasks) };
    let (named, values) = (survey::nameable(run, &known), survey::values(run));
    let wrong = |plan: &Plan| {
        let mut problems = plan::check_plan(plan, &run.limits, &roles);
        problems.extend(values.unwritten(plan));
        let mut wrong = reasons(&problems);
        wrong.extend(tools::problems(&plan::as_draft(plan), named));
        wrong
    };
    let mut after = before.clone();
    after.tasks.extend(tasks.clone());
    let before = wrong(before);
    let new: Vec<String> = wrong(&after).into_iter().filter(|problem| !before.contains(problem)).collect();
    if new.is_empty() { Ok(tasks) } else { Err(new.join("; ")) }
}

fn reasons(problems: &[PlanProblem]) -> Vec<String> {
    problems.iter().map(PlanProblem::to_string).collect()
}

/// A plan that is in order is adopted, or first improved from what earlier runs taught.
fn sound(
    decision: &mut DecisionBuilder<'_>,
    seq: Seq,
    (plan, uncovered): (Plan, Vec<String>),
    repairs: Vec<String>,
) {
    completed(decision, TaskId::Plan, seq);
    let Some(run) = decision.open() else { return };
    if let Some(before) = run.planning.first_draft().cloned() {
        let (lessons, changes) = (survey::taught(run), differences(&before, &plan));
        decision.emit(PlanIterated { lessons, changes });
        return adopt(decision, plan, repairs, uncovered);
    }
    if run.limits.iterate_plans && !survey::taught(run).is_empty() {
        return decision.emit(PlanDrafted { plan, repairs });
    }
    adopt(decision, plan, repairs, uncovered);
}

#[expect(clippy::needless_pass_by_value, reason = "it is the end of them")]
fn adopt(decision: &mut DecisionBuilder<'_>, plan: Plan, repairs: Vec<String>, uncovered: Vec<String>) {
    decision.emit(PlanAdopted { plan, repairs: repairs.clone() });
    if !uncovered.is_empty() {
        decision.emit(GoalUncovered { parts: uncovered });
    }
    review::begin(decision, &repairs);
}

/// Carries the draft out as it is: it could not be improved.
pub(super) fn adopt_draft(decision: &mut DecisionBuilder<'_>, reason: &str) -> bool {
    let Some(plan) = decision.open().and_then(|run| run.planning.first_draft().cloned()) else {
        return false;
    };
    adopt(decision, plan, vec![format!("it could not be improved from earlier runs: {reason}")], Vec::new());
    true
}

/// What is different in the second plan, one line each.
fn differences(before: &Plan, after: &Plan) -> Vec<String> {
    let names = |plan: &Plan| plan.tasks.values().map(|task| task.name.clone()).collect::<Vec<_>>();
    let (old, new) = (names(before), names(after));
    let gone = before.tasks.iter().filter(|(_, task)| !new.contains(&task.name));
    let gone = gone.map(|(index, task)| format!("left out {index} {}", task.name));
    let added = after.tasks.iter().filter(|(_, task)| !old.contains(&task.name));
    let added = added.map(|(index, task)| format!("new task {index} {}", task.name));
    let changed = after
        .tasks
        .iter()
        .filter(|(_, task)| before.tasks.values().any(|other| other.name == task.name && other != *task));
    let changed = changed.map(|(index, task)| format!("changed {index} {}", task.name));
    gone.chain(added).chain(changed).collect()
}

/// Has the planner asked again, with the reasons.
pub(super) fn refuse(decision: &mut DecisionBuilder<'_>, seq: Seq, reasons: Vec<String>) {
    let reason = format!("the plan was refused: {}", reasons.join("; "));
    decision.emit(PlanRefused { reasons });
    let (kind, ending) = (FailureKind::PlanRefused, Ending::Done);
    let failure = Failure { kind, ending, outcome: Some(seq), part: None, reason };
    failure::failed(decision, &TaskId::Plan, failure);
}
