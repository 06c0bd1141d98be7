//! `muster gc`: what is over its time shrinks to a summary, and removals that were cut short are finished.

use std::collections::BTreeMap;

use bytes::Bytes;
use muster_bus::{Bus, KeepNote, ListedObject, RemovalNote};
use muster_shared::ids::RunId;
use muster_shared::run::RunState;
use serde_json::{Value, json};

use super::{remove, select};
use crate::app::{App, now};
use crate::args::GcArgs;
use crate::commands::runs;
use crate::exit::{Exit, Failure, failed};
use crate::keeping::policy::shrink_rule;
use crate::keeping::summary::Summary;
use crate::output;
use crate::render::{self, figures};
use crate::settings::KeepSettings;

/// Of so many runs it is said why they could not be removed: mostly they have one reason.
const MOST_TOLD: usize = 5;

/// What is to be done.
#[derive(Default)]
struct Work {
    /// Runs that shrink, by which rule.
    shrink: Vec<(RunId, String)>,
    /// Removals that were cut short.
    finish: Vec<RunId>,
    /// Objects of no run.
    orphans: Vec<ListedObject>,
    /// Runs that stay because their record cannot be read.
    unreadable: Vec<(RunId, String)>,
}

/// Removes what is over its time.
pub(in crate::commands) async fn gc(app: &App, args: &GcArgs) -> Result<Exit, Failure> {
    let keep = &app.settings().keep;
    select::reading(app, async |bus| Box::pin(look_and_remove(bus, keep, args)).await).await
}

async fn look_and_remove(bus: &Bus, settings: &KeepSettings, args: &GcArgs) -> Result<Exit, Failure> {
    let work = look(bus, settings).await?;
    if args.dry_run || work.is_nothing() {
        return tell(&work, &Done::default(), args);
    }
    let question = format!(
        "Remove the records of {}, leaving summaries of those that are over their time, and {} of no run?",
        figures::plural((work.shrink.len() + work.finish.len()) as u64, "run"),
        figures::plural(work.orphans.len() as u64, "object")
    );
    if !args.yes && !remove::agreed(&question, remove::NOT_ASKED)? {
        return Err(remove::not_agreed());
    }
    let done = carry_out(bus, &work).await?;
    tell(&work, &done, args)
}

impl Work {
    fn is_nothing(&self) -> bool {
        self.shrink.is_empty() && self.finish.is_empty() && self.orphans.is_empty()
    }
}

/// What is over its time, run by run: each is read by itself, so that no more than one of them is held.
async fn look(bus: &Bus, settings: &KeepSettings) -> Result<Work, Failure> {
    let notes = bus.kept().all().await?;
    let orphans = bus.kept().orphans().await?;
    let mut work = Work { orphans, ..Work::default() };
    let cut_short = notes.iter().filter(|(_, note)| note.gone().is_some_and(|removed| !removed.done));
    work.finish.extend(cut_short.map(|(run, _)| *run));
    if settings.completed.is_zero() && settings.failed.is_zero() {
        return Ok(work);
    }
    let (runs, none) = (all(bus, &notes).await?, KeepNote::default());
    for run in runs.into_iter().filter(|run| !work.finish.contains(run)) {
        let note = notes.get(&run).unwrap_or(&none);
        match read(bus, run).await {
            Ok((state, awaited)) => {
                let rule = shrink_rule(&state, note, awaited, settings, now());
                work.shrink.extend(rule.map(|rule| (run, rule)));
            }
            Err(failure) => work.unreadable.push((run, failure.to_string())),
        }
    }
    Ok(work)
}

/// The runs of which there are records, here or from elsewhere.
async fn all(bus: &Bus, notes: &BTreeMap<RunId, KeepNote>) -> Result<Vec<RunId>, Failure> {
    let mut runs = bus.record().runs().await?;
    let imported = notes.iter().filter(|(_, note)| note.imported.is_some() && note.gone().is_none());
    runs.extend(imported.map(|(run, _)| *run));
    runs.sort_unstable();
    runs.dedup();
    Ok(runs)
}

/// A run, and whether another one waits for it.
async fn read(bus: &Bus, run: RunId) -> Result<(RunState, bool), Failure> {
    let state = select::state(bus, run).await?;
    let awaited = state.status.is_ended() && remove::check_removable(bus, &state).await.is_err();
    Ok((state, awaited))
}

/// What was done.
#[derive(Default)]
struct Done {
    removed: Vec<(RunId, RemovalNote)>,
    failed: Vec<(RunId, String)>,
    /// How many objects of no run went, and their bytes.
    orphans: (u64, u64),
}

async fn carry_out(bus: &Bus, work: &Work) -> Result<Done, Failure> {
    let mut done = Done::default();
    for run in &work.finish {
        match bus.kept().go_on_removing(*run).await {
            Ok(removed) => done.removed.push((*run, removed)),
            Err(error) => done.failed.push((*run, remove::cannot_remove(error).to_string())),
        }
    }
    for (run, rule) in &work.shrink {
        match shrink(bus, *run, rule.clone()).await {
            Ok(removed) => done.removed.push((*run, removed)),
            Err(failure) => done.failed.push((*run, failure.to_string())),
        }
    }
    for orphan in &work.orphans {
        bus.store().delete(&orphan.name).await?;
        done.orphans = (done.orphans.0 + 1, done.orphans.1 + orphan.bytes);
    }
    Ok(done)
}

async fn shrink(bus: &Bus, run: RunId, rule: String) -> Result<RemovalNote, Failure> {
    let state = select::state(bus, run).await?;
    let summary = Summary::of(&state, render::runs::word(&state), runs::brief(&state));
    let summary = serde_json::to_vec(&summary)
        .map_err(|error| failed!("the summary of run {} cannot be written: {error}", run.short()))?;
    remove::remove(bus, run, rule, Some(Bytes::from(summary))).await
}

fn tell(work: &Work, done: &Done, args: &GcArgs) -> Result<Exit, Failure> {
    if args.json {
        output::json(&in_json(work, done, args))?;
    } else {
        in_words(work, done, args)?;
    }
    Ok(if done.failed.is_empty() { Exit::Completed } else { Exit::Failed })
}

fn in_json(work: &Work, done: &Done, args: &GcArgs) -> Value {
    let shrink: Vec<Value> =
        work.shrink.iter().map(|(run, rule)| json!({ "run": run, "rule": rule })).collect();
    let of = |all: &[(RunId, String)]| -> Vec<Value> {
        all.iter().map(|(run, why)| json!({ "run": run, "reason": why })).collect()
    };
    let removed: Vec<Value> =
        done.removed.iter().map(|(run, removed)| json!({ "run": run, "removed": removed })).collect();
    json!({
        "dry_run": args.dry_run, "over_time": shrink, "cut_short": work.finish, "unreadable": of(&work.unreadable),
        "removed": removed, "failed": of(&done.failed), "orphans": work.orphans.len(), "orphans_removed": done.orphans.0,
        "bytes": done.removed.iter().map(|(_, removed)| removed.bytes).sum::<u64>() + done.orphans.1,
    })
}

fn in_words(work: &Work, done: &Done, args: &GcArgs) -> Result<(), Failure> {
    for (run, why) in &work.unreadable {
        output::note!("run {} stays: {}", run.short(), figures::one_line(why, 300));
    }
    for (run, why) in done.failed.iter().take(MOST_TOLD) {
        output::note!("run {} could not be removed: {}", run.short(), figures::one_line(why, 300));
    }
    if done.failed.len() > MOST_TOLD {
        output::note!("{} more could not be removed", done.failed.len() - MOST_TOLD);
    }
    if args.dry_run {
        for (run, rule) in &work.shrink {
            output::line!("run {} would shrink to its summary, by {rule}", run.short())?;
        }
        for run in &work.finish {
            output::line!("the removal of run {} would be finished", run.short())?;
        }
    }
    for (run, removed) in &done.removed {
        output::line(&remove::in_words(*run, removed))?;
    }
    let (objects, bytes) = if args.dry_run {
        (work.orphans.len() as u64, work.orphans.iter().map(|orphan| orphan.bytes).sum())
    } else {
        done.orphans
    };
    if objects > 0 {
        let (objects, bytes) = (figures::plural(objects, "object"), figures::bytes(bytes));
        let what = if args.dry_run { "would be removed" } else { "removed" };
        output::line!("{what}: {objects} of no run, {bytes}")?;
    }
    if work.is_nothing() {
        output::line("nothing is over its time")?;
    }
    Ok(())
}
