//! Alternatives, failures with the reactions to them, and turning points of a run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::topics::{Topic, topics};
use super::{ExplanationItem, words};
use crate::flow::{Action, Arm, Note, ObservationStatus, Ruling, Step, TaskOffered};
use crate::ids::TaskId;
use crate::run::{AgentEvent, AgentKey, Entry, RecordEvent, RunState, TaskEnd, end_of};

/// Failures of a task, or of the run itself, with the reactions to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskFailures {
    /// Task; absent for the run itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Name of the task.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Final state of a planned task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<TaskEnd>,
    /// Failures and reactions, in order.
    pub items: Vec<FailureItem>,
}

/// Failure, or reaction to one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailureItem {
    /// Whether it is a reaction.
    pub is_answer: bool,
    /// Statement.
    #[serde(flatten)]
    pub item: ExplanationItem,
}

/// Statements of a log by topic.
#[derive(Debug, Default)]
pub(super) struct ExplanationTopics {
    pub(super) considered: Vec<ExplanationItem>,
    pub(super) turning_points: Vec<ExplanationItem>,
    pub(super) people: Vec<ExplanationItem>,
    pub(super) guards: Vec<ExplanationItem>,
    pub(super) failures: Vec<FailureItem>,
}

impl ExplanationTopics {
    pub(super) fn read(entries: &[Entry]) -> Self {
        let mut all = Self::default();
        for entry in entries {
            match &entry.event {
                RecordEvent::Decided(decided) => {
                    for event in &decided.events {
                        topics(event).iter().for_each(|topic| all.add(*topic, words::item(entry, event)));
                    }
                    decided.offer.iter().for_each(|offer| all.trial(entry, offer));
                }
                RecordEvent::Agent(key, event) => all.agent(entry, key, event),
                RecordEvent::Offered(offer) => all.trial(entry, offer),
            }
        }
        all
    }

    fn trial(&mut self, entry: &Entry, offer: &TaskOffered) {
        let Some(mark) = offer.trial.as_ref().filter(|mark| mark.arm != Arm::Control) else { return };
        let (trial, arm) = (&mark.trial, mark.arm.as_str());
        let text = format!("trial {trial}: {} goes to {} as a {arm}", offer.task, offer.queue);
        self.considered.push(words::about(entry, &offer.task, &text));
    }

    fn add(&mut self, topic: Topic, item: ExplanationItem) {
        match topic {
            Topic::Turn => self.turning_points.push(item),
            Topic::Considered => self.considered.push(item),
            Topic::Failure => self.failures.push(FailureItem { is_answer: false, item }),
            Topic::Answer => self.failures.push(FailureItem { is_answer: true, item }),
            Topic::People => self.people.push(item),
            Topic::Guards => self.guards.push(item),
        }
    }

    fn agent(&mut self, entry: &Entry, key: &AgentKey, event: &AgentEvent) {
        let about = |text: String| words::about(entry, &key.task, &text);
        if let Some(step) = event.step() {
            self.step(step, &about);
        }
        if let AgentEvent::Unreadable(unreadable) = event {
            let (kind, why) = (unreadable.kind, &unreadable.why);
            self.add(Topic::Failure, about(format!("{kind} by {} cannot be read: {why}", key.agent)));
        }
    }

    fn step(&mut self, step: &Step, about: &impl Fn(String) -> ExplanationItem) {
        let number = step.number;
        for (action, observation) in step.acts().filter(|(action, _)| action.name != Action::SUBMIT) {
            let Some(observation) = observation else { continue };
            let failure = match observation.status {
                ObservationStatus::Success => continue,
                ObservationStatus::Error => "failed",
                ObservationStatus::Timeout => "timed out",
                ObservationStatus::Refused => "was refused",
            };
            let text = format!("step {number}: {} {failure}: {}", action.name, observation.content);
            self.add(Topic::Failure, about(text));
        }
        for note in &step.notes {
            let text = format!("step {number}: {note}");
            note_topics(note).iter().for_each(|topic| self.add(*topic, about(text.clone())));
        }
    }
}

fn note_topics(note: &Note) -> &'static [Topic] {
    match note {
        Note::Spin { .. }
        | Note::Closed { .. }
        | Note::Denied { .. }
        | Note::Declined { .. }
        | Note::NotChecked { .. } => &[Topic::Failure],
        Note::Verified { faults, .. } if !faults.is_empty() => &[Topic::Failure],
        Note::LookedUp { failed, .. } if !failed.is_empty() => &[Topic::Failure],
        Note::Doubted { doubts } if !doubts.is_empty() => &[Topic::Failure],
        Note::Verified { .. }
        | Note::LookedUp { .. }
        | Note::Doubted { .. }
        | Note::Disputed { .. }
        | Note::Reconsidered => &[],
        Note::Guarded { said, .. } => {
            let is_refused = said.verdicts.iter().any(|verdict| verdict.verdict == Ruling::Refuse);
            if is_refused { &[Topic::Guards, Topic::Failure] } else { &[Topic::Guards] }
        }
        Note::Approval { .. } | Note::Form { .. } => &[Topic::People],
    }
}

/// Failures by task, in the order of the first failure.
pub(super) fn by_task(state: &RunState, failures: Vec<FailureItem>) -> Vec<TaskFailures> {
    let mut by_task: BTreeMap<Option<TaskId>, Vec<FailureItem>> = BTreeMap::new();
    for failure in failures {
        let items = by_task.entry(failure.item.task.clone()).or_default();
        // Plans also change for other reasons: without an earlier failure, a change is not a reaction.
        if !failure.is_answer || failure.item.task.is_some() || !items.is_empty() {
            items.push(failure);
        }
    }
    by_task.retain(|_, items| !items.is_empty());
    let mut all: Vec<TaskFailures> =
        by_task.into_iter().map(|(task, items)| of_task(state, task, items)).collect();
    all.sort_by_key(|one| one.items.iter().flat_map(|failure| &failure.item.entries).min().copied());
    all
}

fn of_task(state: &RunState, task: Option<TaskId>, items: Vec<FailureItem>) -> TaskFailures {
    let index = task.as_ref().and_then(TaskId::as_leaf);
    let plan = state.plan.as_ref();
    let planned = index.and_then(|index| plan?.tasks.get(&index.planned()));
    let leaf = index.filter(|index| !index.is_member() && plan.is_some_and(|plan| plan.is_leaf(index)));
    TaskFailures {
        name: planned.map(|planned| words::brief(&planned.name)).unwrap_or_default(),
        end: leaf.map(|index| end_of(state, index)),
        task,
        items,
    }
}
