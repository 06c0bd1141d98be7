//! `muster trace`: everything that happened in a run, in order.

use muster_shared::ids::TaskId;
use muster_shared::run::{Entry, RecordEvent};

use super::select;
use crate::app::App;
use crate::args::TraceArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::supervisor::Reading;
use crate::output;
use crate::render::trace::{Timeline, entry_json};

/// Prints the timeline of a run, or of one of its tasks.
pub(super) async fn trace(app: &App, args: &TraceArgs) -> Result<Exit, Failure> {
    let reading = Reading::open(app).await?;
    let found = read(&reading, &args.run).await;
    reading.close().await;
    let entries = found?;
    let only = args.task.as_ref();
    let mut timeline = Timeline::new(app.paint(), args.full);
    let mut printed = 0_usize;
    for entry in &entries {
        if args.json {
            if only.is_none_or(|task| is_about(entry, task)) {
                output::json_line(&entry_json(entry))?;
                printed += 1;
            }
        } else if let Some(text) = timeline.entry(entry, only) {
            output::line(&text)?;
            printed += 1;
        }
    }
    match only {
        Some(task) if printed == 0 => Err(Failure::usage(format!(
            "nothing in this run is about task {task}"
        ))
        .help("`muster show` lists its tasks; phases are called plan, reflect-1-2, refine-1 and write")),
        Some(_) | None => Ok(Exit::Completed),
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
