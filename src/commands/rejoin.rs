//! Agents and orchestrators that were started by hand follow their fleet when it comes up at another address.

use muster_bus::Bus;

use crate::app::App;
use crate::exit::Failure;
use crate::fleet::lifeline::Lifeline;
use crate::fleet::process;
use crate::output;

/// Does the work until it ends, or until the fleet is up at another address: then this process begins anew, with the same
/// words, and joins it there. What it had in hand was handed on long before.
pub(super) async fn or_rejoin<T>(
    app: &App,
    (bus, url): (&Bus, &str),
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // Of a fleet elsewhere nobody here knows where it comes up again.
    if app.settings().bus.url.is_some() {
        return work.await;
    }
    let mut lifeline = Lifeline::new(app, url);
    tokio::select! {
        ended = work => ended,
        url = lifeline.moved(bus, output::note) => Err(begin_anew(&url)),
    }
}

/// Only returns when it failed.
fn begin_anew(url: &str) -> Failure {
    output::note(&format!("the fleet is up again, at {url}; joining it there"));
    let failed = |error: std::io::Error| {
        Failure::bus(format!("the fleet is at {url} now, and this process cannot restart itself: {error}"))
            .help("start it again")
    };
    failed(process::begin_anew(std::env::args_os().skip(1), &[]))
}
