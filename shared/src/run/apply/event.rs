//! One event of a decision: `(state, event) -> state`.

use std::collections::{BTreeMap, BTreeSet};

use super::super::EVENT_VERSION;
use super::super::conflicts::Conflicts;
use super::super::control::Control;
use super::super::drafts::DraftHistory;
use super::super::event::{RunCreated, RunEvent};
use super::super::guarding::Guarding;
use super::super::peers::PeerTalk;
use super::super::planning::Planning;
use super::super::refining::Refining;
use super::super::responses::ResponseHistory;
use super::super::spending::Spending;
use super::super::state::{Phase, RunState, RunStatus};
use super::super::trials::Trials;
use super::error::{ApplyError, ApplyResult};
use super::groups;
use super::plan::derive_parents;
use crate::flow::Goal;
use crate::ids::{RunId, Seq};
use crate::time::Millis;

/// Folds one event of a decision that took `now` for the time.
///
/// # Errors
/// When the event cannot follow what was folded so far.
pub fn apply_event(state: &mut Option<RunState>, run: RunId, event: &RunEvent, now: Millis) -> ApplyResult {
    match state {
        Some(state) => fold_event(state, event, now),
        None => {
            *state = Some(begin_run(run, event, now)?);
            Ok(())
        }
    }
}

/// The run that an event begins, for a decision that took `now` for the time.
///
/// # Errors
/// When it begins none.
pub fn begin_run(run: RunId, event: &RunEvent, now: Millis) -> ApplyResult<RunState> {
    let RunEvent::RunCreated(created) = event else { return Err(ApplyError::NotCreated(Seq(0))) };
    begun(run, created, now)
}

/// Folds one event of a decision that took `now` for the time into a run that has begun.
///
/// # Errors
/// When the event cannot follow what was folded so far.
pub fn fold_event(state: &mut RunState, event: &RunEvent, now: Millis) -> ApplyResult {
    if state.status.is_ended() {
        return Err(ApplyError::RunEnded { run: state.id, event: event.name() });
    }
    let named = |cause| ApplyError::Event { event: event.name(), cause: Box::new(cause) };
    event.fold(state, now).map_err(named)?;
    groups::close_ended(state);
    derive_parents(state);
    Ok(())
}

fn begun(run: RunId, created: &RunCreated, now: Millis) -> ApplyResult<RunState> {
    if created.event_version != EVENT_VERSION {
        return Err(ApplyError::UnknownVersion { run, version: created.event_version });
    }
    Ok(RunState {
        id: run,
        status: RunStatus::Created,
        phase: Phase::Planning,
        forked: None,
        goal: Goal::clone(&created.goal),
        limits: created.limits.clone(),
        secret: created.secret.clone(),
        created_at: now,
        ended_at: None,
        deadline: created.deadline,
        control: Control::default(),
        plan: None,
        planning: Planning::default(),
        refining: Refining::default(),
        tasks: BTreeMap::new(),
        groups: BTreeMap::new(),
        questions: BTreeMap::new(),
        children: BTreeMap::new(),
        peers: PeerTalk::default(),
        responses: ResponseHistory::default(),
        conflicts: Conflicts::default(),
        tallies: BTreeMap::new(),
        drafts: DraftHistory::default(),
        guarding: Guarding::default(),
        missing_roles: BTreeMap::new(),
        trials: Trials::default(),
        spending: Spending::default(),
        report: None,
        reason: None,
        folded: Seq(0),
        decided: Seq(0),
        decided_at: now,
        batch: None,
        pending: BTreeMap::new(),
        seen: BTreeMap::new(),
        asking_children: BTreeSet::new(),
    })
}
