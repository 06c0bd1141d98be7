//! `muster resume`: lets a run that is paused go on.

use muster_shared::wire::Command;

use super::order::Target;
use crate::app::App;
use crate::args::ResumeArgs;
use crate::exit::{Exit, Failure};

/// Resumes a run.
pub(super) async fn resume(app: &App, args: &ResumeArgs) -> Result<Exit, Failure> {
    let target = Target::find(app, &args.order.run).await?;
    let deadline_ms = args.deadline.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let reason = args.order.reason.clone();
    let command = Command::Resume { run: target.run, reason, deadline_ms, id: None };
    target.order(&args.order, command).await
}
