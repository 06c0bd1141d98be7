//! What is done about failures: one table for all of them, and how its answers are carried out.

mod error_budget;
mod table;

pub(super) use error_budget::{note, spend, wind_up};
pub use table::{Tried, respond};
pub(super) use table::{respond_by_count, tries};

use muster_shared::flow::{FailureKind, Response, Responses, TaskResult};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::plan::tools;
use muster_shared::run::event::FailureAnswered;
use muster_shared::run::{AgentEvent, RunState, TaskState};

use super::builder::DecisionBuilder;
use super::{replan, stuck};

/// Most letters of a tool's name that are kept.
const LONGEST_NAME: usize = 100;

/// What counts besides the kind of a failure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances<'a> {
    /// Whether there is no time left for another try.
    pub(super) out_of_time: bool,
    /// The part that there is, if any.
    pub(super) part: Option<&'a TaskResult>,
    /// Where its outcome stands, if there is one.
    pub(super) outcome: Option<Seq>,
}

/// Looks the failure up, and records what is done about it, with the tool that is withheld from the next try.
pub(super) fn answer(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    failure: FailureKind,
    reason: &str,
    circumstances: Circumstances<'_>,
) -> Option<(Response, Option<String>)> {
    let run = decision.open()?;
    let state = run.tasks.get(task)?;
    let generation = state.generation;
    let response = respond(failure, &tried(run, task, state, circumstances));
    let model = (response == Response::OtherModel).then(|| next_model(run, task)).flatten();
    let is_part = response == Response::Degrade && circumstances.part.is_some();
    let marked = is_part.then(|| format!("{}: {reason}", failure.in_words()));
    let withheld = (response == Response::OtherTool).then(|| failed_tool(run, circumstances)).flatten();
    decision.emit(FailureAnswered {
        task: task.clone(),
        generation,
        failure,
        response,
        model,
        marked,
        withheld: withheld.clone(),
    });
    spend(decision, task);
    Some((response, withheld))
}

/// The tool that a try failed by, unless every task keeps it.
fn failed_tool(run: &RunState, circumstances: Circumstances<'_>) -> Option<String> {
    let (_, event) = run.pending.get(&circumstances.outcome?)?;
    let AgentEvent::Outcome(outcome) = event else { return None };
    let tool = outcome.failed_tool().filter(|tool| !tools::stays(tool))?;
    Some(tool.chars().take(LONGEST_NAME).collect())
}

/// What was tried for a task, and what could be.
fn tried(run: &RunState, task: &TaskId, state: &TaskState, circumstances: Circumstances<'_>) -> Tried {
    let failures = state.failures.saturating_add(1);
    let ended = circumstances.out_of_time
        || replan::ends_tries(run, task, failures)
        || !error_budget::allows_another_try(run, task);
    let most = run.limits.max_generations.max(1);
    Tried {
        given: state.answers.given.clone(),
        tries_left: if ended { 0 } else { most.saturating_sub(failures) },
        other_model: next_model(run, task).is_some(),
        can_ask: stuck::can_ask(run, task),
        can_replan: !circumstances.out_of_time && replan::would_follow(run, task, failures),
        can_do_without: !matches!(task, TaskId::Plan | TaskId::Write),
    }
}

/// The model that comes next for a task, of those that the run's limits name.
fn next_model(run: &RunState, task: &TaskId) -> Option<String> {
    let answers = run.tasks.get(task).map(|state| &state.answers);
    let tried = answers.and_then(|answers| answers.given.get(&Response::OtherModel)).copied().unwrap_or(0);
    let mut models = run.limits.responses.stronger_models.iter().take(Responses::MOST_MODELS);
    models.nth(usize::try_from(tried).unwrap_or(usize::MAX)).cloned()
}
