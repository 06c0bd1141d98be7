//! The failures that a run may have in all. When they are used up, a person says whether it is to go on; where nobody
//! can be asked, nothing more is begun, and the report is written from what there is.

use muster_shared::flow::{About, Plan, Question};
use muster_shared::ids::{AgentId, TaskId, TaskIndex};
use muster_shared::run::event::{ErrorBudgetUsedUp, TaskSkipped};
use muster_shared::run::{Phase, RunState};

use super::super::builder::DecisionBuilder;
use super::super::{questions, survey};

/// Why tasks are left out.
const USED_UP: &str = "the run has had as many failures as it may have";

/// Whether another try is worth it. Without a plan or a report nothing is: these keep their tries.
pub(super) fn allows_another_try(run: &RunState, task: &TaskId) -> bool {
    matches!(task, TaskId::Plan | TaskId::Write) || !run.responses.used_up
}

/// Looks whether the failure just recorded was the last one that the run may have.
pub(in crate::decide) fn spend(decision: &mut DecisionBuilder<'_>, task: &TaskId) {
    let Some(run) = decision.open() else { return };
    let (failures, most) = (run.responses.failures, run.limits.responses.error_budget);
    let is_up = (most > 0 && failures >= most) || no_model_answers(run) && !others_work(run, task);
    if !is_up || run.responses.used_up || run.phase != Phase::Executing {
        return;
    }
    let asked = run.questions.len() < usize::try_from(run.limits.people.max_questions).unwrap_or(usize::MAX)
        && survey::somebody_is_there(run);
    let about = task.leaf().filter(|_| asked).cloned();
    decision.emit(ErrorBudgetUsedUp { failures, asked: about.is_some() });
    if let Some(index) = about {
        ask(decision, index, failures);
    }
}

/// Whether the run has made more calls than any run in which all is well, and still begins tasks.
fn is_out_of_calls(run: &RunState) -> bool {
    !run.responses.used_up && run.phase == Phase::Executing && has_made_too_many(run)
}

fn has_made_too_many(run: &RunState) -> bool {
    let most = run.limits.max_calls;
    most > 0 && run.spending.used.calls() >= most
}

/// Whether try after try failed for want of a model that gives usable answers: the next would, too.
fn no_model_answers(run: &RunState) -> bool {
    let most = run.limits.responses.model_failures;
    most > 0 && run.responses.model_failures >= most
}

/// Whether an agent works that failed nothing yet: one broken agent may fail many tasks before another one ends its first.
fn others_work(run: &RunState, task: &TaskId) -> bool {
    let is_sound = |agent: &AgentId| run.tallies.get(agent).is_none_or(|tally| tally.failed == 0);
    let mut others = run.tasks.iter().filter(|(other, state)| *other != task && state.status.is_in_work());
    others.any(|(_, state)| state.agent.as_ref().is_some_and(is_sound))
}

fn ask(decision: &mut DecisionBuilder<'_>, index: TaskIndex, failures: u32) {
    let text = format!("{failures} failures in this run, the last of them of {index}. Is it to go on?");
    let default = Some("approve".to_owned());
    let question = Question { reason: USED_UP.to_owned(), default, ..Question::new(text) };
    questions::ask(decision, About::Failure(index), question);
}

/// Leaves out what was not begun, once nothing more is to be begun.
pub(in crate::decide) fn wind_up(decision: &mut DecisionBuilder<'_>) {
    if decision.open().is_some_and(is_out_of_calls) {
        let failures = decision.open().map_or(0, |run| run.responses.failures);
        decision.emit(ErrorBudgetUsedUp { failures, asked: false });
    }
    let Some(run) = decision.open() else { return };
    if !run.responses.used_up || run.phase != Phase::Executing || run.control.paused.is_some() {
        return;
    }
    let leaves = run.plan.iter().flat_map(Plan::leaves).map(|(index, _)| index);
    let open: Vec<TaskIndex> =
        leaves.filter(|index| survey::is_unoffered(run, &index.to_task_id())).cloned().collect();
    for task in open {
        decision.emit(TaskSkipped { task, reason: USED_UP.to_owned(), by_person: false });
    }
}

/// A sentence for the report when the run went on with less.
pub(in crate::decide) fn note(run: &RunState) -> Option<String> {
    let responses = &run.responses;
    let marked = run.tasks.iter().filter_map(|(task, state)| {
        let why = state.answers.marked.as_ref()?;
        Some(format!("{task} counts only in part ({why})"))
    });
    let mut said: Vec<String> = marked.collect();
    if responses.used_up {
        let why = if has_made_too_many(run) {
            format!(
                "the run had made {} model calls, the most of a run without a budget",
                run.spending.used.calls()
            )
        } else if no_model_answers(run) {
            format!("{} tries in a row had no answer of a model that could be used", responses.model_failures)
        } else {
            format!("{USED_UP} ({})", responses.failures)
        };
        said.insert(0, format!("{why}: what was not begun by then was left out"));
    }
    (!said.is_empty()).then(|| format!("Not all went well: {}.", said.join("; ")))
}
