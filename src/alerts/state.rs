//! What is known of alerts, as it is kept on the bus: whoever looks after them next goes on from it. Pure.

use std::collections::BTreeMap;

use muster_shared::ids::RunId;
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};

use super::outbox::Outbox;

/// Where a series stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// It is above the threshold, and not for long enough.
    Pending,
    /// It fires.
    Firing,
    /// It fires, and has been below for a while.
    Clearing,
}

/// A tool, role, run or process that a rule is about, and is or was above its threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    /// Where it stands.
    pub(crate) phase: Phase,
    /// Since when it has been above.
    pub(crate) since: Millis,
    /// How long it has been pending, or below, in milliseconds. Counted by looks, not by the clock, which may jump.
    pub(crate) held_ms: u64,
    /// When it was told last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<Millis>,
    /// How long ago that was, in milliseconds, counted in the same way.
    #[serde(default)]
    pub(crate) told_ms: u64,
    /// What was measured last while it was above.
    pub(crate) value: f64,
    /// The run, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    /// What there is to say of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) detail: String,
}

/// When a process was started again, and which it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Restarts {
    /// The process that has the name now, by its id.
    pub(crate) agent: String,
    /// When it says that it started.
    pub(crate) started_at: u64,
    /// When others took the name before, the latest last.
    pub(crate) times: Vec<Millis>,
    /// When it was seen last.
    pub(crate) seen: Millis,
}

/// What is known of alerts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// When the rules were looked at last.
    pub(crate) at: Millis,
    /// How many notices there were.
    pub(crate) told: u64,
    /// By rule, then by series.
    pub(crate) rules: BTreeMap<String, BTreeMap<String, Series>>,
    /// By process.
    pub(crate) restarts: BTreeMap<String, Restarts>,
    /// What is to be told.
    pub(crate) outbox: Outbox,
}

impl State {
    /// What fires, by rule and series.
    pub(crate) fn firing(&self) -> impl Iterator<Item = (&str, &str, &Series)> {
        self.rules.iter().flat_map(|(rule, all)| {
            let fires = all.iter().filter(|(_, one)| one.phase != Phase::Pending);
            fires.map(move |(series, one)| (rule.as_str(), series.as_str(), one))
        })
    }

    /// Whether something is pending, fires or waits to be told.
    pub(crate) fn is_busy(&self) -> bool {
        self.rules.values().any(|all| !all.is_empty()) || !self.outbox.is_empty()
    }
}

/// Rules about which nothing is told for a while, and until when.
pub(crate) type Silences = BTreeMap<String, Silence>;

/// That nothing is told about a rule for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Silence {
    /// Until when.
    pub(crate) until: Millis,
    /// Who said so.
    #[serde(default)]
    pub(crate) by: String,
    /// Why.
    #[serde(default)]
    pub(crate) because: String,
}
