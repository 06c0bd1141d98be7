//! Each attempt is made outside, where it has to get out, and inside, where it must not.

use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::attempts::{Attempt, FILES, KERNEL, NETWORK, Outside, PRELUDE};
use crate::help::{BOTH, How, python, run, text};
use crate::world::{SECRET, World};

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn has_to_escape(attempt: &Attempt) -> bool {
    match attempt.outside {
        Outside::Escapes => true,
        Outside::EscapesAsRoot => is_root(),
        Outside::NotTried => false,
    }
}

fn has_told(output: &str) -> bool {
    output.contains(SECRET) || output.contains("ESCAPED")
}

/// Whether it gets out without the sandbox.
fn escapes_outside(attempt: &Attempt) -> bool {
    let mut world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let script = world.fill(&format!("{PRELUDE}{}", attempt.script));
    let done = Command::new("/usr/bin/python3")
        .args(["-I", "-c", &script])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    // Servers are reached before they have counted it; a process that was sent a signal ends soon.
    let begun = std::time::Instant::now();
    while !has_told(&output) && world.harm().is_none() && begun.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(5));
    }
    has_told(&output) || world.harm().is_some()
}

/// What it did from inside of the sandbox; nothing where it was kept in.
async fn harm_inside(how: How, attempt: &Attempt) -> Option<String> {
    let mut world = World::new();
    let end = run(how, python(&world.fill(&format!("{PRELUDE}{}", attempt.script)))).await;
    if has_told(&text(&end.output)) {
        return Some(format!("{} {:?}", text(&end.output), text(&end.errors)));
    }
    // A server would have been reached by now: what is sent to it after this is counted after that.
    assert!(std::net::TcpStream::connect(("127.0.0.1", world_port(&world))).is_ok());
    let begun = std::time::Instant::now();
    while world.reached() == 0 && begun.elapsed() < Duration::from_secs(2) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.reached.fetch_sub(1, Ordering::SeqCst);
    world.harm()
}

fn world_port(world: &World) -> u16 {
    world.fill("{tcp}").parse().unwrap()
}

async fn try_all(attempts: &[Attempt]) {
    let mut faults = Vec::new();
    let mut tried = 0;
    for attempt in attempts {
        if has_to_escape(attempt) {
            tried += 1;
            if !escapes_outside(attempt) {
                faults.push(format!("{}: does not get out even without a sandbox", attempt.name));
            }
        }
        for how in BOTH {
            if let Some(harm) = harm_inside(how, attempt).await {
                faults.push(format!("{how:?} {}: {harm}", attempt.name));
            }
        }
    }
    println!("{} attempts, {tried} of them seen to get out without the sandbox", attempts.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn no_attempt_reaches_files_outside() {
    try_all(FILES).await;
}

#[tokio::test]
async fn no_attempt_reaches_a_network() {
    try_all(NETWORK).await;
}

#[tokio::test]
async fn no_attempt_gets_by_the_kernel() {
    try_all(KERNEL).await;
}
