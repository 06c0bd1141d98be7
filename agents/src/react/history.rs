//! What happened in a task so far, folded from its part of the record.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use muster_journal::{Found, TaskFold};
use muster_shared::flow::{
    Action, CallDigest, ModelCall, Note, Observation, ObservationStatus, Outcome, Step, StepDigest,
    StoredMessage, Usage,
};
use muster_shared::ids::{Attempt, Seq};
use muster_shared::run::{AgentEvent, Entry, RecordEvent, ToolStarted};
use muster_shared::text::first_line;
use serde_json::Value;

use super::toolset::model_name;

/// Longest main argument shown in a digest, in characters.
const DIGEST_ARGUMENT: usize = 80;
/// Most actions of one step that are shown in a digest.
const MOST_ACTIONS: usize = 4;
/// Most further calls of one step that are counted.
const MOST_CALLS: usize = 64;
/// Most lines of one observation that are compared with those before.
const MAX_COMPARED: usize = 2_000;

/// The steps of one generation of a task, over all its attempts, and those of the generations that it goes on from.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Where the task stands.
    fold: TaskFold,
    steps: Vec<Step>,
    usage: Usage,
    /// The messages of the last model call, put together from the deltas in the record.
    sent: Vec<StoredMessage>,
    /// How often an action was chosen since the last one with lasting effect.
    chosen: HashMap<String, Vec<u32>>,
    /// Lines of observations that were seen, by hash.
    seen: HashSet<u64>,
    /// The steps since something new was learnt or done.
    since_new: usize,
}

impl History {
    /// Folds the entries of one generation of one task, in the order of the record.
    #[must_use]
    pub fn fold(entries: Vec<Entry>) -> Self {
        Self::default().and_then(entries)
    }

    /// Folds what was found before a task was begun.
    #[must_use]
    pub fn of(Found { before, entries }: Found<Entry>) -> Self {
        before.into_iter().fold(Self::default(), Self::going_on_from).and_then(entries)
    }

    /// Folds the entries of this generation after those of the generations that it goes on from.
    #[must_use]
    pub fn and_then(mut self, entries: Vec<Entry>) -> Self {
        for entry in entries {
            if let RecordEvent::Agent(key, event) = entry.event {
                // Only a tool with lasting effect is announced under a key before it runs.
                let lasting = self.begun().is_some_and(|begun| !begun.idempotency_key.is_empty());
                self.fold.note(&key, entry.seq, &event);
                self.apply(event, lasting);
            }
        }
        self
    }

    /// Folds the entries of an earlier generation that this one goes on from. Its attempts and its end are its own.
    #[must_use]
    pub fn going_on_from(self, entries: Vec<Entry>) -> Self {
        let before = self.and_then(entries);
        Self { fold: before.fold.before_the_next(), ..before }
    }

    /// Calls of models that were most likely sent and never answered, by those who had the task and died.
    #[must_use]
    pub fn unanswered(&self) -> u32 {
        self.fold.unanswered()
    }

    fn apply(&mut self, event: AgentEvent, lasting: bool) {
        match event {
            AgentEvent::Started(_) | AgentEvent::ToolStarted(_) | AgentEvent::Unreadable(_) => {}
            AgentEvent::Step(step) => self.push(step, lasting),
            AgentEvent::Released(released) => {
                self.usage += released.usage;
                if released.parked {
                    // The run has counted it: what comes after is counted by itself.
                    self.usage = Usage::default();
                }
            }
            AgentEvent::Outcome(_) => self.usage = Usage::default(),
        }
    }

    /// Why it is not known which tool was begun last, if that is so.
    #[must_use]
    pub fn announced_unreadably(&self) -> Option<&str> {
        self.fold.announced_unreadably()
    }

    /// Adds a step that is in the record. `lasting`: it may have changed something outside.
    pub fn push(&mut self, step: Step, lasting: bool) {
        self.usage += usage_of(&step);
        self.fold.took_step(step.number);
        for call in step.calls.iter().filter(|call| !call.aside) {
            self.sent.truncate(usize::try_from(call.same_messages).unwrap_or(usize::MAX));
            self.sent.extend(call.messages.iter().cloned());
        }
        if lasting {
            self.chosen.clear();
        }
        for (action, _) in step.acts() {
            self.chosen.entry(fingerprint(action)).or_default().push(step.number);
        }
        let learnt = step.observations().filter(|seen| self.learns(seen)).count() > 0;
        let new = learnt || lasting && step.observations().any(is_done);
        self.since_new = if new { 0 } else { self.since_new + 1 };
        self.steps.push(step);
    }

    /// Whether an observation says anything that no earlier one said.
    fn learns(&mut self, seen: &Observation) -> bool {
        let lines = seen.content.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut new = false;
        for line in lines.take(MAX_COMPARED) {
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            new |= self.seen.insert(hasher.finish());
        }
        new && is_done(seen)
    }

    /// The last steps, since something new was learnt or done.
    #[must_use]
    pub fn in_vain(&self) -> &[Step] {
        &self.steps[self.steps.len().saturating_sub(self.since_new)..]
    }

    /// How many of the last steps in a row were of this kind and gave nothing new.
    #[must_use]
    pub fn in_vain_by(&self, tool: &str) -> u32 {
        let same = |step: &&Step| model_name(&step.action.name) == model_name(tool);
        u32::try_from(self.in_vain().iter().rev().take_while(same).count()).unwrap_or(u32::MAX)
    }

    /// How often the model was told that it goes in circles since something new was learnt or done.
    #[must_use]
    pub fn spins(&self) -> u32 {
        let told = |step: &&Step| step.notes.iter().any(|note| matches!(note, Note::Spin { .. }));
        u32::try_from(self.in_vain().iter().filter(told).count()).unwrap_or(u32::MAX)
    }

    /// The steps taken, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The calls of all steps, the newest first.
    pub fn newest_calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.steps.iter().rev().flat_map(|step| step.calls.iter().rev())
    }

    /// The step to be taken next, from 1.
    #[must_use]
    pub fn next_step(&self) -> u32 {
        self.fold.last_step().saturating_add(1)
    }

    /// The try that would come next, from 1.
    #[must_use]
    pub fn next_attempt(&self) -> Attempt {
        self.fold.next_attempt()
    }

    /// The last position in the record that was folded.
    #[must_use]
    pub const fn last(&self) -> Seq {
        self.fold.last()
    }

    /// Whether the outcome is in the record: nobody may go on.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.fold.is_closed()
    }

    /// The good end that an earlier generation came to after it had been closed: nothing is left to be done.
    #[must_use]
    pub fn ended_before(&self) -> Option<Outcome> {
        let ended = self.fold.ended().filter(|outcome| outcome.ending.is_success())?;
        Some(Outcome { usage: Usage::default(), ..ended.clone() })
    }

    /// What all steps used.
    #[must_use]
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// The messages of the last model call that the record holds.
    #[must_use]
    pub fn sent(&self) -> &[StoredMessage] {
        &self.sent
    }

    /// The call that was begun and whose end nobody recorded.
    #[must_use]
    pub const fn begun(&self) -> Option<&ToolStarted> {
        self.fold.begun()
    }

    /// The step that did the very same with a known end, nothing having changed since.
    #[must_use]
    pub fn same_action(&self, action: &Action) -> Option<&Step> {
        let wanted = fingerprint(action);
        let numbers = self.chosen.get(&wanted)?;
        let known = |step: &&Step| {
            let mut same = step.acts().filter(|(action, _)| fingerprint(action) == wanted);
            numbers.len() > 1 || same.any(|(_, seen)| seen.is_some_and(|seen| has_ended(step, seen)))
        };
        let number = numbers.last()?;
        self.steps.iter().rev().find(|step| step.number == *number).filter(known)
    }

    /// Every step in brief.
    #[must_use]
    pub fn digests(&self) -> Vec<StepDigest> {
        self.steps.iter().map(digest).collect()
    }
}

/// Whether it is known what an action leads to. A time-out may be tried once more, and so may what was not done for the
/// sake of others in the same step.
const fn has_ended(step: &Step, seen: &Observation) -> bool {
    match seen.status {
        ObservationStatus::Success | ObservationStatus::Error => true,
        ObservationStatus::Refused => step.more.is_empty(),
        ObservationStatus::Timeout => false,
    }
}

fn is_done(seen: &Observation) -> bool {
    seen.status == ObservationStatus::Success
}

/// What one step used.
#[must_use]
pub fn usage_of(step: &Step) -> Usage {
    let mut usage = Usage { steps: 1, ..Usage::default() };
    for call in &step.calls {
        usage += call.usage;
    }
    let called = step.observations().filter(|seen| seen.status != ObservationStatus::Refused).count();
    usage.tool_calls += called as u64;
    usage
}

/// One step in brief: the tool and its main argument, cut short.
#[must_use]
pub fn digest(step: &Step) -> StepDigest {
    StepDigest {
        number: step.number,
        action: all_in_brief(step),
        status: step.observation.as_ref().map(|seen| seen.status),
        // The model's time says nothing of the tool.
        millis: step.observation.as_ref().map_or(step.millis, |seen| seen.millis),
        more: step
            .acts()
            .skip(1)
            .filter_map(|(action, seen)| called(action, seen?))
            .take(MOST_CALLS)
            .collect(),
    }
}

/// A further call of a step; nothing where it was not made.
fn called(action: &Action, seen: &Observation) -> Option<CallDigest> {
    let Observation { status, millis, .. } = *seen;
    let is_made = status != ObservationStatus::Refused;
    is_made.then(|| CallDigest { tool: action.name.clone(), status, millis })
}

/// The actions of a step in brief. The first word is the tool: whoever looks which one failed takes it for that.
fn all_in_brief(step: &Step) -> String {
    let mut told = step.acts().take(MOST_ACTIONS).map(|(action, _)| in_brief(action));
    let first = told.next().unwrap_or_default();
    let others: Vec<String> = told.collect();
    let apart = match (others.is_empty(), first.contains(' ')) {
        (true, _) => "",
        (false, true) => "; ",
        (false, false) => " ; ",
    };
    first + apart + &others.join("; ")
}

/// An action in brief: its name and its main argument, cut short.
#[must_use]
pub fn in_brief(action: &Action) -> String {
    if action.name == Action::SUBMIT {
        return action.name.clone();
    }
    let main = match &action.arguments {
        Value::Object(fields) => fields.values().find_map(Value::as_str),
        Value::String(text) => Some(text.as_str()),
        _ => None,
    };
    match main {
        None => action.name.clone(),
        Some(text) => format!("{} {}", action.name, first_line(text, DIGEST_ARGUMENT)),
    }
}

/// Tells actions apart whatever the order of their arguments.
fn fingerprint(action: &Action) -> String {
    let mut text = action.name.replace('.', "_");
    text.push(' ');
    text.push_str(&super::record::canonical(&action.arguments));
    text
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
