//! `muster trace`: everything that happened in a run, in order; or as spans.

#[cfg(feature = "telemetry")]
mod spans;

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use muster_bus::{Bus, RecordFilter, Unreadable};
use muster_shared::ids::{RunId, Seq, TaskId};
use muster_shared::run::event::ChildBegun;
use muster_shared::run::{Entry, RecordEvent, RunEvent};

use super::select;
#[cfg(not(feature = "telemetry"))]
use crate::absent::spans;
use crate::app::{App, no_fleet};
use crate::args::TraceArgs;
use crate::exit::{Exit, Failure, usage};
use crate::fleet::lifeline::Lifeline;
use crate::place::run_of;
use crate::render::figures;
use crate::render::paint::Paint;
use crate::render::trace::{Timeline, entry_json};
use crate::{output, render};

/// How far entries of a run within another are indented.
const WITHIN: usize = 4;

/// Most runs within a run that are shown.
pub(crate) const MOST_WITHIN: usize = 100;

/// Prints the timeline of a run, or of one of its tasks.
pub(super) async fn trace(app: &App, args: &TraceArgs) -> Result<Exit, Failure> {
    if let Some(to) = &args.otlp {
        return spans::send(app, args, to).await;
    }
    let mut printer = Printer::new(app, args);
    if args.follow {
        follow(app, args, &mut printer).await?;
    } else {
        let (found, held_back) = select::reading(app, async |bus| read(bus, &wanted(args)).await).await?;
        for (path, entry) in &found {
            // Indices name tasks of the run that was asked for.
            if path.is_empty() || args.task.is_none() {
                match entry {
                    Ok(entry) => printer.print(entry, path)?,
                    Err(stray) => printer.print_stray(stray, path)?,
                }
            }
        }
        tell_missing(found);
        held_back.iter().for_each(|text| output::note(text));
    }
    match &args.task {
        Some(task) if printer.printed == 0 => Err(usage!("nothing in this run is about task {}", task.at)
            .help("`muster show` lists its tasks; phases are called plan, reflect-1-2, refine-1 and write")),
        _ => Ok(Exit::Completed),
    }
}

/// The run whose entries are wanted.
fn wanted(args: &TraceArgs) -> String {
    run_of(args.task.as_ref(), &args.run)
}

/// Prints entries as they come, until the run ends. They are followed by sequence, so that none is missing and none
/// comes twice after the bus was away.
async fn follow(app: &App, args: &TraceArgs, printer: &mut Printer<'_>) -> Result<(), Failure> {
    let mut url = app.url().ok_or_else(no_fleet)?;
    let mut lifeline = Lifeline::new(app, &url);
    let mut bus = app.connect_to(&url, "reader").await?;
    let run = select::run(&bus, &wanted(args)).await?;
    let mut last = Seq(0);
    loop {
        let mut entries = bus.record().follow(&RecordFilter::Run(run), last).await?;
        url = loop {
            tokio::select! {
                entry = entries.next() => {
                    match entry.ok_or_else(|| lost(run, "the bus is lost"))? {
                        Ok(entry) => {
                            last = entry.seq;
                            printer.print(&entry, &[])?;
                            if ends_run(&entry) {
                                return Ok(());
                            }
                        }
                        Err(stray) => {
                            last = stray.seq;
                            printer.print_stray(&stray, &[])?;
                        }
                    }
                }
                moved = lifeline.moved(&bus) => break moved.map_err(|why| lost(run, &why))?,
            }
        };
        output::note!("the fleet is up again, at {url}");
        drop(entries);
        bus = app.connect_to(&url, "reader").await?;
        lifeline.follow(&url);
    }
}

fn lost(run: RunId, why: &str) -> Failure {
    let short = run.short();
    Failure::bus(format!("{why}, and run {short} has not ended")).help(format!(
        "`muster up` restarts the fleet; `muster trace {short} --follow` follows the run again"
    ))
}

fn ends_run(entry: &Entry) -> bool {
    entry.event.events().iter().any(RunEvent::ends_run)
}

/// Prints entries one after the other.
struct Printer<'a> {
    args: &'a TraceArgs,
    timeline: Timeline,
    paint: Paint,
    printed: usize,
}

impl<'a> Printer<'a> {
    fn new(app: &App, args: &'a TraceArgs) -> Self {
        Self { args, timeline: Timeline::new(app.paint(), args.full), paint: app.paint(), printed: 0 }
    }

    /// Prints an entry. One of a run within the one that was asked for is indented, below the tasks that lead there.
    fn print(&mut self, entry: &Entry, path: &[TaskId]) -> Result<(), Failure> {
        let only = self.args.task.as_ref().map(|task| &task.at);
        if self.args.json {
            if only.is_none_or(|task| is_about(entry, task)) {
                output::json_line(&entry_json(entry))?;
                self.printed += 1;
            }
        } else if let Some(text) = self.timeline.entry(entry, only) {
            let tasks: String = path.iter().map(|task| format!("{task}/ ")).collect();
            output::line(&figures::indent(&format!("{tasks}{text}"), path.len() * WITHIN))?;
            self.printed += 1;
        }
        Ok(())
    }

    /// Prints what stands in the record and cannot be read. It is about no task that anybody could tell.
    fn print_stray(&mut self, stray: &Unreadable, path: &[TaskId]) -> Result<(), Failure> {
        if self.args.task.is_some() {
            return Ok(());
        }
        self.printed += 1;
        if self.args.json {
            return output::json_line(&render::trace::stray_json(stray));
        }
        let text = render::trace::stray(stray, self.paint);
        output::line(&figures::indent(&text, path.len() * WITHIN))
    }
}

/// Says what the record lacks of the runs that were shown.
fn tell_missing(found: FoundEntries) {
    let mut runs: BTreeMap<RunId, Vec<Entry>> = BTreeMap::new();
    let mut unreadable: BTreeSet<Seq> = BTreeSet::new();
    for (_, entry) in found {
        match entry {
            Ok(entry) => runs.entry(entry.run).or_default().push(entry),
            Err(stray) => drop(unreadable.insert(stray.seq)),
        }
    }
    // What stands there and cannot be read is shown in its place.
    for (run, entries) in runs.iter().filter(|_| unreadable.is_empty()) {
        if let Some(missing) = select::missing(entries) {
            output::note!("the record of run {} is damaged: {missing}", run.short());
        }
    }
}

/// What stands in the records of a run and of those within it, below the tasks that lead there.
type FoundEntries = Vec<(Vec<TaskId>, Result<Entry, Unreadable>)>;

/// The record of a run with those of the runs within it: the bus puts all of them in one order. Beside it, what the server
/// holds back of them.
async fn read(bus: &Bus, wanted: &str) -> Result<(FoundEntries, Vec<String>), Failure> {
    let run = select::run(bus, wanted).await?;
    let (mut found, mut open, mut runs) = (FoundEntries::new(), vec![(Vec::new(), run)], 0);
    let mut lost = Vec::new();
    while let Some((path, run)) = open.pop() {
        let (entries, held_back) = select::each(bus, run).await?;
        lost.extend(held_back.map(|text| format!("the record of run {} is damaged: {text}", run.short())));
        runs += 1;
        if runs <= MOST_WITHIN {
            let below = |task: TaskId| path.iter().cloned().chain([task]).collect();
            open.extend(entries.iter().flatten().flat_map(begun).map(|(task, child)| (below(task), child)));
        }
        found.extend(entries.into_iter().map(|entry| (path.clone(), entry)));
    }
    found.sort_by_key(|(_, entry)| entry.as_ref().map_or_else(|stray| stray.seq, |entry| entry.seq));
    Ok((found, lost))
}

/// The runs that were begun for tasks of a run, with the tasks.
pub(crate) fn begun(entry: &Entry) -> Vec<(TaskId, RunId)> {
    let begun = entry.event.events().iter().filter_map(|event| match event {
        RunEvent::ChildBegun(ChildBegun { task, run, .. }) => Some((task.clone(), *run)),
        _ => None,
    });
    begun.collect()
}

/// Returns true if an entry offers a task, or is of an agent that has it.
pub(crate) fn is_about(entry: &Entry, task: &TaskId) -> bool {
    match &entry.event {
        RecordEvent::Decided(decided) => decided.offer.as_deref().is_some_and(|offer| offer.task == *task),
        RecordEvent::Offered(offer) => offer.task == *task,
        RecordEvent::Agent(key, _) => key.task == *task,
    }
}
