//! Who has a say in a generation of a task, told from the record: whoever has it. All agents of a role may write there,
//! and what others write is no part of it. This is the rule by which orchestrators decide, for those who read what was
//! written before it was decided upon, and go on from it.

use std::borrow::Borrow;

use super::event::{AgentEvent, AgentKey, Decided, Entry, RecordEvent, RunEvent};
use crate::flow::TaskOffered;
use crate::ids::{AgentId, Generation, Role, TaskId};

/// Who has a say in a generation of a task, up to an entry of the record.
#[derive(Debug, Clone)]
pub struct Say {
    role: Role,
    task: TaskId,
    generation: Generation,
    /// Who has it, or had it last and did not hand it over.
    agent: Option<AgentId>,
    /// Whether whoever begins it has it.
    is_free: bool,
}

impl Say {
    /// Of a generation that was offered to agents of the role of this one.
    #[must_use]
    pub fn of(key: &AgentKey, generation: Generation) -> Self {
        let (role, task) = (key.role.clone(), key.task.clone());
        Self { role, task, generation, agent: None, is_free: true }
    }

    /// Takes in entries in the order of the record, and keeps those that count. Decisions tell of whom the task was taken;
    /// where there are none, nobody lost it.
    pub fn keep<E: Borrow<Entry>>(&mut self, entries: &mut Vec<E>) {
        entries.retain(|entry| self.hears(entry.borrow()));
    }

    /// Which of these count, where the decisions stand apart from them; both in the order of the record.
    #[must_use]
    pub fn of_several<E: Borrow<Entry>>(mut self, entries: &[E], decisions: &[Entry]) -> Vec<bool> {
        let mut decisions = decisions.iter().peekable();
        let hear = |entry: &E| {
            let entry = entry.borrow();
            while let Some(decision) = decisions.next_if(|decision| decision.seq < entry.seq) {
                self.hears(decision);
            }
            self.hears(entry)
        };
        entries.iter().map(hear).collect()
    }

    /// Takes in the next entry of the record, and says whether it counts. Decisions are none of an agent's.
    fn hears(&mut self, entry: &Entry) -> bool {
        match &entry.event {
            RecordEvent::Agent(key, event) => self.counts(key, event),
            RecordEvent::Decided(decided) => {
                self.decided(decided);
                false
            }
            RecordEvent::Offered(offer) => {
                self.offered(offer);
                false
            }
        }
    }

    /// Whether what somebody wrote counts.
    fn counts(&mut self, key: &AgentKey, event: &AgentEvent) -> bool {
        let has_it = self.agent.as_ref() == Some(&key.agent);
        // As long as nobody has it, whoever says how it ended is believed, as it could have begun it.
        let may = key.role == self.role && (has_it || (self.is_free && event.kind().is_decided_upon()));
        if !may {
            return false;
        }
        match event {
            AgentEvent::Started(_) => (self.agent, self.is_free) = (Some(key.agent.clone()), false),
            AgentEvent::Released(released) if !released.parked => (self.agent, self.is_free) = (None, true),
            AgentEvent::Released(_)
            | AgentEvent::ToolStarted(_)
            | AgentEvent::Step(_)
            | AgentEvent::Outcome(_)
            | AgentEvent::Unreadable(_) => {}
        }
        true
    }

    fn decided(&mut self, decided: &Decided) {
        for event in &decided.events {
            self.is_decided(event);
        }
        if let Some(offer) = &decided.offer {
            self.offered(offer);
        }
    }

    fn is_decided(&mut self, event: &RunEvent) {
        let is_it = |task: &TaskId, generation| *task == self.task && generation == self.generation;
        if let RunEvent::TaskStarted(started) = event
            && is_it(&started.task, started.generation)
        {
            (self.agent, self.is_free) = (Some(started.agent.clone()), false);
        } else if let RunEvent::TaskOrphaned(orphaned) = event
            && is_it(&orphaned.task, orphaned.generation)
        {
            self.is_free |= self.agent.as_ref() == Some(&orphaned.agent);
        } else if let RunEvent::TaskReleased(released) = event
            && is_it(&released.task, released.generation)
        {
            self.is_free |= self.agent.as_ref() == Some(&released.agent);
        }
    }

    /// Nobody begins a generation once a later one is offered.
    fn offered(&mut self, offer: &TaskOffered) {
        if offer.task == self.task && offer.generation > self.generation {
            self.is_free = false;
        }
    }
}

/// Whether what stands about a generation is of one agent alone, so that it takes no decisions to tell who has a say.
#[must_use]
pub fn is_of_one<E: Borrow<Entry>>(entries: &[E]) -> bool {
    let agent = |entry: &E| {
        if let RecordEvent::Agent(key, _) = &entry.borrow().event { Some(key.agent.clone()) } else { None }
    };
    let mut agents = entries.iter().filter_map(agent);
    let first = agents.next();
    agents.all(|agent| Some(agent) == first)
}

#[cfg(test)]
mod tests;
