//! One run: folded from its record, and for as long as it is open with its entries and what its tasks do right now.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use muster_shared::ids::{AgentId, QuestionId, RunId, Seq, TaskId};
use muster_shared::run::{Entry, RecordEvent, RunState, apply};
use muster_shared::time::Millis;
use muster_shared::wire::{Live, LiveKind};

use super::change::RunChange;
use crate::render::doing;
use crate::render::progress::Doing;

/// Most of what a task says while it thinks that is kept, in characters: the newest.
const MOST_SPOKEN: usize = 4_000;

/// Most tasks of which that is kept.
const MOST_SPEAKING: usize = 500;

/// A run as it is known.
#[derive(Debug)]
pub(crate) struct LiveRun {
    id: RunId,
    state: Option<Box<RunState>>,
    /// The same with the events of agents that no decision names yet, if there are any.
    seen: SeenState,
    /// Time and sequence number of the entry that created it.
    created: (Millis, Seq),
    last: Seq,
    folded: u64,
    decided_by: Option<AgentId>,
    damaged: Option<String>,
    open: Option<OpenRun>,
}

/// State with the events of agents that no decision names yet, made when it is read; nothing if there are none.
type SeenState = OnceLock<Option<Box<RunState>>>;

fn seen_of<'a>(state: &'a RunState, seen: &'a SeenState) -> &'a RunState {
    let seen = seen.get_or_init(|| match state.as_seen() {
        Cow::Owned(seen) => Some(Box::new(seen)),
        Cow::Borrowed(_) => None,
    });
    seen.as_deref().unwrap_or(state)
}

/// What is known of a run only while it is open.
#[derive(Debug, Default)]
struct OpenRun {
    entries: VecDeque<Arc<Entry>>,
    doing: Doing,
    spoken: BTreeMap<TaskId, Spoken>,
    /// By which a task is seen to have changed.
    marks: BTreeMap<TaskId, u64>,
}

/// What a task says while it takes a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spoken {
    /// The step.
    pub(crate) step: u32,
    /// What the model thinks, as far as it came.
    pub(crate) thought: String,
    /// What it answers.
    pub(crate) answer: String,
    /// What is being done.
    pub(crate) status: String,
}

impl LiveRun {
    pub(super) fn new(id: RunId) -> Self {
        let created = (Millis(0), Seq(0));
        Self {
            id,
            state: None,
            seen: OnceLock::new(),
            created,
            last: Seq(0),
            folded: 0,
            decided_by: None,
            damaged: None,
            open: None,
        }
    }

    /// The run.
    pub(crate) fn id(&self) -> RunId {
        self.id
    }

    /// Its state as people see it; nothing before its beginning was read.
    pub(crate) fn state(&self) -> Option<&RunState> {
        Some(seen_of(self.state.as_deref()?, &self.seen))
    }

    /// The parent run.
    pub(super) fn outer(&self) -> Option<RunId> {
        self.state.as_ref()?.goal.outer_run()
    }

    /// Its state, to be changed.
    pub(super) fn state_mut(&mut self) -> Option<&mut RunState> {
        self.seen.take();
        self.state.as_deref_mut()
    }

    /// Time and sequence number of the entry that created it: the order of runs.
    pub(crate) fn created(&self) -> (Millis, Seq) {
        self.created
    }

    /// The last entry that was folded.
    pub(crate) fn last(&self) -> Seq {
        self.last
    }

    /// How many entries were.
    pub(crate) fn folded(&self) -> u64 {
        self.folded
    }

    /// Why its record cannot be followed, or not on.
    pub(crate) fn damaged(&self) -> Option<&str> {
        self.damaged.as_deref()
    }

    /// Which orchestrator decided last.
    pub(crate) fn decided_by(&self) -> Option<&AgentId> {
        self.decided_by.as_ref()
    }

    /// Its newest entries, oldest first, while it is open.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.open.iter().flat_map(|open| &open.entries)
    }

    /// What its tasks do right now, in a line each, while it is open.
    pub(crate) fn doing(&self) -> Option<&Doing> {
        self.open.as_ref().map(|open| &open.doing)
    }

    /// What a task says right now.
    pub(crate) fn spoken(&self, task: &TaskId) -> Option<&Spoken> {
        self.open.as_ref()?.spoken.get(task)
    }

    /// Whether something is to come of it.
    pub(crate) fn is_at_work(&self) -> bool {
        self.damaged.is_none() && self.state.as_ref().is_none_or(|state| !state.status.is_ended())
    }

    /// What is asked of people: it changes when this does.
    pub(super) fn asked(&self) -> Vec<(QuestionId, u32, usize, usize)> {
        let state = self.state.iter().filter(|state| !state.status.is_ended());
        let open = state.flat_map(|state| state.open_questions());
        open.map(|(id, asked)| (id, asked.passed_on, asked.approvals.len(), asked.feedback.len())).collect()
    }

    pub(super) fn damage(&mut self, why: String) {
        self.damaged = Some(why);
    }

    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Folds an entry, unless it was folded before. Gives what changed, of a run that is open in full.
    pub(super) fn take(&mut self, entry: &Arc<Entry>, is_open: bool, most: usize) -> Option<RunChange> {
        if !self.fold(entry) {
            return None;
        }
        let mut change = self.no_change();
        if is_open {
            let open = self.open.get_or_insert_default();
            open.keep(Arc::clone(entry), most);
            change.entries.push(Arc::clone(entry));
            named_by(entry, &mut change.tasks);
            self.note_changes(&mut change);
        }
        Some(change)
    }

    /// Takes the record in, and keeps what was heard since it was read.
    pub(super) fn take_record(&mut self, record: Vec<Arc<Entry>>, is_open: bool, most: usize) -> RunChange {
        let read = record.last().map_or(Seq(0), |entry| entry.seq);
        // What could not be followed may be readable from its beginning on.
        if self.damaged.take().is_some() {
            (self.state, self.last, self.folded) = (None, Seq(0), 0);
        }
        for entry in &record {
            self.fold(entry);
        }
        let mut change = self.no_change();
        if is_open {
            let open = self.open.get_or_insert_default();
            let heard: Vec<Arc<Entry>> = open.entries.drain(..).filter(|entry| entry.seq > read).collect();
            for entry in record.into_iter().chain(heard) {
                open.keep(entry, most);
            }
            change.entries.extend(open.entries.iter().cloned());
            open.marks.clear();
            self.note_changes(&mut change);
        }
        change
    }

    fn no_change(&self) -> RunChange {
        RunChange { run: self.id, tasks: BTreeSet::new(), removed: BTreeSet::new(), entries: Vec::new() }
    }

    /// Whether the entry was new.
    fn fold(&mut self, entry: &Entry) -> bool {
        if entry.seq <= self.last || self.damaged.is_some() {
            return false;
        }
        let mut state = self.state.take().map(|state| *state);
        if state.is_none() {
            self.created = (entry.at, entry.seq);
        }
        match apply(&mut state, entry) {
            Ok(()) => {
                self.seen.take();
                self.state = state.map(Box::new);
            }
            Err(why) => self.damaged = Some(why.to_string()),
        }
        if let RecordEvent::Decided(decided) = &entry.event {
            self.decided_by = Some(decided.by.clone());
        }
        self.last = entry.seq;
        self.folded += 1;
        true
    }

    /// Which tasks are other than they were.
    fn note_changes(&mut self, change: &mut RunChange) {
        let (Some(open), Some(state)) = (&mut self.open, &self.state) else { return };
        let state = seen_of(state, &self.seen);
        let marks: BTreeMap<TaskId, u64> =
            state.tasks.keys().map(|task| (task.clone(), mark(state, task))).collect();
        let new = marks.iter().filter(|(task, mark)| open.marks.get(task) != Some(mark));
        change.tasks.extend(new.map(|(task, _)| task.clone()));
        change.tasks.retain(|task| marks.contains_key(task));
        let removed = open.marks.keys().filter(|task| !marks.contains_key(task));
        change.removed.extend(removed.cloned());
        open.marks = marks;
    }

    /// Takes note of what is done right now.
    pub(super) fn hear(&mut self, live: Live) {
        let open = self.open.get_or_insert_default();
        // Anybody can name tasks here: only so many are kept.
        if open.spoken.len() < MOST_SPEAKING || open.spoken.contains_key(&live.task) {
            open.spoken.entry(live.task.clone()).or_default().hear(live.step, &live.kind);
        }
        doing::note(&mut open.doing, live);
    }
}

impl OpenRun {
    fn keep(&mut self, entry: Arc<Entry>, most: usize) {
        self.entries.push_back(entry);
        while self.entries.len() > most {
            self.entries.pop_front();
        }
    }
}

impl Spoken {
    fn hear(&mut self, step: u32, kind: &LiveKind) {
        if step != self.step {
            *self = Self { step, ..Self::default() };
        }
        match kind {
            LiveKind::Thought { text } => append(&mut self.thought, text),
            LiveKind::Answer { text } => append(&mut self.answer, text),
            LiveKind::Status { text, .. } => self.status = text.chars().take(MOST_SPOKEN).collect(),
        }
    }
}

fn append(said: &mut String, more: &str) {
    said.push_str(more);
    let length = said.chars().count();
    if length > MOST_SPOKEN {
        *said = said.chars().skip(length - MOST_SPOKEN).collect();
    }
}

/// The tasks that an entry names.
fn named_by(entry: &Entry, tasks: &mut BTreeSet<TaskId>) {
    match &entry.event {
        RecordEvent::Decided(decided) => {
            tasks.extend(decided.events.iter().filter_map(muster_shared::run::RunEvent::task));
            tasks.extend(decided.offer.iter().map(|offer| offer.task.clone()));
        }
        RecordEvent::Offered(offer) => {
            tasks.insert(offer.task.clone());
        }
        RecordEvent::Agent(key, _) => {
            tasks.insert(key.task.clone());
        }
    }
}

/// What changes with a task, as one number: what an event does to tasks that it does not name is noticed by it. What only
/// events change that name their task is left out.
fn mark(state: &RunState, task: &TaskId) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Some(found) = state.tasks.get(task) {
        std::mem::discriminant(&found.status).hash(&mut hasher);
        (found.generation, found.attempt, found.last_step, found.failures).hash(&mut hasher);
        (found.agent.as_ref(), found.offered_at, found.deadline).hash(&mut hasher);
        found.outcome.as_ref().map(|outcome| Arc::as_ptr(outcome) as usize).hash(&mut hasher);
        (found.reasons.len(), found.deaths.len()).hash(&mut hasher);
        (found.waiting.is_some(), found.answered.is_some(), found.reflection.is_some()).hash(&mut hasher);
        (found.auction.is_some(), found.continues).hash(&mut hasher);
    }
    if let Some(seen) = state.seen.get(task) {
        (seen.generation, seen.step, seen.ended, seen.agent.as_ref()).hash(&mut hasher);
    }
    hasher.finish()
}
