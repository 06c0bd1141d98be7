//! What a fleet costs that has nothing to do.

use std::time::Duration;

use muster_support::process::consumption;

use crate::print::{Figure, mib};
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
    let share =
        |before: Duration, after: Duration| (after - before).as_secs_f64() / WATCH.as_secs_f64() * 100.0;
    let (busy, server_busy) = (share(before.cpu, after.cpu), share(server_before.cpu, server_after.cpu));
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let times = after.rss as f64 / server_after.rss as f64;
    vec![
        Figure::new("idle agent, resident", mib(after.rss), "<= 12 MiB", after.rss <= 12 * 1024 * 1024)
            .against(format!("nats-server idle ({})", mib(server_after.rss)), times),
        Figure::plain("idle agent, its own share of memory (PSS)", mib(after.pss)),
        Figure::new("idle agent, CPU", format!("{busy:.3} %"), "<= 0.1 %", busy <= 0.1)
            .against(format!("nats-server with this fleet idle ({server_busy:.3} %)"), busy / server_busy),
    ]
}
