//! What happens on the bus reaches the actors of the runs it concerns.

use std::sync::Arc;

use futures::StreamExt;
use muster_bus::{BusError, Places, Unreadable};
use muster_shared::ids::RunId;
use muster_shared::run::Entry;

use super::context::OrchestratorContext;
use super::run_actor::RunMessage;

/// Dispatches what agents write after a position to the runs that are driven here.
///
/// # Errors
/// When the record cannot be followed, or cannot be followed any more.
pub(super) async fn follow_agents(context: Arc<OrchestratorContext>, after: Places) -> Result<(), BusError> {
    let mut written = context.bus.record().follow_agents(after).await?;
    while let Some(heard) = written.next().await {
        if context.registry.has(heard.run) {
            context.registry.tell_covered(heard.run, heard.covered());
        }
        match heard.signal {
            Some(Ok(entry)) => dispatch(&context, entry),
            Some(Err(unreadable)) => warn(&context, &unreadable).await,
            None => {}
        }
    }
    Err(BusError::Other {
        what: "following the record".into(),
        reason: "the bus gave no more entries".into(),
    })
}

fn dispatch(context: &OrchestratorContext, entry: Entry) {
    context.ownership.reached(entry.run, entry.seq);
    context.registry.tell(entry.run, RunMessage::Signal(Box::new(entry)));
}

/// A run with an entry that cannot be read must not be decided upon: reading its record again finds that out. Nothing
/// depends on one that names no task; whoever drives the run keeps it among the dead letters.
async fn warn(context: &OrchestratorContext, unreadable: &Unreadable) {
    tracing::error!(%unreadable, "an agent's entry cannot be read");
    let Some(run) = unreadable.subject.split('.').nth(1).and_then(|run| run.parse::<RunId>().ok()) else {
        return;
    };
    if !unreadable.of_nobody {
        return context.registry.tell(run, RunMessage::Reload);
    }
    if context.registry.has(run)
        && let Err(error) = context.bus.dead().put_entry(run, unreadable.seq, &unreadable.reason).await
    {
        tracing::warn!(%run, %error, "an entry of no task could not be kept among the dead letters");
    }
}
