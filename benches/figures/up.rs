//! From nothing: an empty folder, `muster run`, until an agent has started the first task, and until the report.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use muster_support::figures::{Aim, Figure, Measured};
use muster_support::fleet::wait_until;

use crate::print::median;
use crate::runs;

const ROUNDS: usize = 7;

pub(crate) fn measure() -> Vec<Figure> {
    let (mut started, mut reported, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let cold = cold_start();
        started.push(cold.started);
        reported.push(cold.reported);
        bare.push(bare_server());
    }
    let (started, reported, bare) = (median(&mut started), median(&mut reported), median(&mut bare));
    let bare = Measured::time(bare);
    let figure = |what: &str, time: Duration, most: f64| {
        Figure::new(what, Measured::time(time))
            .against("nats-server alone taking connections", bare)
            .aiming(Aim::AtMost(most))
    };
    vec![
        figure("fleet up, from nothing to the first task started", started, 1000.0),
        figure("muster run offline, cold fleet, to the report", reported, 400.0),
    ]
}

/// One run in an empty folder.
struct Cold {
    /// Until an agent had started the first task.
    started: Duration,
    /// Until its report was there.
    reported: Duration,
}

fn cold_start() -> Cold {
    let folder = runs::folder();
    let (began, clock) = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap(), Instant::now());
    let mut command = folder.command(&["run", "What is 6 * 7?", "--quiet"]);
    let mut asking = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut report, mut first) = (asking.stdout.take().unwrap(), [0]);
    report.read_exact(&mut first).unwrap();
    let reported = clock.elapsed();
    std::io::copy(&mut report, &mut std::io::sink()).unwrap();
    assert!(asking.wait().unwrap().success(), "{}", folder.logs());
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let started = trace.iter().find(|entry| entry["kind"] == "started").unwrap();
    Cold { started: Duration::from_millis(started["at"].as_u64().unwrap()) - began, reported }
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
