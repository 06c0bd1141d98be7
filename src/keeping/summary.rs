//! What stays of a run whose time is over: what `muster runs` and `muster show` say of it in brief. Pure.

use muster_bus::RemovalNote;
use muster_shared::flow::{Report, Usage};
use muster_shared::ids::RunId;
use muster_shared::run::RunState;
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) run: RunId,
    pub(crate) goal: String,
    /// Its state in a word or two.
    pub(crate) state: String,
    pub(crate) created_at: Millis,
    pub(crate) ended_at: Option<Millis>,
    pub(crate) usage: Usage,
    pub(crate) reason: Option<String>,
    pub(crate) report: Option<Report>,
    /// The run as `muster runs --json` has it.
    pub(crate) brief: Value,
}

impl Summary {
    /// The summary of a run, with what `muster runs` says of it.
    pub(crate) fn of(state: &RunState, word: &str, brief: Value) -> Self {
        Self {
            run: state.id,
            goal: state.goal.text.clone(),
            state: word.to_owned(),
            created_at: state.created_at,
            ended_at: state.ended_at,
            usage: state.used(),
            reason: state.reason.clone(),
            report: state.report.clone(),
            brief,
        }
    }

    /// The same as JSON, with how the record went.
    pub(crate) fn to_json(&self, removed: &RemovalNote) -> Value {
        let mut shown = self.brief.clone();
        shown["report"] = serde_json::json!(self.report);
        shown["record_removed"] = serde_json::json!(removed);
        shown
    }
}
