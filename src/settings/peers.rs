//! How much tasks may ask of each other, as people write it.

use std::time::Duration;

use muster_shared::flow::Peers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much tasks may ask of each other: [`Peers`] as people write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PeerSettings {
    /// Most requests to peers of one run (help, information, context, capabilities); further ones are refused.
    pub(crate) max_requests: u32,
    /// Longest text of a request or of its answer, in bytes.
    pub(crate) max_bytes: u32,
    /// Time for help; then whoever asked goes on without it.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) help_within: Duration,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self::from(&Peers::USUAL)
    }
}

impl From<&Peers> for PeerSettings {
    fn from(peers: &Peers) -> Self {
        let Peers { max_requests, max_bytes, help_within_ms } = *peers;
        Self { max_requests, max_bytes, help_within: Duration::from_millis(help_within_ms) }
    }
}

impl From<&PeerSettings> for Peers {
    fn from(settings: &PeerSettings) -> Self {
        let PeerSettings { max_requests, max_bytes, help_within } = *settings;
        let help_within_ms = u64::try_from(help_within.as_millis()).unwrap_or(u64::MAX);
        Self { max_requests, max_bytes, help_within_ms }
    }
}
