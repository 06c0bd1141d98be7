//! Which run is meant: an id, the unique beginning of one, or `last`; and with `/` and a task, the run within it.

use muster_bus::{Bus, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{Entry, RunState, apply};

use super::within;
use crate::app::bus_failure;
use crate::exit::Failure;
use crate::place;

/// Fewest digits that may name a run.
const LEAST_DIGITS: usize = 2;

/// Most ids named in a message.
const MOST_NAMED: usize = 5;

/// Finds the run that is meant: `last/1-2` is the run that task 1-2 of the newest run has of its own.
pub(super) async fn run(bus: &Bus, wanted: &str) -> Result<RunId, Failure> {
    let runs = bus.record().runs().await.map_err(bus_failure)?;
    let Some((outer, tasks)) = wanted.split_once('/') else { return choose(&runs, wanted) };
    let tasks = place::tasks(tasks).map_err(|wrong| {
        Failure::usage(format!("{wanted:?} names no run: {wrong}"))
            .help("a run within another is called RUN/TASK, such as last/1-2")
    })?;
    let mut run = choose(&runs, outer)?;
    for task in &tasks {
        run = within::of_task(bus, run, task).await?;
    }
    Ok(run)
}

/// The run that `wanted` names among `runs`, newest first. Pure.
fn choose(runs: &[RunId], wanted: &str) -> Result<RunId, Failure> {
    let Some(newest) = runs.first() else {
        return Err(Failure::usage("there are no runs yet").help("ask one with `muster run \"…\"`"));
    };
    if wanted == "last" {
        return Ok(*newest);
    }
    let digits = wanted.replace('-', "").to_ascii_lowercase();
    if digits.len() < LEAST_DIGITS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Failure::usage(format!("{wanted:?} names no run"))
            .help("give the beginning of a run's id, or `last`; `muster runs` lists them"));
    }
    let found: Vec<RunId> = runs.iter().copied().filter(|run| run.to_string().starts_with(&digits)).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure::usage(format!("no run begins with {wanted}")).help("`muster runs` lists them")),
        many => {
            let named: Vec<String> = many.iter().take(MOST_NAMED).map(ToString::to_string).collect();
            let more = if many.len() > MOST_NAMED { ", …" } else { "" };
            Err(Failure::usage(format!(
                "{} runs begin with {wanted}: {}{more}",
                many.len(),
                named.join(", ")
            ))
            .help("give more digits of the one you mean"))
        }
    }
}

/// The record of a run.
pub(super) async fn entries(bus: &Bus, run: RunId) -> Result<Vec<Entry>, Failure> {
    bus.record().read(&RecordFilter::Run(run), Seq(0)).await.map_err(bus_failure)
}

/// A run as its record tells it.
pub(super) fn fold(run: RunId, entries: &[Entry]) -> Result<RunState, Failure> {
    let mut state = None;
    for entry in entries {
        apply(&mut state, entry).map_err(|error| {
            Failure::failed(format!("the record of run {} cannot be followed: {error}", run.short()))
                .help("`muster trace` shows it entry by entry; a newer version of muster may know what this one does not")
        })?;
    }
    state.ok_or_else(|| Failure::failed(format!("the record of run {} is empty", run.short())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn run(n: u128) -> RunId {
        RunId::from_uuid(uuid::Uuid::from_u128(n))
    }

    #[test]
    fn a_run_is_named_by_last_or_by_a_unique_beginning() {
        let a = run(0xab11_0000_0000_0000_0000_0000_0000_0001);
        let b = run(0xab22_0000_0000_0000_0000_0000_0000_0002);
        let runs = [b, a];
        assert_eq!(choose(&runs, "last").unwrap(), b);
        assert_eq!(choose(&runs, "ab1").unwrap(), a);
        assert_eq!(choose(&runs, "AB2").unwrap(), b);
        assert_eq!(choose(&runs, &a.as_uuid().to_string()).unwrap(), a);
        for (wanted, part) in
            [("ab", "2 runs"), ("ff", "no run"), ("x!", "names no run"), ("", "names no run")]
        {
            let failure = choose(&runs, wanted).unwrap_err();
            assert!(failure.to_string().contains(part), "{wanted}: {failure}");
            assert_eq!(failure.exit(), crate::exit::Exit::Usage);
        }
        assert!(choose(&[], "last").is_err());
    }
}
