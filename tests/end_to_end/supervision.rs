//! `muster up` restarts what dies; stopping leaves nothing behind.

use std::time::Duration;

use muster_support::fleet::wait_until;
use muster_support::process::is_alive;
use nix::sys::signal::Signal;

use super::support::{folder, signal, write_documents};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn killing_one_process_removes_only_that_one_and_it_comes_back() {
    let fleet = folder().up(&[]).unwrap();
    let before = fleet.pids();
    let worker = fleet.pid("worker-1").unwrap();
    signal(worker, Signal::SIGKILL);
    wait_until("the worker was started again", LIMIT, || {
        fleet.pid("worker-1").is_some_and(|pid| pid != worker)
    })
    .unwrap();
    for (name, pid) in before.into_iter().filter(|(name, _)| name != "worker-1") {
        assert_eq!(fleet.pid(&name), Some(pid), "{name} was left alone");
    }
    write_documents(fleet.folder());
    let summary =
        fleet.folder().json(&["run", "How deep may delegation go?", "--docs", "docs", "--json"]).unwrap();
    assert_eq!(summary["status"], "completed");
}

#[test]
fn what_dies_too_often_is_given_up_and_it_says_so() {
    let fleet = folder().up(&["--set", "fleet.max_restarts=2", "--set", "fleet.restart_wait=20ms"]).unwrap();
    let given_up = || {
        let state = fleet.folder().state().unwrap_or_default();
        let members = state["members"].as_array().cloned().unwrap_or_default();
        members.iter().any(|member| member["name"] == "writer-1" && member["given_up"] == true)
    };
    let mut last = 0;
    wait_until("the writer is given up", LIMIT, || {
        if let Some(pid) = fleet.pid("writer-1").filter(|pid| *pid != last && is_alive(*pid)) {
            last = pid;
            signal(pid, Signal::SIGKILL);
        }
        given_up()
    })
    .unwrap();
    // The state is written before it is told.
    wait_until("it says so", LIMIT, || fleet.folder().logs().contains("given up")).unwrap();
}

#[test]
fn down_leaves_no_process_behind() {
    let fleet = folder().up(&[]).unwrap();
    let pids = fleet.pids();
    assert!(pids.len() >= 9, "server, orchestrator, six roles, supervisor: {pids:?}");
    fleet.folder().output(&["down"]).unwrap();
    for (name, pid) in pids {
        wait_until(&format!("{name} has ended"), LIMIT, || !is_alive(pid)).unwrap();
    }
}

#[test]
fn a_killed_supervisor_takes_its_fleet_along() {
    let fleet = folder().up(&[]).unwrap();
    let pids = fleet.pids();
    signal(fleet.pid("supervisor").unwrap(), Signal::SIGKILL);
    for (name, pid) in pids {
        wait_until(&format!("{name} has ended"), LIMIT, || !is_alive(pid)).unwrap();
    }
    fleet.folder().output(&["up", "--detach"]).unwrap();
}

#[test]
fn a_fleet_whose_port_somebody_takes_comes_up_on_another_one() {
    let fleet = folder().up(&["--set", "fleet.restart_wait=3s"]).unwrap();
    let (before, supervisor) = (fleet.url(), fleet.pid("supervisor").unwrap());
    let port: u16 = before.rsplit(':').next().unwrap().parse().unwrap();
    let server = fleet.pid("nats-server").unwrap();
    signal(server, Signal::SIGKILL);
    let mut taken = None;
    wait_until("the port is free for a moment", LIMIT, || {
        taken = std::net::TcpListener::bind(("127.0.0.1", port)).ok();
        taken.is_some()
    })
    .unwrap();
    wait_until("it is up elsewhere", LIMIT, || {
        let state = fleet.folder().state().unwrap_or_default();
        state["ready"] == true && state["url"] != before.as_str()
    })
    .unwrap_or_else(|late| panic!("{late}\n{}", fleet.folder().logs()));
    assert_eq!(fleet.pid("supervisor"), Some(supervisor), "the same process watches over it");
    write_documents(fleet.folder());
    let summary =
        fleet.folder().json(&["run", "How deep may delegation go?", "--docs", "docs", "--json"]).unwrap();
    assert_eq!(summary["status"], "completed");
}
