//! How a turn ends, and what becomes of the run here.

use muster_shared::ids::AgentId;
use muster_shared::run::ApplyError;
use muster_shared::time::Millis;

use super::pace::Took;
use super::run_log::RunLog;

/// How a turn ended.
#[derive(Debug)]
pub struct TurnEnd {
    /// What is known of the run now; nothing if the record must be read again.
    pub log: Option<RunLog>,
    /// What becomes of the run here.
    pub outcome: TurnOutcome,
    /// What those are told who gave orders.
    pub answer: OrderReply,
    /// What it came to.
    pub took: Took,
    /// Whether the state should be kept aside now.
    pub keeps_snapshot: bool,
}

/// What a run is woken for if nothing comes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm {
    /// Something is due then.
    Due(Millis),
    /// There may be room by then for what the run waits to offer.
    Room(Millis),
}

impl Alarm {
    /// When it rings.
    #[must_use]
    pub const fn at(self) -> Millis {
        match self {
            Self::Due(at) | Self::Room(at) => at,
        }
    }
}

/// What becomes of a run here after a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    /// It goes on when something comes, when the alarm rings, or at once if there is more to offer.
    GoOn {
        /// What it is woken for.
        wake: Option<Alarm>,
        /// Whether there is more to offer.
        more: bool,
    },
    /// There is nothing more to do.
    Ended,
    /// Somebody else owns the run.
    Elsewhere,
    /// The bus failed for now, or others kept writing first.
    Retry,
    /// The run cannot be handled here.
    GiveUp {
        /// Why.
        reason: String,
    },
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderReply {
    /// It stands in the record, or changes nothing any more.
    Recorded,
    /// There is no such run.
    NoSuchRun,
    /// This orchestrator has the run.
    Elsewhere(AgentId),
    /// Too many runs are going on here.
    Crowded,
    /// Not now: it should be given to somebody again.
    Later,
}

/// Why something that a turn asked for could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Failure {
    /// Whether trying again may help.
    pub is_transient: bool,
    /// What is wrong.
    pub reason: String,
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        Self { is_transient: false, reason: error.to_string() }
    }
}

/// Why a turn could not be finished.
#[derive(Debug)]
pub(super) enum TurnError {
    /// Another orchestrator has the run.
    Elsewhere(AgentId),
    /// This process has no lease now.
    NoLease,
    /// Others kept writing first.
    Contended,
    Failed(Failure),
}

impl From<Failure> for TurnError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ApplyError> for TurnError {
    fn from(error: ApplyError) -> Self {
        Self::Failed(error.into())
    }
}

impl TurnError {
    /// How a turn ends that could not be finished.
    pub(super) fn end(self, news: bool) -> TurnEnd {
        let (answer, outcome) = match self {
            Self::Elsewhere(owner) => (OrderReply::Elsewhere(owner), TurnOutcome::Elsewhere),
            // Its lease names the run for as long as the run is known here: were it let go of now, a renewal on its way
            // would not name it, and nobody would know that it was left. All runs are dismissed once the lease is gone.
            Self::NoLease | Self::Contended => (OrderReply::Later, TurnOutcome::Retry),
            Self::Failed(Failure { is_transient: true, .. }) => (OrderReply::Later, TurnOutcome::Retry),
            Self::Failed(Failure { reason, .. }) => (OrderReply::Later, TurnOutcome::GiveUp { reason }),
        };
        TurnEnd { log: None, outcome, answer, took: Took { news, wrote: false }, keeps_snapshot: false }
    }
}
