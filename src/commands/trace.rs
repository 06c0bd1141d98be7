//! `muster trace`: everything that happened in a run, in order.

use futures::StreamExt;
use muster_bus::RecordFilter;
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::{Entry, RecordEvent, RunEvent};

use super::select;
use crate::app::{App, bus_failure};
use crate::args::TraceArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::supervisor::Reading;
use crate::output;
use crate::render::trace::{Timeline, entry_json};

/// Prints the timeline of a run, or of one of its tasks.
pub(super) async fn trace(app: &App, args: &TraceArgs) -> Result<Exit, Failure> {
    let mut printer = Printer::new(app, args);
    if args.follow {
        follow(app, args, &mut printer).await?;
    } else {
        let reading = Reading::open(app).await?;
        let found = read(&reading, &args.run).await;
        reading.close().await;
        for entry in &found? {
            printer.print(entry)?;
        }
    }
    match &args.task {
        Some(task) if printer.printed == 0 => Err(Failure::usage(format!(
            "nothing in this run is about task {task}"
        ))
        .help("`muster show` lists its tasks; phases are called plan, reflect-1-2, refine-1 and write")),
        Some(_) | None => Ok(Exit::Completed),
    }
}

/// Prints entries as they come, until the run ends. They are followed by sequence, so that none is missing and none
/// comes twice after the bus was away.
async fn follow(app: &App, args: &TraceArgs, printer: &mut Printer<'_>) -> Result<(), Failure> {
    let bus = app.connect("reader").await?;
    let run = select::run(&bus, &args.run).await?;
    let mut entries = bus.record().follow(&RecordFilter::Run(run), Seq(0)).await.map_err(bus_failure)?;
    while let Some(entry) = entries.next().await {
        let entry = entry.map_err(|error| bus_failure(error.into()))?;
        printer.print(&entry)?;
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

    fn print(&mut self, entry: &Entry) -> Result<(), Failure> {
        let only = self.args.task.as_ref();
        if self.args.json {
            if only.is_none_or(|task| is_about(entry, task)) {
                output::json_line(&entry_json(entry))?;
                self.printed += 1;
            }
        } else if let Some(text) = self.timeline.entry(entry, only) {
            output::line(&text)?;
            self.printed += 1;
        }
        Ok(())
    }
}

async fn read(reading: &Reading, wanted: &str) -> Result<Vec<Entry>, Failure> {
    let run = select::run(&reading.bus, wanted).await?;
    select::entries(&reading.bus, run).await
}

fn is_about(entry: &Entry, task: &TaskId) -> bool {
    match &entry.event {
        RecordEvent::Decided(decided) => decided.offer.as_deref().is_some_and(|offer| offer.task == *task),
        RecordEvent::Offered(offer) => offer.task == *task,
        RecordEvent::Agent(key, _) => key.task == *task,
    }
}
