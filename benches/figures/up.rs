//! From nothing to the first task: an empty folder, `muster run`, until an agent has started the first task.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use muster_support::fleet::wait_until;

use crate::print::{Figure, median, ms, ratio};
use crate::runs;

const ROUNDS: usize = 7;

pub(crate) fn measure() -> Vec<Figure> {
    let mut ours: Vec<Duration> = (0..ROUNDS).map(|_| first_task()).collect();
    let mut bare: Vec<Duration> = (0..ROUNDS).map(|_| bare_server()).collect();
    let (ours, bare) = (median(&mut ours), median(&mut bare));
    let figure = Figure::new(
        "fleet up, from nothing to the first task started",
        ms(ours),
        "<= 1 s",
        ours.as_secs() < 1,
    );
    vec![figure.against(format!("nats-server alone taking connections ({})", ms(bare)), ratio(ours, bare))]
}

fn first_task() -> Duration {
    let folder = runs::folder();
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    folder.output(&["run", "What is 6 * 7?", "--quiet"]).unwrap();
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let started = trace.iter().find(|entry| entry["kind"] == "started").unwrap();
    Duration::from_millis(started["at"].as_u64().unwrap()) - began
}

/// How long the server alone takes, on an empty store of its own.
fn bare_server() -> Duration {
    let store = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let binary = muster_bus::server::find_binary().unwrap();
    let began = Instant::now();
    let mut server = Command::new(binary)
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
        .arg(store.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the server takes connections", Duration::from_secs(10), || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    })
    .unwrap();
    let took = began.elapsed();
    server.kill().unwrap();
    server.wait().unwrap();
    took
}
