//! What guards are asked about in a run, and what they said: of plans, of changes of them, and of reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::AgentKey;
use crate::flow::{GuardVerdict, Hook, Outcome, Product, Report};
use crate::ids::Seq;
use crate::time::Millis;

/// Most verdicts that a run keeps at hand. All of them stand in its record.
const MOST_KEPT: usize = 32;

/// What guards are asked about, and what they said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Guarding {
    /// How often guards were asked.
    pub asked: u32,
    /// What they are asked about now, by the number of the question.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub open: BTreeMap<u32, HeldBack>,
    /// How often they had nothing against it.
    pub allowed: u32,
    /// What they said besides, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<(Hook, GuardVerdict)>,
    /// How often a report was refused.
    pub reports_refused: u32,
    /// The report that was refused last, and why: whoever writes it again is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_report: Option<Box<(Report, String)>>,
}

/// What guards are asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HeldBack {
    /// At which hook.
    pub hook: Hook,
    /// When they are asked again, should nobody bring their verdict.
    pub until: Millis,
    /// What waits for it.
    pub what: Held,
}

/// What waits for the verdict of guards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// What an agent gave: its outcome is decided upon when the verdict is there.
    Outcome {
        /// Where it stands in the record.
        seq: Seq,
        /// Whose it is.
        key: AgentKey,
        /// The outcome.
        outcome: Arc<Outcome>,
    },
    /// A report that was put together by rule.
    Report(Box<Report>),
}

impl Guarding {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.asked == 0
    }

    /// When guards are asked again whose verdict nobody brought.
    #[must_use]
    pub fn next_asking(&self) -> Option<Millis> {
        self.open.values().map(|held| held.until).min()
    }

    pub(super) fn note(&mut self, hook: Hook, allowed: u32, verdicts: &[GuardVerdict]) {
        self.allowed = self.allowed.saturating_add(allowed);
        let room = MOST_KEPT.saturating_sub(self.verdicts.len());
        self.verdicts.extend(verdicts.iter().take(room).map(|verdict| (hook, verdict.clone())));
    }
}

impl Held {
    /// The report among it.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Report(report) => Some(report),
            Self::Outcome { outcome, .. } => match outcome.product.as_ref()? {
                Product::Report(report) => Some(report),
                Product::Plan(_)
                | Product::Result(_)
                | Product::Reflection(_)
                | Product::Refinement(_)
                | Product::DraftReview(_) => None,
            },
        }
    }
}
