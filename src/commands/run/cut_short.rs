//! Why a run is not followed to its end, in words.

use muster_shared::ids::RunId;
use muster_shared::run::{ApplyError, RunState};

use crate::exit::{Exit, Failure, failed};

pub(super) fn cannot_follow(run: RunId, error: &ApplyError) -> Failure {
    failed!("the record of run {} cannot be followed: {error}", run.short())
        .help("a newer muster may have written it; `muster trace` shows it entry by entry")
}

pub(super) fn lost(run: RunId, why: &str) -> Failure {
    let short = run.short();
    Failure::bus(format!("{why}, and run {short} has not ended")).help(format!(
        "`muster up` restarts the fleet, and the run continues; `muster show {short}` shows its progress"
    ))
}

pub(super) fn cut_off(run: RunId) -> Failure {
    Failure::bus(format!("the connection to the bus was lost while run {} went on", run.short()))
        .help(format!("the run continues: `muster show {}` shows its progress", run.short()))
}

pub(super) fn too_late(run: RunId, state: Option<&RunState>, lacking: &[String]) -> Failure {
    match state {
        None => Failure::new(Exit::BusUnreachable, format!("no orchestrator has accepted the goal yet; it stays queued as run {}", run.short()))
            .help(format!(
                "it starts as soon as an orchestrator is running: `muster ps` lists the processes of the fleet, `muster \
                 orchestrator` starts one, `muster up` starts a fleet. To follow it, run the command again with \
                 --run-id {}; that starts no second run",
                run.as_uuid()
            )),
        Some(_) if !lacking.is_empty() => {
            failed!("run {} is past its deadline and has not ended: it waits for {}", run.short(), lacking.join("; "))
                .help(format!("`muster show {}` shows its progress", run.short()))
        }
        Some(_) => failed!("run {} is past its deadline and has not ended", run.short())
            .help(format!("`muster show {}` shows its progress, `muster ps` the agents at work", run.short())),
    }
}
