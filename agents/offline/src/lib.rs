//! The offline model: does each role's work by rule, with no language model, key or network.
//!
//! It is given the typed request ([`TaskOffered`]) and the steps so far, and answers with the next turn of
//! the ReAct loop. It keeps nothing between calls and reads no clock, so the same inputs give the same
//! answer: an agent that takes a task over goes on exactly as the one before it would have.

use std::collections::BTreeMap;

use muster_shared::flow::{Action, Product, Step, TaskOffered, TaskResult, Thought, Work};
use muster_shared::ids::{Role, TaskId};
use serde_json::Value;

/// A pattern that is compiled when it is first used. Stands before the modules, which know it by that.
macro_rules! pattern {
    ($name:ident, $pattern:literal) => {
        static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| regex::Regex::new($pattern).expect("a valid pattern"));
    };
}

#[cfg(test)]
mod answers_tests;
mod arithmetic;
mod by_blueprint;
mod draft_reviewer;
#[cfg(test)]
mod large_tests;
mod lessons;
mod observed;
mod planner;
mod question;
mod rank;
mod refiner;
mod reflector;
mod replanner;
mod researcher;
mod statements;
mod subquestions;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;
mod wanted;
mod worker;
mod writer;

/// The lines of documents that the steps of a task have shown, by path and number.
#[must_use]
pub fn seen_lines(steps: &[Step]) -> BTreeMap<String, BTreeMap<u32, String>> {
    observed::Observed::of(steps).pages
}

/// The name of this model in settings (`model = "offline"`) and in the record.
pub const MODEL_NAME: &str = "offline";

/// The offline model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfflineModel;

/// One turn of the loop: what is thought, and what is done.
///
/// When the action's name is [`Action::SUBMIT`], its arguments are the task's [`Product`] as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct OfflineMove {
    /// Why.
    pub thought: Thought,
    /// A tool call, or the end of the task.
    pub action: Action,
}

impl OfflineModel {
    /// Decides the next turn of a task from what was offered and the steps taken so far in it.
    ///
    /// Always submits at or before `offer.limits.max_steps`.
    #[must_use]
    pub fn next(&self, offer: &TaskOffered, steps: &[Step]) -> OfflineMove {
        match &offer.work {
            Work::Plan { replan: Some(brief), .. } if brief.asked_for => planner::anew(offer),
            Work::Plan { replan: Some(brief), .. } => replanner::anew(offer, brief),
            Work::Plan { draft: Some(plan), lessons, .. } => replanner::improve(plan, lessons, &offer.limits),
            Work::Plan { .. } => planner::next(offer),
            // Rules cannot judge who is right: a side stands by its claim, and nobody else has one.
            Work::Execute { .. } if matches!(offer.task, TaskId::Settle(_)) => no_judge(),
            // Rules cost no calls: what can be split is.
            Work::Execute { may_plan: true, .. } if planner::splits(offer) => OfflineMove::plan(),
            Work::Execute { task, inputs, .. } => match (by_blueprint::report(task, steps), &task.role) {
                (Some(report), _) => by_blueprint::submit(report),
                (None, Role::Researcher | Role::Specialist(_)) => researcher::next(offer, task, steps),
                (None, Role::Worker | Role::Planner | Role::Reflector | Role::Refiner | Role::Writer) => {
                    worker::next(offer, task, inputs, steps)
                }
            },
            Work::Reflect { task, ending, reason, result, steps: done, .. } => {
                reflector::next(task, *ending, reason, result.as_ref(), done)
            }
            Work::Refine { plan, reflections, results, operations_left, .. } => {
                refiner::next(offer, plan, reflections, results, *operations_left)
            }
            Work::Write { results, failed, uncovered, conflicts: _, revision } => {
                let open = writer::StillOpen { uncovered, revision: revision.as_deref() };
                writer::next(offer, results, failed, &open)
            }
            Work::DraftReview { draft, results, .. } => draft_reviewer::next(offer, draft, results),
        }
    }
}

fn no_judge() -> OfflineMove {
    let conclusion = "No language model was used, and rules cannot judge which value holds.".to_owned();
    let result = TaskResult { conclusion: conclusion.clone(), ..TaskResult::default() };
    OfflineMove::submit(thought(conclusion, "", "Say so."), &Product::Result(result))
}

impl OfflineMove {
    /// A tool call.
    fn call(thought: Thought, tool: &str, arguments: Value) -> Self {
        Self { thought, action: Action { name: tool.to_owned(), arguments } }
    }

    /// The end of a task that is to be split.
    fn plan() -> Self {
        let reason = "it is more than one question, or is to be looked up by somebody else";
        let arguments = serde_json::json!({"ending": "plan", "reason": reason});
        let thought = thought(reason.to_owned(), "", "Ask for a plan.");
        Self { thought, action: Action { name: Action::SUBMIT.to_owned(), arguments } }
    }

    /// The end of the task.
    fn submit(thought: Thought, product: &Product) -> Self {
        // Products hold only strings, numbers and lists: serialising them cannot fail.
        let arguments = serde_json::to_value(product).unwrap_or(Value::Null);
        Self { thought, action: Action { name: Action::SUBMIT.to_owned(), arguments } }
    }
}

/// A thought with its reason and what comes next.
fn thought(text: impl Into<String>, reasoning: impl Into<String>, plan: impl Into<String>) -> Thought {
    Thought { text: text.into(), reasoning: reasoning.into(), plan: plan.into(), criticism: String::new() }
}
