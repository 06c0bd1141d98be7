//! Which run is meant: an id, the unique end or beginning of one, or `last`; and with `/` and a task, the run within it.

use muster_bus::{Bus, BusError, RecordFilter, Unreadable};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{ApplyError, Entry, Gap, RunState, apply, gaps};

use super::{keep, within};
use crate::app::App;
use crate::exit::{Failure, failed, usage};
use crate::fleet::supervisor::ReadAccess;
use crate::place;

/// Fewest digits that may name a run.
const LEAST_DIGITS: usize = 2;

/// Most ids named in a message.
const MOST_NAMED: usize = 5;

/// Finds the run that is meant: `last/1-2` is the run that task 1-2 of the newest run has of its own. One whose record was
/// removed is told to be so.
pub(crate) async fn run(bus: &Bus, wanted: &str) -> Result<RunId, Failure> {
    let run = any(bus, wanted).await?;
    match keep::removed(bus, run).await? {
        Some(gone) => Err(keep::tell_removed(run, &gone.removed)),
        None => Ok(run),
    }
}

/// The same, whether or not there is still a record of it.
pub(crate) async fn any(bus: &Bus, wanted: &str) -> Result<RunId, Failure> {
    let outer = wanted.split_once('/').map_or(wanted, |(outer, _)| outer);
    // The newest is found without going through all that there ever was.
    let runs = match outer {
        "last" => bus.record().newest_runs(1).await?.runs,
        _ => with_noted(bus, bus.record().runs().await?).await?,
    };
    // One of which the beginning is lost is looked for only where no other is meant.
    let runs = match choose(&runs, outer) {
        Ok(_) => runs,
        Err(_) => {
            let fragments = bus.record().fragments().await?;
            with_noted(bus, [runs, fragments].concat()).await?
        }
    };
    let Some((outer, tasks)) = wanted.split_once('/') else { return choose(&runs, wanted) };
    let tasks = place::tasks(tasks).map_err(|wrong| {
        usage!("{wanted:?} names no run: {wrong}")
            .help("a run within another is called RUN/TASK, such as last/1-2")
    })?;
    let mut run = choose(&runs, outer)?;
    for task in &tasks {
        run = within::of_task(bus, run, task).await?;
    }
    Ok(run)
}

/// These runs, and those that came from elsewhere or of which a summary is left.
async fn with_noted(bus: &Bus, mut runs: Vec<RunId>) -> Result<Vec<RunId>, Failure> {
    let notes = bus.kept().all().await?;
    runs.extend(notes.iter().filter(|(_, note)| keep::is_there(note)).map(|(run, _)| *run));
    runs.sort_unstable_by(|one, other| other.cmp(one));
    runs.dedup();
    Ok(runs)
}

/// The run that `wanted` names among `runs`, newest first. Pure.
pub(crate) fn choose(runs: &[RunId], wanted: &str) -> Result<RunId, Failure> {
    let Some(newest) = runs.first() else {
        return Err(usage!("there are no runs yet").help("ask one with `muster run \"…\"`"));
    };
    if wanted == "last" {
        return Ok(*newest);
    }
    let digits = wanted.replace('-', "").to_ascii_lowercase();
    if digits.len() < LEAST_DIGITS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(usage!("{wanted:?} names no run")
            .help("give the digits of a run's id that `muster runs` shows, or `last`"));
    }
    let named = |run: &RunId| {
        let id = run.to_string();
        id.ends_with(&digits) || id.starts_with(&digits)
    };
    let found: Vec<RunId> = runs.iter().copied().filter(named).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(usage!("no run's id ends or begins with {wanted}").help("`muster runs` lists them")),
        many => {
            let named: Vec<String> = many.iter().take(MOST_NAMED).map(ToString::to_string).collect();
            let more = if many.len() > MOST_NAMED { ", …" } else { "" };
            Err(usage!(
                "the ids of {} runs end or begin with {wanted}: {}{more}",
                many.len(),
                named.join(", ")
            )
            .help("give more digits of the one you mean"))
        }
    }
}

/// The record of a run.
pub(crate) async fn entries(bus: &Bus, run: RunId) -> Result<Vec<Entry>, Failure> {
    Ok(bus.record().read(&RecordFilter::Run(run), Seq(0)).await?)
}

/// State of a run by its event log.
pub(super) async fn state(bus: &Bus, run: RunId) -> Result<RunState, Failure> {
    fold(run, &entries(bus, run).await?)
}

/// State of the run that `wanted` names.
pub(super) async fn wanted(bus: &Bus, wanted: &str) -> Result<RunState, Failure> {
    state(bus, run(bus, wanted).await?).await
}

/// Reads from the bus of the fleet, or from the local event log if no fleet is up.
pub(super) async fn reading<T>(
    app: &App,
    read: impl AsyncFnOnce(&Bus) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let access = ReadAccess::open(app).await?;
    let found = read(&access.bus).await;
    access.close().await;
    found
}

/// A run as its record tells it.
pub(crate) fn fold(run: RunId, entries: &[Entry]) -> Result<RunState, Failure> {
    let mut state = None;
    for entry in entries {
        apply(&mut state, entry).map_err(|error| cannot_follow(run, entries, &error))?;
    }
    state.ok_or_else(|| {
        if entries.is_empty() {
            failed!("the record of run {} is empty", run.short())
        } else {
            cannot_follow(run, entries, &ApplyError::NotCreated(entries[0].seq))
        }
    })
}

fn cannot_follow(run: RunId, entries: &[Entry], error: &ApplyError) -> Failure {
    let short = run.short();
    match missing(entries) {
        Some(missing) => {
            failed!("the record of run {short} is damaged: {missing} ({error})").help(format!(
                "`muster trace {short}` shows what is left of it; ask the goal again if the run is still wanted"
            ))
        }
        None => failed!("the record of run {short} cannot be followed: {error}").help(format!(
            "`muster trace {short}` shows it entry by entry; a newer version of muster may know what this one does not"
        )),
    }
}

/// The run that `wanted` names, its record, and what is missing from it.
pub(super) async fn wanted_whole(
    bus: &Bus,
    wanted: &str,
) -> Result<(RunId, Vec<Entry>, Option<String>), Failure> {
    let run = run(bus, wanted).await?;
    let (entries, missing) = whole(bus, run).await?;
    Ok((run, entries, missing))
}

/// The entries of a run, each as far as it can be read.
pub(super) type EachEntry = Vec<Result<Entry, Unreadable>>;

/// Each entry of a run, and what the server holds back of them.
pub(super) async fn each(bus: &Bus, run: RunId) -> Result<(EachEntry, Option<String>), BusError> {
    let record = bus.record();
    // Counted first: what is written meanwhile is no loss.
    let counted = record.counted(run).await?;
    let each = record.read_each(&RecordFilter::Run(run), Seq(0)).await?;
    let held_back = held_back(counted, each.len());
    Ok((each, held_back))
}

/// Entries that the server counts and does not give out, which is so when its file is damaged.
pub(crate) fn held_back(counted: u64, came: usize) -> Option<String> {
    let came = came as u64;
    (came < counted).then(|| format!("the server counts {counted} entries of it and gives out {came}"))
}

/// The entries without those of no agent that cannot be read, or the first other one that cannot be read.
pub(super) fn readable(each: EachEntry) -> Result<Vec<Entry>, Unreadable> {
    let is_stray = |read: &Result<Entry, Unreadable>| read.as_ref().is_err_and(|stray| stray.of_nobody);
    each.into_iter().filter(|read| !is_stray(read)).collect()
}

/// The record of a run, and what is missing from it.
pub(super) async fn whole(bus: &Bus, run: RunId) -> Result<(Vec<Entry>, Option<String>), Failure> {
    let (each, held_back) = each(bus, run).await?;
    let entries = readable(each).map_err(BusError::from)?;
    let said: Vec<String> = missing(&entries).into_iter().chain(held_back).collect();
    Ok((entries, (!said.is_empty()).then(|| said.join("; "))))
}

/// What is missing from the record of a run, in words; nothing where it is whole.
pub(crate) fn missing(entries: &[Entry]) -> Option<String> {
    let gaps = gaps(entries);
    let mut said: Vec<String> = gaps.iter().take(MOST_NAMED).map(Gap::to_string).collect();
    if gaps.len() > MOST_NAMED {
        said.push(format!("and {} more", gaps.len() - MOST_NAMED));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(n: u128) -> RunId {
        RunId::from_uuid(uuid::Uuid::from_u128(n))
    }

    #[test]
    fn runs_of_one_moment_are_told_apart_by_what_is_shown_of_them() {
        let first = run(0x0193_c2d4_e5f6_7000_8000_1111_2222_3333);
        let second = run(0x0193_c2d4_e5f6_7001_8000_4444_5555_6666);
        let runs = [second, first];
        for one in runs {
            assert_eq!(choose(&runs, &one.short()).unwrap(), one);
        }
        assert_ne!(first.short(), second.short());
        assert!(choose(&runs, &first.to_string()[..8]).is_err(), "the first digits are the time");
    }

    #[test]
    fn a_run_is_named_by_last_or_by_a_unique_end_or_beginning() {
        let a = run(0xab11_0000_0000_0000_0000_0000_0000_0001);
        let b = run(0xab22_0000_0000_0000_0000_0000_0000_0002);
        let runs = [b, a];
        assert_eq!(choose(&runs, "last").unwrap(), b);
        assert_eq!(choose(&runs, "ab1").unwrap(), a);
        assert_eq!(choose(&runs, "AB2").unwrap(), b);
        assert_eq!(choose(&runs, &a.as_uuid().to_string()).unwrap(), a);
        for (wanted, part) in
            [("ab", "of 2 runs"), ("ff", "no run"), ("x!", "names no run"), ("", "names no run")]
        {
            let failure = choose(&runs, wanted).unwrap_err();
            assert!(failure.to_string().contains(part), "{wanted}: {failure}");
            assert_eq!(failure.exit(), crate::exit::Exit::Usage);
        }
        assert!(choose(&[], "last").is_err());
    }
}
