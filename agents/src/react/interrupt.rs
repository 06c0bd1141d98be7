//! What cuts a task in hand short, and how: a cancellation at once, a hand-over at the next wait for something outside.

use muster_shared::flow::Usage;
use muster_shared::run::Released;
use tokio::sync::watch;

/// Why a task in hand is to be dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interrupt {
    /// It was cancelled; the reason.
    Cancel(String),
    /// The process stops; another agent goes on.
    Release(String),
    /// The run is paused; the next generation goes on.
    Park(String),
}

/// Where interruptions of a task come from.
pub type Interrupts = watch::Receiver<Option<Interrupt>>;

/// Waits for a cancellation: it drops the work wherever it stands.
pub(super) async fn cancelled(mut interrupt: Interrupts) -> String {
    match interrupt.wait_for(|why| matches!(why, Some(Interrupt::Cancel(_)))).await.map(|why| why.clone()) {
        Ok(Some(Interrupt::Cancel(reason))) => reason,
        // Nobody is left who could cancel.
        Ok(_) | Err(_) => std::future::pending().await,
    }
}

/// The task is to be handed over.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandedOver;

/// Waits for something outside, unless the task is to be handed over. Only these waits are cut short by it, so that
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
    if interrupt.wait_for(|why| released_by(why.as_ref()).is_some()).await.is_err() {
        std::future::pending().await
    }
}

/// What is said when the task is handed over, if it is to be.
pub(super) fn released_by(why: Option<&Interrupt>) -> Option<Released> {
    let (reason, parked) = match why? {
        Interrupt::Cancel(_) => return None,
        Interrupt::Release(reason) => (reason.clone(), false),
        Interrupt::Park(reason) => (reason.clone(), true),
    };
    Some(Released { reason, parked, usage: Usage::default() })
}
