//! The yardstick workload W: 1 plan call, 8 parallel tasks of 3 tool steps and an answer, each followed by a
//! reflect call, 1 write call: 42 model calls and 24 tool calls. Its model, scripted.

use std::time::Duration;

use serde_json::{Value, json};

use crate::bare::model_loop::{LEAVES, TOOL_STEPS};
use crate::model_server::{CapturedRequest, Reply, Script};

/// Model calls of one run of W.
pub const MODEL_CALLS: usize = 1 + LEAVES * (TOOL_STEPS + 1) + LEAVES + 1;
/// Tool calls of one run of W.
pub const TOOL_CALLS: usize = LEAVES * TOOL_STEPS;
/// Model calls that must come one after the other: plan, four of a leaf, reflect, write.
pub const CALLS_IN_A_ROW: usize = 1 + (TOOL_STEPS + 1) + 1 + 1;

/// How the scripted model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// Native tool calls.
    Native,
    /// The same as JSON in text.
    PlainText,
}

/// The model of W, each answer after `delay`. Also answers the bare loop's requests.
#[must_use]
pub fn script(delay: Duration, speech: Speech) -> Script {
    Script::answering(move |request| answer(request, speech)).with_delay(delay).keeping(0)
}

/// The model of a smaller run: so many tasks in place of eight.
#[must_use]
pub fn of_leaves(leaves: usize) -> Script {
    Script::answering(move |request| answer_of(request, Speech::Native, leaves)).keeping(0)
}

/// The answer of W's model to one request.
#[must_use]
pub fn answer(request: &CapturedRequest, speech: Speech) -> Reply {
    answer_of(request, speech, LEAVES)
}

fn answer_of(request: &CapturedRequest, speech: Speech, leaves: usize) -> Reply {
    let act = |name: &str, arguments: &Value| match speech {
        Speech::Native => Reply::call(name, arguments),
        Speech::PlainText => Reply::json(&json!({ "action": name, "arguments": arguments })),
    };
    let system = request.system();
    let submit = |arguments: Value| act("submit", &arguments);
    if system.contains("You are the planner") {
        submit(
            json!({ "thought": "Eight sums that do not need each other.", "goal": "Add up.", "tasks": tasks(leaves) }),
        )
    } else if system.contains("You are the reflector") {
        submit(json!({ "thought": "It went as planned.", "summary": "Three sums, one result." }))
    } else if system.contains("You are the writer") {
        submit(json!({
            "thought": "All eight results are in.",
            "title": "Eight sums",
            "body": "# Eight sums\n\nAll eight tasks gave 42.",
            "unanswered": [],
        }))
    } else {
        leaf(request, &act)
    }
}

fn leaf(request: &CapturedRequest, act: &dyn Fn(&str, &Value) -> Reply) -> Reply {
    // The bare loop sends no system prompt; what it is answered does not matter.
    let step = if request.system().is_empty() { TOOL_STEPS } else { request.turns() };
    if step < TOOL_STEPS {
        let expression = format!("{} + {step}", 40 + step);
        return act(
            "calculator",
            &json!({ "thought": format!("Sum {step} is next."), "expression": expression }),
        );
    }
    let arguments = json!({
        "thought": "All three sums are known.",
        "ending": "done",
        "conclusion": "The sums are 40, 42 and 44.",
        "findings": [],
    });
    act("submit", &arguments)
}

fn tasks(leaves: usize) -> Vec<Value> {
    let task = |n: usize| {
        json!({
            "name": format!("sum number {n} of the list"),
            "goal": format!("Work out the sums of list {n}."),
            "role": "worker",
        })
    };
    (1..=leaves).map(task).collect()
}
