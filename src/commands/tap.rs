//! `muster tap`: the traffic of the fleet as it passes.

use futures::StreamExt;
use muster_bus::Tapped;
use serde_json::{Value, json};

use super::select;
use crate::app::{App, bus_failure};
use crate::args::TapArgs;
use crate::exit::{Exit, Failure};
use crate::signals::StopSignals;
use crate::{output, render};

/// Prints what passes until Ctrl-C.
pub(super) async fn tap(app: &App, args: &TapArgs) -> Result<Exit, Failure> {
    let bus = app.connect("tap").await?;
    let mut stop = StopSignals::listen()?;
    let run = match &args.run {
        Some(wanted) => Some(select::run(&bus, wanted).await?),
        None => None,
    };
    let mut passing = bus.tap().watch(run).await.map_err(bus_failure)?;
    if !args.json {
        output::note("watching; Ctrl-C ends");
    }
    loop {
        tokio::select! {
            () = stop.wait() => return Ok(Exit::Completed),
            error = bus.failed() => return Err(bus_failure(error)),
            tapped = passing.next() => match tapped {
                Some(tapped) if args.json => output::json_line(&message(&tapped))?,
                Some(tapped) => {
                    output::line(&render::tap::line(tapped.at, &tapped.subject, &tapped.content, app.paint()))?;
                }
                None => return Err(Failure::bus("the connection to the bus has ended").help("`muster doctor` checks the way to the bus")),
            },
        }
    }
}

fn message(tapped: &Tapped) -> Value {
    let mut value = json!({ "at": tapped.at, "subject": tapped.subject, "bytes": tapped.bytes.len() });
    match &tapped.content {
        Ok(envelope) => value["message"] = json!(envelope),
        Err(reason) => value["unreadable"] = json!(reason),
    }
    value
}
