//! What is done when something goes wrong, as people write it.

use std::time::Duration;

use muster_shared::flow::{Acceptance, Responses};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is done when something goes wrong: [`Responses`] as people write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ResponseSettings {
    /// Models that try what others failed, one after the other: more capable, or with a larger window.
    pub(crate) stronger_models: Vec<String>,
    /// Failures of all kinds that a run may have before it goes on with what it has, or asks a person; 0 for any number.
    pub(crate) error_budget: u32,
    /// Tries that may fail one after the other because no model gives an answer that can be used, before a run goes on
    /// with what it has, or asks a person; 0 for any number.
    pub(crate) model_failures: u32,
    /// How results are checked before they count: rules, or off.
    pub(crate) acceptance: Acceptance,
    /// How long a task that was begun may keep others waiting; 0s for as long as it takes.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) blocked_after: Duration,
}

impl Default for ResponseSettings {
    fn default() -> Self {
        Self::from(&Responses::USUAL)
    }
}

impl From<&Responses> for ResponseSettings {
    fn from(responses: &Responses) -> Self {
        let Responses { stronger_models, error_budget, model_failures, acceptance, blocked_after_ms } =
            responses.clone();
        let blocked_after = Duration::from_millis(blocked_after_ms);
        Self { stronger_models, error_budget, model_failures, acceptance, blocked_after }
    }
}

impl From<&ResponseSettings> for Responses {
    fn from(settings: &ResponseSettings) -> Self {
        let ResponseSettings { stronger_models, error_budget, model_failures, acceptance, blocked_after } =
            settings.clone();
        let blocked_after_ms = u64::try_from(blocked_after.as_millis()).unwrap_or(u64::MAX);
        Self { stronger_models, error_budget, model_failures, acceptance, blocked_after_ms }
    }
}
