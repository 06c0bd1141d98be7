//! Programs whose connection ends wait for nothing any more: what is theirs goes to others, and not to a next request of
//! theirs that nobody hears the answer to.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt;
use muster_bus::Presence;

use crate::desk::Desk;

/// Listens to who goes, from the first program that waits here on. Where the server does not tell, it is found out when an
/// answer is to be delivered.
pub(crate) fn listen(desk: &Arc<Desk>) {
    if desk.listens.swap(true, Ordering::Relaxed) {
        return;
    }
    let desk = Arc::clone(desk);
    tokio::spawn(async move {
        match desk.bus.presence().await {
            Ok(Some(mut told)) => {
                while let Some(told) = tokio::select! {
                    told = told.next() => told,
                    () = desk.stop.cancelled() => None,
                } {
                    if let Presence::Went { agent, .. } = told {
                        desk.queues.gone(&agent);
                    }
                }
                desk.listens.store(false, Ordering::Relaxed);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, "who goes is not told; it is asked again with the next program");
                desk.listens.store(false, Ordering::Relaxed);
            }
        }
    });
}
