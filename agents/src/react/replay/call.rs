//! What the record of a model call says: the limits that its agent worked by, and the answer.

use muster_shared::flow::{ModelCall, Step};
use serde_json::Value;

use super::super::decide::{NO_THOUGHT, StepLimits};
use super::super::limits::{AtLimit, Verification};
use crate::model::chat::{ChatAnswer, FinishReason, ToolCall};

/// The limits that the agent worked by, where the call says so.
pub(super) fn limits_of(call: &ModelCall) -> StepLimits {
    let usual = StepLimits::default();
    let kept = |name: &str| call.parameters[name].as_u64().and_then(|limit| u32::try_from(limit).ok());
    StepLimits {
        max_steps: kept("max_steps").unwrap_or(usual.max_steps),
        max_asks: kept("max_asks").unwrap_or(usual.max_asks),
        stale_after: kept("stale_after").unwrap_or(usual.stale_after),
        max_spins: kept("max_spins").unwrap_or(usual.max_spins),
        verification: serde_json::from_value(call.parameters["verification"].clone())
            .unwrap_or(Verification::Off),
        max_revisions: kept("max_revisions").unwrap_or(usual.max_revisions),
        calls_a_step: kept("calls_a_step").unwrap_or(usual.calls_a_step),
        room: kept("room").unwrap_or(0),
        at_limit: match call.parameters["at_limit"].as_str() {
            Some("escalate") => AtLimit::Escalate,
            _ => AtLimit::Partial,
        },
        ..usual
    }
}

/// The answer as the model gave it. Reasoning beside the text is kept in the thought that was made of it.
pub(super) fn heard(call: &ModelCall, step: &Step) -> ChatAnswer {
    let (text, tool_calls) = taken_apart(call);
    let kept = [&step.thought.reasoning, &step.thought.text]
        .into_iter()
        .find(|kept| !kept.is_empty() && *kept != NO_THOUGHT);
    ChatAnswer {
        reasoning: kept.filter(|kept| !call.answer.contains(kept.as_str())).cloned(),
        text,
        finish: match (call.cut, tool_calls.is_empty()) {
            (true, _) => FinishReason::Length,
            (false, true) => FinishReason::Stop,
            (false, false) => FinishReason::ToolCalls,
        },
        tool_calls,
        ..ChatAnswer::default()
    }
}

/// The text and the native calls of an answer that was kept word for word.
pub(super) fn taken_apart(call: &ModelCall) -> (String, Vec<ToolCall>) {
    let starts: Vec<usize> = call.calls_at.iter().filter_map(|at| usize::try_from(*at).ok()).collect();
    let part = |from: usize, to: usize| call.answer.get(from..to).unwrap_or_default().trim_end_matches('\n');
    let ends = starts.iter().skip(1).copied().chain([call.answer.len()]);
    let calls = starts.iter().zip(ends).zip(1..).map(|((from, to), number)| {
        let line = part(*from, to).strip_prefix("[call] ").unwrap_or_default();
        let (name, raw) = line.split_once(' ').unwrap_or((line, ""));
        let arguments = serde_json::from_str(raw).unwrap_or_else(|_| Value::String(raw.to_owned()));
        let id = format!("call-{number}");
        ToolCall { raw: raw.to_owned(), ..ToolCall::new(id, name, arguments) }
    });
    let text = part(0, starts.first().copied().unwrap_or(call.answer.len()));
    (text.to_owned(), calls.collect())
}
