//! `muster trace`: everything that happened in a run, in order.

use futures::StreamExt;
use muster_bus::RecordFilter;
use muster_shared::ids::{RunId, Seq, TaskId};
use muster_shared::run::{Entry, RecordEvent, RunEvent};

use super::select;
use crate::app::{App, bus_failure};
use crate::args::TraceArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::supervisor::Reading;
use crate::output;
use crate::render::figures;
use crate::render::trace::{Timeline, entry_json};

/// How far entries of a run within another are indented.
const WITHIN: usize = 4;

/// Most runs within a run that are shown.
const MOST_WITHIN: usize = 100;

/// Prints the timeline of a run, or of one of its tasks.
pub(super) async fn trace(app: &App, args: &TraceArgs) -> Result<Exit, Failure> {
    let mut printer = Printer::new(app, args);
    if args.follow {
        follow(app, args, &mut printer).await?;
    } else {
        let reading = Reading::open(app).await?;
        let found = read(&reading, &wanted(args)).await;
        reading.close().await;
        for (path, entry) in &found? {
            // Indices name tasks of the run that was asked for.
            if path.is_empty() || args.task.is_none() {
                printer.print(entry, path)?;
            }
        }
    }
    match &args.task {
        Some(task) if printer.printed == 0 => {
            Err(Failure::usage(format!("nothing in this run is about task {}", task.at)).help(
                "`muster show` lists its tasks; phases are called plan, reflect-1-2, refine-1 and write",
            ))
        }
        Some(_) | None => Ok(Exit::Completed),
    }
}

/// The run whose entries are wanted.
fn wanted(args: &TraceArgs) -> String {
    args.task.as_ref().map_or_else(|| args.run.clone(), |task| task.run(&args.run))
}

/// Prints entries as they come, until the run ends. They are followed by sequence, so that none is missing and none
/// comes twice after the bus was away.
async fn follow(app: &App, args: &TraceArgs, printer: &mut Printer<'_>) -> Result<(), Failure> {
    let bus = app.connect("reader").await?;
    let run = select::run(&bus, &wanted(args)).await?;
    let mut entries = bus.record().follow(&RecordFilter::Run(run), Seq(0)).await.map_err(bus_failure)?;
    while let Some(entry) = entries.next().await {
        let entry = entry.map_err(|error| bus_failure(error.into()))?;
        printer.print(&entry, &[])?;
        if ends_run(&entry) {
            return Ok(());
        }
    }
    Err(Failure::bus(format!("the bus was lost while run {} was followed", run.short())))
}

fn ends_run(entry: &Entry) -> bool {
    match &entry.event {
        RecordEvent::Decided(decided) => decided.events.iter().any(RunEvent::ends_run),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => false,
    }
}

/// Prints entries one after the other.
struct Printer<'a> {
    args: &'a TraceArgs,
    timeline: Timeline,
    printed: usize,
}

impl<'a> Printer<'a> {
    fn new(app: &App, args: &'a TraceArgs) -> Self {
        Self { args, timeline: Timeline::new(app.paint(), args.full), printed: 0 }
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
}

/// The record of a run with those of the runs within it: the bus puts all of them in one order.
async fn read(reading: &Reading, wanted: &str) -> Result<Vec<(Vec<TaskId>, Entry)>, Failure> {
    let run = select::run(&reading.bus, wanted).await?;
    let (mut found, mut open, mut runs) = (Vec::new(), vec![(Vec::new(), run)], 0);
    while let Some((path, run)) = open.pop() {
        let entries = select::entries(&reading.bus, run).await?;
        runs += 1;
        if runs <= MOST_WITHIN {
            let below = |task: TaskId| path.iter().cloned().chain([task]).collect();
            open.extend(entries.iter().flat_map(begun).map(|(task, child)| (below(task), child)));
        }
        found.extend(entries.into_iter().map(|entry| (path.clone(), entry)));
    }
    found.sort_by_key(|(_, entry)| entry.seq);
    Ok(found)
}

/// The runs that were begun for tasks of a run, with the tasks.
fn begun(entry: &Entry) -> Vec<(TaskId, RunId)> {
    let events = match &entry.event {
        RecordEvent::Decided(decided) => decided.events.as_slice(),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => &[],
    };
    let begun = events.iter().filter_map(|event| {
        if let RunEvent::ChildBegun { task, run, .. } = event { Some((task.clone(), *run)) } else { None }
    });
    begun.collect()
}

fn is_about(entry: &Entry, task: &TaskId) -> bool {
    match &entry.event {
        RecordEvent::Decided(decided) => decided.offer.as_deref().is_some_and(|offer| offer.task == *task),
        RecordEvent::Offered(offer) => offer.task == *task,
        RecordEvent::Agent(key, _) => key.task == *task,
    }
}
