//! Run timeline: one pass over the log for roles, phases, tool calls, and usage.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cost::{Before, Ledger};
use crate::ids::{QuestionId, Role, Seq, TaskId};
use crate::run::{AgentEvent, AgentKey, Entry, Phase, RecordEvent, RunEvent, RunState, ToolUses, apply};

/// Duration of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseTime {
    /// Phase.
    pub phase: Phase,
    /// Whether the run was paused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Duration in milliseconds.
    pub millis: u64,
}

#[derive(Debug, Default)]
pub(super) struct RunTimeline<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) roles: BTreeMap<TaskId, Role>,
    pub(super) phases: Vec<PhaseTime>,
    /// Decision that ended the run.
    pub(super) ended: Option<&'a Entry>,
    pub(super) ledger: Ledger,
    pub(super) tools: ToolUses,
    /// Last entry that ended an attempt of each task.
    ends: BTreeMap<TaskId, Seq>,
}

impl<'a> RunTimeline<'a> {
    pub(super) fn read(state: &RunState, entries: &'a [Entry]) -> Self {
        let mut timeline = Self { entries, ..Self::default() };
        let (mut folded, mut is_foldable, mut last) = (None::<RunState>, true, None::<&Entry>);
        for entry in entries {
            let passed = last.map_or(0, |last| entry.at.0.saturating_sub(last.at.0));
            timeline.add_time(passed, folded.as_ref());
            last = Some(entry);
            if is_foldable {
                let before = Before::of(folded.as_ref());
                is_foldable = apply(&mut folded, entry).is_ok();
                if let Some(after) = folded.as_ref().filter(|_| is_foldable) {
                    timeline.ledger.note(before, after, entry);
                }
            }
            timeline.tools.count(entry);
            if entry.event.events().iter().any(RunEvent::ends_run) {
                timeline.ended = Some(entry);
            }
            if let RecordEvent::Agent(key, event) = &entry.event {
                timeline.agent(entry.seq, key, event);
            }
        }
        timeline.ledger.close(state);
        timeline
    }

    pub(super) fn total_ms(&self) -> u64 {
        let end = self.ended.or(self.entries.last());
        let span = self.entries.first().zip(end);
        span.map_or(0, |(first, end)| end.at.0.saturating_sub(first.at.0))
    }

    /// Last entry that ended an attempt of a task.
    pub(super) fn end_of(&self, task: &TaskId) -> Vec<Seq> {
        self.ends.get(task).copied().into_iter().collect()
    }

    /// Events of all decisions with their entries.
    pub(super) fn events(&self) -> impl Iterator<Item = (&'a Entry, &'a RunEvent)> + use<'a> {
        self.entries.iter().flat_map(|entry| entry.event.events().iter().map(move |event| (entry, event)))
    }

    /// Entries with an event of this kind.
    pub(super) fn entries_with(&self, is_wanted: impl Fn(&RunEvent) -> bool) -> Vec<Seq> {
        self.events().filter(|(_, event)| is_wanted(event)).map(|(entry, _)| entry.seq).collect()
    }

    /// Entry that asked a question.
    pub(super) fn asked(&self, id: QuestionId) -> Vec<Seq> {
        self.entries_with(|event| matches!(event, RunEvent::QuestionAsked(asked) if asked.id == id))
    }

    fn add_time(&mut self, passed: u64, state: Option<&RunState>) {
        let Some(state) = state.filter(|state| state.phase != Phase::Ended) else { return };
        let (phase, paused) = (state.phase, state.control.paused.is_some());
        match self.phases.last_mut().filter(|last| (last.phase, last.paused) == (phase, paused)) {
            Some(last) => last.millis = last.millis.saturating_add(passed),
            None => self.phases.push(PhaseTime { phase, paused, millis: passed }),
        }
    }

    fn agent(&mut self, seq: Seq, key: &AgentKey, event: &AgentEvent) {
        self.roles.entry(key.task.clone()).or_insert_with(|| key.role.clone());
        if let Some(step) = event.step() {
            step.calls.iter().for_each(|call| self.ledger.model(call));
            self.ledger.time(&key.task, step);
        }
        let ends = match event {
            AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) => true,
            AgentEvent::Released(released) => released.parked || released.wait.is_some(),
            AgentEvent::Step(_) | AgentEvent::Started(_) | AgentEvent::ToolStarted(_) => false,
        };
        if ends {
            self.ends.insert(key.task.clone(), seq);
        }
    }
}
