//! What `muster doctor` says of the record: whether anything of it is lost, or cannot be read.

use muster_bus::{Bus, BusError};
use muster_shared::run::apply;

use super::select;
use crate::app::App;
use crate::fleet::supervisor::ReadAccess;
use crate::render::checks::Check;
use crate::render::figures;

/// Runs that are looked at, newest first: the whole of their records is read.
const LOOKED_AT: usize = 20;

/// Most runs that are named.
const MOST_NAMED: usize = 5;

const WHAT: &str = "record";

/// From so much of its room on, in percent, it is said how full the record is.
const ALMOST_FULL: f64 = 75.0;

/// Looks at the positions of the whole record, and at what the newest runs say of each other's entries.
pub(super) async fn check(bus: &Bus) -> Check {
    match look(bus).await {
        Ok(check) => check,
        Err(error) => {
            Check::warn(WHAT, error.to_string(), "start a fleet with `muster up`: it sets the bus up")
        }
    }
}

/// The same where no fleet is up: its record is served for as long as it takes, if there is one.
pub(super) async fn check_at_rest(app: &App) -> Option<Check> {
    if !app.fleet.store().join("jetstream").is_dir() {
        return None;
    }
    match ReadAccess::open(app).await {
        Ok(reading) => {
            let found = check(&reading.bus).await;
            reading.close().await;
            Some(found)
        }
        Err(failure) => Some(Check::warn(
            WHAT,
            format!("it could not be looked at: {failure}"),
            "look again when nobody else uses this folder",
        )),
    }
}

async fn look(bus: &Bus) -> Result<Check, BusError> {
    let record = bus.record();
    let (lost, runs) = (record.lost().await?, record.newest_runs(LOOKED_AT).await?.runs);
    let mut faults = Vec::new();
    if lost > 0 {
        faults.push(format!("{} of all runs are not there any more", figures::plural(lost, "message")));
    }
    for run in record.fragments().await?.into_iter().take(MOST_NAMED) {
        faults.push(format!("run {}: its beginning is missing", run.short()));
    }
    let looked_at = runs.len();
    for run in runs {
        let (entries, held_back) = select::each(bus, run).await?;
        if let Some(fault) = fault(entries).or(held_back) {
            faults.push(format!("run {}: {fault}", run.short()));
        }
    }
    if faults.is_empty() {
        let runs = figures::plural(looked_at as u64, "run");
        let whole = format!("whole; the newest {runs} looked at entry by entry");
        let full = record.fullness().await? * 100.0;
        if full >= ALMOST_FULL {
            return Ok(Check::warn(
                WHAT,
                format!(
                    "{whole}. It is {full:.0} % full: new goals are refused at 80 %, and nothing is written at 100 %"
                ),
                "raise bus.record_bytes; if somebody floods it, `muster tap` shows who, and `muster keys revoke` puts them out",
            ));
        }
        return Ok(Check::ok(WHAT, whole));
    }
    let more = faults.len().saturating_sub(MOST_NAMED);
    faults.truncate(MOST_NAMED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    Ok(Check::fail(
        WHAT,
        format!("{}{more}", faults.join("; ")),
        "look at the disk and at the server's own log; `muster trace RUN` shows what is left of a run, which has to be \
         asked again",
    ))
}

/// What is wrong with the record of a run. An entry of an agent that cannot be read is none: its task failed of it.
fn fault(entries: select::EachEntry) -> Option<String> {
    let read = match select::readable(entries) {
        Ok(read) => read,
        Err(unreadable) => return Some(figures::one_line(&unreadable.to_string(), 300)),
    };
    if let Some(missing) = select::missing(&read) {
        return Some(missing);
    }
    let mut state = None;
    read.iter().find_map(|entry| apply(&mut state, entry).err()).map(|error| error.to_string())
}
