//! `muster cancel`: asks a run to stop.

use muster_shared::wire::Command;

use super::order::Target;
use crate::app::App;
use crate::args::OrderArgs;
use crate::exit::{Exit, Failure};

/// Stops a run.
pub(super) async fn cancel(app: &App, args: &OrderArgs) -> Result<Exit, Failure> {
    let target = Target::find_any(app, &args.run).await?;
    let command = Command::Cancel { run: target.run, reason: args.reason.clone(), id: None };
    target.order(args, command).await
}
