//! `muster redo`: has a task of a run done again.

use muster_shared::wire::Command;

use super::order::Target;
use crate::app::App;
use crate::args::TaskArgs;
use crate::exit::{Exit, Failure};

/// Has a task done again.
pub(super) async fn redo(app: &App, args: &TaskArgs) -> Result<Exit, Failure> {
    let target = Target::find(app, &args.task.run(&args.order.run)).await?;
    target.check(&args.task.at)?;
    let (task, reason) = (args.task.at.clone(), args.order.reason.clone());
    let command = Command::Redo { run: target.run, task, reason, id: None };
    target.order(&args.order, command).await
}
