//! The broker's clock as one process keeps it: what all agree on by time goes by it.

use std::sync::Mutex;
use std::time::Duration;

use muster_bus::{Allowances, BrokerClock, BusError};
use muster_shared::sync::lock;

/// A clock is set anew after this time: those of machines drift apart.
const LONGEST_KEPT: Duration = Duration::from_secs(300);

/// The clock, once somebody asked for it.
#[derive(Default)]
pub(super) struct FleetClock(Mutex<Option<BrokerClock>>);

impl FleetClock {
    /// The clock, asked of the bus when there is none or it is too old.
    ///
    /// # Errors
    /// When the bus does not answer.
    pub(super) async fn get(&self, allowances: &Allowances) -> Result<BrokerClock, BusError> {
        if let Some(clock) = self.kept().filter(|clock| clock.age() < LONGEST_KEPT) {
            return Ok(clock);
        }
        let clock = allowances.clock().await?;
        *lock(&self.0) = Some(clock);
        Ok(clock)
    }

    /// The clock as it was set last, however long ago.
    pub(super) fn kept(&self) -> Option<BrokerClock> {
        *lock(&self.0)
    }
}
