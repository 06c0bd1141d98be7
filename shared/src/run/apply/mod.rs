//! Folding the record: `(state, entry) -> state`.
//!
//! [`apply`] is the only way a run's state comes about: live, on recovery, and in every replay. A decision
//! calls [`apply_event`], [`apply_offer`] and [`close_inputs`] while it is being made, so that what it sees is what
//! folding its own record entries gives later; [`note_decided`] completes that once it is written.

pub(in crate::run) mod agent;
mod error;
mod event;
mod groups;
mod offer;
pub(in crate::run) mod phase;
pub(in crate::run) mod plan;
pub(in crate::run) mod task;

use std::borrow::Cow;

use uuid::Uuid;

use super::event::{
    AgentEvent, AgentKey, Decided, Entry, Input, RecordEvent, RunEvent, TaskCompleted, TaskStarted,
};
use super::state::RunState;
use crate::flow::TaskOffered;
use crate::ids::Seq;
use crate::time::Millis;

pub use agent::close_inputs;
pub use error::{ApplyError, ApplyResult};
pub use event::{apply_event, begin_run, fold_event};
pub use offer::apply_offer;
pub use plan::failed_plan;

use agent::apply_agent;

/// Folds one entry into a run; `None` before its first. An entry that was folded before is ignored.
///
/// # Errors
/// When the entry cannot follow what was folded so far. The state may then be half changed: drop it.
pub fn apply(state: &mut Option<RunState>, entry: &Entry) -> ApplyResult {
    if let Some(run) = state {
        if run.id != entry.run {
            return Err(ApplyError::OtherRun { wanted: run.id, found: entry.run });
        }
        if entry.seq <= run.folded {
            return Ok(());
        }
    }
    match &entry.event {
        RecordEvent::Decided(decided) => apply_decided(state, entry, decided)?,
        RecordEvent::Offered(offer) => {
            let run = state.as_mut().ok_or(ApplyError::NotCreated(entry.seq))?;
            apply_offer_entry(run, entry.seq, offer)?;
        }
        // Before the run is created it is about nothing: anybody may write there, and nobody may spoil a run by it.
        RecordEvent::Agent(key, event) => {
            if let Some(run) = state.as_mut() {
                apply_agent(run, entry.seq, key, event);
            }
        }
    }
    if let Some(run) = state {
        run.folded = entry.seq;
    }
    Ok(())
}

/// Folds an agent's event that is read after a decision with a higher position was folded.
///
/// Whoever writes a decision knows its position before it has read what agents wrote just before it. That
/// decision does not name these events, so folding them after it gives the same state. The caller makes sure
/// that none is folded twice.
pub fn apply_late(state: &mut RunState, seq: Seq, key: &AgentKey, event: &AgentEvent) {
    apply_agent(state, seq, key, event);
    state.folded = state.folded.max(seq);
}

/// Notes that a decision stands in the record from this position on, with its offers behind it. For whoever made it, and
/// folded its events and offers into the state while it did: the state is then what folding its entries gives.
pub fn note_decided(run: &mut RunState, decided: WrittenDecision, first: Seq) {
    let last = Seq(first.0.saturating_add(u64::from(decided.offers)));
    run.folded = last;
    run.decided = last;
    run.decided_at = decided.now;
    run.batch = Some((decided.batch, 0));
    if decided.takes_tasks {
        task::note_losses(run, first);
    }
}

/// What of a decision that stands in the record makes a difference to whoever made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenDecision {
    /// Names the batch.
    pub batch: Uuid,
    /// The time that was taken for now.
    pub now: Millis,
    /// How many offers follow in the batch.
    pub offers: u32,
    /// Whether it takes tasks from agents that are lost.
    pub takes_tasks: bool,
}

impl From<&Decided> for WrittenDecision {
    fn from(decided: &Decided) -> Self {
        let takes_tasks = takes_tasks(decided);
        Self { batch: decided.batch, now: decided.now, offers: decided.offers, takes_tasks }
    }
}

fn takes_tasks(decided: &Decided) -> bool {
    decided.events.iter().any(|event| matches!(event, RunEvent::TaskOrphaned(_)))
}

fn apply_decided(state: &mut Option<RunState>, entry: &Entry, decided: &Decided) -> ApplyResult {
    if let Some((_, missing)) = state.as_ref().and_then(|run| run.batch).filter(|(_, missing)| *missing > 0) {
        return Err(ApplyError::BatchIncomplete { seq: entry.seq, missing });
    }
    for event in &decided.events {
        apply_event(state, entry.run, event, decided.now)?;
    }
    let run = state.as_mut().ok_or(ApplyError::NotCreated(entry.seq))?;
    if !decided.continues {
        close_inputs(run, &decided.inputs);
    }
    run.decided = entry.seq;
    run.decided_at = decided.now;
    run.batch = Some((decided.batch, decided.offers));
    if takes_tasks(decided) {
        task::note_losses(run, entry.seq);
    }
    match &decided.offer {
        Some(offer) => apply_offer(run, offer, decided.now),
        None => Ok(()),
    }
}

fn apply_offer_entry(run: &mut RunState, seq: Seq, offer: &TaskOffered) -> ApplyResult {
    let Some((batch, missing)) = run.batch.filter(|(_, missing)| *missing > 0) else {
        return Err(ApplyError::OfferWithoutDecision { task: offer.task.clone(), seq });
    };
    apply_offer(run, offer, run.decided_at)?;
    run.batch = Some((batch, missing - 1));
    run.decided = seq;
    Ok(())
}

impl RunState {
    /// The run with the events of agents that no decision names yet, as the next decision will apply them: an orchestrator may
    /// leave them until there is something to decide. For people only.
    #[must_use]
    pub fn as_seen(&self) -> Cow<'_, Self> {
        if self.pending.is_empty() || self.status.is_ended() {
            return Cow::Borrowed(self);
        }
        let mut seen = self.clone();
        let mut applied = Vec::new();
        for (seq, (key, event)) in &self.pending {
            let (task, generation) = (key.task.clone(), key.generation);
            let (agent, outcome) = (key.agent.clone(), *seq);
            let next: RunEvent = match event {
                AgentEvent::Started(started) => {
                    let (attempt, ack, after_step) = (started.attempt, String::new(), started.after_step);
                    TaskStarted { task, generation, agent, attempt, ack, after_step }.into()
                }
                AgentEvent::Outcome(ended) if ended.ending.is_success() => {
                    TaskCompleted { task, generation, outcome }.into()
                }
                // After a failure, the decision may be to try again.
                _ => continue,
            };
            if fold_event(&mut seen, &next, self.decided_at).is_ok() {
                applied.push(Input::of_agent(*seq, event));
            }
        }
        close_inputs(&mut seen, &applied);
        Cow::Owned(seen)
    }
}
