//! Requests as they should be: read, held against their schema, and what is wrong with them in words. Pure.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Instant;

use muster_shared::contract::Schema;
use muster_shared::flow::Usage;
use muster_shared::wire::gateway::{GatewayRefusal, GatewayVerb, MAX_MESSAGE_ID, RefusalCode};
use muster_shared::wire::schema::GATEWAY_REQUESTS;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::refusal::invalid;

/// The schemas of all requests; compiled with the first request, since most gateways serve nobody.
#[derive(Default)]
pub(crate) struct Checker {
    schemas: OnceLock<BTreeMap<GatewayVerb, Schema>>,
}

impl Checker {
    fn schemas(&self) -> &BTreeMap<GatewayVerb, Schema> {
        let compiled = |(verb, schema): (GatewayVerb, Value)| match Schema::new(schema) {
            Ok(schema) => Some((verb, schema)),
            Err(why) => {
                tracing::error!(%verb, why, "a schema of the gateway cannot be used");
                None
            }
        };
        self.schemas.get_or_init(|| {
            let published: BTreeMap<_, _> = serde_json::from_str(GATEWAY_REQUESTS).unwrap_or_default();
            published.into_iter().filter_map(compiled).collect()
        })
    }

    /// Reads a request.
    ///
    /// # Errors
    /// What does not fit, by field.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        verb: GatewayVerb,
        content: Value,
    ) -> Result<T, GatewayRefusal> {
        let faults = self.schemas().get(&verb).map(|schema| schema.faults("", &content)).unwrap_or_default();
        if !faults.is_empty() {
            // Of alternatives the schema says only that none fits: who reads it knows which there are.
            let known = serde_json::from_value::<T>(content).err().map(|error| error.to_string());
            let in_words = |fault: &String| match &known {
                Some(known) if fault.contains("oneOf") || fault.contains("anyOf") => {
                    format!("{}: {known}", named(fault))
                }
                _ => named(fault),
            };
            return Err(unfit(verb, faults.iter().map(in_words).collect()));
        }
        let id = content.get("id").and_then(Value::as_str);
        if id.is_some_and(|id| id.len() > MAX_MESSAGE_ID || id.chars().any(char::is_control)) {
            let why = format!("`id`: it has to have 1 to {MAX_MESSAGE_ID} bytes, and no control characters");
            return Err(unfit(verb, vec![why]));
        }
        serde_json::from_value(content).map_err(|error| unfit(verb, vec![error.to_string()]))
    }
}

/// The place of a fault as people write it: `field.inner`.
fn named(fault: &str) -> String {
    match fault.strip_prefix("`.") {
        Some(rest) => format!("`{rest}"),
        None => fault.strip_prefix("``: ").unwrap_or(fault).to_owned(),
    }
}

fn unfit(verb: GatewayVerb, fields: Vec<String>) -> GatewayRefusal {
    let what = fields.first().cloned().unwrap_or_default();
    let message = format!(
        "this is no `{verb}` that can be understood: {what}. Nothing was recorded: mend it and send it again; `muster schema` \
         prints what fits"
    );
    GatewayRefusal::new(RefusalCode::Invalid, message).of_fields(fields)
}

/// Most model calls of a program per second, and most that it reports in its first second.
const MAX_CALLS_PER_SECOND: u64 = 250;
/// Most tokens of one call in each direction: several times the largest context window.
const MAX_CALL_TOKENS: u64 = 10_000_000;
/// Highest price of a call, and of each of its tokens, in millionths of a US dollar.
const MAX_CALL_MICROS: u64 = 10_000_000;
const MAX_TOKEN_MICROS: u64 = 1_000;

/// Bound of what a program reports about its own models, by the time that the gateway measured.
#[derive(Debug)]
pub(crate) struct PlausibleUsage {
    since: Instant,
    calls: u64,
}

impl Default for PlausibleUsage {
    fn default() -> Self {
        Self { since: Instant::now(), calls: 0 }
    }
}

impl PlausibleUsage {
    /// Counts a report.
    ///
    /// # Errors
    /// The field that no program can have used, with the maximum.
    pub(crate) fn accept(&mut self, reported: Usage) -> Result<(), GatewayRefusal> {
        self.accept_after(self.since.elapsed().as_secs(), reported)
    }

    fn accept_after(&mut self, seconds: u64, reported: Usage) -> Result<(), GatewayRefusal> {
        let calls = reported.calls().saturating_add(reported.reused_calls);
        let (paid, sum) = (calls.max(1), self.calls.saturating_add(calls));
        let tokens = reported.tokens().saturating_add(reported.cached_tokens);
        let max_calls = seconds.saturating_add(1).saturating_mul(MAX_CALLS_PER_SECOND);
        let max_tokens = paid.saturating_mul(MAX_CALL_TOKENS);
        let max_micros =
            paid.saturating_mul(MAX_CALL_MICROS).saturating_add(tokens.saturating_mul(MAX_TOKEN_MICROS));
        let bounds = [
            ("model_calls", sum, max_calls),
            ("input_tokens", reported.input_tokens.max(reported.cached_tokens), max_tokens),
            ("output_tokens", reported.output_tokens, max_tokens),
            (
                "cost_micros",
                reported.cost_micros.max(reported.saved_micros).max(reported.reused_micros),
                max_micros,
            ),
        ];
        if let Some((field, used, most)) = bounds.into_iter().find(|(_, used, most)| used > most) {
            let why = format!(
                "{used} is implausible {seconds} s after the task was claimed, {most} is the most; report what was used since \
                 the last message"
            );
            return Err(invalid(&format!("usage.{field}"), &why));
        }
        self.calls = sum;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::wire::gateway::{FinishRequest, StepRequest, TakeRequest};
    use serde_json::json;

    use super::*;

    fn fault<T: DeserializeOwned>(verb: GatewayVerb, content: &Value) -> String {
        let Err(refusal) = Checker::default().read::<T>(verb, content.clone()) else {
            return format!("{content} fits");
        };
        assert_eq!(refusal.code, RefusalCode::Invalid);
        refusal.fields.join("; ")
    }

    #[test]
    fn every_schema_can_be_compiled() {
        assert_eq!(Checker::default().schemas().len(), GatewayVerb::ALL.len());
    }

    #[test]
    fn what_is_wrong_is_named_by_field() {
        for (content, said) in [
            (json!([]), "is not of type \"object\""),
            (json!({}), "\"agent\" is a required property"),
            (json!({"agent": "a-1", "patience": 3}), "'patience' was unexpected"),
            (json!({"agent": "a-1", "slots": "two"}), "`slots`"),
            (json!({"agent": "a-1", "slots": 0}), "`slots`"),
            (json!({"agent": "a 1"}), "agent"),
            (json!({"agent": "a-1", "id": ""}), "`id`"),
            (json!({"agent": "a-1", "id": "x\u{7}"}), "`id`"),
            (json!({"agent": "a-1", "capabilities": [1]}), "`capabilities.0`"),
        ] {
            let found = fault::<TakeRequest>(GatewayVerb::Take, &content);
            assert!(found.contains(said), "{content}: {found}");
        }
        let step = json!({"token": "t", "action": {"arguments": {}}, "observation": {"content": 3}});
        let found = fault::<StepRequest>(GatewayVerb::Step, &step);
        assert!(found.contains("`action`") && found.contains("`observation`"), "{found}");
        let finish = json!({"token": "t", "ending": "success"});
        let found = fault::<FinishRequest>(GatewayVerb::Finish, &finish);
        assert!(found.contains("`ending`") && found.contains("`done_partial`"), "which there are: {found}");
    }

    #[test]
    fn what_may_be_left_out_is_filled_in_and_words_stand_for_parts() {
        let checker = Checker::default();
        let step =
            json!({"token": "t", "thought": "Look.", "action": {"name": "look"}, "observation": "seen"});
        let step: StepRequest = checker.read(GatewayVerb::Step, step).unwrap();
        let thought = muster_shared::flow::Thought::from(step.thought);
        assert_eq!((thought.text.as_str(), step.action.name.as_str()), ("Look.", "look"));
        let take: TakeRequest = checker.read(GatewayVerb::Take, json!({"agent": "a-1"})).unwrap();
        assert_eq!((take.slots, take.patience_ms), (1, None));
    }

    #[test]
    fn implausible_usage_is_refused_by_field_and_plausible_usage_is_counted() {
        let calls = |model_calls| Usage { model_calls, ..Usage::default() };
        let one = |change: fn(&mut Usage)| {
            let mut usage = calls(1);
            change(&mut usage);
            usage
        };
        for (before, seconds, reported, refused) in [
            (0, 0, calls(4_000_000_000), "`usage.model_calls`"),
            (0, 0, calls(250), ""),
            (250, 0, calls(1), "`usage.model_calls`"),
            (250, 1, calls(250), ""),
            (0, 0, one(|usage| usage.input_tokens = 1_000_000), ""),
            (0, 0, one(|usage| usage.input_tokens = 10_u64.pow(15)), "`usage.input_tokens`"),
            (0, 0, one(|usage| usage.output_tokens = u64::MAX), "`usage.output_tokens`"),
            (0, 0, one(|usage| usage.cached_tokens = u64::MAX), "`usage.input_tokens`"),
            (0, 0, one(|usage| usage.cost_micros = 10_u64.pow(15)), "`usage.cost_micros`"),
            (0, 0, one(|usage| usage.saved_micros = u64::MAX), "`usage.cost_micros`"),
            (0, 0, one(|usage| usage.wasted_calls = u64::MAX), "`usage.model_calls`"),
        ] {
            let mut plausible = PlausibleUsage { calls: before, ..PlausibleUsage::default() };
            let fields =
                plausible.accept_after(seconds, reported).map_err(|refusal| refusal.fields.join("; "));
            let (said, counted) = (fields.err().unwrap_or_default(), plausible.calls);
            assert!(
                said.starts_with(refused) && said.is_empty() == refused.is_empty(),
                "{reported:?}: {said}"
            );
            assert_eq!(counted, if refused.is_empty() { before + reported.model_calls } else { before });
        }
    }
}
