//! What can go wrong when a model is asked, sorted by what helps.

use muster_shared::text::within_bytes;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::chat::TokenUsage;

/// The longest provider text kept in an error, in bytes.
const MAX_DETAIL: usize = 600;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ModelErrorKind {
    /// Too many requests or tokens for now (status 429).
    RateLimited {
        /// How long the provider asks us to wait, when it says so.
        retry_after: Option<Duration>,
    },
    /// The provider fails on its side (status 5xx).
    Overloaded {
        /// How long the provider asks us to wait, when it says so.
        retry_after: Option<Duration>,
    },
    /// No whole answer within the time limit.
    Timeout,
    /// No connection: name, network, TLS or a refused port.
    Unreachable,
    /// The key is missing, wrong or lacks rights (status 401, 403).
    Unauthorized,
    /// The provider rejects the question itself (other status 4xx).
    BadRequest,
    /// The question is longer than the model's window.
    ContextTooLong,
    /// The answer is garbage, cut off or empty.
    BadAnswer,
    /// The provider withheld the answer for policy reasons.
    Refused,
    /// The asker no longer wants the answer.
    Cancelled,
    /// What the task may use does not allow the call, so it was not made.
    BudgetExhausted,
    /// The task is in other hands by now, so the call was not made.
    Superseded,
}

impl ModelErrorKind {
    /// A short name for logs and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// A failed call. The text says what to do and never holds a key.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{target}: {message}")]
pub struct ModelError {
    /// What went wrong.
    pub kind: ModelErrorKind,
    /// Which model was asked: `provider/model`.
    pub target: String,
    /// What happened and what helps, for a person.
    pub message: String,
    /// Tokens the provider reported for the failed call.
    #[serde(default)]
    pub usage: TokenUsage,
    /// Failed calls behind this error, this one included.
    pub calls: u32,
}

impl ModelError {
    /// An error of one call to `target` (`provider/model`).
    ///
    /// `message` is cut to a readable length, since providers send whole pages.
    pub fn new(kind: ModelErrorKind, target: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self {
            kind,
            target: target.into(),
            message: within_bytes(message.as_ref().trim(), MAX_DETAIL),
            usage: TokenUsage::default(),
            calls: 1,
        }
    }

    /// Whether the same question may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.is_outage() || self.kind == ModelErrorKind::BadAnswer
    }

    /// Whether the provider gave no answer, and may give one later.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        matches!(
            self.kind,
            ModelErrorKind::RateLimited { .. }
                | ModelErrorKind::Overloaded { .. }
                | ModelErrorKind::Timeout
                | ModelErrorKind::Unreachable
        )
    }

    /// How long the provider asked us to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            ModelErrorKind::RateLimited { retry_after } | ModelErrorKind::Overloaded { retry_after } => {
                retry_after
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_provider_pages_are_cut_at_a_character() {
        let page = "é".repeat(5_000);
        let error = ModelError::new(ModelErrorKind::Overloaded { retry_after: None }, "openai/x", page);
        assert!(error.message.len() <= MAX_DETAIL + '…'.len_utf8());
        assert!(error.to_string().starts_with("openai/x: é"));
    }

    #[test]
    fn only_what_time_can_heal_is_transient() {
        let transient = |kind| ModelError::new(kind, "t", "m").is_transient();
        assert!(transient(ModelErrorKind::RateLimited { retry_after: None }));
        assert!(transient(ModelErrorKind::BadAnswer));
        assert!(!transient(ModelErrorKind::Unauthorized));
        assert!(!transient(ModelErrorKind::ContextTooLong));
        assert!(!transient(ModelErrorKind::Cancelled));
    }
}
