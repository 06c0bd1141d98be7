//! The record gone through entry by entry: who has which task, and which tries a decision ends.
//!
//! Until a decision names it nobody knows whether what an agent wrote counts: a try is over with that decision, and no sooner.
//! What is told of a run over time, as spans or drawn, is made of this.

use std::collections::BTreeMap;

use super::seen::Stage;
use super::tries::{End, How, Said, Tries, Try};
use crate::ids::{AgentId, Attempt, Generation, TaskId, TaskIndex};
use crate::run::event::TaskStarted;
use crate::run::{AgentEvent, AgentKey, Decided, Entry, Input, RecordEvent, RunEvent, RunState, apply};
use crate::time::Millis;

/// Tries that a decision takes from their agents. Another agent may have begun with the same decision.
type Taken = BTreeMap<(TaskId, Generation, AgentId), How>;

/// A try, and where it stands.
#[derive(Debug, Clone)]
pub struct Attempted {
    /// Its task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// Itself.
    pub held: Try,
    /// How and when it ended, or how its agent says that it did; nothing while it goes on.
    pub end: Option<End>,
    /// The try that came before it; nothing where nobody had the task.
    pub before: Option<Before>,
}

/// A try that came before another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// Its task: another one where that was handed over.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// Which try of that.
    pub number: Attempt,
    /// Who had it.
    pub agent: AgentId,
    /// How its agent came to leave it, in words; nothing where that was its own doing.
    pub loss: Option<&'static str>,
    /// What it has to do with the other.
    pub why: Why,
}

/// What a try has to do with the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The other goes on with the same generation.
    Takeover,
    /// The other is of a later generation of the task.
    EarlierGeneration,
    /// The other is of a task to which this one was handed over.
    HandedOver,
}

impl Why {
    /// In a word, as links of spans have it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Takeover => "takeover",
            Self::EarlierGeneration => "earlier_generation",
            Self::HandedOver => "handed_over",
        }
    }
}

/// The newest try of a task that is over.
#[derive(Debug)]
struct Last {
    generation: Generation,
    number: Attempt,
    agent: AgentId,
    loss: Option<&'static str>,
}

/// Goes through the record of a run. Holds the state of the run, and what is known of tries that are not over.
#[derive(Debug)]
pub struct Course {
    content: bool,
    state: Option<RunState>,
    /// Whether the record can be followed: one that is damaged is told as far as it goes.
    follows: bool,
    open: BTreeMap<(TaskId, Generation), Tries>,
    over: BTreeMap<TaskId, Last>,
    /// Tasks that were handed over, and by which.
    handed_over: BTreeMap<TaskIndex, TaskIndex>,
    has_ended: bool,
}

impl Course {
    /// Begins with the first entry. `content` says whether what people, models and tools said is kept too.
    #[must_use]
    pub fn new(content: bool) -> Self {
        Self {
            content,
            state: None,
            follows: true,
            open: BTreeMap::new(),
            over: BTreeMap::new(),
            handed_over: BTreeMap::new(),
            has_ended: false,
        }
    }

    /// The run as it stands, as far as it is known.
    #[must_use]
    pub const fn state(&self) -> Option<&RunState> {
        self.state.as_ref()
    }

    /// Whether the run has ended: what is read then changes nothing.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether somebody has a task in hand.
    #[must_use]
    pub fn is_held(&self, task: &TaskId, generation: Generation) -> bool {
        self.open.get(&(task.clone(), generation)).is_some_and(|tries| !tries.open.is_empty())
    }

    /// Takes the next entry of the record, and says which tries are over with it.
    pub fn read(&mut self, entry: &Entry) -> Vec<Attempted> {
        if self.has_ended {
            return Vec::new();
        }
        if self.follows {
            self.follows = apply(&mut self.state, entry).is_ok();
        }
        if !self.follows {
            // Half changed, it says what is not so.
            self.state = None;
        }
        match &entry.event {
            RecordEvent::Offered(_) => Vec::new(),
            RecordEvent::Agent(key, event) => {
                self.agent(entry, key, event);
                Vec::new()
            }
            RecordEvent::Decided(decided) => self.decided(entry, decided),
        }
    }

    /// The tries that are not over. Whoever began a task that somebody else has is told of only until a decision says so.
    #[must_use]
    pub fn going_on(&self) -> Vec<Attempted> {
        let mut found = Vec::new();
        for ((task, generation), tries) in &self.open {
            for held in tries.open.iter().filter(|held| self.may_count(held)) {
                found.push(Attempted {
                    task: task.clone(),
                    generation: *generation,
                    held: held.clone(),
                    end: held.said.as_ref().map(|said| said.end.clone()),
                    before: self.before(task, *generation),
                });
            }
        }
        found
    }

    /// Whether a try counts, or no decision has said yet that it does not.
    fn may_count(&self, held: &Try) -> bool {
        let is_undecided = |state: &RunState| held.began.is_some_and(|seq| state.pending.contains_key(&seq));
        held.is_confirmed || self.state.as_ref().is_none_or(is_undecided)
    }

    fn agent(&mut self, entry: &Entry, key: &AgentKey, event: &AgentEvent) {
        // Before the run is created it is about nothing.
        if self.follows && self.state.is_none() {
            return;
        }
        let content = self.content;
        let tries = self.open.entry((key.task.clone(), key.generation)).or_default();
        let said = |how| Some(Said { seq: entry.seq, end: End { how, at: entry.at } });
        match event {
            AgentEvent::Started(started) => {
                let held = Try::started(key.agent.clone(), key.role.clone(), entry.at, started);
                tries.open.push(Try { began: Some(entry.seq), ..held });
            }
            AgentEvent::ToolStarted(begun) => {
                tries.step(&key.agent, &begun.step, Stage::Begun, entry.at, content);
            }
            AgentEvent::Step(step) => tries.step(&key.agent, step, Stage::Taken, entry.at, content),
            AgentEvent::Outcome(outcome) => {
                if let Some(step) = &outcome.last_step {
                    tries.step(&key.agent, step, Stage::Taken, entry.at, content);
                }
                if let Some(held) = tries.of(&key.agent) {
                    held.said = said(How::Outcome(outcome.clone()));
                }
            }
            AgentEvent::Released(released) => {
                if let Some(held) = tries.of(&key.agent) {
                    let (usage, waits) = (released.usage, released.wait.is_some());
                    held.said = said(How::Released { usage, waits, is_parked: released.parked });
                }
            }
            AgentEvent::Unreadable(unreadable) => {
                if let Some(held) = tries.of(&key.agent).filter(|_| unreadable.kind.is_decided_upon()) {
                    held.said = said(How::Unreadable);
                }
            }
        }
    }

    fn decided(&mut self, entry: &Entry, decided: &Decided) -> Vec<Attempted> {
        let mut taken = Taken::new();
        for event in &decided.events {
            if let RunEvent::TaskStarted(started) = event {
                self.confirm(started, entry.at);
            } else if let RunEvent::TaskOrphaned(lost) = event {
                taken.insert((lost.task.clone(), lost.generation, lost.agent.clone()), How::Lost);
            } else if let RunEvent::TaskTakenBack(silent) = event {
                taken.insert((silent.task.clone(), silent.generation, silent.agent.clone()), How::Silent);
            } else if let RunEvent::TaskDelegated(delegated) = event {
                self.handed_over.insert(delegated.to.clone(), delegated.task.clone());
            } else if let RunEvent::ChildBegun(child) = event
                && let Some(tries) = self.open.get_mut(&(child.task.clone(), child.generation))
                && let Some(held) = tries.open.iter_mut().rev().find(|held| held.is_confirmed)
            {
                held.children.push(child.run);
            }
        }
        if decided.continues {
            return Vec::new();
        }
        self.has_ended = decided.events.iter().any(RunEvent::ends_run);
        let over = self.close_tries(entry, decided, &taken);
        if self.has_ended {
            self.open.clear();
        }
        over
    }

    fn confirm(&mut self, started: &TaskStarted, at: Millis) {
        let tries = self.open.entry((started.task.clone(), started.generation)).or_default();
        let known = tries.open.iter().rposition(|held| held.agent == started.agent && !held.is_confirmed);
        let place = known.unwrap_or_else(|| {
            // What its agent wrote is lost: the decision tells of it.
            tries.open.push(Try::new(started.agent.clone(), None, at));
            tries.open.len() - 1
        });
        if let Some(held) = tries.open.get_mut(place) {
            (held.is_confirmed, held.number) = (true, started.attempt);
        }
    }

    /// Closes the tries that are over with a decision. Those that nobody took for one that counts are forgotten.
    fn close_tries(&mut self, entry: &Entry, decided: &Decided, taken: &Taken) -> Vec<Attempted> {
        let closes: Vec<_> = decided.inputs.iter().filter_map(Input::closes).collect();
        let has_ended = self.has_ended;
        let mut over = Vec::new();
        for ((task, generation), tries) in &mut self.open {
            let state = self.state.as_ref().and_then(|state| state.tasks.get(task));
            for held in std::mem::take(&mut tries.open) {
                let named = held.said.as_ref().filter(|said| closes.contains(&said.seq));
                let is_with = state.is_none_or(|state| {
                    state.generation == *generation && state.agent.as_ref() == Some(&held.agent)
                });
                let end = match (named, taken.get(&(task.clone(), *generation, held.agent.clone()))) {
                    (Some(said), _) => Some(said.end.clone()),
                    (None, Some(how)) if held.is_confirmed => Some(End { how: how.clone(), at: entry.at }),
                    (None, _) if has_ended || (held.is_confirmed && !is_with) => {
                        // What came of it came too late to count.
                        let at = held.said.as_ref().map_or(entry.at, |said| said.end.at);
                        Some(End { how: How::CutOff, at })
                    }
                    (None, _) => None,
                };
                if end.is_none() {
                    tries.open.push(held);
                } else if held.is_confirmed {
                    let (task, generation) = (task.clone(), *generation);
                    over.push(Attempted { task, generation, held, end, before: None });
                }
            }
        }
        self.forget();
        for one in &mut over {
            one.before = self.before(&one.task, one.generation);
            self.note(one);
        }
        over
    }

    /// Forgets generations in which nobody has anything in hand, unless the next try of one has to know what is told of it.
    fn forget(&mut self) {
        self.open.retain(|(task, generation), tries| {
            let newest =
                self.state.as_ref().and_then(|state| state.tasks.get(task)).map(|task| task.generation);
            let is_newest = newest.is_none_or(|newest| newest <= *generation);
            !tries.open.is_empty() || (is_newest && !tries.is_idle())
        });
    }

    fn note(&mut self, over: &Attempted) {
        let last = Last {
            generation: over.generation,
            number: over.held.number,
            agent: over.held.agent.clone(),
            loss: over.end.as_ref().and_then(|end| end.how.loss()),
        };
        self.over.insert(over.task.clone(), last);
    }

    /// The try before the next one of a generation.
    fn before(&self, task: &TaskId, generation: Generation) -> Option<Before> {
        let (task, last, why) = if let Some(last) = self.over.get(task) {
            let goes_on = last.generation == generation;
            (task.clone(), last, if goes_on { Why::Takeover } else { Why::EarlierGeneration })
        } else {
            let by = TaskId::Leaf(self.handed_over.get(task.as_leaf()?)?.clone());
            let last = self.over.get(&by)?;
            (by, last, Why::HandedOver)
        };
        let (generation, number, loss) = (last.generation, last.number, last.loss);
        Some(Before { task, generation, number, agent: last.agent.clone(), loss, why })
    }
}
