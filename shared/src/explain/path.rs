//! Where time went: by phase, by task, and along the critical path.
//!
//! The path is followed from the end backwards. A decision names the entries that it was made on: of these, the end of a
//! task that came last is what it waited for. That task was offered by an earlier decision, and so on to the goal. What lies
//! between is time that somebody worked, or that was waited for something.

use std::collections::BTreeMap;

use serde::Serialize;

use super::story::{Hold, Story, Try};
use super::task_time::{TaskTime, tasks};
use crate::ids::{AgentId, Generation, Seq, TaskId};
use crate::run::{Decided, Input, Phase, RecordEvent, RunEvent, RunState};

/// Where time went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Time {
    /// From the first entry to the end of the run, or to the last entry, in milliseconds.
    pub total_ms: u64,
    /// How long each phase lasted, in order: together no more than the whole.
    pub phases: Vec<PhaseTime>,
    /// The chain of work and waits that set the end: its parts follow each other without a gap, and last as long as the
    /// whole.
    pub critical_path: Vec<PathSegment>,
    /// The same, summed up by what was done, the longest first.
    pub path_by_kind: Vec<(SegmentKind, u64)>,
    /// Every task that was offered, the one with the most work first.
    pub tasks: Vec<TaskTime>,
}

/// How long a phase lasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseTime {
    /// The phase.
    pub phase: Phase,
    /// Whether the run was paused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Its time, in milliseconds.
    pub millis: u64,
}

/// What a part of the critical path was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// An agent worked on the task.
    Work,
    /// An agent had the task that was lost, or handed it back: another one went on.
    Lost,
    /// The task waited for an agent.
    Agent,
    /// An orchestrator had yet to take into account what was there.
    Decision,
    /// An answer of a person was waited for.
    Person,
    /// The run was paused.
    Pause,
    /// The end of a run within was waited for.
    ChildRun,
    /// The verdict of guards was waited for.
    Guards,
    /// Bids were waited for.
    Bids,
    /// There was no room in the queue.
    Room,
    /// A time had to pass.
    Clock,
}

/// A part of the critical path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathSegment {
    /// What it was spent on.
    pub kind: SegmentKind,
    /// The task, where it was spent on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Which offer of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// The agent that had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// When it began, in milliseconds after the first entry.
    pub from_ms: u64,
    /// How long it was, in milliseconds.
    pub millis: u64,
    /// Of work: time in models, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub model_ms: u64,
    /// Of work: time in tools, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub tool_ms: u64,
    /// The entries between which it lies.
    pub entries: [Seq; 2],
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(millis: &u64) -> bool {
    *millis == 0
}

/// Where the time of a run went.
pub(super) fn time(state: &RunState, story: &Story<'_>) -> Time {
    let critical_path = critical_path(state, story);
    let mut by_kind: BTreeMap<SegmentKind, u64> = BTreeMap::new();
    for part in &critical_path {
        let sum = by_kind.entry(part.kind).or_default();
        *sum = sum.saturating_add(part.millis);
    }
    let mut path_by_kind: Vec<(SegmentKind, u64)> =
        by_kind.into_iter().filter(|(_, millis)| *millis > 0).collect();
    path_by_kind.sort_by_key(|(_, millis)| std::cmp::Reverse(*millis));
    let total_ms = end(story).map_or(0, |end| between(story, 0, end));
    let tasks = tasks(state, story, &critical_path);
    Time { total_ms, phases: story.phases.clone(), critical_path, path_by_kind, tasks }
}

/// The entry at which the path ends: the end of the run, or the last entry.
fn end(story: &Story<'_>) -> Option<usize> {
    story.ended.or_else(|| story.entries.len().checked_sub(1))
}

pub(super) fn between(story: &Story<'_>, from: usize, to: usize) -> u64 {
    story.at(to).0.saturating_sub(story.at(from).0)
}

/// What a decision waited for last.
enum Cause {
    /// The end of a try.
    Try(TaskId, Generation),
    /// Something that an earlier decision asked for, or what came before.
    Since(usize, SegmentKind),
}

fn critical_path(state: &RunState, story: &Story<'_>) -> Vec<PathSegment> {
    let Some(mut at) = end(story) else { return Vec::new() };
    let mut path = Vec::new();
    let mut task: Option<TaskId> = None;
    // Every step goes to an earlier entry, so that this ends.
    while at > 0 {
        match cause(state, story, at, task.as_ref()) {
            Cause::Try(of, generation) => {
                let found = story.tries.get(&(of.clone(), generation));
                let Some((found, ended)) = found.and_then(|found| Some((found, found.end?))) else { break };
                path.push(segment(story, SegmentKind::Decision, (ended, at), Some((&of, generation))));
                path.extend(parts(story, (&of, generation), found, ended).into_iter().rev());
                at = found.offered;
                task = Some(of);
            }
            Cause::Since(since, kind) => {
                path.push(segment(story, kind, (since, at), None));
                at = since;
            }
        }
    }
    path.retain(|part| part.millis > 0);
    path.reverse();
    path
}

fn cause(state: &RunState, story: &Story<'_>, at: usize, task: Option<&TaskId>) -> Cause {
    let Some(RecordEvent::Decided(decided)) = story.entries.get(at).map(|entry| &entry.event) else {
        // Of a run that goes on: what was written last is no decision.
        return Cause::Since(at.saturating_sub(1), SegmentKind::Work);
    };
    let ended = decided.inputs.iter().filter_map(|input| {
        let place = story.place(input.closes()?)?;
        let RecordEvent::Agent(key, _) = &story.entries.get(place)?.event else { return None };
        let found = story.tries.get(&(key.task.clone(), key.generation))?;
        let is_its_end = found.end == Some(place) && place < at && found.offered < place;
        is_its_end.then(|| (place, key.task.clone(), key.generation))
    });
    if let Some((_, task, generation)) = ended.max_by_key(|(place, _, _)| *place) {
        return Cause::Try(task, generation);
    }
    if let Some((since, kind)) = asked_for(story, at, decided) {
        return Cause::Since(since, kind);
    }
    if let Some(since) = task.and_then(|task| dependency(state, story, task, at)) {
        return Cause::Since(since, SegmentKind::Room);
    }
    let since = previous_decision(story, at);
    Cause::Since(since, decided.inputs.iter().map(kind_of).find(is_a_wait).unwrap_or(SegmentKind::Decision))
}

/// What a decision has the answer to, and where it was asked for.
fn asked_for(story: &Story<'_>, at: usize, decided: &Decided) -> Option<(usize, SegmentKind)> {
    let asked = |wanted: &dyn Fn(&RunEvent) -> bool| {
        (0..at).rev().find(|place| events_at(story, *place).iter().any(wanted))
    };
    decided.events.iter().find_map(|event| {
        if let RunEvent::QuestionAnswered(answered) = event {
            let id = answered.reply.question;
            asked(&|event| matches!(event, RunEvent::QuestionAsked(asked) if asked.id == id))
                .map(|since| (since, SegmentKind::Person))
        } else if let RunEvent::RunResumed(_) = event {
            asked(&|event| matches!(event, RunEvent::RunPaused(_))).map(|since| (since, SegmentKind::Pause))
        } else if let RunEvent::ChildEnded(ended) = event {
            asked(&|event| matches!(event, RunEvent::ChildBegun(begun) if begun.run == ended.run))
                .map(|since| (since, SegmentKind::ChildRun))
        } else if let RunEvent::GuardsAnswered(answered) = event {
            let number = answered.number;
            asked(&|event| matches!(event, RunEvent::GuardsAsked(asked) if asked.number == number))
                .map(|since| (since, SegmentKind::Guards))
        } else if let RunEvent::TaskAwarded(awarded) = event {
            asked(&|event| matches!(event, RunEvent::AuctionOpened(opened) if opened.task == awarded.task))
                .map(|since| (since, SegmentKind::Bids))
        } else {
            None
        }
    })
}

fn events_at<'a>(story: &Story<'a>, place: usize) -> &'a [RunEvent] {
    match story.entries.get(place).map(|entry| &entry.event) {
        Some(RecordEvent::Decided(decided)) => &decided.events,
        Some(RecordEvent::Offered(_) | RecordEvent::Agent(..)) | None => &[],
    }
}

/// The decision that closed the last of the tasks that a task depends on.
fn dependency(state: &RunState, story: &Story<'_>, task: &TaskId, at: usize) -> Option<usize> {
    let planned = state.plan.as_ref()?.tasks.get(&task.as_leaf()?.planned())?;
    let needed = planned.depends_on.iter().map(|index| TaskId::Leaf(index.clone()));
    let closed = needed.filter_map(|needed| {
        story.tries_of(&needed).filter_map(|(_, found)| found.closed).filter(|closed| *closed < at).max()
    });
    closed.max()
}

fn previous_decision(story: &Story<'_>, at: usize) -> usize {
    let is_decision = |place: &usize| {
        matches!(story.entries.get(*place).map(|entry| &entry.event), Some(RecordEvent::Decided(_)))
    };
    (0..at).rev().find(is_decision).unwrap_or(0)
}

/// Whether it is more than that an orchestrator had yet to decide.
const fn is_a_wait(kind: &SegmentKind) -> bool {
    !matches!(kind, SegmentKind::Decision)
}

/// What was waited for, by what a decision was made on.
const fn kind_of(input: &Input) -> SegmentKind {
    match input {
        Input::Request(_) | Input::TrialWithdrawn { .. } => SegmentKind::Person,
        Input::ChildEnded { .. } => SegmentKind::ChildRun,
        Input::GuardsSaid { .. } => SegmentKind::Guards,
        Input::Bids { .. } => SegmentKind::Bids,
        Input::Capacity => SegmentKind::Room,
        Input::Timer | Input::Silent { .. } => SegmentKind::Clock,
        Input::AgentLost { .. } => SegmentKind::Lost,
        Input::Goal { .. }
        | Input::Fork { .. }
        | Input::Refuse { .. }
        | Input::Agent { .. }
        | Input::Unreadable { .. }
        | Input::ContractBroken { .. } => SegmentKind::Decision,
    }
}

/// The parts of a try, from its offer to its end.
pub(super) fn parts(
    story: &Story<'_>,
    of: (&TaskId, Generation),
    found: &Try,
    ended: usize,
) -> Vec<PathSegment> {
    let mut parts = Vec::new();
    let mut at = found.offered;
    let mut held = found.held.iter().filter(|hold| hold.from < ended).peekable();
    if held.peek().is_none() {
        return vec![worked(story, of, (at, ended), found, None)];
    }
    while let Some(Hold { agent, from, lost }) = held.next() {
        let from = (*from).max(at);
        parts.push(segment(story, SegmentKind::Agent, (at, from), Some(of)));
        let next = held.peek().map(|next| next.from);
        let lost = lost.filter(|lost| *lost <= ended && *lost >= from);
        at = match (lost, next) {
            (Some(lost), _) => lost,
            (None, Some(next)) => next.max(from),
            (None, None) => ended,
        };
        let counts = lost.is_none() && next.is_none();
        let mut part = worked(story, of, (from, at), found, Some(agent));
        if !counts {
            part.kind = SegmentKind::Lost;
        }
        parts.push(part);
    }
    // Whoever went on after the last one that lost it is not named in the record.
    if at < ended {
        parts.push(worked(story, of, (at, ended), found, None));
    }
    parts
}

fn worked(
    story: &Story<'_>,
    of: (&TaskId, Generation),
    (from, to): (usize, usize),
    found: &Try,
    agent: Option<&AgentId>,
) -> PathSegment {
    let mut part = segment(story, SegmentKind::Work, (from, to), Some(of));
    let within = || found.steps.iter().filter(|step| step.place > from && step.place <= to);
    // Calls that were made side by side count each: together no more than the time that passed.
    part.model_ms = within().map(|step| step.model_ms).fold(0, u64::saturating_add).min(part.millis);
    let tools = within().map(|step| step.tool_ms).fold(0, u64::saturating_add);
    part.tool_ms = tools.min(part.millis.saturating_sub(part.model_ms));
    part.agent = agent.cloned();
    part
}

fn segment(
    story: &Story<'_>,
    kind: SegmentKind,
    (from, to): (usize, usize),
    of: Option<(&TaskId, Generation)>,
) -> PathSegment {
    PathSegment {
        kind,
        task: of.map(|(task, _)| task.clone()),
        generation: of.map(|(_, generation)| generation),
        agent: None,
        from_ms: between(story, 0, from),
        millis: between(story, from, to),
        model_ms: 0,
        tool_ms: 0,
        entries: [story.seq(from), story.seq(to)],
    }
}
