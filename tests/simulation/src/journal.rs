//! An agent's journal of one task, kept by the same rules as in a real agent: read what was done, write `started`
//! behind the fence, go on from the last step; whoever finds that others wrote meanwhile has lost the task.

use std::rc::Rc;

use muster_shared::flow::{ObservationStatus, Step, TaskOffered};
use muster_shared::ids::{Attempt, Seq};
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent, Started};

use crate::agenda::Time;

/// What is known of a task from its part of the record.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) last: Seq,
    pub(crate) steps: u32,
    attempts: u32,
    closed: bool,
    /// A tool with lasting effect that was begun and whose end nobody recorded.
    interrupted: Option<Step>,
}

/// What was found since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Our event is in the record.
    Landed,
    /// It is not.
    Missing,
    /// Somebody else has the task, or it is closed.
    Lost,
}

impl Journal {
    pub(crate) fn fold(entries: &[Rc<Entry>]) -> Self {
        let mut journal = Self::default();
        for entry in entries {
            journal.last = entry.seq;
            if let RecordEvent::Agent(_, event) = &entry.event {
                journal.note(event);
            }
        }
        journal
    }

    pub(crate) fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Started(_) => self.attempts += 1,
            AgentEvent::ToolStarted(begun) => self.interrupted = Some(begun.step.clone()),
            AgentEvent::Step(step) => {
                self.interrupted = None;
                self.steps = step.number;
            }
            AgentEvent::Released(released) => self.closed |= released.parked,
            AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) => self.closed = true,
        }
    }

    /// What nobody should do.
    pub(crate) fn forget_steps(&mut self) {
        (self.steps, self.interrupted) = (0, None);
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The acknowledgement names the delivery, so that no two of one agent are alike.
    pub(crate) fn started(&self, item: u64, taken: Time) -> AgentEvent {
        AgentEvent::Started(Started {
            attempt: Attempt(self.attempts).next(),
            ack: format!("{item}.{taken}"),
            pid: 0,
            host: String::new(),
            after_step: self.steps,
        })
    }

    /// The step whose tool was begun and not ended. What it did is not known, so it does not run again.
    pub(crate) fn interrupted_step(&self) -> Option<Step> {
        let begun = self.interrupted.as_ref()?;
        let observation = crate::products::step(begun.number, Some(ObservationStatus::Timeout)).observation;
        Some(Step { observation, ..begun.clone() })
    }

    /// Whether `event`, which we tried to write, landed, and whether the task is still ours.
    pub(crate) fn look(
        &mut self,
        entries: &[Rc<Entry>],
        mine: &AgentKey,
        event: Option<&AgentEvent>,
    ) -> Look {
        // Whoever starts has written nothing yet: what is there is another slot's.
        let starts = matches!(event, Some(AgentEvent::Started(_)));
        let mut found = Look::Missing;
        for entry in entries {
            let RecordEvent::Agent(key, written) = &entry.event else { continue };
            let landed = key == mine && event.is_some_and(|event| event == written);
            let ends_ours =
                matches!(written, AgentEvent::Started(_) | AgentEvent::Outcome(_) | AgentEvent::Released(_));
            if !landed && (starts || key.agent != mine.agent || ends_ours) {
                return Look::Lost;
            }
            found = if landed { Look::Landed } else { Look::Missing };
            self.last = entry.seq;
        }
        found
    }
}

/// The name of one use of a tool.
pub(crate) fn idempotency_key(offer: &TaskOffered, step: u32) -> String {
    format!("{}/{}/{}/{step}", offer.run, offer.task, offer.generation)
}
