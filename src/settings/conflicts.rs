//! What is done about results that contradict each other, as people write it.

use std::time::Duration;

use muster_shared::flow::{ConflictStep, Conflicts};
use muster_shared::ids::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When claims count as contradicting each other, and how that is settled: [`Conflicts`] as people write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ConflictSettings {
    /// The ways to settle a conflict, in order: methods, majority, confidence, authority, arbiter, verify, person. With
    /// none it is only said in the report.
    pub(crate) policy: Vec<ConflictStep>,
    /// How far apart numbers may lie, in percent of the larger; in percent points for percentages.
    pub(crate) tolerance: u8,
    /// Which sources count more, best first: role:NAME, or a pattern for paths such as official/*.
    pub(crate) authority: Vec<String>,
    /// The role of whoever judges.
    pub(crate) arbiter: Role,
    /// Whether a model compares claims that are words.
    pub(crate) compare_texts: bool,
    /// Whether a model is asked, once in a run, which claims in other words contradict each other.
    pub(crate) compare_near: bool,
    /// How often a task may be done again because it lost.
    pub(crate) max_redos: u32,
    /// Most conflicts of one run that are settled; further ones are only said in the report.
    pub(crate) max_conflicts: u32,
    /// Time to settle one.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) settle_within: Duration,
}

impl Default for ConflictSettings {
    fn default() -> Self {
        Self::from(&Conflicts::default())
    }
}

impl From<&Conflicts> for ConflictSettings {
    fn from(conflicts: &Conflicts) -> Self {
        let Conflicts {
            policy,
            tolerance_percent,
            authority,
            arbiter,
            compare_texts,
            compare_near,
            max_redos,
            max_conflicts,
            settle_within_ms,
        } = conflicts.clone();
        Self {
            policy,
            tolerance: tolerance_percent,
            authority,
            arbiter,
            compare_texts,
            compare_near,
            max_redos,
            max_conflicts,
            settle_within: Duration::from_millis(settle_within_ms),
        }
    }
}

impl From<&ConflictSettings> for Conflicts {
    fn from(settings: &ConflictSettings) -> Self {
        let ConflictSettings {
            policy,
            tolerance,
            authority,
            arbiter,
            compare_texts,
            compare_near,
            max_redos,
            max_conflicts,
            settle_within,
        } = settings.clone();
        Self {
            policy,
            tolerance_percent: tolerance,
            authority,
            arbiter,
            compare_texts,
            compare_near,
            max_redos,
            max_conflicts,
            settle_within_ms: u64::try_from(settle_within.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
