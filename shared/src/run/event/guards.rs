//! Guards are asked about what a run is about to adopt or deliver, and answer.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::payload::{Payload, Words};
use super::{AgentEvent, Request, RequestAction, RunGivenUp, StepsExpanded, StopReason};
use crate::flow::{Guarded, Hook, Outcome, Product, Report, TaskDraft};
use crate::ids::{AgentId, Generation, Seq, TaskId};
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::guarding::{Held, HeldBack};
use crate::run::state::RunState;
use crate::time::Millis;

/// Guards are asked. What they are asked about waits for their verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GuardsAsked {
    /// Which question of the run, from 1.
    pub number: u32,
    /// At which hook.
    pub hook: Hook,
    /// What they are asked about; nothing when they are asked once more, since nobody brought their verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<AskedAbout>,
    /// When they are asked again, should nobody bring it.
    pub until: Millis,
}

/// What guards are asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AskedAbout {
    /// What an agent gave.
    Outcome {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Where the outcome stands.
        outcome: Seq,
    },
    /// A report that was put together by rule.
    Report(Box<Report>),
    /// The plan that came with the goal.
    BroughtPlan,
    /// What is still to be done of the plan that a fork took over.
    TakenOver,
    /// The tasks by which the plan grows that is made from a blueprint.
    Steps(Box<StepsExpanded>),
    /// A change of the plan by a person.
    Edit(Box<Request>),
    /// Work that a task hands over, for which the plan is to have a task more.
    HandOver(Box<HandOver>),
    /// What there is to report of a run that is stopped.
    Stopped(Box<Stopped>),
    /// What there is to report of a run that is given up.
    GivenUp(Box<GivingUp>),
}

impl AskedAbout {
    /// The task that it is about, if it is about one.
    fn task(&self) -> Option<TaskId> {
        match self {
            Self::Outcome { task, .. } => Some(task.clone()),
            Self::Report(_) => Some(TaskId::Write),
            Self::BroughtPlan | Self::TakenOver | Self::Steps(_) => Some(TaskId::Plan),
            Self::Edit(request) => {
                if let RequestAction::Edit { task: Some(task), .. } = &request.action {
                    Some(task.to_task_id())
                } else {
                    Some(TaskId::Plan)
                }
            }
            Self::HandOver(wanted) => Some(wanted.task.clone()),
            Self::Stopped(_) | Self::GivenUp(_) => None,
        }
    }
}

/// Work that a task hands over: it waits until guards have said whether it may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct HandOver {
    /// The task.
    pub task: TaskId,
    /// The generation that waits.
    pub generation: Generation,
    /// What is to be done for it.
    pub part: TaskDraft,
    /// Who had the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

/// A run that is to be given up as soon as guards have said what becomes of its report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GivingUp {
    /// What was tried and learnt, with what there is to report.
    pub given_up: RunGivenUp,
    /// Why the run fails.
    pub reason: String,
}

/// A run that is to be stopped as soon as guards have said what becomes of its report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Stopped {
    /// What stops it.
    pub why: StopReason,
    /// In words.
    pub reason: String,
    /// What there is to report. Put together by rule.
    pub report: Report,
}

fn unknown(number: u32) -> ApplyError {
    ApplyError::NotAsked { number }
}

impl Payload for GuardsAsked {
    fn task(&self) -> Option<TaskId> {
        self.about.as_ref()?.task()
    }

    fn text(&self, _: Words<'_>) -> String {
        let again = if self.about.is_some() { "" } else { " once more: there is no verdict yet" };
        format!("guards are asked, {}{again}", self.hook.as_str())
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let Self { number, hook, about, until } = self;
        let what = match about {
            None => {
                let open = run.guarding.open.get_mut(number);
                let open = open.ok_or_else(|| unknown(*number))?;
                (open.until, open.again) = (*until, open.again.saturating_add(1));
                return Ok(());
            }
            Some(AskedAbout::Report(report)) => Held::Report(report.clone()),
            Some(AskedAbout::BroughtPlan) => Held::BroughtPlan,
            Some(AskedAbout::TakenOver) => Held::TakenOver,
            Some(AskedAbout::Steps(steps)) => Held::Steps(steps.clone()),
            Some(AskedAbout::Edit(request)) => Held::Edit(request.clone()),
            Some(AskedAbout::HandOver(wanted)) => Held::HandOver(wanted.clone()),
            Some(AskedAbout::Stopped(stopped)) => Held::Stopped(stopped.clone()),
            Some(AskedAbout::GivenUp(given_up)) => Held::GivenUp(given_up.clone()),
            Some(AskedAbout::Outcome { task, generation, outcome: seq }) => {
                let fits = run.pending.get(seq).is_some_and(|(key, event)| {
                    key.task == *task
                        && key.generation == *generation
                        && matches!(event, AgentEvent::Outcome(_))
                });
                match run.pending.remove(seq).filter(|_| fits) {
                    Some((key, AgentEvent::Outcome(outcome))) => Held::Outcome { seq: *seq, key, outcome },
                    Some(_) | None => return Err(unknown(*number)),
                }
            }
        };
        if *number != run.guarding.asked.saturating_add(1) {
            return Err(unknown(*number));
        }
        run.guarding.asked = *number;
        run.guarding.open.insert(*number, HeldBack { hook: *hook, until: *until, again: 0, what });
        Ok(())
    }
}

/// Guards gave their verdict. What waited for it goes on: as it was, as they changed it, or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GuardsAnswered {
    /// Which question of the run.
    pub number: u32,
    /// At which hook.
    pub hook: Hook,
    /// What they said.
    pub said: Guarded,
    /// What they made of the product of the outcome that they were asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<Box<Product>>,
}

impl Payload for GuardsAnswered {
    fn text(&self, words: Words<'_>) -> String {
        format!("guards, {}: {}", self.hook.as_str(), words.brief(&self.said.to_string()))
    }

    /// The outcome waits for a decision again, which is the one that this event belongs to.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let Self { number, hook, said, product } = self;
        let held = run.guarding.open.remove(number).filter(|held| held.hook == *hook);
        let HeldBack { what, .. } = held.ok_or_else(|| unknown(*number))?;
        run.guarding.note(*hook, said.allowed, &said.verdicts);
        if let (Hook::BeforeReport, Some(why), Some(report)) = (hook, said.refused(), what.report()) {
            run.guarding.reports_refused = run.guarding.reports_refused.saturating_add(1);
            run.guarding.refused_report = Some(Box::new((report.clone(), why)));
        }
        if *hook == Hook::BeforeReport && said.refusal().is_none() {
            run.guarding.refused_report = None;
        }
        if let Held::Outcome { seq, key, outcome } = what {
            let outcome = match product {
                Some(product) => {
                    Arc::new(Outcome { product: Some((**product).clone()), ..(*outcome).clone() })
                }
                None => outcome,
            };
            run.pending.insert(seq, (key, AgentEvent::Outcome(outcome)));
        }
        Ok(())
    }
}
