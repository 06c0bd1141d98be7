//! What guards are asked about in a run, and what they said: of plans, of changes of them, and of reports.

use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::{AgentKey, GivingUp, HandOver, Request, StepsExpanded, Stopped};
use crate::flow::{GuardVerdict, Hook, Outcome, Report};
use crate::ids::Seq;
use crate::time::Millis;

/// Most verdicts that a run keeps at hand. All of them stand in its record.
const MOST_KEPT: usize = 32;

/// What guards are asked about, and what they said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct HeldBack {
    /// At which hook.
    pub hook: Hook,
    /// When they are asked again, should nobody bring their verdict.
    pub until: Millis,
    /// How often they were to be asked again.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub again: u32,
    /// What waits for it.
    pub what: Held,
}

/// What waits for the verdict of guards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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
    /// The plan that came with the goal: nothing is planned or done before they have answered.
    BroughtPlan,
    /// The plan that a fork took over: nothing is done before they have answered.
    TakenOver,
    /// The tasks by which the plan grows that is made from a blueprint: it does not grow before they have answered.
    Steps(Box<StepsExpanded>),
    /// A change of the plan by a person: the run goes on with the plan as it is.
    Edit(Box<Request>),
    /// Work that a task hands over: it waits for it.
    HandOver(Box<HandOver>),
    /// The end of a run that is stopped: nothing else becomes of it.
    Stopped(Box<Stopped>),
    /// The end of a run that is given up: nothing else becomes of it.
    GivenUp(Box<GivingUp>),
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

    /// The run is being stopped, if guards are still asked about what it has to report.
    #[must_use]
    pub fn stopping(&self) -> Option<(u32, &HeldBack)> {
        let mut open = self.open.iter().map(|(number, held)| (*number, held));
        open.find(|(_, held)| matches!(held.what, Held::Stopped(_) | Held::GivenUp(_)))
    }

    /// Whether the plan that came with the goal, or that a fork took over, waits for them.
    #[must_use]
    pub fn holds_plan(&self) -> bool {
        self.open.values().any(|held| matches!(held.what, Held::BroughtPlan | Held::TakenOver))
    }

    /// Whether tasks of a blueprint wait for them.
    #[must_use]
    pub fn holds_steps(&self) -> bool {
        self.open.values().any(|held| matches!(held.what, Held::Steps(_)))
    }

    /// The change of the plan by a person that waits for them.
    #[must_use]
    pub fn edit(&self) -> Option<&Request> {
        self.open
            .values()
            .find_map(|held| if let Held::Edit(request) = &held.what { Some(&**request) } else { None })
    }

    /// Whether the end of the work waits for them. It does not wait for a person's change about which one gave no verdict:
    /// the plan stands as it is, and what is changed later is done again.
    #[must_use]
    pub fn holds_the_end(&self) -> bool {
        self.open.values().any(|held| held.again == 0 || !matches!(held.what, Held::Edit(_)))
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
            Self::BroughtPlan
            | Self::TakenOver
            | Self::Steps(_)
            | Self::Edit(_)
            | Self::HandOver(_)
            | Self::Stopped(_)
            | Self::GivenUp(_) => None,
            Self::Outcome { outcome, .. } => outcome.report(),
        }
    }
}
