//! What an agent has to know of a task before it goes on with it, folded from its part of the record.

use std::borrow::Borrow;

use muster_shared::flow::Outcome;
use muster_shared::ids::{AgentId, Attempt, Seq};
use muster_shared::run::{AgentEvent, AgentKey, Entry, EventKind, RecordEvent, ToolStarted, Unreadable};

/// Where a task stands: one generation over all its attempts, after those that it goes on from.
#[derive(Debug, Clone, Default)]
pub struct TaskFold {
    /// A tool that was begun and whose end nobody recorded.
    interrupted: Option<ToolStarted>,
    /// Why what may have announced one cannot be read.
    announced_unreadably: Option<String>,
    /// How the generation before this one ended, if it did so after it had been closed.
    ended: Option<Outcome>,
    attempts: u32,
    /// Who began last and has not ended, and where that stands.
    holder: Option<(AgentId, Seq)>,
    /// Attempts that ended without a word, and most likely in the middle of a call, which nobody has counted.
    unanswered: u32,
    last: Seq,
    last_step: u32,
    closed: bool,
}

impl TaskFold {
    /// Folds entries of this generation after what was folded before.
    #[must_use]
    pub fn and_then<E: Borrow<Entry>>(mut self, entries: &[E]) -> Self {
        for entry in entries {
            let Entry { seq, event, .. } = entry.borrow();
            self.last = self.last.max(*seq);
            if let RecordEvent::Agent(key, event) = event {
                self.note(key, *seq, event);
            }
        }
        self
    }

    /// The same where the record was read up to this position.
    #[must_use]
    pub fn read_to(self, last: Option<Seq>) -> Self {
        Self { last: last.map_or(self.last, |last| self.last.max(last)), ..self }
    }

    /// What this one is to the next generation, which goes on from it. Its attempts and its end are its own.
    #[must_use]
    pub fn before_the_next(mut self) -> Self {
        self.lose_holder();
        Self { attempts: 0, last: Seq(0), closed: false, ..self }
    }

    /// Takes note of an event of the generation.
    pub fn note(&mut self, key: &AgentKey, seq: Seq, event: &AgentEvent) {
        self.last = self.last.max(seq);
        match event {
            AgentEvent::Started(_) => {
                self.lose_holder();
                self.holder = Some((key.agent.clone(), seq));
                self.attempts += 1;
            }
            AgentEvent::ToolStarted(begun) => self.interrupted = Some(begun.clone()),
            AgentEvent::Step(step) => self.took_step(step.number),
            // Whoever says what was used counts those before it, too.
            AgentEvent::Released(released) => {
                (self.holder, self.unanswered) = (None, 0);
                self.closed |= released.parked;
            }
            AgentEvent::Outcome(outcome) => {
                (self.holder, self.unanswered, self.closed) = (None, 0, true);
                self.ended = Some(Outcome::clone(outcome));
            }
            AgentEvent::Unreadable(unreadable) => self.pass_over(unreadable),
        }
    }

    /// Takes note of a step that is in the record.
    pub fn took_step(&mut self, number: u32) {
        (self.interrupted, self.announced_unreadably) = (None, None);
        self.last_step = number;
    }

    /// Takes note of an entry that cannot be read. Whoever decides closes the generation by one that was to begin or to
    /// end it. A step is taken anew after the last one that can be read, unless a call with lasting effect may have been
    /// announced.
    fn pass_over(&mut self, unreadable: &Unreadable) {
        match unreadable.kind {
            EventKind::Started | EventKind::Released | EventKind::Outcome => {
                (self.holder, self.closed) = (None, true);
            }
            EventKind::Tool => self.announced_unreadably = Some(unreadable.why.clone()),
            EventKind::Step => self.announced_unreadably = None,
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

    /// Why it is not known which tool was begun last, if that is so.
    #[must_use]
    pub fn announced_unreadably(&self) -> Option<&str> {
        self.announced_unreadably.as_deref()
    }

    /// The call that was begun and whose end nobody recorded.
    #[must_use]
    pub const fn begun(&self) -> Option<&ToolStarted> {
        self.interrupted.as_ref()
    }

    /// How the last generation ended that has an outcome.
    #[must_use]
    pub const fn ended(&self) -> Option<&Outcome> {
        self.ended.as_ref()
    }

    /// The try that would come next, from 1.
    #[must_use]
    pub fn next_attempt(&self) -> Attempt {
        Attempt(self.attempts).next()
    }

    /// The number of the last step; 0 before the first.
    #[must_use]
    pub const fn last_step(&self) -> u32 {
        self.last_step
    }

    /// The last position in the record that was folded.
    #[must_use]
    pub const fn last(&self) -> Seq {
        self.last
    }

    /// Whether the generation has ended: nobody may go on.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }
}
