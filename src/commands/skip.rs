//! `muster skip`: leaves a task out of a run.

use muster_shared::wire::Command;

use super::order::Target;
use crate::app::App;
use crate::args::TaskArgs;
use crate::exit::{Exit, Failure};

/// Skips a task.
pub(super) async fn skip(app: &App, args: &TaskArgs) -> Result<Exit, Failure> {
    let target = Target::find(app, &args.task.run(&args.order.run)).await?;
    target.check(&args.task.at)?;
    let (task, reason) = (args.task.at.clone(), args.order.reason.clone());
    let command = Command::Skip { run: target.run, task, reason, id: None };
    target.order(&args.order, command).await
}
