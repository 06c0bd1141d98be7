//! What holds of committees, as people write it.

use std::time::Duration;

use muster_shared::flow::{Chair, Committees};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who sits in a committee and how it comes to a verdict: [`Committees`] as people write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CommitteeSettings {
    /// Models that the members use, one after the other; the run's when empty.
    pub(crate) models: Vec<String>,
    /// When a chair reads what the members found and gives the verdict: never, tie (neither majority nor confidence
    /// decides) or no-majority.
    pub(crate) chair: Chair,
    /// Members that have to give a result; 0 for more than half of them.
    pub(crate) quorum: u8,
    /// Time after which that many suffice and the others are waited for no longer; 0s for all.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) wait: Duration,
}

impl Default for CommitteeSettings {
    fn default() -> Self {
        Self::from(&Committees::USUAL)
    }
}

impl From<&Committees> for CommitteeSettings {
    fn from(committees: &Committees) -> Self {
        let Committees { models, chair, quorum, wait_ms } = committees.clone();
        let wait = Duration::from_millis(wait_ms.unwrap_or(0));
        Self { models, chair, quorum: quorum.unwrap_or(0), wait }
    }
}

impl From<&CommitteeSettings> for Committees {
    fn from(settings: &CommitteeSettings) -> Self {
        let CommitteeSettings { models, chair, quorum, wait } = settings.clone();
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self {
            models,
            chair,
            quorum: Some(quorum).filter(|quorum| *quorum > 0),
            wait_ms: Some(wait_ms).filter(|wait| *wait > 0),
        }
    }
}
