//! `muster reject`: says what is to be different.

use muster_shared::wire::Command;

use super::order::{Target, asks_for_verdict};
use crate::app::App;
use crate::args::RejectArgs;
use crate::exit::{Exit, Failure};

/// Rejects what a run asks about.
pub(super) async fn reject(app: &App, args: &RejectArgs) -> Result<Exit, Failure> {
    let target = Target::find_asking(app, &args.order.run, asks_for_verdict).await?;
    let reason = app.redactor.redact(args.feedback.trim()).into_owned();
    if reason.is_empty() {
        return Err(Failure::usage("say what is to be different: the plan is changed by that"));
    }
    let command = Command::Reject { run: target.run, reason, id: None };
    target.order(&args.order, command).await
}
