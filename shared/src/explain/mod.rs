//! Explanation of a run from its event log: result, evidence, alternatives, failures, turning points, time, and cost. Pure.
//!
//! [`explain`] reads the log once ([`run_timeline`]). Each statement names the log entries that support it.

mod cost;
mod evidence;
mod failure_history;
mod outcome;
mod requests;
mod run_timeline;
mod topics;
mod words;

use serde::Serialize;

pub use cost::{Cost, ModelCost, RoleCost, TaskCost};
pub use evidence::{ClaimStatus, Evidence, FoundIn};
pub use failure_history::{FailureItem, TaskFailures};
pub use outcome::{ConflictSummary, ResultSummary};
pub use run_timeline::PhaseTime;

use crate::ids::{RunId, Seq, TaskId};
use crate::run::{Entry, RunState};
use crate::time::Millis;
use failure_history::ExplanationTopics;
use run_timeline::RunTimeline;

/// Statement with the log entries that support it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplanationItem {
    /// Text; further lines are details.
    pub text: String,
    /// Task, if the statement is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Broker time of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// Log entries that support the statement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Seq>,
}

/// Explanation of a run, or of one task of it. Cost and time are always those of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Run.
    pub run: RunId,
    /// Goal.
    pub goal: String,
    /// Explained task; absent for the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Time of the first entry.
    pub began_at: Millis,
    /// Number of log entries.
    pub entries: usize,
    /// Result and its reason.
    pub result: ResultSummary,
    /// Statements that support the result.
    pub evidence: Vec<Evidence>,
    /// Alternatives considered.
    pub considered: Vec<ExplanationItem>,
    /// Failures by task, with the reactions to them.
    pub failures: Vec<TaskFailures>,
    /// Changes of direction, in order.
    pub turning_points: Vec<ExplanationItem>,
    /// Goals and commands, with author and signer.
    pub requests: Vec<ExplanationItem>,
    /// Questions to people, and their decisions.
    pub people: Vec<ExplanationItem>,
    /// Verdicts of guards.
    pub guards: Vec<ExplanationItem>,
    /// Duration from the first entry to the end of the run or the last entry, in milliseconds.
    pub total_ms: u64,
    /// Duration of each phase, in order.
    pub phases: Vec<PhaseTime>,
    /// Cost.
    pub cost: Cost,
}

/// Explains a run, or one task of it, from its state and the log entries that the state was folded from. An incomplete log is
/// explained as far as possible.
#[must_use]
pub fn explain(state: &RunState, entries: &[Entry], of: Option<&TaskId>) -> Explanation {
    let timeline = RunTimeline::read(state, entries);
    let topics = ExplanationTopics::read(entries);
    let is_wanted = |task: Option<&TaskId>| of.is_none_or(|of| task.is_some_and(|task| is_about(of, task)));
    let keep = |mut items: Vec<ExplanationItem>| {
        items.retain(|item| is_wanted(item.task.as_ref()));
        items
    };
    let mut failures = failure_history::by_task(state, topics.failures);
    failures.retain(|one| is_wanted(one.task.as_ref()));
    let mut evidence = evidence::evidence(state, &timeline);
    evidence.retain(|one| is_wanted(Some(&one.task)));
    let mut result = outcome::result(state, &timeline, of);
    (result.unanswered, result.assumed) = (keep(result.unanswered), keep(result.assumed));
    Explanation {
        run: state.id,
        goal: state.goal.text.clone(),
        task: of.cloned(),
        began_at: entries.first().map_or(state.created_at, |entry| entry.at),
        entries: entries.len(),
        result,
        evidence,
        considered: keep(topics.considered),
        failures,
        turning_points: keep(topics.turning_points),
        requests: keep(requests::requests(entries)),
        people: keep(topics.people),
        guards: keep(topics.guards),
        total_ms: timeline.total_ms(),
        cost: cost::cost(state, &timeline),
        phases: timeline.phases,
    }
}

/// Whether `task` belongs to the explained task: the task itself, its members and reflections, and the tasks below it.
fn is_about(of: &TaskId, task: &TaskId) -> bool {
    of == task
        || of.as_leaf().zip(task.leaf()).is_some_and(|(of, task)| *of == task.planned() || task.is_below(of))
}
