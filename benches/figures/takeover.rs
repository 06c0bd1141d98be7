//! How long it takes until what a killed process had in hand goes on elsewhere.

use muster_support::figures::{Aim, Figure, Measured};
use muster_support::takeover::{Times, Victim, measure as kill};

use crate::runs;

pub(crate) fn measure() -> Vec<Figure> {
    let (agents, orchestrators, servers) =
        (times(Victim::Worker, 40), times(Victim::Orchestrator, 8), times(Victim::Server, 8));
    let figure = |what: String, times: &Times, percent: usize, most: f64| {
        Figure::new(what, Measured::time(times.percentile(percent))).aiming(Aim::AtMost(most))
    };
    let agent = "kill -9 of a working agent until its task runs elsewhere";
    let orchestrator = "kill -9 of one of two orchestrators until its runs go on";
    let server = "kill -9 of the server until the record goes on";
    vec![
        figure(format!("{agent}, p50"), &agents, 50, 150.0),
        figure(format!("{agent}, p99"), &agents, 99, 1000.0),
        figure(format!("{orchestrator}, p50"), &orchestrators, 50, 1000.0),
        figure(format!("{orchestrator}, max"), &orchestrators, 100, 3000.0),
        figure(format!("{server}, p50"), &servers, 50, 1000.0),
        figure(format!("{server}, max"), &servers, 100, 1000.0),
    ]
}

fn times(victim: Victim, kills: usize) -> Times {
    let times = kill(runs::folder(), victim, kills).unwrap();
    println!("{victim:?}: {} killed, {} times: {:?} ms", times.kills, times.millis.len(), times.millis);
    times
}
