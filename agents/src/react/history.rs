//! What happened in a task so far, folded from its part of the record.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use muster_shared::flow::{
    Action, Note, Observation, ObservationStatus, Outcome, Step, StepDigest, StoredMessage, Usage,
};
use muster_shared::ids::{AgentId, Attempt, Seq};
use muster_shared::run::{AgentEvent, Entry, EventKind, RecordEvent, ToolStarted, Unreadable};
use muster_shared::text::first_line;
use serde_json::Value;

use super::toolset::model_name;

/// Longest main argument shown in a digest, in characters.
const DIGEST_ARGUMENT: usize = 80;
/// Most lines of one observation that are compared with those before.
const MAX_COMPARED: usize = 2_000;

/// The steps of one generation of a task, over all its attempts, and those of the generations that it goes on from.
#[derive(Debug, Clone, Default)]
pub struct History {
    steps: Vec<Step>,
    /// A tool that was begun and whose end nobody recorded.
    interrupted: Option<ToolStarted>,
    /// Why what may have announced one cannot be read.
    announced_unreadably: Option<String>,
    /// How the generation before this one ended, if it did so after it had been closed.
    ended_before: Option<Outcome>,
    attempts: u32,
    /// Who began last and has not ended, and where that stands.
    holder: Option<(AgentId, Seq)>,
    /// Attempts that ended without a word, and most likely in the middle of a call, which nobody has counted.
    unanswered: u32,
    last: Seq,
    closed: bool,
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

    /// Folds the entries of this generation after those of the generations that it goes on from.
    #[must_use]
    pub fn and_then(mut self, entries: Vec<Entry>) -> Self {
        for entry in entries {
            self.last = self.last.max(entry.seq);
            match entry.event {
                RecordEvent::Agent(key, event) => {
                    self.note_holder(key.agent, entry.seq, &event);
                    self.apply(event);
                }
                RecordEvent::Decided(_) | RecordEvent::Offered(_) => {}
            }
        }
        self
    }

    /// Folds the entries of an earlier generation that this one goes on from. Its attempts and its end are its own.
    #[must_use]
    pub fn going_on_from(self, entries: Vec<Entry>) -> Self {
        let mut before = self.and_then(entries);
        before.lose_holder();
        Self { attempts: 0, last: Seq(0), closed: false, ..before }
    }

    fn note_holder(&mut self, agent: AgentId, seq: Seq, event: &AgentEvent) {
        match event {
            AgentEvent::Started(_) => {
                self.lose_holder();
                self.holder = Some((agent, seq));
            }
            // Whoever says what was used counts those before it, too.
            AgentEvent::Released(_) | AgentEvent::Outcome(_) => {
                self.holder = None;
                self.unanswered = 0;
            }
            // By one that was to begin or to end it, the generation is closed.
            AgentEvent::Unreadable(unreadable) => match unreadable.kind {
                EventKind::Started | EventKind::Released | EventKind::Outcome => self.holder = None,
                EventKind::Tool | EventKind::Step => {}
            },
            AgentEvent::ToolStarted(_) | AgentEvent::Step(_) => {}
        }
    }

    /// Nothing more will be heard of who had it. What it had announced was no call of a model.
    fn lose_holder(&mut self) {
        if self.holder.take().is_some() && self.interrupted.is_none() {
            self.unanswered = self.unanswered.saturating_add(1);
        }
    }

    /// Who began last and has not ended, and where that stands.
    #[must_use]
    pub const fn holder(&self) -> Option<&(AgentId, Seq)> {
        self.holder.as_ref()
    }

    /// Calls of models that were most likely sent and never answered, by those who had the task and died.
    #[must_use]
    pub fn unanswered(&self) -> u32 {
        let last = self.holder.is_some() && self.interrupted.is_none();
        self.unanswered.saturating_add(u32::from(last))
    }

    fn apply(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Started(_) => self.attempts += 1,
            AgentEvent::ToolStarted(begun) => self.interrupted = Some(begun),
            AgentEvent::Step(step) => {
                // Only a tool with lasting effect is announced under a key before it runs.
                let announced = self.interrupted.take();
                let lasting = announced.is_some_and(|begun| !begun.idempotency_key.is_empty());
                self.push(step, lasting);
            }
            AgentEvent::Released(released) => {
                self.usage += released.usage;
                if released.parked {
                    // The run has counted it: what comes after is counted by itself.
                    self.usage = Usage::default();
                    self.closed = true;
                }
            }
            AgentEvent::Outcome(outcome) => {
                self.usage = Usage::default();
                self.ended_before = Some(outcome);
                self.closed = true;
            }
            AgentEvent::Unreadable(unreadable) => self.pass_over(unreadable),
        }
    }

    /// Takes note of an entry that cannot be read. Whoever decides closes the generation by one that was to begin or to
    /// end it. A step is taken anew after the last one that can be read, unless a call with lasting effect may have been
    /// announced.
    fn pass_over(&mut self, unreadable: Unreadable) {
        match unreadable.kind {
            EventKind::Started | EventKind::Released | EventKind::Outcome => self.closed = true,
            EventKind::Tool => self.announced_unreadably = Some(unreadable.why),
            EventKind::Step => self.announced_unreadably = None,
        }
    }

    /// Why it is not known which tool was begun last, if that is so.
    #[must_use]
    pub fn announced_unreadably(&self) -> Option<&str> {
        self.announced_unreadably.as_deref()
    }

    /// Adds a step that is in the record. `lasting`: it may have changed something outside.
    pub fn push(&mut self, step: Step, lasting: bool) {
        self.usage += usage_of(&step);
        self.announced_unreadably = None;
        for call in step.calls.iter().filter(|call| !call.aside) {
            self.sent.truncate(usize::try_from(call.same_messages).unwrap_or(usize::MAX));
            self.sent.extend(call.messages.iter().cloned());
        }
        if lasting {
            self.chosen.clear();
        }
        self.chosen.entry(fingerprint(&step.action)).or_default().push(step.number);
        let new = step.observation.as_ref().is_some_and(|seen| self.learns(seen) || lasting && is_done(seen));
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

    /// The step to be taken next, from 1.
    #[must_use]
    pub fn next_step(&self) -> u32 {
        self.steps.last().map_or(1, |step| step.number.saturating_add(1))
    }

    /// The try that would come next, from 1.
    #[must_use]
    pub fn next_attempt(&self) -> Attempt {
        Attempt(self.attempts).next()
    }

    /// The last position in the record that was folded.
    #[must_use]
    pub const fn last(&self) -> Seq {
        self.last
    }

    /// Whether the outcome is in the record: nobody may go on.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The good end that an earlier generation came to after it had been closed: nothing is left to be done.
    #[must_use]
    pub fn ended_before(&self) -> Option<Outcome> {
        let ended = self.ended_before.as_ref().filter(|outcome| outcome.ending.is_success())?;
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
        self.interrupted.as_ref()
    }

    /// The step that did the very same with a known end, nothing having changed since.
    #[must_use]
    pub fn same_action(&self, action: &Action) -> Option<&Step> {
        let numbers = self.chosen.get(&fingerprint(action))?;
        // A time-out may be tried once more.
        let known = |step: &&Step| {
            numbers.len() > 1
                || step.observation.as_ref().is_some_and(|seen| seen.status != ObservationStatus::Timeout)
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
    let called = step.observation.as_ref().is_some_and(|seen| seen.status != ObservationStatus::Refused);
    usage.tool_calls += u64::from(called);
    usage
}

/// One step in brief: the tool and its main argument, cut short.
#[must_use]
pub fn digest(step: &Step) -> StepDigest {
    StepDigest {
        number: step.number,
        action: in_brief(&step.action),
        status: step.observation.as_ref().map(|seen| seen.status),
        millis: step.millis,
    }
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
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
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
    super::record::write_canonical(&action.arguments, &mut text);
    text
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
