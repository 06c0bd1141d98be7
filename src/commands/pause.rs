//! `muster pause`: has a run put down what it does, until it is resumed.

use muster_shared::wire::Command;

use super::order::Target;
use crate::app::App;
use crate::args::OrderArgs;
use crate::exit::{Exit, Failure};

/// Pauses a run.
pub(super) async fn pause(app: &App, args: &OrderArgs) -> Result<Exit, Failure> {
    let target = Target::find(app, &args.run).await?;
    let command = Command::Pause { run: target.run, reason: args.reason.clone(), id: None };
    target.order(args, command).await
}
