//! Looks at the fleet from the bus: who has joined while it comes up, and whether its server still writes.

use std::time::Duration;

use muster_bus::{Bus, BusError};
use muster_shared::wire::Profile;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::super::store::{PROBE_EVERY, Probe};

/// Pause between two listings of the members while a fleet comes up: ten members take a quarter of a second to join.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Longest pause between two listings. A member that is late needs seconds, and each listing costs the server a read.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long members are awaited.
const LONGEST_LOOK: Duration = Duration::from_secs(60);

/// Longest wait for the answer to a write.
const ANSWER: Duration = Duration::from_secs(2);

/// What was seen.
pub(super) enum Sight {
    /// These are there.
    Joined(Vec<Profile>),
    /// A write was tried.
    Probed(Probe),
}

/// Looks until nobody listens any more: who joins until that is settled, and whether writes are taken where the server is
/// the fleet's own.
pub(super) async fn keep_watch(
    bus: Bus,
    is_own: bool,
    settled: CancellationToken,
    seen: mpsc::Sender<Sight>,
) {
    let joining = async {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Ok(profiles) = bus.registry().list().await
                && seen.send(Sight::Joined(profiles)).await.is_err()
            {
                return;
            }
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause + pause / 20);
        }
    };
    let probing = async {
        if !is_own {
            return;
        }
        loop {
            sleep(PROBE_EVERY).await;
            if seen.send(Sight::Probed(probe(&bus).await)).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(settled.run_until_cancelled(timeout(LONGEST_LOOK, joining)), probing);
}

async fn probe(bus: &Bus) -> Probe {
    match timeout(ANSWER, bus.probe_store()).await {
        Ok(Ok(_)) => {
            // Other streams may have failed. If no server answers, this is not known.
            let failed = timeout(ANSWER, bus.failed_streams()).await.ok().and_then(Result::ok);
            match failed.and_then(|failed| failed.into_iter().next()) {
                Some((stream, why)) => Probe::Refused(format!("{stream}: {why}")),
                None => Probe::Written,
            }
        }
        // Nothing is known of the store while the server is frozen, or the connection is made again. One that answers and
        // does not write has given its store up.
        Err(_) | Ok(Err(BusError::TimedOut { .. })) => match timeout(ANSWER, bus.ping()).await {
            Ok(Ok(_)) => Probe::Refused("writes get no answer, though the server answers".to_owned()),
            Ok(Err(_)) | Err(_) => Probe::Silent,
        },
        Ok(Err(_)) if !bus.is_connected() => Probe::Silent,
        Ok(Err(error)) => Probe::Refused(error.to_string()),
    }
}
