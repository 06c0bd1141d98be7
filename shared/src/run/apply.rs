//! Folding the record: `(state, entry) -> state`.
//!
//! [`apply`] is the only way a run's state comes about: live, on recovery, and in every replay. A decision
//! calls [`apply_event`], [`apply_offer`] and [`close_inputs`] on a copy while it is being made, so that what
//! it sees is what folding its own record entries gives later.

use super::EVENT_VERSION;
use super::event::{AgentEvent, AgentKey, Decided, Entry, Input, RecordEvent, RunEvent};
use super::state::{Phase, RunState, RunStatus, Seen, TaskState};
use crate::flow::{Goal, Outcome, Plan, Step, TaskOffered, TaskStatus, Usage};
use crate::ids::{Attempt, Generation, RunId, Seq, TaskId, TaskIndex};
use crate::plan::order;
use crate::time::Millis;

/// Why an entry cannot be folded. Whoever meets one drops the state and stops owning the run: the record is
/// not what this build believes it to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The record does not begin with the creation of the run.
    #[error("the record begins at {0} without the creation of a run")]
    NotCreated(Seq),
    /// A run was created that exists already.
    #[error("run {run} was created a second time")]
    CreatedTwice {
        /// The run.
        run: RunId,
    },
    /// An entry of another run.
    #[error("an entry of run {found} cannot be folded into run {wanted}")]
    OtherRun {
        /// The run being folded.
        wanted: RunId,
        /// The run that the entry belongs to.
        found: RunId,
    },
    /// The run was written by a newer (or no known) version.
    #[error("run {run} has events of version {version}; this build knows versions 1 to {EVENT_VERSION}")]
    UnknownVersion {
        /// The run.
        run: RunId,
        /// The version of its events.
        version: u32,
    },
    /// Something happened after the end of the run.
    #[error("{event} came after the end of run {run}")]
    RunEnded {
        /// The run.
        run: RunId,
        /// What happened.
        event: &'static str,
    },
    /// An event that does not belong to what the run is busy with.
    #[error("{event} cannot happen while the run is {phase:?}")]
    WrongPhase {
        /// What happened.
        event: &'static str,
        /// What the run was busy with.
        phase: Phase,
    },
    /// A task cannot pass from one state to the other.
    #[error("task {task} cannot go from {from:?} to {to:?}")]
    IllegalTransition {
        /// The task.
        task: TaskId,
        /// Its state.
        from: TaskStatus,
        /// The state it was to have.
        to: TaskStatus,
    },
    /// A task that is not in the plan, was never offered, or is not a leaf.
    #[error("there is no task {task} that {event} could be about")]
    UnknownTask {
        /// The task.
        task: TaskId,
        /// What was said of it.
        event: &'static str,
    },
    /// An event about another generation than the newest.
    #[error("task {task} is at generation {wanted}, not {found}")]
    WrongGeneration {
        /// The task.
        task: TaskId,
        /// The generation it had to be.
        wanted: Generation,
        /// The generation that was named.
        found: Generation,
    },
    /// An attempt that does not come after the one before.
    #[error("attempt {found} of task {task} does not come after attempt {last}")]
    WrongAttempt {
        /// The task.
        task: TaskId,
        /// The newest attempt.
        last: Attempt,
        /// The attempt that was named.
        found: Attempt,
    },
    /// No outcome of the task waits at the place named.
    #[error("no outcome of task {task} generation {generation} waits at position {seq}")]
    NoOutcome {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Where it was said to be.
        seq: Seq,
    },
    /// An offer that no decision announced.
    #[error("task {task} is offered at {seq}, which no decision announced")]
    OfferWithoutDecision {
        /// The task.
        task: TaskId,
        /// The place of the offer.
        seq: Seq,
    },
    /// A decision before all offers of the one before it came.
    #[error("the decision at {seq} comes before {missing} offers of the one before it")]
    BatchIncomplete {
        /// The place of the decision.
        seq: Seq,
        /// How many are missing.
        missing: u32,
    },
    /// A change of plan that removes what has begun.
    #[error("the plan of run {run} lost task {task}, which is {status:?}")]
    PlanLostTask {
        /// The run.
        run: RunId,
        /// The task.
        task: TaskIndex,
        /// Its state.
        status: TaskStatus,
    },
}

/// Folds one entry into a run; `None` before its first. An entry that was folded before is ignored.
///
/// # Errors
/// When the entry cannot follow what was folded so far. The state may then be half changed: drop it.
pub fn apply(state: &mut Option<RunState>, entry: &Entry) -> Result<(), ApplyError> {
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
        RecordEvent::Agent(key, event) => {
            let run = state.as_mut().ok_or(ApplyError::NotCreated(entry.seq))?;
            apply_agent(run, entry.seq, key, event);
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

/// Folds one event of a decision that took `now` for the time.
///
/// # Errors
/// When the event cannot follow what was folded so far.
pub fn apply_event(
    state: &mut Option<RunState>,
    run: RunId,
    event: &RunEvent,
    now: Millis,
) -> Result<(), ApplyError> {
    let Some(state) = state else {
        *state = Some(created(run, event, now)?);
        return Ok(());
    };
    if state.status.is_ended() {
        return Err(ApplyError::RunEnded { run, event: event.name() });
    }
    fold_event(state, event, now)?;
    derive_parents(state);
    Ok(())
}

/// Folds the offer of a task by a decision that took `now` for the time.
///
/// # Errors
/// When the task cannot be offered.
pub fn apply_offer(state: &mut RunState, offer: &TaskOffered, now: Millis) -> Result<(), ApplyError> {
    const EVENT: &str = "an offer";
    if offer.run != state.id {
        return Err(ApplyError::OtherRun { wanted: state.id, found: offer.run });
    }
    if state.status.is_ended() {
        return Err(ApplyError::RunEnded { run: state.id, event: EVENT });
    }
    let known = match &offer.task {
        TaskId::Leaf(index) => state.plan.as_ref().is_some_and(|plan| plan.is_leaf(index)),
        TaskId::Reflect(index) => state.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(index)),
        TaskId::Plan | TaskId::Refine(_) | TaskId::Write => true,
    };
    if !known {
        return Err(ApplyError::UnknownTask { task: offer.task.clone(), event: EVENT });
    }
    let task = state.tasks.entry(offer.task.clone()).or_default();
    match task.status {
        TaskStatus::Created | TaskStatus::Queued => {}
        from @ (TaskStatus::Processing
        | TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Aborted
        | TaskStatus::Skipped
        | TaskStatus::Blocked
        | TaskStatus::Split) => return Err(illegal(&offer.task, from, TaskStatus::Queued)),
    }
    let wanted = task.generation.next();
    if offer.generation != wanted {
        return Err(ApplyError::WrongGeneration {
            task: offer.task.clone(),
            wanted,
            found: offer.generation,
        });
    }
    task.status = TaskStatus::Queued;
    task.generation = offer.generation;
    task.queue = Some(offer.queue.clone());
    task.offered_at = Some(now);
    task.deadline = Some(offer.deadline);
    task.agent = None;
    task.attempt = Attempt(0);
    if state.status == RunStatus::Created {
        state.status = RunStatus::Processing;
    }
    derive_parents(state);
    Ok(())
}

/// Drops the events of agents that a decision named. What an outcome among them used counts, whether or not
/// the decision made anything of it: it was paid for.
pub fn close_inputs(state: &mut RunState, inputs: &[Input]) {
    for input in inputs {
        match input {
            Input::Agent { seq } => {
                if let Some((_, event)) = state.pending.remove(seq) {
                    count_usage(&mut state.usage, &event);
                }
            }
            Input::Goal { .. }
            | Input::Refuse { .. }
            | Input::Capacity
            | Input::Timer
            | Input::Cancel { .. } => {}
        }
    }
}

fn apply_decided(state: &mut Option<RunState>, entry: &Entry, decided: &Decided) -> Result<(), ApplyError> {
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
    match &decided.offer {
        Some(offer) => apply_offer(run, offer, decided.now),
        None => Ok(()),
    }
}

fn apply_offer_entry(run: &mut RunState, seq: Seq, offer: &TaskOffered) -> Result<(), ApplyError> {
    let Some((batch, missing)) = run.batch.filter(|(_, missing)| *missing > 0) else {
        return Err(ApplyError::OfferWithoutDecision { task: offer.task.clone(), seq });
    };
    apply_offer(run, offer, run.decided_at)?;
    run.batch = Some((batch, missing - 1));
    run.decided = seq;
    Ok(())
}

/// Notes what an agent says. It waits for a decision, except where none can follow: what is about a task that
/// was never offered has no effect, and after the end of the run only its usage counts.
fn apply_agent(run: &mut RunState, seq: Seq, key: &AgentKey, event: &AgentEvent) {
    let offered = run
        .tasks
        .get(&key.task)
        .is_some_and(|task| task.generation >= key.generation && key.generation > Generation(0));
    if !offered {
        return;
    }
    note_seen(run.seen.entry(key.task.clone()).or_default(), key, event);
    if run.status.is_ended() {
        count_usage(&mut run.usage, event);
        return;
    }
    match event {
        AgentEvent::Started(_)
        | AgentEvent::ToolStarted(_)
        | AgentEvent::Released(_)
        | AgentEvent::Outcome(_) => {
            run.pending.insert(seq, (key.clone(), event.clone()));
        }
        AgentEvent::Step(_) => {}
    }
}

fn note_seen(seen: &mut Seen, key: &AgentKey, event: &AgentEvent) {
    if key.generation < seen.generation {
        return;
    }
    if key.generation > seen.generation {
        *seen = Seen { generation: key.generation, ..Seen::default() };
    }
    seen.agent = Some(key.agent.clone());
    match event {
        AgentEvent::Started(started) => seen.step = seen.step.max(started.after_step),
        AgentEvent::ToolStarted(tool) => seen.doing.clone_from(&tool.step.action.name),
        AgentEvent::Step(step) => note_step(seen, step),
        AgentEvent::Released(_) => seen.agent = None,
        AgentEvent::Outcome(outcome) => {
            if let Some(step) = &outcome.last_step {
                note_step(seen, step);
            }
            seen.usage = outcome.usage;
            seen.ended = true;
        }
    }
}

fn note_step(seen: &mut Seen, step: &Step) {
    seen.step = seen.step.max(step.number);
    seen.doing.clone_from(&step.action.name);
    for call in &step.calls {
        seen.usage += call.usage;
    }
}

fn count_usage(usage: &mut Usage, event: &AgentEvent) {
    match event {
        AgentEvent::Outcome(outcome) => *usage += outcome.usage,
        AgentEvent::Started(_)
        | AgentEvent::ToolStarted(_)
        | AgentEvent::Step(_)
        | AgentEvent::Released(_) => {}
    }
}

fn created(run: RunId, event: &RunEvent, now: Millis) -> Result<RunState, ApplyError> {
    let RunEvent::RunCreated { goal, limits, event_version, secret, deadline } = event else {
        return Err(ApplyError::NotCreated(Seq(0)));
    };
    if !(1..=EVENT_VERSION).contains(event_version) {
        return Err(ApplyError::UnknownVersion { run, version: *event_version });
    }
    Ok(RunState {
        id: run,
        status: RunStatus::Created,
        phase: Phase::Planning,
        goal: Goal::clone(goal),
        limits: limits.clone(),
        event_version: *event_version,
        secret: secret.clone(),
        created_at: now,
        ended_at: None,
        deadline: *deadline,
        plan: None,
        refused_plans: Vec::new(),
        tasks: std::collections::BTreeMap::new(),
        reflections: std::collections::BTreeMap::new(),
        wanted: std::collections::BTreeMap::new(),
        refinements: Vec::new(),
        usage: Usage::default(),
        report: None,
        reason: None,
        folded: Seq(0),
        decided: Seq(0),
        decided_at: now,
        batch: None,
        pending: std::collections::BTreeMap::new(),
        seen: std::collections::BTreeMap::new(),
    })
}

fn fold_event(state: &mut RunState, event: &RunEvent, now: Millis) -> Result<(), ApplyError> {
    let name = event.name();
    match event {
        RunEvent::RunCreated { .. } => return Err(ApplyError::CreatedTwice { run: state.id }),
        RunEvent::PlanRefused { reasons } => {
            require_phase(state, &[Phase::Planning], name)?;
            state.refused_plans.push(reasons.clone());
        }
        RunEvent::PlanAdopted { plan, repairs: _ } => {
            require_phase(state, &[Phase::Planning], name)?;
            change_plan(state, plan)?;
            state.phase = Phase::Executing;
        }
        RunEvent::TaskStarted { task, generation, agent, attempt } => {
            let state = at_generation(state, task, *generation, name)?;
            move_to(state, task, TaskStatus::Processing)?;
            if *attempt <= state.attempt {
                return Err(ApplyError::WrongAttempt {
                    task: task.clone(),
                    last: state.attempt,
                    found: *attempt,
                });
            }
            state.agent = Some(agent.clone());
            state.attempt = *attempt;
        }
        RunEvent::TaskCompleted { task, generation, outcome } => {
            end_generation(state, name, task, *generation, TaskStatus::Completed, Some(*outcome))?;
        }
        RunEvent::TaskRetried { task, generation, outcome, reason } => {
            let task = end_generation(state, name, task, *generation, TaskStatus::Created, *outcome)?;
            task.reasons.push(reason.clone());
        }
        RunEvent::TaskFailed { task, generation, outcome, reason } => {
            let task = end_generation(state, name, task, *generation, TaskStatus::Failed, *outcome)?;
            task.reasons.push(reason.clone());
        }
        RunEvent::TaskBlocked { task, reason } => {
            end_without_outcome(state, name, &TaskId::Leaf(task.clone()), TaskStatus::Blocked, reason)?;
        }
        RunEvent::TaskAborted { task, reason } => {
            end_without_outcome(state, name, task, TaskStatus::Aborted, reason)?;
        }
        RunEvent::TaskSkipped { task, reason } => {
            end_without_outcome(state, name, &TaskId::Leaf(task.clone()), TaskStatus::Skipped, reason)?;
        }
        RunEvent::Reflected { task, reflection } => {
            if !state.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(task)) {
                return Err(ApplyError::UnknownTask { task: TaskId::Leaf(task.clone()), event: name });
            }
            state.reflections.insert(task.clone(), reflection.clone());
        }
        RunEvent::RefinementWanted { number, reason } => {
            require_phase(state, &[Phase::Executing], name)?;
            state.wanted.entry(*number).or_default().push(reason.clone());
        }
        RunEvent::PlanRefined { number: _, changes, refused, plan } => {
            require_phase(state, &[Phase::Executing], name)?;
            change_plan(state, plan)?;
            state.refinements.push((changes.clone(), refused.clone()));
        }
        RunEvent::WritingBegan => {
            require_phase(state, &[Phase::Executing], name)?;
            state.phase = Phase::Writing;
        }
        RunEvent::RunCompleted { report } => {
            require_phase(state, &[Phase::Writing], name)?;
            state.report = Some(report.clone());
            end_run(state, RunStatus::Completed, "the run was completed without it", now);
        }
        RunEvent::RunFailed { reason } => {
            state.reason = Some(reason.clone());
            end_run(state, RunStatus::Failed, "the run failed", now);
        }
        RunEvent::RunAborted { why, reason } => {
            state.reason = Some(reason.clone());
            end_run(state, RunStatus::Aborted(*why), reason, now);
        }
    }
    Ok(())
}

fn require_phase(state: &RunState, allowed: &[Phase], event: &'static str) -> Result<(), ApplyError> {
    if allowed.contains(&state.phase) {
        Ok(())
    } else {
        Err(ApplyError::WrongPhase { event, phase: state.phase })
    }
}

/// The task that an event is about: offered before, at the generation that the event names, and no parent.
fn at_generation<'a>(
    state: &'a mut RunState,
    task: &TaskId,
    generation: Generation,
    event: &'static str,
) -> Result<&'a mut TaskState, ApplyError> {
    let found = executable(state, task, event)?;
    if found.generation == generation {
        Ok(found)
    } else {
        Err(ApplyError::WrongGeneration { task: task.clone(), wanted: found.generation, found: generation })
    }
}

fn executable<'a>(
    state: &'a mut RunState,
    task: &TaskId,
    event: &'static str,
) -> Result<&'a mut TaskState, ApplyError> {
    let unknown = || ApplyError::UnknownTask { task: task.clone(), event };
    match task {
        TaskId::Leaf(index) if !state.plan.as_ref().is_some_and(|plan| plan.is_leaf(index)) => Err(unknown()),
        TaskId::Leaf(_) | TaskId::Plan | TaskId::Reflect(_) | TaskId::Refine(_) | TaskId::Write => {
            state.tasks.get_mut(task).ok_or_else(unknown)
        }
    }
}

fn move_to(state: &mut TaskState, task: &TaskId, to: TaskStatus) -> Result<(), ApplyError> {
    if may_become(state.status, to) {
        state.status = to;
        Ok(())
    } else {
        Err(illegal(task, state.status, to))
    }
}

/// The transitions of a task. `Queued` is reached by offers only, which have a rule of their own.
const fn may_become(from: TaskStatus, to: TaskStatus) -> bool {
    match from {
        TaskStatus::Created => match to {
            TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Skipped
            | TaskStatus::Blocked
            | TaskStatus::Split => true,
            TaskStatus::Created | TaskStatus::Queued | TaskStatus::Processing | TaskStatus::Completed => {
                false
            }
        },
        TaskStatus::Queued | TaskStatus::Processing => match to {
            // Processing again: another agent took over within the generation.
            TaskStatus::Created
            | TaskStatus::Processing
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Skipped
            | TaskStatus::Split => true,
            TaskStatus::Queued | TaskStatus::Blocked => false,
        },
        TaskStatus::Failed => match to {
            TaskStatus::Split => true,
            TaskStatus::Created
            | TaskStatus::Queued
            | TaskStatus::Processing
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Skipped
            | TaskStatus::Blocked => false,
        },
        TaskStatus::Completed
        | TaskStatus::Aborted
        | TaskStatus::Skipped
        | TaskStatus::Blocked
        | TaskStatus::Split => false,
    }
}

fn illegal(task: &TaskId, from: TaskStatus, to: TaskStatus) -> ApplyError {
    ApplyError::IllegalTransition { task: task.clone(), from, to }
}

fn end_generation<'a>(
    state: &'a mut RunState,
    event: &'static str,
    task: &TaskId,
    generation: Generation,
    to: TaskStatus,
    outcome: Option<Seq>,
) -> Result<&'a mut TaskState, ApplyError> {
    at_generation(state, task, generation, event)?;
    let outcome = outcome.map(|seq| take_outcome(state, task, generation, seq)).transpose()?;
    let found = at_generation(state, task, generation, event)?;
    move_to(found, task, to)?;
    found.agent = None;
    if outcome.is_some() {
        found.outcome = outcome;
    }
    Ok(found)
}

fn take_outcome(
    state: &mut RunState,
    task: &TaskId,
    generation: Generation,
    seq: Seq,
) -> Result<Outcome, ApplyError> {
    let missing = || ApplyError::NoOutcome { task: task.clone(), generation, seq };
    match state.pending.get(&seq) {
        Some((key, AgentEvent::Outcome(outcome))) if key.task == *task && key.generation == generation => {
            let outcome = outcome.clone();
            state.pending.remove(&seq);
            state.usage += outcome.usage;
            Ok(outcome)
        }
        Some(_) | None => Err(missing()),
    }
}

fn end_without_outcome(
    state: &mut RunState,
    event: &'static str,
    task: &TaskId,
    to: TaskStatus,
    reason: &str,
) -> Result<(), ApplyError> {
    let found = executable(state, task, event)?;
    move_to(found, task, to)?;
    found.agent = None;
    found.reasons.push(reason.to_owned());
    Ok(())
}

/// Takes over a plan: new tasks appear, tasks that were not begun may go, leaves may be split.
fn change_plan(state: &mut RunState, plan: &Plan) -> Result<(), ApplyError> {
    let before = state.plan.take().unwrap_or_default();
    for index in before.tasks.keys() {
        let id = TaskId::Leaf(index.clone());
        if !plan.tasks.contains_key(index) {
            let status = state.tasks.get(&id).map_or(TaskStatus::Created, |task| task.status);
            if status != TaskStatus::Created {
                return Err(ApplyError::PlanLostTask { run: state.id, task: index.clone(), status });
            }
            state.tasks.remove(&id);
        } else if before.is_leaf(index) && !plan.is_leaf(index) {
            let task = state.tasks.entry(id.clone()).or_default();
            move_to(task, &id, TaskStatus::Split)?;
            task.agent = None;
        }
    }
    for index in plan.tasks.keys() {
        state.tasks.entry(TaskId::Leaf(index.clone())).or_default();
    }
    state.plan = Some(plan.clone());
    Ok(())
}

/// Ends the run. What agents still have in hand is cut off, and what they reported counts as used.
fn end_run(state: &mut RunState, status: RunStatus, reason: &str, now: Millis) {
    state.status = status;
    state.phase = Phase::Ended;
    state.ended_at = Some(now);
    for task in state.tasks.values_mut() {
        match task.status {
            TaskStatus::Queued | TaskStatus::Processing => {
                task.status = TaskStatus::Aborted;
                task.agent = None;
                task.reasons.push(reason.to_owned());
            }
            TaskStatus::Created
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Skipped
            | TaskStatus::Blocked
            | TaskStatus::Split => {}
        }
    }
    for (_, event) in std::mem::take(&mut state.pending).into_values() {
        count_usage(&mut state.usage, &event);
    }
}

/// A parent's state follows from the leaves below it. One that came about by a split stays `Split`.
fn derive_parents(state: &mut RunState) {
    let Some(plan) = &state.plan else { return };
    let statuses = state.statuses();
    for index in plan.tasks.keys().filter(|index| !plan.is_leaf(index)) {
        if let Some(task) = state.tasks.get_mut(&TaskId::Leaf(index.clone()))
            && task.status != TaskStatus::Split
        {
            task.status = order::status_of(plan, &statuses, index);
        }
    }
}
