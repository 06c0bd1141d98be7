//! `muster tools stats`: how calls went, from the records of runs.

use muster_bus::{Bus, BusError, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::ToolUses;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::ToolsStatsArgs;
use crate::commands::{runs, select};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::render::tools::{UsedTool, use_table};

/// Prints how the calls of tools went.
pub(super) async fn stats(app: &App, args: &ToolsStatsArgs) -> Result<Exit, Failure> {
    let Counted { uses, runs, left_out } = select::reading(app, async |bus| count(bus, args).await).await?;
    let tools: Vec<UsedTool<'_>> = uses.by_tool().iter().map(UsedTool::of).collect();
    output::json_or_line(args.json, || in_json(&runs, &tools), || use_table(&tools, runs.len()))?;
    runs::tell_left_out(&left_out);
    Ok(Exit::Completed)
}

fn in_json(runs: &[RunId], tools: &[UsedTool<'_>]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|tool| json!(tool)).collect();
    json!({ "runs": runs, "tools": tools })
}

/// How the calls of tools went, as `muster tools stats --json` tells it.
pub(crate) async fn told(bus: &Bus, args: &ToolsStatsArgs) -> Result<Value, Failure> {
    let Counted { uses, runs, .. } = count(bus, args).await?;
    let tools: Vec<UsedTool<'_>> = uses.by_tool().iter().map(UsedTool::of).collect();
    Ok(in_json(&runs, &tools))
}

/// What was counted, and of which runs.
#[derive(Default)]
struct Counted {
    uses: ToolUses,
    runs: Vec<RunId>,
    left_out: Vec<(RunId, String)>,
}

async fn count(bus: &Bus, args: &ToolsStatsArgs) -> Result<Counted, Failure> {
    let runs = match &args.run {
        Some(run) => vec![select::run(bus, run).await?],
        None => bus.record().newest_runs(args.limit).await?.runs,
    };
    let mut counted = Counted::default();
    for run in runs {
        match bus.record().read(&RecordFilter::Run(run), Seq(0)).await {
            Ok(entries) => {
                entries.iter().for_each(|entry| counted.uses.count(entry));
                counted.runs.push(run);
            }
            // One record that cannot be read does not hide the others.
            Err(error @ BusError::Unreadable { .. }) => counted.left_out.push((run, error.to_string())),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(counted)
}
