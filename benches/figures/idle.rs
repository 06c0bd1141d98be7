//! What a fleet costs that has nothing to do.

use std::time::Duration;

use muster_support::figures::{Aim, Figure, Measured};
use muster_support::process::consumption;

use crate::runs;

/// How long the fleet is left alone.
const WATCH: Duration = Duration::from_secs(20);

pub(crate) fn measure() -> Vec<Figure> {
    let fleet = runs::folder().up(&[]).unwrap();
    let worker = [fleet.pid("worker-1").unwrap()];
    let server = [fleet.pid("nats-server").unwrap()];
    // Time itself is what is measured here.
    std::thread::sleep(Duration::from_secs(3));
    let (before, server_before) = (consumption(&worker), consumption(&server));
    std::thread::sleep(WATCH);
    let (after, server_after) = (consumption(&worker), consumption(&server));
    let share = |before: Duration, after: Duration| {
        Measured::percent((after - before).as_secs_f64() / WATCH.as_secs_f64() * 100.0)
    };
    let server_memory = Measured::memory(server_after.rss);
    vec![
        Figure::new("idle agent, resident", Measured::memory(after.rss))
            .against("nats-server idle", server_memory)
            .aiming(Aim::AtMost(12.0)),
        Figure::new("idle agent, its own share of memory (PSS)", Measured::memory(after.pss))
            .against("nats-server idle", server_memory)
            .aiming(Aim::AtMost(3.0)),
        Figure::new("idle agent, CPU", share(before.cpu, after.cpu))
            .against("nats-server with this fleet idle", share(server_before.cpu, server_after.cpu))
            .aiming(Aim::AtMost(0.1))
            .shown_only(),
    ]
}
