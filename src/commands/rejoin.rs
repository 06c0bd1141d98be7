//! Agents and orchestrators that were started by hand follow their fleet when it comes up at another address.

use muster_bus::Bus;
use tokio_util::sync::CancellationToken;

use crate::app::{App, no_fleet};
use crate::exit::{Exit, Failure};
use crate::fleet::lifeline::Lifeline;
use crate::fleet::process;
use crate::output;
use crate::telemetry::{self, Telemetry};

/// Connects as `role` to the fleet, and does the work of a process of it, unless `stop` fires first.
pub(super) async fn connect_and_work(
    app: &App,
    role: &str,
    kind: telemetry::Role,
    stop: &CancellationToken,
    work: impl AsyncFnOnce(&Bus, &str) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let url = app.url().ok_or_else(no_fleet)?;
    let connecting = app.connect_to(&url, role);
    let Some(bus) = stop.run_until_cancelled(connecting).await.transpose()? else {
        return Ok(Exit::Completed);
    };
    with_telemetry(app, (bus, &url), kind, async |bus| work(bus, &app.redactor.redact(&url)).await).await
}

/// Does the work of a process of the fleet, which has its own telemetry and follows the fleet to another address.
pub(super) async fn with_telemetry(
    app: &App,
    (bus, url): (Bus, &str),
    kind: telemetry::Role,
    work: impl AsyncFnOnce(&Bus) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let (bus, telemetry) = Telemetry::begin(app, bus, kind).await?;
    let ended = Box::pin(or_rejoin(app, (&bus, url), work(&bus))).await;
    telemetry.end().await;
    ended?;
    Ok(Exit::Completed)
}

/// Does the work until it ends, or until the fleet is up at another address: then this process begins anew, with the same
/// words, and joins it there. What it had in hand was handed on long before.
async fn or_rejoin(
    app: &App,
    (bus, url): (&Bus, &str),
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    // Of a fleet elsewhere nobody here knows where it comes up again.
    if app.settings().bus.url.is_some() {
        return work.await;
    }
    let mut lifeline = Lifeline::new(app, url);
    let moved = async {
        loop {
            if let Ok(url) = lifeline.moved(bus).await {
                return url;
            }
        }
    };
    tokio::select! {
        ended = work => ended,
        url = moved => Err(begin_anew(&url)),
    }
}

/// Only returns when it failed.
fn begin_anew(url: &str) -> Failure {
    output::note!("the fleet is up again, at {url}; joining it there");
    let failed = |error: std::io::Error| {
        Failure::bus(format!("the fleet is at {url} now, and this process cannot restart itself: {error}"))
            .help("start it again")
    };
    failed(process::begin_anew(std::env::args_os().skip(1), &[]))
}
