//! What cuts a task in hand short, and how: a cancellation at once, a hand-over at the next wait for something outside,
//! a departure at the end of the step in hand.

use muster_shared::run::Released;
use tokio::sync::watch;

/// Why a task in hand is to be dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interrupt {
    /// It was cancelled; the reason.
    Cancel(String),
    /// The process is to stop: the step in hand is finished, and another agent goes on at the next one.
    Leave(String),
    /// The process stops now; another agent goes on.
    Release(String),
    /// The run is paused; the next generation goes on.
    Park(String),
}

impl Interrupt {
    /// Whether another one takes its place. What was cancelled stays so, and who leaves anyway need not hurry less.
    pub(crate) const fn gives_way_to(&self, other: &Self) -> bool {
        match self {
            Self::Cancel(_) => false,
            Self::Release(_) | Self::Park(_) => !matches!(other, Self::Leave(_)),
            Self::Leave(_) => true,
        }
    }

    /// Whether a wait for something outside is cut short by it, though what is waited for may be paid for.
    const fn cuts(&self) -> bool {
        // A cancellation drops everything by other means.
        matches!(self, Self::Release(_) | Self::Park(_))
    }
}

/// Where interruptions of a task come from.
pub type Interrupts = watch::Receiver<Option<Interrupt>>;

/// Waits for a cancellation: it drops the work wherever it stands.
pub(super) async fn cancelled(mut interrupt: Interrupts) -> String {
    match interrupt.wait_for(|why| matches!(why, Some(Interrupt::Cancel(_)))).await.map(|why| why.clone()) {
        Ok(Some(Interrupt::Cancel(reason))) => reason,
        // Nobody is left who could cancel.
        _ => std::future::pending().await,
    }
}

/// The task is to be handed over.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandedOver;

/// Waits for something outside, unless the task is to be handed over at once. Only these waits are cut short by it, so that
/// an answer that was paid for is always journaled.
pub(super) async fn unless_handed_over<T>(
    mut interrupt: Interrupts,
    wait: impl Future<Output = T>,
) -> Result<T, HandedOver> {
    tokio::select! {
        biased;
        done = wait => Ok(done),
        () = handed_over(&mut interrupt) => Err(HandedOver),
    }
}

async fn handed_over(interrupt: &mut Interrupts) {
    if interrupt.wait_for(|why| why.as_ref().is_some_and(Interrupt::cuts)).await.is_err() {
        std::future::pending().await
    }
}

/// What is said when the task is handed over, if it is to be.
pub(super) fn released_by(why: Option<&Interrupt>) -> Option<Released> {
    let (reason, parked) = match why? {
        Interrupt::Cancel(_) => return None,
        Interrupt::Leave(reason) | Interrupt::Release(reason) => (reason.clone(), false),
        Interrupt::Park(reason) => (reason.clone(), true),
    };
    Some(Released { reason, parked, ..Released::default() })
}
