//! Where the time of each task went.

use std::collections::BTreeMap;

use serde::Serialize;

use super::path::{PathSegment, SegmentKind, between, parts};
use super::story::{Story, Try};
use crate::ids::{AgentId, Role, TaskId};
use crate::run::RunState;

/// Where the time of a task went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskTime {
    /// The task.
    pub task: TaskId,
    /// What it is called.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Who does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How often it was offered.
    pub offers: u32,
    /// The agents that had it, in order.
    pub agents: Vec<AgentId>,
    /// Time that agents worked on it whose work counted, in milliseconds.
    pub worked_ms: u64,
    /// Of that, in models.
    pub model_ms: u64,
    /// Of that, in tools.
    pub tool_ms: u64,
    /// Time with agents that lost it, in milliseconds.
    pub lost_ms: u64,
    /// Time that it waited for an agent, in milliseconds.
    pub queued_ms: u64,
    /// Time between its offers, when it was put down or was to be tried again, in milliseconds.
    pub held_ms: u64,
    /// How much of the critical path it is, in milliseconds.
    pub on_path_ms: u64,
}

/// Where the time of each task went: the one with the most work first.
pub(super) fn tasks(state: &RunState, story: &Story<'_>, path: &[PathSegment]) -> Vec<TaskTime> {
    let mut all: BTreeMap<TaskId, TaskTime> = BTreeMap::new();
    let mut before: Option<(&TaskId, &Try)> = None;
    for ((task, generation), found) in &story.tries {
        let told = all.entry(task.clone()).or_insert_with(|| unknown(state, story, task));
        told.offers = told.offers.saturating_add(1);
        let earlier = before.filter(|(other, _)| *other == task).and_then(|(_, earlier)| earlier.end);
        if let Some(earlier) = earlier {
            told.held_ms = told.held_ms.saturating_add(between(story, earlier, found.offered));
        }
        // One that is at work still is told up to where the record ends.
        let ended = found.end.or(story.ended).unwrap_or(story.entries.len().saturating_sub(1));
        for part in parts(story, (task, *generation), found, ended.max(found.offered)) {
            told.add(&part);
        }
        told.agents.extend(found.held.iter().map(|hold| hold.agent.clone()));
        before = Some((task, found));
    }
    for part in path {
        if let Some(told) = part.task.as_ref().and_then(|task| all.get_mut(task)) {
            told.on_path_ms = told.on_path_ms.saturating_add(part.millis);
        }
    }
    let mut all: Vec<TaskTime> = all.into_values().collect();
    all.sort_by_key(|told| std::cmp::Reverse(told.worked_ms.saturating_add(told.lost_ms)));
    all
}

fn unknown(state: &RunState, story: &Story<'_>, task: &TaskId) -> TaskTime {
    let planned = task.leaf().and_then(|index| state.plan.as_ref()?.tasks.get(&index.planned()));
    TaskTime {
        task: task.clone(),
        name: planned.map(|planned| super::words::brief(&planned.name)).unwrap_or_default(),
        role: story.roles.get(task).cloned(),
        offers: 0,
        agents: Vec::new(),
        worked_ms: 0,
        model_ms: 0,
        tool_ms: 0,
        lost_ms: 0,
        queued_ms: 0,
        held_ms: 0,
        on_path_ms: 0,
    }
}

impl TaskTime {
    fn add(&mut self, part: &PathSegment) {
        let sum = match part.kind {
            SegmentKind::Work => &mut self.worked_ms,
            SegmentKind::Lost => &mut self.lost_ms,
            SegmentKind::Agent => &mut self.queued_ms,
            SegmentKind::Decision
            | SegmentKind::Person
            | SegmentKind::Pause
            | SegmentKind::ChildRun
            | SegmentKind::Guards
            | SegmentKind::Bids
            | SegmentKind::Room
            | SegmentKind::Clock => &mut self.held_ms,
        };
        *sum = sum.saturating_add(part.millis);
        self.model_ms = self.model_ms.saturating_add(part.model_ms);
        self.tool_ms = self.tool_ms.saturating_add(part.tool_ms);
    }
}
