//! The model of an ordeal: a plan of three tasks, each with two tool steps. Every answer says which call it is an
//! answer to, so that it is found again in the record.

use std::time::Duration;

use serde_json::{Value, json};

use super::shape::Shape;
use crate::model_server::{CapturedRequest, Reply, Script};

/// Leaves of each plan.
const LEAVES: usize = 3;
/// Tool steps of each leaf.
const STEPS: usize = 2;
/// Model calls of a run without any fault.
pub(super) const CALLS: usize = 1 + LEAVES * (STEPS + 1) + LEAVES + 1;
/// Where some tries fail: one of so many calls would be such a one.
const FAILS_ONE_IN: usize = 12;
/// How long the model thinks.
const DELAY: Duration = Duration::from_millis(20);

/// The script, with a log that has room for all calls of that many runs.
pub(super) fn script(runs: usize, shape: Shape) -> Script {
    Script::answering(move |request| answer(request, shape))
        .with_delay(DELAY)
        .keeping(runs * CALLS * 8 + 1000)
}

fn answer(request: &CapturedRequest, shape: Shape) -> Reply {
    let thought = mark(request.number);
    let submit = |mut arguments: Value| {
        arguments["thought"] = thought.clone().into();
        Reply::call("submit", &arguments)
    };
    let system = request.system();
    if system.contains("You are the planner") {
        let task = |n: usize| {
            let goal = format!("Work out the sums of list {n}.");
            let mut task = json!({ "name": format!("sum number {n}"), "goal": goal, "role": shape.role() });
            if let Some(pattern) = shape.pattern {
                task["pattern"] = pattern.into();
            }
            if shape.specialists {
                let needs = if n == 1 { json!(["sums", "products"]) } else { json!(["sums"]) };
                task["needs"] = needs;
            }
            task
        };
        return submit(json!({ "goal": "Add up.", "tasks": (1..=LEAVES).map(task).collect::<Vec<_>>() }));
    }
    if system.contains("You are the reflector") {
        return submit(json!({ "summary": "Two sums, one result." }));
    }
    if system.contains("You are the refiner") {
        return submit(json!({ "operations": [], "reason": "nothing is to be changed" }));
    }
    if system.contains("You are the writer") {
        return submit(
            json!({ "title": "Three sums", "body": "# Three sums\n\nAll are known.", "unanswered": [] }),
        );
    }
    let step = request.turns();
    if step < STEPS {
        let expression = format!("{} + {step}", 40 + step);
        return Reply::call("calculator", &json!({ "thought": thought, "expression": expression }));
    }
    if shape.fails && request.number.is_multiple_of(FAILS_ONE_IN) {
        return submit(json!({ "ending": "give_up", "reason": "the list cannot be read", "conclusion": "" }));
    }
    submit(json!({ "ending": "done", "conclusion": "The sums are 40 and 42.", "findings": [] }))
}

fn mark(number: usize) -> String {
    format!("This answers (call {number}).")
}

/// The calls that a text answers.
pub(super) fn calls_in(text: &str) -> Vec<usize> {
    let numbers = text.split("(call ").skip(1).filter_map(|rest| rest.split_once(')')?.0.parse().ok());
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_again() {
        assert_eq!(calls_in(&format!("{} … {}", mark(7), mark(12))), [7, 12]);
        assert_eq!(calls_in("(call me) (call"), [0; 0]);
    }
}
