//! Planning anew when a plan fails (P5). At once for a critical task; after some failures in a row, or some of one
//! task; on low confidence. Nothing new is begun until the planner has answered; what is in hand is brought to its end
//! first, so that its result counts. When the plans that a run may have are used up, it fails and says what was tried.

use muster_shared::flow::{
    About, Ending, LeafRef, Plan, PlanDraft, PlanTask, Planning, ReplanBrief, Report, TaskResult,
};
use muster_shared::ids::{Seq, TaskId, TaskIndex};
use muster_shared::plan::replan::{Rigour, first_new, keep_begun, leave_out, replan};
use muster_shared::plan::{self, tools};
use muster_shared::run::event::{GivingUp, GoalUncovered, ReplanWanted, Replanned, RunFailed, RunGivenUp};
use muster_shared::run::{FailedPlan, Phase, RunState, failed_plan};

use super::builder::DecisionBuilder;
use super::outcome::completed;
use super::{effect::Effect, guards, partial, planning, survey, work};

/// Consecutive failed tasks after which the open tasks are replanned. One failure may be chance; two are evidence
/// against the plan.
const REPLAN_AFTER_FAILURES: u32 = 2;

/// Failed attempts of one task after which the open tasks are replanned. Equal to the default of
/// `limits.max_generations`.
const REPLAN_AFTER_TRIES: u32 = 3;

/// Most of each list that is said when a run is given up.
const MOST_LINES: usize = 12;

/// Why the report of such a run is not the whole answer.
const WHY: &str = "the plans failed and the goal was not reached";

/// Whether failures lead to new plans in this run.
fn is_on(run: &RunState) -> bool {
    !run.responses.used_up
        && run.limits.max_replans > 0
        && run.phase == Phase::Executing
        // A blueprint says itself what follows when a step fails.
        && run.goal.blueprint.is_none()
        && !is_unwanted(run)
}

/// Whether no planner is to be asked, whatever happens.
pub(super) fn is_unwanted(run: &RunState) -> bool {
    run.limits.planning == Planning::Never
}

/// Whether no further plan may be made.
pub(super) fn is_used_up(run: &RunState) -> bool {
    run.planning.next_replan() > run.limits.max_replans
}

/// Whether this many failed tries of one task end it, because what is left is planned anew.
pub(super) fn ends_tries(run: &RunState, task: &TaskId, failures: u32) -> bool {
    let TaskId::Leaf(index) = task else { return false };
    is_on(run) && failures >= REPLAN_AFTER_TRIES && !is_of_conflict(run, index)
}

/// A leaf failed for good.
pub(super) fn after_failure(
    decision: &mut DecisionBuilder<'_>,
    index: &TaskIndex,
    ending: Ending,
    reason: &str,
) {
    let Some(run) = decision.open().filter(|run| is_on(run)) else { return };
    let Some(task) = run.plan_task(index) else { return };
    // No plan helps against these.
    if matches!(ending, Ending::Cancelled | Ending::BudgetExhausted) {
        return;
    }
    let failures = run.planned(index).map_or(0, |state| state.failures);
    let name = &task.name;
    let in_a_row = run.planning.failures_in_a_row;
    let why = match trigger(run, (index, task), failures, in_a_row).filter(|it| it.follows_from(ending)) {
        Some(Trigger::Only) => Some(format!("{index} was to reach the goal alone, and failed: {reason}")),
        Some(Trigger::Critical) => {
            Some(format!("{index} {name}, which the goal cannot do without, failed: {reason}"))
        }
        Some(Trigger::Tries) => Some(format!("{index} {name} failed {failures} times: {reason}")),
        Some(Trigger::InARow) => Some(format!(
            "{} tasks failed one after the other, the last of them {index} {name}: {reason}",
            run.planning.failures_in_a_row
        )),
        None => None,
    };
    if let Some(why) = why {
        want(decision, why);
    }
}

/// Whether a task settles a conflict: it verifies the value, or repeats its work because it lost.
fn is_of_conflict(run: &RunState, index: &TaskIndex) -> bool {
    run.is_verification(index) || run.conflicts.found.values().any(|conflict| conflict.redone.contains(index))
}

/// Why a failure leads to a new plan.
#[derive(Debug, Clone, Copy)]
enum Trigger {
    /// One agent was to do it all.
    Only,
    Critical,
    Tries,
    InARow,
}

impl Trigger {
    /// Splitting the work helps where it was too much or went wrong, not where nobody could have done it.
    const fn follows_from(&self, ending: Ending) -> bool {
        !matches!(
            (self, ending),
            (
                Self::Only,
                Ending::ModelFailed
                    | Ending::AgentFailed
                    | Ending::DeadlinePassed
                    | Ending::Escalate
                    | Ending::Cancelled
                    | Ending::BudgetExhausted,
            )
        )
    }
}

fn trigger(
    run: &RunState,
    (index, task): (&TaskIndex, &PlanTask),
    failures: u32,
    in_a_row: u32,
) -> Option<Trigger> {
    // Nothing that was planned depends on settling a conflict: it stays unresolved.
    if is_of_conflict(run, index) {
        None
    } else if may_be_asked_for(run, index) {
        Some(Trigger::Only)
    } else if task.critical {
        Some(Trigger::Critical)
    } else if failures >= REPLAN_AFTER_TRIES {
        Some(Trigger::Tries)
    } else if in_a_row >= REPLAN_AFTER_FAILURES {
        Some(Trigger::InARow)
    } else {
        None
    }
}

/// Whether what is left would be planned anew if this task failed for good now.
pub(super) fn would_follow(run: &RunState, task: &TaskId, failures: u32) -> bool {
    let TaskId::Leaf(index) = task else { return false };
    let Some(planned) = run.plan_task(index) else { return false };
    let in_a_row = run.planning.failures_in_a_row.saturating_add(1);
    is_on(run) && trigger(run, (index, planned), failures, in_a_row).is_some()
}

/// Whether whoever does this task may say that what is left of the goal has to be planned: it began with the whole of it,
/// nobody has said so before, and no person brought the plan.
pub(super) fn may_be_asked_for(run: &RunState, index: &TaskIndex) -> bool {
    let is_only = |plan: &Plan| plan.leaves().all(|(leaf, _)| leaf == index);
    run.limits.planning == Planning::Auto
        && run.goal.plan.is_none()
        && is_on(run)
        && run.planning.replans.is_empty()
        && !run.planning.is_replanning()
        && run.plan.as_ref().is_some_and(is_only)
}

/// A leaf ended well, and may not be sure of what it found; or it asks for a plan.
pub(super) fn after_result(decision: &mut DecisionBuilder<'_>, index: &TaskIndex, result: &TaskResult) {
    let Some(run) = decision.open().filter(|run| is_on(run) && !is_used_up(run)) else { return };
    let asked_for = result.advice.as_ref().and_then(|advice| advice.plan.clone());
    if let Some(reason) = asked_for.filter(|_| may_be_asked_for(run, index)) {
        return want(decision, format!("{index}: {reason}"));
    }
    // A person decides on this result: no rule overrules their approval.
    let is_asked = run.open_questions().any(|(_, asked)| asked.about == About::Milestone(index.clone()));
    let nothing_is_left = survey::not_ended(run).is_empty();
    if is_asked || is_of_conflict(run, index) || nothing_is_left {
        return;
    }
    let least = run.limits.replan_below_confidence;
    // Nothing is said by a finding that says 0.
    let known = result.findings.iter().map(|finding| finding.confidence).filter(|percent| *percent > 0);
    if let Some(best) = known.max().filter(|best| *best < least) {
        want(
            decision,
            format!("{index} is sure of nothing that it found: {best} % at most, {least} % is the least"),
        );
    }
}

fn want(decision: &mut DecisionBuilder<'_>, reason: String) {
    let Some(run) = decision.open() else { return };
    let number = run.planning.next_replan();
    decision.emit(ReplanWanted { number, reason });
}

/// Judges a new plan of what is left.
pub(super) fn propose(decision: &mut DecisionBuilder<'_>, seq: Seq, proposal: &PlanDraft) {
    let tools = decision.nameable_tools();
    let Some(run) = decision.open() else { return };
    let Some(plan) = &run.plan else { return };
    let rigour = if planning::may_ask_again(run) { Rigour::Strict } else { Rigour::Mend };
    let named = survey::nameable(run, &tools);
    let unknown = tools::problems(proposal, named);
    if !unknown.is_empty() && rigour == Rigour::Strict {
        return planning::refuse(decision, seq, unknown);
    }
    let mut proposal = proposal.clone();
    let skipped = leave_out(&mut proposal.tasks, &survey::skipped_by_people(run));
    let mut mended: Vec<String> =
        skipped.iter().map(|name| format!("left out {name}, which a person skipped")).collect();
    mended.extend(tools::fit(&mut proposal, named));
    let roles = survey::roles_for_planners(run, decision.capacity(), decision.situation().specialists);
    let limits = run.limits.for_planners();
    let values = survey::values(run);
    let statuses = survey::statuses_to_refine(run);
    let made = if proposal.tasks.is_empty() && !skipped.is_empty() {
        // Nothing is left but what a person does not want.
        Ok(plan::Replanned { plan: keep_begun(plan, &statuses), changes: Vec::new() })
    } else {
        replan(plan, &statuses, &proposal, &limits, &roles, (rigour, Some(&values)))
    };
    let number = run.planning.next_replan();
    match made {
        Ok(made) => {
            completed(decision, TaskId::Plan, seq);
            let changes = mended.into_iter().chain(made.changes).collect();
            let is_news = decision.open().is_some_and(|run| run.planning.uncovered != proposal.uncovered);
            decision.emit(Replanned { number, changes, plan: made.plan });
            if is_news {
                decision.emit(GoalUncovered { parts: proposal.uncovered });
            }
        }
        Err(reasons) => planning::refuse(decision, seq, reasons),
    }
}

/// What the planner is told.
pub(super) fn brief(run: &RunState) -> Option<ReplanBrief> {
    let plan = run.plan.as_ref().filter(|_| run.planning.is_replanning())?;
    let asks = |leaf: &LeafRef| leaf.result.asks_for_plan();
    Some(ReplanBrief {
        asked_for: run.planning.replans.is_empty() && survey::results(run).iter().any(asks),
        first: first_new(plan),
        plan: plan.clone(),
        progress: work::progress_tree(run),
        reasons: run.planning.reasons_to_replan().to_vec(),
        results: survey::results(run),
        lessons: work::lessons(run),
        left: run.limits.max_replans.saturating_sub(run.planning.next_replan()),
    })
}

/// Ends a run whose plans all failed, honestly: with what was tried, what was learnt, and a goal that asks for less.
pub(super) fn give_up(decision: &mut DecisionBuilder<'_>, last: Option<&str>) {
    let Some(run) = decision.open() else { return };
    let mut failed = failed_plan(run);
    failed.reasons.extend(last.map(str::to_owned));
    let plans: Vec<FailedPlan> =
        run.planning.replans.iter().map(|replan| replan.failed.clone()).chain([failed]).collect();
    let lessons = learnt(run);
    let simpler = simpler_goal(run);
    let count = plans.len();
    let reason = format!(
        "the goal was not reached: {count} {} failed, the last because {}. Ask for less, for example: {simpler:?}; \
         `muster show {}` has what was tried and learnt",
        if count == 1 { "plan" } else { "plans" },
        plans.last().and_then(|plan| plan.reasons.last()).map_or("of its tasks", String::as_str),
        run.id.short(),
    );
    let report = Some(Box::new(report(run, &plans, &lessons, &simpler)));
    let given_up = RunGivenUp { plans, lessons, simpler, report };
    if guards::hold_end(decision, GivingUp { given_up: given_up.clone(), reason: reason.clone() }) {
        return;
    }
    decision.effect(Effect::CancelRun { reason: reason.clone() });
    decision.emit(given_up);
    decision.emit(RunFailed { reason });
}

/// What is said in the report of a run that is given up, where guards of reports gave no leave: nothing of what was found.
pub(super) fn withheld(run: &RunState, simpler: &str) -> Report {
    let withheld = partial::withheld(run, WHY);
    Report { body: format!("{}{}", withheld.body, instead(simpler)), ..withheld }
}

fn instead(simpler: &str) -> String {
    format!("\n## What to ask instead\n\n{}\n", partial::line(simpler, 400))
}

fn learnt(run: &RunState) -> Vec<String> {
    let of_reflections = run.reflections().map(|(_, reflection)| reflection.summary.clone());
    let mut learnt: Vec<String> = Vec::new();
    for lesson in work::lessons(run).into_iter().chain(of_reflections) {
        if !lesson.trim().is_empty() && !learnt.contains(&lesson) && learnt.len() < MOST_LINES {
            learnt.push(lesson);
        }
    }
    learnt
}

/// What could be done of the goal, else its first task.
fn simpler_goal(run: &RunState) -> String {
    let done: Vec<String> =
        survey::results(run).into_iter().map(|leaf| leaf.goal).filter(|goal| !goal.contains("{{")).collect();
    let first_plan = || {
        let leaf = run.plan.as_ref().and_then(|plan| plan.leaves().next())?;
        Some(leaf.1.goal.clone())
    };
    let simpler = match done.first() {
        Some(first) => first.clone(),
        None => first_plan().unwrap_or_else(|| run.goal.text.clone()),
    };
    simpler.chars().take(300).collect()
}

fn report(run: &RunState, plans: &[FailedPlan], lessons: &[String], simpler: &str) -> Report {
    let mut report = partial::report(run, WHY).unwrap_or_else(|| {
        let title = "The goal was not reached".to_owned();
        Report {
            body: format!("# {title}\n\n> No task gave a result.\n"),
            title,
            partial: true,
            ..Report::default()
        }
    });
    let mut body = report.body.trim_end().to_owned();
    body.push_str("\n\n## What was tried\n");
    for (number, plan) in (1..).zip(plans) {
        body.push_str(&format!("\n{number}. failed: {}\n\n", partial::line(&plan.reasons.join("; "), 600)));
        body.extend(plan.tasks.iter().take(50).map(|line| format!("       {}\n", partial::line(line, 200))));
    }
    if !lessons.is_empty() {
        body.push_str("\n## What was learnt\n\n");
        body.extend(lessons.iter().map(|lesson| format!("- {}\n", partial::line(lesson, 400))));
    }
    body.push_str(&instead(simpler));
    report.body = body;
    report
}
