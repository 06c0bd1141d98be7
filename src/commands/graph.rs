//! `muster graph`: the plan of a run as a graph.

use super::{run, select};
use crate::app::App;
use crate::args::{GraphArgs, GraphForm};
use crate::exit::{Exit, Failure, failed};
use crate::output;
use crate::render::graph;

/// Draws the plan of a run.
pub(super) async fn graph(app: &App, args: &GraphArgs) -> Result<Exit, Failure> {
    run::check_output(args.output.as_deref())?;
    let state = select::reading(app, async |bus| select::wanted(bus, &args.run).await).await?;
    let state = state.as_seen();
    let Some(plan) = &state.plan else {
        return Err(
            failed!("run {} has no plan yet", state.id.short()).help("`muster show` shows its progress")
        );
    };
    let text = match args.format {
        GraphForm::Mermaid => graph::mermaid(plan, &state),
        GraphForm::Dot => graph::dot(plan, &state),
    };
    match &args.output {
        Some(file) => {
            run::write(file, &text, "the graph")
                .map_err(|failure| failure.help("give --output another file, or none"))?;
        }
        None => output::text(&text)?,
    }
    Ok(Exit::Completed)
}
