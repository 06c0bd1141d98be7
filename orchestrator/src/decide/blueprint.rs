//! Runs by a blueprint (R7): there is no planner. The plan grows by the tasks of each step as soon as it is known
//! what becomes of the step.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::blueprint::{self, BlueprintProgress, Ended, StepOutcome};
use muster_shared::flow::{About, Goal, Plan, PlanDraft, PlanTask, Question, Report, RunLimits, TaskStatus};
use muster_shared::ids::TaskIndex;
use muster_shared::run::event::{PlanAdopted, PlanRefused, RunFailed, StepsExpanded};
use muster_shared::run::{Phase, QuestionEnd, RunState};
use muster_shared::text::beginning;
use muster_shared::wire::codec::MAX_MESSAGE_BYTES;

use super::builder::DecisionBuilder;
use super::{guards, planning, questions, replan, review, survey};

/// What a person says who lets a step begin.
const YES: &str = "yes";

/// The limits of a run by its goal: what was planned beforehand is not refined.
pub(super) fn limits(goal: &Goal, limits: &RunLimits) -> RunLimits {
    let max_refinements = if goal.blueprint.is_some() { 0 } else { limits.max_refinements };
    RunLimits { max_refinements, ..limits.clone() }
}

/// Begins with the run's blueprint, or fails the run with what is wrong with it: nothing has been done yet.
pub(super) fn begin(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    let Some(filled) = &run.goal.blueprint else { return };
    let mut roles = survey::leaf_roles(decision.capacity(), &[]);
    let steps = filled.blueprint.steps.iter();
    let named = steps.flat_map(|step| {
        step.role.iter().chain(step.fallback.iter().filter_map(|other| other.role.as_ref()))
    });
    roles.extend(survey::roles_to_come(run, named.map(String::as_str)));
    let problems = blueprint::check(&filled.blueprint).into_iter();
    let problems = problems.chain(blueprint::check_limits(&filled.blueprint, &run.limits, &roles));
    let mut wrong: Vec<String> = problems.map(|problem| problem.to_string()).collect();
    if let Err(errors) = blueprint::fill(&filled.blueprint, &filled.params) {
        wrong.extend(errors.iter().map(ToString::to_string));
    }
    if wrong.is_empty() {
        let problems = blueprint::check_lists(filled, &run.limits).into_iter();
        wrong.extend(problems.map(|problem| problem.to_string()));
    }
    if !wrong.is_empty() {
        let reason =
            format!("the blueprint {} cannot be used here: {}", filled.blueprint.name, wrong.join("; "));
        return decision.emit(RunFailed { reason: recordable(reason) });
    }
    let plan = Plan { goal: run.goal.text.clone(), tasks: BTreeMap::new() };
    decision.emit(PlanAdopted { plan, repairs: Vec::new() });
    review::begin(decision, &[]);
}

/// Longest reason that is recorded as it is: no message with a longer one could be written, so none was.
const MOST_REASON: usize = MAX_MESSAGE_BYTES - 64 * 1024;
/// What is left of a longer one, in characters.
const SHORT_REASON: usize = 10_000;

/// A reason that goes into the record: each problem may quote the blueprint, and all of them more than a message holds.
fn recordable(reason: String) -> String {
    if reason.len() > MOST_REASON { beginning(&reason, SHORT_REASON) } else { reason }
}

/// Adds what follows from what has ended. Tells whether anything was decided.
pub(super) fn expand(decision: &mut DecisionBuilder<'_>) -> bool {
    let may = |run: &&RunState| run.phase == Phase::Executing && run.control.paused.is_none();
    let Some(run) = decision.open().filter(may) else { return false };
    let (Some(filled), Some(plan)) = (&run.goal.blueprint, &run.plan) else { return false };
    // What comes next is found once it is known what becomes of these.
    if run.guarding.holds_steps() {
        return false;
    }
    if filled.blueprint.steps.iter().all(|step| is_closed(run, &step.id, step.fallback.is_empty())) {
        return false;
    }
    let ended = ended(run, plan);
    let approvals = approvals(run);
    let progress = BlueprintProgress {
        limits: &run.limits,
        plan,
        step_outcomes: &run.planning.expansion,
        ended: &ended,
        approvals: &approvals,
    };
    let found = blueprint::expand(filled, &progress);
    let open: BTreeSet<String> =
        asked(run).filter(|(_, end)| end.is_none()).map(|(step, _)| step.to_owned()).collect();
    let (is_empty, questions) = (found.is_empty(), found.questions);
    if !is_empty {
        let steps = StepsExpanded { step_outcomes: found.step_outcomes, tasks: found.tasks };
        if !guards::hold_steps(decision, &steps) {
            decision.emit(steps);
        }
    }
    let mut anything = !is_empty;
    for blueprint::ApprovalQuestion { step, text } in
        questions.into_iter().filter(|asked| !open.contains(&asked.step))
    {
        let question = Question {
            choices: vec![YES.to_owned(), "no".to_owned()],
            default: Some("no".to_owned()),
            reason: format!("The step {step} of the blueprint begins only after a yes."),
            ..Question::new(text)
        };
        questions::ask(decision, About::Step(step), question);
        anything = true;
    }
    anything
}

/// The plan with tasks more.
pub(super) fn grown(plan: &Plan, tasks: &BTreeMap<TaskIndex, PlanTask>) -> Plan {
    let mut grown = plan.clone();
    grown.tasks.extend(tasks.clone());
    grown
}

/// Lets the plan grow by tasks that guards had nothing against, or that they changed. Where it has grown otherwise meanwhile,
/// it is found out anew what comes next, and guards are asked about that.
pub(super) fn let_through(
    decision: &mut DecisionBuilder<'_>,
    steps: StepsExpanded,
    changed: Option<&PlanDraft>,
) {
    let Some(run) = decision.open().filter(|run| run.phase == Phase::Executing) else { return };
    let Some(plan) = &run.plan else { return };
    if steps.tasks.keys().any(|index| plan.tasks.contains_key(index)) {
        return;
    }
    let Some(changed) = changed else { return decision.emit(steps) };
    let (whole, these) = (grown(plan, &steps.tasks), steps.tasks.keys().cloned().collect());
    match planning::changed(decision, &whole, &these, changed) {
        Ok(tasks) => decision.emit(StepsExpanded { tasks, ..steps }),
        Err(why) => refused(decision, &steps, guards::cannot_be_carried_out(&why)),
    }
}

/// Guards refused the tasks by which the plan was to grow: the run ends, with what there is to report where something was
/// done.
pub(super) fn refused(decision: &mut DecisionBuilder<'_>, steps: &StepsExpanded, why: String) {
    let Some(run) = decision.open().filter(|run| run.phase == Phase::Executing) else { return };
    let name = run.goal.blueprint.as_ref().map_or("", |filled| &filled.blueprint.name);
    let is_first = run.plan.as_ref().is_none_or(|plan| plan.tasks.is_empty());
    let reason = if is_first {
        format!("the plan that was made from the blueprint {name} was {why}")
    } else {
        let named: Vec<&str> = steps.step_outcomes.keys().map(String::as_str).collect();
        format!("what comes next in the blueprint {name} ({}) was {why}", named.join(", "))
    };
    decision.emit(PlanRefused { reasons: vec![why] });
    if is_first {
        decision.emit(RunFailed { reason });
    } else {
        replan::give_up(decision, Some(&reason));
    }
}

/// The questions about steps that were asked, with their ends.
fn asked(run: &RunState) -> impl Iterator<Item = (&str, Option<&QuestionEnd>)> {
    run.questions.values().filter_map(|asked| {
        if let About::Step(step) = &asked.about { Some((step.as_str(), asked.end.as_ref())) } else { None }
    })
}

/// What was said to questions about steps.
fn approvals(run: &RunState) -> BTreeMap<String, bool> {
    let ended = asked(run).filter_map(|(step, end)| Some((step, end?)));
    let is_yes = |end: &QuestionEnd| match end {
        QuestionEnd::Answered(reply) => reply.text.as_deref() == Some(YES),
        QuestionEnd::Withdrawn(_) => false,
    };
    ended.map(|(step, end)| (step.to_owned(), is_yes(end))).collect()
}

/// Whether a step of the run's blueprint waits for a person's yes.
pub(super) fn waits_for_approval(run: &RunState) -> bool {
    asked(run).any(|(_, end)| end.is_none())
}

/// Whether nothing more can be decided of a step.
fn is_closed(run: &RunState, step: &str, has_no_fallback: bool) -> bool {
    match run.planning.expansion.get(step) {
        Some(StepOutcome::LeftOut { .. }) => true,
        Some(StepOutcome::Placed { fallback, .. }) => has_no_fallback || !fallback.is_empty(),
        None => false,
    }
}

fn ended(run: &RunState, plan: &Plan) -> BTreeMap<TaskIndex, Ended> {
    let states = plan.leaves().filter_map(|(index, _)| Some((index, run.planned(index)?)));
    let ended = states.filter(|(_, state)| state.status.is_ended());
    ended
        .map(|(index, state)| {
            let ended = Ended {
                result: survey::result(state).cloned(),
                skipped: state.status == TaskStatus::Skipped,
                why: state.reasons.last().cloned().unwrap_or_default(),
            };
            (index.clone(), ended)
        })
        .collect()
}

/// What a report by a blueprint lacks: parts that it was to have, items that there was no room for.
pub(super) fn shortcomings(run: &RunState, report: &Report) -> Vec<String> {
    let Some(filled) = &run.goal.blueprint else { return Vec::new() };
    let notes = run.planning.expansion.iter().filter_map(|(step, outcome)| match outcome {
        StepOutcome::Placed { note, .. } if !note.is_empty() => Some(format!("step {step}: {note}")),
        StepOutcome::Placed { .. } | StepOutcome::LeftOut { .. } => None,
    });
    blueprint::missing_parts(filled, report).into_iter().chain(notes).collect()
}
