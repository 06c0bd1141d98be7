//! Keeps the bus in order while it is used: what is missing is made anew, what nobody refers to is swept out.

use std::sync::Arc;
use std::time::Duration;

use muster_bus::BusError;

use super::context::OrchestratorContext;

/// How often it is looked whether a stream is missing.
const LOOK: Duration = Duration::from_secs(10);
/// How many looks there are from one sweep of the object store to the next.
const SWEEP: u32 = 180;
/// How long what nobody refers to is kept, at least: it may be on its way to being referred to, or being read.
const UNUSED: Duration = Duration::from_secs(3600);

/// Looks after the bus for as long as it is polled. Several orchestrators may do so at once.
pub(super) async fn keep(context: Arc<OrchestratorContext>) -> Result<(), BusError> {
    for look in 1_u32.. {
        tokio::time::sleep(LOOK).await;
        if let Err(error) = context.bus.mend().await {
            tracing::debug!(%error, "it cannot be told whether all streams are there");
        }
        if look.is_multiple_of(SWEEP) {
            match context.bus.store().sweep(UNUSED).await {
                Ok(0) => {}
                Ok(objects) => tracing::info!(objects, "swept out of the object store what nobody refers to"),
                Err(error) => tracing::debug!(%error, "the object store cannot be swept"),
            }
        }
    }
    Ok(())
}
