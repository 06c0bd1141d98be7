//! What is done about results that contradict each other (O3).

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::LONGEST_RUN_MS;
use crate::settings;

settings! {
    /// When claims count as contradicting each other, and how that is settled. Part of a run's limits.
    #[derive(PartialEq, Eq)]
    #[cfg_attr(test, derive(JsonSchema))]
    pub struct Conflicts {
        /// The ways to settle a conflict, in order: methods (each side shows how it came to its value), majority,
        /// confidence, authority, arbiter (a model judges), verify (a task is added to the plan), person. With none it is
        /// only said in the report.
        pub policy: Vec<ConflictStep> = ConflictStep::USUAL.to_vec() => list_of::<ConflictStep>(); Project Harmless,
        /// How far apart numbers may lie, in percent of the larger; in percent points for percentages.
        pub tolerance_percent: u8 = 5 => bounded(0, 100),
        /// Which sources count more, best first: role:NAME, or a pattern for paths such as official/*.
        pub authority: Vec<String> = Vec::new() => list().example("[\"role:validator\", \"official/*\"]"); Project Harmless,
        /// How often a task may be done again because it lost.
        pub max_redos: u32 = 1 => bounded(0, 10),
        // Each is part of the run's state.
        /// Most conflicts of one run that are settled; further ones are only said in the report.
        pub max_conflicts: u32 = 20 => bounded(0, 200),
        /// Time to settle one.
        pub settle_within_ms: u64 = 10 * 60 * 1000 => bounded(1, LONGEST_RUN_MS),
    }
}

/// A way to settle a conflict.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
    strum::Display,
    strum::IntoStaticStr,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ConflictStep {
    /// Each side shows how it came to its value, and looks at it once more.
    Methods,
    /// What more than half of the sides claim.
    Majority,
    /// What the sides that are clearly surer claim.
    Confidence,
    /// What the better source says.
    Authority,
    /// A model judges.
    Arbiter,
    /// A task is added to the plan that finds it out.
    Verify,
    /// A person says what holds.
    Person,
}

impl ConflictStep {
    /// The steps when nothing was said: a person is asked only where that is wanted.
    pub const USUAL: [Self; 6] =
        [Self::Methods, Self::Majority, Self::Confidence, Self::Authority, Self::Arbiter, Self::Verify];

    /// The name, as it is written in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
