//! `muster tap`: the traffic of the fleet as it passes.

use futures::StreamExt;
use muster_bus::Tapped;
use serde_json::{Value, json};

use super::select;
use crate::app::{App, no_fleet};
use crate::args::TapArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::lifeline::Lifeline;
use crate::signals::StopSignals;
use crate::{output, render};

/// Prints what passes until Ctrl-C.
pub(super) async fn tap(app: &App, args: &TapArgs) -> Result<Exit, Failure> {
    let mut url = app.url().ok_or_else(no_fleet)?;
    let mut lifeline = Lifeline::new(app, &url);
    let mut bus = app.connect_to(&url, "tap").await?;
    let mut stop = StopSignals::listen()?;
    let run = match &args.run {
        Some(wanted) => Some(select::run(&bus, wanted).await?),
        None => None,
    };
    if !args.json {
        output::note("watching; Ctrl-C ends");
    }
    loop {
        let mut passing = bus.tap().watch(run).await?;
        url = loop {
            tokio::select! {
                () = stop.wait() => return Ok(Exit::Completed),
                error = bus.failed() => return Err(error.into()),
                tapped = passing.next() => print(app, args, &tapped.ok_or_else(|| lost("the connection to the bus has ended"))?)?,
                moved = lifeline.moved(&bus) => break moved.map_err(|why| lost(&why))?,
            }
        };
        output::note!("the fleet is up again, at {url}");
        drop(passing);
        bus = app.connect_to(&url, "tap").await?;
        lifeline.follow(&url);
    }
}

fn print(app: &App, args: &TapArgs, tapped: &Tapped) -> Result<(), Failure> {
    if args.json {
        return output::json_line(&message(tapped));
    }
    output::line(&render::tap::line(tapped.at, &tapped.subject, &tapped.content, app.paint()))
}

fn lost(why: &str) -> Failure {
    Failure::bus(why).help("`muster up` starts a fleet that `muster tap` can watch; `muster doctor` checks the connection to the bus")
}

/// A message as `muster tap --json` prints it.
pub(crate) fn message(tapped: &Tapped) -> Value {
    let mut value = json!({ "at": tapped.at, "subject": tapped.subject, "bytes": tapped.bytes.len() });
    match &tapped.content {
        Ok(envelope) => value["message"] = json!(envelope),
        Err(reason) => value["unreadable"] = json!(reason),
    }
    value
}
