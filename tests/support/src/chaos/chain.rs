//! Whether the hash chain of each run fits, whoever died while it was written.

use std::io;

use muster_bus::{Bus, KeptMessage};
use muster_shared::ids::RunId;
use muster_shared::run::chain::{Read, verify};

/// What does not fit, in words.
pub(super) async fn misfits(bus: &Bus, runs: impl Iterator<Item = &RunId>) -> io::Result<Vec<String>> {
    let mut said = Vec::new();
    for run in runs {
        let kept = bus.record().kept(*run).await.map_err(io::Error::other)?;
        let entries: Vec<Read> = kept.iter().map(KeptMessage::to_verify).collect();
        if let Err(misfit) = verify(*run, &entries) {
            said.push(format!("run {run} does not fit its hash chain: {misfit:?}"));
        }
    }
    Ok(said)
}
