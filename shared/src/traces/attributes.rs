//! Attributes by the GenAI conventions, and those of ours.

use super::{Attribute, Value};
use crate::flow::{Ending, FailureKind, ObservationStatus, Usage};
use crate::run::{RunStatus, StopReason};

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const AGENT_ID: &str = "gen_ai.agent.id";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const RUN: &str = "muster.run.id";
pub(super) const TASK: &str = "muster.task.id";
pub(super) const STEP: &str = "muster.step";

/// A text as an attribute.
pub(super) fn text(key: &'static str, value: impl Into<String>) -> Attribute {
    (key, Value::Text(value.into()))
}

/// A count as an attribute.
pub(super) fn whole(key: &'static str, value: u64) -> Attribute {
    (key, Value::Whole(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// What was used, as far as it is anything.
pub(super) fn usage(usage: &Usage) -> Vec<Attribute> {
    let mut said = vec![
        whole("gen_ai.usage.input_tokens", usage.input_tokens),
        whole("gen_ai.usage.output_tokens", usage.output_tokens),
    ];
    if usage.cached_tokens > 0 {
        said.push(whole("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens));
    }
    if usage.cost_micros > 0 {
        said.push(("muster.cost.usd", Value::Number(dollars(usage.cost_micros))));
    }
    if usage.reused_calls > 0 {
        said.push(("muster.reused", Value::Is(true)));
    }
    said
}

#[expect(clippy::cast_precision_loss, reason = "sums above 9 billion dollars may lose a millionth")]
fn dollars(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

/// What the conventions call a provider: ours by another name where they have one, else as it is.
#[must_use]
pub fn provider(name: &str) -> &str {
    match name {
        "gemini" => "gcp.gemini",
        "vertex" => "gcp.vertex_ai",
        "bedrock" => "aws.bedrock",
        "azure" => "azure.ai.openai",
        "xai" => "x_ai",
        "mistral" => "mistral_ai",
        "moonshot" => "moonshot_ai",
        other => other,
    }
}

/// A model by its provider and its name.
pub(super) fn model(described: &str) -> (&str, &str) {
    let (named, model) = described.split_once('/').unwrap_or(("unknown", described));
    (provider(named), model)
}

/// The kind of a failure as `error.type`: what serde calls it.
pub(super) fn failure(kind: FailureKind) -> String {
    serde_json::to_value(kind).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// How a task ended, as it stands in the record.
pub(super) fn ending(ending: Ending) -> String {
    serde_json::to_value(ending).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// What went wrong with a call of a tool: its type, and in words.
pub(super) const fn tool_error(status: ObservationStatus) -> Option<(&'static str, &'static str)> {
    match status {
        ObservationStatus::Success => None,
        ObservationStatus::Error => Some(("tool_error", "the tool failed")),
        ObservationStatus::Timeout => Some(("timeout", "the tool took too long")),
        ObservationStatus::Refused => Some(("refused", "the call was refused")),
    }
}

/// How a run ended: its state, and the type of its error in words of ours.
pub(super) const fn run_end(status: RunStatus) -> (&'static str, Option<(&'static str, &'static str)>) {
    match status {
        RunStatus::Created => ("created", None),
        RunStatus::Processing => ("processing", None),
        RunStatus::Completed => ("completed", None),
        RunStatus::Failed => ("failed", Some(("run_failed", "the run failed"))),
        RunStatus::Aborted(reason) => (
            "aborted",
            Some(match reason {
                StopReason::Cancelled => ("cancelled", "the run was cancelled"),
                StopReason::DeadlinePassed => ("deadline_passed", "the time of the run was up"),
                StopReason::BudgetExhausted => ("budget_used_up", "the budget of the run was used up"),
                StopReason::Refused => ("refused", "the run was not taken up"),
            }),
        ),
    }
}
