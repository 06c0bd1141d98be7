//! Why an entry of the record cannot be folded.

use super::super::EVENT_VERSION;
use super::super::state::Phase;
use crate::flow::TaskStatus;
use crate::ids::{Attempt, Generation, QuestionId, RunId, Seq, TaskId, TaskIndex};

/// Result of folding an entry.
pub type ApplyResult<T = ()> = Result<T, ApplyError>;

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
    #[error("run {run} has events of version {version}; this build knows version {EVENT_VERSION} only")]
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
    /// An event that cannot follow, with the reason.
    #[error("{event}: {cause}")]
    Event {
        /// What happened.
        event: &'static str,
        /// Why it cannot follow.
        cause: Box<Self>,
    },
    /// An event that does not belong to what the run is busy with.
    #[error("cannot happen while the run is {phase:?}")]
    WrongPhase {
        /// What the run was busy with.
        phase: Phase,
    },
    /// A conflict that is not there, or is not being settled, or has another number.
    #[error("conflict {id} is not the one that is due")]
    NoSuchConflict {
        /// The conflict.
        id: u32,
    },
    /// A question to guards that is not the one that is due, or about what is not there.
    #[error("question {number} to guards is not the one that is due")]
    NotAsked {
        /// Which question.
        number: u32,
    },
    /// An auction that is not there, or is over.
    #[error("the auction of task {task} is not the one that is due")]
    NoSuchAuction {
        /// The task.
        task: TaskIndex,
    },
    /// A run that was not begun for a task of this one, or whose end is known.
    #[error("run {run} does not wait for run {child}")]
    NoSuchChild {
        /// The run.
        run: RunId,
        /// The other run.
        child: RunId,
    },
    /// A pause of a run that is paused, or the end of one that is not.
    #[error("cannot happen while the run is {}paused", if *paused { "" } else { "not " })]
    WrongPause {
        /// Whether the run was paused.
        paused: bool,
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
    #[error("task {task} is not in the plan, was never offered, or is not a leaf")]
    UnknownTask {
        /// The task.
        task: TaskId,
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
    /// A question that is not there, was there before, or has ended.
    #[error("cannot be about question {id} of run {run}")]
    WrongQuestion {
        /// The run.
        run: RunId,
        /// The question.
        id: QuestionId,
    },
    /// What a task told others has another number than the next.
    #[error("what is told next in run {run} has the number {wanted}, not {found}")]
    WrongInformation {
        /// The run.
        run: RunId,
        /// The number it had to be.
        wanted: u32,
        /// The number that was named.
        found: u32,
    },
    /// A value of the shared context has another version than the next.
    #[error("what is written next under {key} has version {wanted}, not {found}")]
    WrongContext {
        /// The key.
        key: String,
        /// The version it had to have.
        wanted: u32,
        /// The version that was named.
        found: u32,
    },
    /// A task that does not wait as the event has it.
    #[error("task {task} does not wait for that")]
    NotWaiting {
        /// The task.
        task: TaskId,
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
