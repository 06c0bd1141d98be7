//! The course of a run: what was considered, what went wrong and what was done about it, and where it turned.

use std::collections::BTreeMap;

use serde::Serialize;

use super::story::Story;
use super::topics::{Topic, topics};
use super::{Told, words};
use crate::flow::{Action, Arm, Note, ObservationStatus, Ruling, Step, TaskOffered};
use crate::ids::{Seq, TaskId};
use crate::run::{AgentEvent, AgentKey, Entry, RecordEvent, RunState, TaskEnd, end_of};

/// What went wrong with a task, or with the run itself, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// The task; nothing for the run itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// What it is called.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What became of it in the end, where it stands in the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<TaskEnd>,
    /// What went wrong and what was done about it, in order.
    pub items: Vec<TroubleItem>,
}

/// Something that went wrong, or that was done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TroubleItem {
    /// Whether it is what was done, not what went wrong.
    pub is_answer: bool,
    /// What it was.
    #[serde(flatten)]
    pub told: Told,
}

/// What a record tells, sorted by the questions that people have.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub(super) considered: Vec<Told>,
    pub(super) turning_points: Vec<Told>,
    pub(super) people: Vec<Told>,
    pub(super) guards: Vec<Told>,
    troubles: Vec<TroubleItem>,
}

impl Course {
    /// Sorts what a record tells.
    pub(super) fn of(story: &Story<'_>) -> Self {
        let mut course = Self::default();
        for entry in story.entries {
            match &entry.event {
                RecordEvent::Decided(decided) => {
                    for event in &decided.events {
                        let told = || words::told(entry, event);
                        topics(event).iter().for_each(|topic| course.add(*topic, told()));
                    }
                    decided.offer.iter().for_each(|offer| course.tried(entry, offer));
                }
                RecordEvent::Agent(key, event) => course.agent(entry, key, event),
                RecordEvent::Offered(offer) => course.tried(entry, offer),
            }
        }
        course
    }

    /// A task that was not done as usual, since something else is tried.
    fn tried(&mut self, entry: &Entry, offer: &TaskOffered) {
        let Some(mark) = offer.trial.as_ref().filter(|mark| mark.arm != Arm::Control) else { return };
        let text = words::brief(&format!(
            "trial {}: {} goes to {} as a {}",
            mark.trial,
            offer.task,
            offer.queue,
            mark.arm.as_str()
        ));
        let (task, entries) = (Some(offer.task.clone()), vec![entry.seq]);
        self.considered.push(Told { text, task, at: Some(entry.at), entries });
    }

    fn add(&mut self, topic: Topic, told: Told) {
        match topic {
            Topic::Turn => self.turning_points.push(told),
            Topic::Considered => self.considered.push(told),
            Topic::Failure => self.troubles.push(TroubleItem { is_answer: false, told }),
            Topic::Answer => self.troubles.push(TroubleItem { is_answer: true, told }),
            Topic::People => self.people.push(told),
            Topic::Guards => self.guards.push(told),
        }
    }

    fn agent(&mut self, entry: &Entry, key: &AgentKey, event: &AgentEvent) {
        let about = |text: String| Told {
            text,
            task: Some(key.task.clone()),
            at: Some(entry.at),
            entries: vec![entry.seq],
        };
        match event {
            AgentEvent::Step(step) => self.step(step, &about),
            AgentEvent::Outcome(outcome) => {
                if let Some(step) = &outcome.last_step {
                    self.step(step, &about);
                }
            }
            AgentEvent::Unreadable(unreadable) => {
                let (kind, why) = (unreadable.kind, words::brief(&unreadable.why));
                self.add(Topic::Failure, about(format!("{kind} by {} cannot be read: {why}", key.agent)));
            }
            AgentEvent::Started(_) | AgentEvent::ToolStarted(_) | AgentEvent::Released(_) => {}
        }
    }

    fn step(&mut self, step: &Step, about: &impl Fn(String) -> Told) {
        let number = step.number;
        for (action, observation) in step.acts().filter(|(action, _)| action.name != Action::SUBMIT) {
            let Some(observation) = observation else { continue };
            let Some(how) = went_wrong(observation.status) else { continue };
            let (tool, said) = (words::brief(&action.name), words::brief(&observation.content));
            self.add(Topic::Failure, about(format!("step {number}: {tool} {how}: {said}")));
        }
        for note in &step.notes {
            let told = || about(format!("step {number}: {}", words::brief(&note.to_string())));
            note_topics(note).iter().for_each(|topic| self.add(*topic, told()));
        }
    }
}

/// What is said of a call that did not go well.
const fn went_wrong(status: ObservationStatus) -> Option<&'static str> {
    match status {
        ObservationStatus::Success => None,
        ObservationStatus::Error => Some("failed"),
        ObservationStatus::Timeout => Some("took too long"),
        ObservationStatus::Refused => Some("was refused"),
    }
}

/// Which questions a remark of the loop has something to say on.
fn note_topics(note: &Note) -> &'static [Topic] {
    match note {
        Note::Spin { .. } | Note::Closed { .. } | Note::Denied { .. } | Note::Declined { .. } => {
            &[Topic::Failure]
        }
        Note::NotChecked { .. } => &[Topic::Failure],
        Note::Verified { faults, .. } if faults.is_empty() => &[],
        Note::Verified { .. } => &[Topic::Failure],
        Note::LookedUp { failed, .. } if failed.is_empty() => &[],
        Note::LookedUp { .. } => &[Topic::Failure],
        Note::GoalChecked { .. } | Note::Reconsidered => &[],
        Note::Guarded { said, .. } => {
            let refused = said.verdicts.iter().any(|verdict| verdict.verdict == Ruling::Refuse);
            if refused { &[Topic::Guards, Topic::Failure] } else { &[Topic::Guards] }
        }
        Note::Approval { .. } | Note::Form { .. } => &[Topic::People],
    }
}

/// What went wrong, by task, the first trouble first, and what became of each.
pub(super) fn troubles(state: &RunState, course: &Course, story: &Story<'_>) -> Vec<Trouble> {
    let mut by_task: BTreeMap<Option<TaskId>, Vec<TroubleItem>> = BTreeMap::new();
    for item in &course.troubles {
        let items = by_task.entry(item.told.task.clone()).or_default();
        // A plan is changed for other reasons too: where nothing went wrong before, that is no answer.
        let is_meant = !item.is_answer || item.told.task.is_some() || !items.is_empty();
        if is_meant {
            items.push(item.clone());
        }
    }
    by_task.retain(|_, items| !items.is_empty());
    let mut troubles: Vec<Trouble> =
        by_task.into_iter().map(|(task, items)| trouble(state, task, items)).collect();
    let first = |trouble: &Trouble| trouble.items.iter().filter_map(|item| place(story, item)).min();
    troubles.sort_by_key(first);
    troubles
}

fn place(story: &Story<'_>, item: &TroubleItem) -> Option<usize> {
    item.told.entries.iter().filter_map(|seq: &Seq| story.place(*seq)).min()
}

fn trouble(state: &RunState, task: Option<TaskId>, items: Vec<TroubleItem>) -> Trouble {
    let index = task.as_ref().and_then(TaskId::as_leaf);
    let planned = index.and_then(|index| state.plan.as_ref()?.tasks.get(&index.planned()));
    let is_leaf = |index: &&crate::ids::TaskIndex| {
        !index.is_member() && state.plan.as_ref().is_some_and(|plan| plan.is_leaf(index))
    };
    Trouble {
        name: planned.map(|planned| words::brief(&planned.name)).unwrap_or_default(),
        end: index.filter(is_leaf).map(|index| end_of(state, index)),
        task,
        items,
    }
}
