//! Orders are signed: who gave one stands in the record, policies ask for certain people, and what is forged does nothing.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::foreign::Stranger;
use serde_json::{Value, json};

use super::support::{folder, write_documents};

const LIMIT: Duration = Duration::from_secs(60);

/// Credentials of a person.
fn person(folder: &Folder, name: &str) -> PathBuf {
    let file = folder.path().join(format!("{name}.creds"));
    let made =
        folder.run(&["keys", "issue", &format!("person:{name}"), "--out", file.to_str().unwrap()]).unwrap();
    assert!(made.status.success(), "{}", both(&made));
    file
}

/// What a person says by his own credentials.
fn says(folder: &Folder, credentials: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = folder.command(arguments);
    let output = command.env("MUSTER_BUS_CREDENTIALS", credentials).output().unwrap();
    (output.status.success(), both(&output))
}

fn asker(fleet: &Fleet, credentials: &Path) -> Child {
    let run = [
        "run",
        "How deep may delegation go?",
        "--docs",
        "docs",
        "--review",
        "--json",
        "--set",
        "limits.people.approve_by=[\"ann\", \"ben\"]",
        "--set",
        "limits.people.approvals=2",
    ];
    let mut command = fleet.folder().command(&run);
    command.env("MUSTER_BUS_CREDENTIALS", credentials);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn two_people_approve_by_their_own_credentials_and_the_record_proves_it() {
    let folder = folder();
    write_documents(&folder);
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let [ann, ben, zoe] = ["ann", "ben", "zoe"].map(|name| person(folder, name));
    let asking = asker(&fleet, &zoe);
    let questions = || says(folder, &zoe, &["questions"]).1;
    wait_until("it is asked", LIMIT, || questions().contains("approved 0 of 2 times"))
        .unwrap_or_else(|late| panic!("{late}: {}\n{}", questions(), folder.logs()));
    assert!(questions().contains("ann, ben and nobody else"), "{}", questions());

    // One who has no say, the owner of the fleet, one of both, and the same once more.
    for (who, words) in [(Some(&zoe), "zoe has no say in this"), (None, "operator has no say in this")] {
        let (went_well, said) = match who {
            Some(who) => says(folder, who, &["approve", "last"]),
            None => {
                let output = folder.run(&["approve", "last"]).unwrap();
                (output.status.success(), both(&output))
            }
        };
        assert!(!went_well && said.contains(words), "{said}");
    }
    let (went_well, said) = says(folder, &ann, &["approve", "last"]);
    assert!(went_well && said.contains("approved by ann") && said.contains("missing: 1"), "{said}");
    let (went_well, said) = says(folder, &ann, &["approve", "last"]);
    assert!(!went_well && said.contains("ann has approved this already"), "{said}");
    assert!(questions().contains("approved 1 of 2 times: ann"), "{}", questions());
    let (went_well, said) = says(folder, &ben, &["approve", "last"]);
    assert!(went_well, "{said}");
    let output = asking.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{}", both(&output), folder.logs());

    let trace = folder.output(&["trace", "last"]).unwrap();
    assert!(trace.contains("an approval by ben (signed)"), "{trace}");
    let audit = folder.json(&["audit", "last", "--json"]).unwrap();
    let orders: Vec<(&str, &str)> = audit["signed"]["orders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|order| (order["what"].as_str().unwrap(), order["by"].as_str().unwrap()))
        .collect();
    let expected = [
        ("goal", "zoe"),
        ("approve", "zoe"),
        ("approve", "operator"),
        ("approve", "ann"),
        ("approve", "ann"),
        ("approve", "ben"),
    ];
    assert_eq!(orders, expected, "{audit}");
}

#[test]
fn whoever_asks_has_the_fleets_policy_and_whoever_may_not_approve_changes_nothing() {
    let fleet = folder()
        .up(&["--set", "limits.people.approve_by=[\"ann\"]", "--set", "limits.people.review=ask"])
        .unwrap();
    let folder = fleet.folder();
    let [ann, cy] = ["ann", "cy"].map(|name| person(folder, name));
    let asks = |approve_by: &str| {
        let set = format!("limits.people.approve_by={approve_by}");
        let mut command =
            folder.command(&["run", "What is 6 * 7?", "--review=auto", "--json", "--set", &set]);
        command.env("MUSTER_BUS_CREDENTIALS", &cy).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let refused = asks("[\"cy\"]").wait_with_output().unwrap();
    assert!(!refused.status.success(), "{}", both(&refused));
    assert!(both(&refused).contains("in this fleet ann may approve"), "{}", both(&refused));

    let asking = asks("[]");
    let questions = || says(folder, &cy, &["questions"]).1;
    wait_until("it is asked", LIMIT, || questions().contains("ann and nobody else"))
        .unwrap_or_else(|late| panic!("{late}: {}\n{}", questions(), folder.logs()));
    for order in [&["edit", "last", "1", "--goal", "another goal"][..], &["skip", "last", "1"]] {
        let (went_well, said) = says(folder, &cy, order);
        assert!(!went_well && said.contains("cy has no say in this"), "{order:?}: {said}");
    }
    let (went_well, said) = says(folder, &ann, &["approve", "last"]);
    assert!(went_well, "{said}");
    let output = asking.wait_with_output().unwrap();
    assert!(output.status.success() && both(&output).contains("42"), "{}\n{}", both(&output), folder.logs());

    let file = folder.path().join("operator.creds");
    let owner = folder.run(&["keys", "issue", "person:operator", "--out", file.to_str().unwrap()]).unwrap();
    assert_eq!(owner.status.code(), Some(2), "{}", both(&owner));
    assert!(both(&owner).contains("no person may be called operator"), "{}", both(&owner));
}

#[test]
fn a_person_asks_and_looks_on_by_credentials_of_his_own() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let ann = person(folder, "ann");
    let (went_well, said) = says(folder, &ann, &["run", "What is 6 * 7?", "--quiet"]);
    assert!(went_well && said.contains("42"), "{said}");
    for look in [&["runs"][..], &["show", "last"], &["trace", "last"], &["ps"], &["audit", "last"]] {
        let (went_well, said) = says(folder, &ann, look);
        assert!(went_well, "{look:?}: {said}");
    }
}

/// What puts the clock of a process off by `CLOCK_OFF` seconds, where there is a C compiler.
fn other_clock(folder: &Folder) -> Option<PathBuf> {
    const SOURCE: &str = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdlib.h>
        #include <time.h>
        int clock_gettime(clockid_t clock, struct timespec *time) {
            static int (*real)(clockid_t, struct timespec *);
            if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
            int result = real(clock, time);
            const char *off = getenv("CLOCK_OFF");
            if (off && clock == CLOCK_REALTIME) time->tv_sec += atol(off);
            return result;
        }"#;
    let (source, library) = (folder.path().join("clock.c"), folder.path().join("clock.so"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl");
    let made = compiler.output().is_ok_and(|made| made.status.success());
    (made && cfg!(target_os = "linux")).then_some(library)
}

#[test]
fn by_a_clock_that_is_off_nothing_is_sent_and_nothing_is_said_to_be_queued() {
    let folder = folder();
    write_documents(&folder);
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let Some(library) = other_clock(folder) else { return };
    let zoe = person(folder, "zoe");
    let asking = asker(&fleet, &zoe);
    let questions = || folder.output(&["questions"]).unwrap();
    wait_until("it is asked", LIMIT, || questions().contains("approved 0 of 2 times")).unwrap();
    let off = |seconds: &str, arguments: &[&str]| {
        let mut command = folder.command(arguments);
        let output = command.env("LD_PRELOAD", &library).env("CLOCK_OFF", seconds).output().unwrap();
        // Lines are broken for a terminal.
        let said = both(&output).replace("\n  │ ", " ");
        (output.status.code(), said)
    };
    for (seconds, words) in [("-3600", "s behind the server's"), ("3600", "s ahead of the server's")] {
        for order in [&["run", "What is 6 * 7?"][..], &["pause", "last"]] {
            let (code, said) = off(seconds, order);
            assert_eq!((code, said.contains(words)), (Some(3), true), "{order:?}: {said}");
        }
    }
    assert_eq!(folder.json(&["runs", "--json"]).unwrap().as_array().unwrap().len(), 1);
    assert!(folder.output(&["dead", "list"]).unwrap().contains("no dead letters"));
    folder.output(&["cancel", "last"]).unwrap();
    asking.wait_with_output().unwrap();
}

#[test]
fn an_order_that_nobody_signed_does_nothing_and_is_a_dead_letter() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let run = "0193f0c0c0c07000800000000000cafe";
    let order = json!({
        "id": "0193f0c0-c0c0-7000-8000-000000000001", "sender": "ann", "sent": now(),
        "body": { "type": "command", "content": {
            "command": "submit", "run": run, "goal": { "text": "What is 6 * 7?" }
        } },
    });
    let (subject, order) = (format!("cmd.{run}.submit"), order.to_string());
    let dead = || folder.output(&["dead", "list"]).unwrap();
    stranger.publish(&subject, order.as_bytes()).unwrap();
    wait_until("it is a dead letter", LIMIT, || dead().contains("it is not signed")).unwrap();
    assert_eq!(folder.json(&["runs", "--json"]).unwrap(), json!([]));
    // Signed it counts, and once.
    stranger.order(&subject, order.as_bytes()).unwrap();
    let ended =
        || folder.json(&["show", run, "--json"]).is_ok_and(|shown: Value| shown["status"] == "completed");
    wait_until("the run has ended", LIMIT, ended).unwrap();
    stranger.order(&subject, order.as_bytes()).unwrap();
    wait_until("it is a replay", LIMIT, || dead().contains("it is a replay")).unwrap();
    assert_eq!(folder.json(&["runs", "--json"]).unwrap().as_array().unwrap().len(), 1);
}

/// UTC milliseconds.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}
