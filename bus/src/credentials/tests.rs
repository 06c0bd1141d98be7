use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::partition::Partitions;

fn whole() -> Partitions {
    Partitions::of_count(1).unwrap()
}

fn worker() -> Holder {
    Holder::Agent { role: "worker".parse().unwrap(), id: "worker-1".parse().unwrap() }
}

#[test]
fn keys_are_made_once_and_are_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("deep/keys");
    assert!(FleetKeys::open(&folder).unwrap().is_none());
    let made = FleetKeys::open_or_make(&folder).unwrap();
    assert_eq!(FleetKeys::open_or_make(&folder).unwrap().account(), made.account());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("account.nk"))), (0o700, 0o600));

    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o750)).unwrap();
    let error = FleetKeys::open_or_make(&folder).unwrap_err().to_string();
    assert!(error.contains("chmod go="), "{error}");
}

#[test]
fn a_key_that_is_gone_is_told_and_not_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("keys");
    let keys = FleetKeys::open_or_make(&folder).unwrap();
    keys.write_own().unwrap();
    let aside = folder.join("aside");
    for name in ["operator.nk", "account.nk", "system.nk", "signing-agent.nk", "signing-guest.nk"] {
        std::fs::rename(folder.join(name), &aside).unwrap();
        for opened in [FleetKeys::open_or_make(&folder).map(Some), FleetKeys::open(&folder)] {
            let error = opened.unwrap_err().to_string();
            assert!(error.contains(&format!("{name} is missing: put it back")), "{error}");
        }
        std::fs::rename(&aside, folder.join(name)).unwrap();
        assert_eq!(FleetKeys::open_or_make(&folder).unwrap().account(), keys.account());
    }
    // Who was killed while he made the first of them goes on.
    for later in ["account.nk", "system.nk"].map(|name| folder.join(name)) {
        std::fs::remove_file(later).unwrap();
    }
    for scope in Scope::ALL {
        std::fs::remove_file(folder.join(format!("signing-{}.nk", scope.name()))).unwrap();
    }
    assert!(FleetKeys::open(&folder).unwrap().is_none());
    FleetKeys::open_or_make(&folder).unwrap();
}

#[test]
fn a_key_of_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("keys");
    drop(FleetKeys::open_or_make(&folder).unwrap());
    std::fs::copy(folder.join("operator.nk"), folder.join("account.nk")).unwrap();
    assert!(FleetKeys::open(&folder).unwrap_err().to_string().contains("another kind"));
    std::fs::write(folder.join("account.nk"), "nonsense").unwrap();
    assert!(FleetKeys::open(&folder).is_err());
}

/// Who has to approve is told by names: `operator` is whoever runs the fleet.
#[test]
fn no_person_is_called_as_somebody_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
    let person = |name: &str| Holder::Person { name: name.parse().unwrap() };
    for name in ["operator", "Operator", "presence", "orchestrator", "worker", "planner", "observer"] {
        let refused = keys.issue(&person(name), None).unwrap_err().to_string();
        assert!(refused.contains(&format!("no person may be called {name}")), "{refused}");
        assert!(keys.issue_to(&folder.path().join("x.creds"), &person(name), None).is_err());
    }
    assert!(keys.issue(&person("ann"), None).is_ok());
    assert!(keys.issue(&Holder::Operator { name: "operator".parse().unwrap() }, None).is_ok());
}

#[test]
fn credentials_say_whose_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
    let path = folder.path().join("worker.creds");
    keys.issue(&worker(), None).unwrap().write(&path).unwrap();
    assert_eq!(
        identity(&path).unwrap(),
        Some(Identity {
            name: "worker-1".parse().unwrap(),
            kind: HolderKind::Agent("worker".parse().unwrap())
        })
    );
    keys.issue(&Holder::Operator { name: "anna".parse().unwrap() }, None).unwrap().write(&path).unwrap();
    assert_eq!(identity(&path).unwrap().unwrap().kind, HolderKind::Operator);

    std::fs::write(&path, "-----BEGIN NATS USER JWT-----\nnonsense\n").unwrap();
    assert!(identity(&path).is_err());
    std::fs::write(&path, "").unwrap();
    assert!(identity(&path).unwrap_err().to_string().contains("no NATS credentials"));
}

#[test]
fn an_older_folder_gets_its_signing_keys_and_new_credentials_of_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("keys");
    let keys = FleetKeys::open_or_make(&folder).unwrap();
    keys.write_own().unwrap();
    let before = claims_in(&keys.operator_file()).unwrap().iss;
    assert_ne!(before, keys.account(), "a signing key vouches for users");
    let account = keys.account();
    for scope in Scope::ALL {
        std::fs::remove_file(folder.join(format!("signing-{}.nk", scope.name()))).unwrap();
    }
    let keys = FleetKeys::open(&folder).unwrap().unwrap();
    assert_eq!(keys.account(), account);
    keys.write_own().unwrap();
    let now = claims_in(&keys.operator_file()).unwrap().iss;
    assert_ne!(now, before);
    let keys = FleetKeys::open(&folder).unwrap().unwrap();
    keys.write_own().unwrap();
    assert_eq!(claims_in(&keys.operator_file()).unwrap().iss, now, "they are made once");
}

/// The server takes 4 KiB for all that a client says of itself.
#[test]
fn credentials_are_small_however_long_names_are() {
    let folder = tempfile::tempdir().unwrap();
    let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
    let (role, id) = ("r".repeat(32), "n".repeat(64));
    for scope in Scope::ALL {
        let holder = scope.holder(role.parse().unwrap(), id.parse().unwrap());
        let made = keys.issue(&holder, Some(Millis(u64::MAX / 2))).unwrap();
        assert!(made.jwt.len() < 2_200, "{scope:?}: {}", made.jwt.len());
    }
}

#[test]
fn the_next_start_of_a_process_replaces_what_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
    let file = keys.folder().join("worker-1.creds");
    for _ in 0..3 {
        keys.issue_to(&file, &worker(), None).unwrap();
    }
    let issued = keys.issued().unwrap();
    assert_eq!((issued.len(), issued[0].file.as_deref()), (1, Some(file.as_path())));
    assert_eq!(issued[0].kind, worker().kind());
    assert_eq!(issued[0].key, claims_in(&file).unwrap().sub);
    keys.issue(&worker(), Some(Millis(1))).unwrap();
    assert_eq!(keys.issued().unwrap(), issued, "what has ended is nothing");
    assert_eq!(keys.revoke(&"worker-1".parse().unwrap()).unwrap(), 1);
    assert_eq!(keys.issued().unwrap(), []);

    keys.write_own().unwrap();
    let own = || claims_in(&keys.operator_file()).unwrap().sub;
    let before = own();
    keys.write_own().unwrap();
    assert_eq!(own(), before);
    assert_eq!(keys.revoke(&"operator".parse().unwrap()).unwrap(), 1);
    keys.write_own().unwrap();
    assert_ne!(own(), before, "the owner of the keys is not shut out for good");
}

#[test]
fn an_agent_speaks_for_itself_alone() {
    let rights = worker().rights(whole());
    let may = |subject: &str| rights.publish.iter().any(|filter| crate::subject::matches(filter, subject));
    for own in
        ["evt.RUN.worker.worker-1.1.1.step", "hb.worker.worker-1", "$JS.API.CONSUMER.MSG.NEXT.TASKS.worker"]
    {
        assert!(may(own), "{own}");
    }
    for others in [
        "evt.RUN.worker.worker-2.1.1.step",
        "evt.RUN.planner.worker-1.1.1.step",
        "run.RUN.decided",
        "cmd.RUN.cancel",
        "ask.submit",
        "ctl.all",
        "$KV.AGENTS.worker-2",
        "$KV.LEASE.x",
        "$JS.API.CONSUMER.MSG.NEXT.TASKS.planner",
        "$JS.API.CONSUMER.CREATE.TASKS.worker.task.worker.>",
        "$JS.API.STREAM.PURGE.RUNS",
        "$JS.API.STREAM.DELETE.RUNS",
        "$JS.ACK.TASKS.planner.1.1.1.1.1",
    ] {
        assert!(!may(others), "{others}");
    }
}
