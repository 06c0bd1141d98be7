//! `muster up` restarts what dies; stopping leaves nothing behind.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::process::is_alive;
use nix::sys::signal::Signal;

use super::support::{folder, signal, write_documents};

const LIMIT: Duration = Duration::from_secs(30);

fn answers(fleet: &Fleet) {
    write_documents(fleet.folder());
    let asked = ["run", "How deep may delegation go?", "--docs", "docs", "--json"];
    assert_eq!(fleet.folder().json(&asked).unwrap()["status"], "completed");
}

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
    answers(&fleet);
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
fn whatever_ends_a_fleet_ends_all_its_processes() {
    for is_killed in [false, true] {
        let fleet = folder().up(&[]).unwrap();
        let pids = fleet.pids();
        assert!(pids.len() >= 9, "server, orchestrator, six roles, supervisor: {pids:?}");
        match is_killed {
            true => signal(fleet.pid("supervisor").unwrap(), Signal::SIGKILL),
            false => drop(fleet.folder().output(&["down"]).unwrap()),
        }
        for (name, pid) in pids {
            wait_until(&format!("{name} has ended"), LIMIT, || !is_alive(pid)).unwrap();
        }
        fleet.folder().output(&["up", "--detach"]).unwrap();
    }
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
    answers(&fleet);
}

#[test]
fn fleet_whose_program_was_replaced_starts_more_processes() {
    let place = folder();
    let (built, program) = (env!("CARGO_BIN_EXE_muster"), place.path().join("muster"));
    let install =
        || std::fs::hard_link(built, &program).or_else(|_| std::fs::copy(built, &program).map(drop));
    install().unwrap();
    let fleet = Folder::new(program.to_str().unwrap()).unwrap().up(&[]).unwrap();
    std::fs::remove_file(&program).unwrap();
    install().unwrap();
    fleet.folder().output(&["scale", "worker=2"]).unwrap();
    assert!(fleet.pid("worker-2").is_some_and(is_alive));
}

#[test]
fn fleet_that_is_stopped_while_its_agents_join_ends_in_good_order() {
    let folder = folder();
    // Agents wait for an orchestrator, which makes their queues.
    let mut up = folder.command(&["up", "--scale", "orchestrator=0"]);
    let up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let joining = || folder.logs().matches("joining the fleet").count() == 6;
    wait_until("the agents join", LIMIT, joining).unwrap_or_else(|late| panic!("{late}\n{}", folder.logs()));
    signal(up.id(), Signal::SIGTERM);
    let told = both(&up.wait_with_output().unwrap());
    assert!(told.contains("stopping the fleet") && !told.contains("did not end in time"), "{told}");
}

/// The file of the log in the store of a fleet.
fn log_file(folder: &Path) -> Option<std::path::PathBuf> {
    let below = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    below.into_iter().find_map(|path| match path.is_dir() {
        true => log_file(&path),
        false => path.ends_with("streams/RUNS/msgs/1.blk").then_some(path),
    })
}

#[test]
fn server_that_stores_nothing_in_one_stream_is_restarted() {
    let fleet = folder().up(&[]).unwrap();
    answers(&fleet);
    let server = fleet.pid("nats-server").unwrap();
    let bytes = log_file(&fleet.folder().path().join(".muster/nats")).unwrap().metadata().unwrap().len();
    // For this file alone, the disk is full.
    let limit = [format!("--pid={server}"), format!("--fsize={bytes}")];
    assert!(Command::new("prlimit").args(limit).status().unwrap().success());
    let mut asker = fleet.folder().command(&["run", "What is 2 plus 2?"]).spawn().unwrap();
    let checked = || both(&fleet.folder().run(&["doctor"]).unwrap());
    wait_until("doctor names the stream", LIMIT, || checked().contains("RUNS stores nothing")).unwrap();
    wait_until("the server was restarted", LIMIT, || {
        fleet.pid("nats-server").is_some_and(|pid| pid != server)
    })
    .unwrap_or_else(|late| panic!("{late}\n{}", fleet.folder().logs()));
    asker.kill().unwrap();
    asker.wait().unwrap();
    answers(&fleet);
    assert!(!checked().contains("stores nothing"));
}
