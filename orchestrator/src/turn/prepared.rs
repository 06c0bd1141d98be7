//! A decision with what it was made from, before it is written.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::flow::{Specialty, TaskOffered};
use muster_shared::ids::{AgentId, Generation, Queue, RunId, Seq, TaskId};
use muster_shared::run::{ApplyError, Decided, Digest, Input, LinkDraft, RunState, WrittenDecision};
use muster_shared::time::Millis;
use muster_shared::wire::Encoding;
use uuid::Uuid;

use super::machine::View;
use super::outcome::Alarm;
use super::silence::{self, Heard};
use crate::decide::{Decision, Effect, is_of_agent, next_deadline, next_review};
use crate::drive::{Capacity, Roomed};

/// When to look again at something that is overdue and cannot be helped now.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often a run looks by itself whether there is room for what it waits to offer. It is told as soon as there is;
/// should that be missed, it stands for no longer than this.
const LOOK_FOR_ROOM: Duration = Duration::from_secs(5);

/// A decision with what it was made from.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) inputs: Vec<Input>,
    now: Millis,
    basis: Seq,
    after: Seq,
    capacity: BTreeMap<Queue, u32>,
    specialists: Vec<Specialty>,
    pub(super) decision: Decision,
    /// Runs that can go on besides.
    pub(super) woken: Vec<RunId>,
}

/// What is written of a decision: one entry, and the offers that follow it in the same batch.
#[derive(Debug)]
pub struct Written {
    /// The last position of an orchestrator that the decision knows; nobody may have written since.
    pub after: Seq,
    /// The decision.
    pub decided: Decided,
    /// The offers that are entries of their own.
    pub offers: Vec<TaskOffered>,
    /// Its link of the run's hash chain, up to its own messages.
    pub link: LinkDraft,
    /// How it is written.
    pub encoding: Encoding,
}

/// Where a decision was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenAt {
    /// The place of its first message.
    pub first: Seq,
    /// The hash of its link.
    pub link: Digest,
}

/// What has to be known of a write once it stands in the record.
#[derive(Debug, Clone)]
pub(super) struct NoteOfWrite {
    pub(super) decided: WrittenDecision,
    /// How many entries it is.
    pub(super) entries: u32,
    /// What it offers.
    pub(super) offered: Vec<(TaskId, Generation)>,
}

impl NoteOfWrite {
    pub(super) fn of(Written { decided, offers, .. }: &Written) -> Self {
        let entries = u32::try_from(offers.len()).unwrap_or(u32::MAX).saturating_add(1);
        let offered = decided.offer.as_deref().into_iter().chain(offers);
        let offered = offered.map(|offer| (offer.task.clone(), offer.generation)).collect();
        Self { decided: decided.into(), entries, offered }
    }
}

impl Prepared {
    /// Decides with what the queues have room for.
    pub(super) fn make(
        view: &View<'_>,
        id: RunId,
        run: Option<Box<RunState>>,
        inputs: Vec<Input>,
    ) -> Result<Self, ApplyError> {
        let now = run.as_ref().map_or(Millis(0), |run| run.decided_at).max(view.now);
        let inputs = view.fleet.held_to_contracts(run.as_deref(), inputs);
        let (basis, after) = run.as_ref().map_or((Seq(0), Seq(0)), |run| (run.folded, run.decided));
        let Roomed { decision, capacity, specialists, woken } =
            (view.decide)(view.fleet, id, run, &inputs, now)?;
        let specialists = if decision.told_of_specialists { specialists } else { Vec::new() };
        Ok(Self { inputs, now, basis, after, capacity, specialists, decision, woken })
    }

    /// Whether nothing is lost when this is decided again with what comes next. When the alarm rings, nothing came: what was
    /// put off is written, so that whoever has fallen silent since is seen to have the task.
    pub(super) fn can_wait(&self, most_deferred: usize) -> bool {
        let rang = self.inputs.contains(&Input::Timer);
        self.decision.is_empty() && !self.names_agents()
            || self.decision.deferrable && self.inputs.len() <= most_deferred && !rang
    }

    fn names_agents(&self) -> bool {
        self.inputs.iter().any(is_of_agent)
    }

    /// When the run should be looked at again if nothing comes.
    pub(super) fn wake(&self, fleet: &Capacity, heard: &Heard) -> Option<Alarm> {
        let run = self.decision.after.as_deref().filter(|run| !run.status.is_ended())?;
        let silent = silence::next(fleet, run, heard);
        let due = next_deadline(run).into_iter().chain(next_review(run)).chain(silent).min();
        let due = due.map(|at| if at <= self.now { self.now.after(LOOK_AGAIN) } else { at });
        let room = (!self.decision.wanted.is_empty()).then(|| self.now.after(LOOK_FOR_ROOM));
        match (due, room) {
            (Some(due), Some(room)) if room < due => Some(Alarm::Room(room)),
            (Some(due), _) => Some(Alarm::Due(due)),
            (None, room) => room.map(Alarm::Room),
        }
    }

    /// What is written.
    pub(super) fn write(self, by: AgentId, batch: Uuid, link: LinkDraft) -> Writing {
        let encoding = self.decision.after.as_ref().map_or(Encoding::default(), |run| run.goal.encoding);
        let Self { inputs, now, basis, after, capacity, specialists, decision, woken: _ } = self;
        let Decision { events, offers, effects, placements, after: state, .. } = decision;
        let decided = Decided {
            batch,
            by,
            inputs,
            now,
            basis,
            after,
            capacity,
            offers: 0,
            continues: false,
            specialists,
            placements,
            events,
            offer: None,
        };
        let (decided, offers) = decided.with_offers(offers);
        Writing { written: Written { after, decided, offers, link, encoding }, effects, state }
    }

    /// The run as if nothing was decided, and what is decided upon with the next decision.
    pub(super) fn put_off(self) -> (Option<Box<RunState>>, Vec<Input>) {
        (self.decision.put_off(), self.inputs.into_iter().filter(is_of_agent).collect())
    }
}

/// A decision that is being written.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) written: Written,
    /// What is to be done once it stands in the record.
    pub(super) effects: Vec<Effect>,
    /// The run as it stands then.
    pub(super) state: Option<Box<RunState>>,
}
