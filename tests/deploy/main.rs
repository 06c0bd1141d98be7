//! The files under `deploy/` name settings that there are, and give nobody a password; servers take their configuration, and
//! let in whom they should; the units are in order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cluster;
mod telemetry;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use muster_support::fleet::both;
use muster_support::skip::skipped;
use serde::Deserialize;
use serde_yaml_ng::Value;

const ROLES: [&str; 6] = ["planner", "researcher", "worker", "reflector", "refiner", "writer"];

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn deploy(file: &str) -> String {
    let path = root("deploy").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Variables of Muster that a file sets.
fn variables(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("MUSTER_")).map(str::to_owned).collect()
}

/// Variables that are no settings.
const OTHERS: [&str; 1] = ["MUSTER_NATS_SERVER"];

#[test]
fn manifests_set_only_variables_that_muster_knows() {
    let known = Command::new(env!("CARGO_BIN_EXE_muster")).args(["config", "--json"]).output().unwrap();
    let known = String::from_utf8(known.stdout).unwrap();
    for (file, least) in [
        ("compose.yaml", 6),
        ("kubernetes/muster.yaml", 6),
        ("kubernetes/nats.yaml", 0),
        ("telemetry/compose.yaml", 4),
    ]
    .into_iter()
    .chain(UNITS.map(|unit| (unit, 0)))
    {
        let set = variables(&deploy(file));
        assert!(set.len() >= least, "{file}: {set:?}");
        for variable in set.iter().filter(|one| !OTHERS.contains(&one.as_str())) {
            let key = variable.trim_start_matches("MUSTER_").to_ascii_lowercase().replacen('_', ".", 1);
            assert!(known.contains(&format!("\"{key}\"")), "{file} sets {variable}, but there is no {key}");
        }
    }
}

#[test]
fn every_role_is_in_the_manifests() {
    for file in ["compose.yaml", "kubernetes/muster.yaml"] {
        let text = deploy(file);
        assert!(text.contains("[\"orchestrator\"]"), "{file}");
        for role in ROLES {
            assert!(text.contains(&format!("[\"agent\", \"{role}\"]")), "{role} is missing in {file}");
        }
    }
}

/// Whatever is shipped lets nobody in by a password, and no connection goes unencrypted.
#[test]
fn nobody_has_a_password_and_nothing_goes_unencrypted() {
    let shipped = ["compose.yaml", "kubernetes/muster.yaml", "kubernetes/nats.yaml", "cluster/nats.conf"];
    for file in shipped.into_iter().chain(UNITS) {
        let text = deploy(file).to_ascii_lowercase();
        for word in
            ["password", "muster_bus_user", "system_user", "muster_bus_token", "nats://", "no_auth_user"]
        {
            assert!(!text.contains(word), "{file} has {word}");
        }
    }
}

fn yaml(file: &str) -> Vec<Value> {
    let text = deploy(file);
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    let mut all: Vec<Value> = documents.map(|document| Value::deserialize(document).unwrap()).collect();
    all.iter_mut().for_each(|document| document.apply_merge().unwrap());
    all
}

fn text(value: &Value) -> String {
    serde_yaml_ng::to_string(value).unwrap()
}

/// Two processes never share credentials: they would have one name, and one inbox.
#[test]
fn every_service_of_compose_has_credentials_of_its_own() {
    let compose = yaml("compose.yaml").remove(0);
    let mut taken = BTreeSet::new();
    for (service, told) in compose["services"].as_mapping().unwrap() {
        let service = service.as_str().unwrap();
        if service.starts_with("nats-") {
            assert!(text(told).contains("./secrets/nats:/etc/nats:ro"), "{service}");
            continue;
        }
        let given = told["secrets"].as_sequence().unwrap();
        let own = given.iter().find(|one| one["target"] == "muster.creds").unwrap();
        let own = own["source"].as_str().unwrap();
        assert!(service == own || (service == "ask" && own == "person-owner"), "{service} has {own}");
        assert!(taken.insert(own.to_owned()), "{own} is shared");
        let has = |name: &str| given.iter().any(|one| one.as_str() == Some(name));
        assert!(has("ca.pem"), "{service}");
        assert_eq!(has("presence.creds"), service.starts_with("orchestrator-"), "{service}");
        let file = compose["secrets"][own]["file"].as_str();
        assert_eq!(file, Some(format!("./secrets/creds/{own}.creds").as_str()));
        let environment = text(&told["environment"]);
        assert!(environment.contains("MUSTER_BUS_CREDENTIALS: /run/secrets/muster.creds"), "{service}");
        assert!(environment.contains("MUSTER_BUS_URL: tls://"), "{service}");
    }
    let made = deploy("credentials.sh");
    let made = made.split("set -- ").nth(1).unwrap().lines().next().unwrap();
    let made: BTreeSet<String> = made.split(' ').map(str::to_owned).collect();
    assert_eq!(made, taken, "deploy/credentials.sh makes others than compose.yaml names");
}

#[test]
fn every_pod_has_credentials_by_its_own_name() {
    let all = yaml("kubernetes/muster.yaml");
    let pods: Vec<&Value> = all.iter().filter(|one| !one["spec"]["template"].is_null()).collect();
    assert_eq!(pods.len(), ROLES.len() + 1);
    for pod in pods {
        let role = pod["metadata"]["name"].as_str().unwrap();
        // Its pods are named role-0, role-1, …, as deploy/credentials.sh names credentials.
        assert_eq!(pod["kind"], "StatefulSet", "{role}");
        let pod = &pod["spec"]["template"]["spec"];
        assert_eq!(pod["volumes"][0]["secret"]["secretName"], role);
        let mounts = pod["containers"][0]["volumeMounts"].as_sequence().unwrap();
        let own = mounts.iter().find(|mount| mount["mountPath"] == "/etc/muster/muster.creds").unwrap();
        assert_eq!(own["subPathExpr"], "$(POD_NAME).creds", "{role}");
        let has_presence = mounts.iter().any(|mount| mount["subPath"] == "presence.creds");
        assert_eq!(has_presence, role == "orchestrator", "{role}");
    }
    assert!(deploy("kubernetes/muster.yaml").contains("MUSTER_BUS_URL: tls://"));
}

const UNITS: [&str; 5] = [
    "systemd/muster.service",
    "systemd/muster-join.service",
    "systemd/muster-agent@.service",
    "systemd/muster-orchestrator@.service",
    "systemd/muster-nats.service",
];

#[test]
fn the_units_are_in_order_and_closed() {
    for unit in UNITS {
        let text = deploy(unit);
        for line in ["UMask=0077", "NoNewPrivileges=yes", "ProtectSystem=strict", "StateDirectoryMode=0700"] {
            assert!(text.contains(line), "{unit}: no {line}");
        }
        if unit.contains('@') {
            assert!(text.contains("LoadCredential=muster.creds:/etc/muster/%i.creds"), "{unit}");
        }
        let verify = ["verify", "--man=no", "--recursive-errors=no"];
        let verified = Command::new("systemd-analyze").args(verify).arg(root("deploy").join(unit)).output();
        let Ok(verified) = verified else { return skipped("systemd-analyze verify", "it is not installed") };
        // The programs are not where they are to be installed.
        let said = both(&verified);
        let wrong: Vec<&str> = said.lines().filter(|line| !line.contains("is not executable")).collect();
        assert!(wrong.is_empty(), "{unit}: {wrong:?}");
    }
}

/// A folder as `make` finds it, with what a fleet leaves, and with a program that notes what it was asked.
#[cfg(unix)]
#[test]
fn clean_state_stops_the_fleet_and_leaves_nothing_but_the_server() {
    use std::os::unix::fs::PermissionsExt;

    for built in ["release", "demo", "debug"] {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::copy(root("Makefile"), at("Makefile")).unwrap();
        for path in [".muster/nats", ".muster/log", ".muster/cache", ".muster/users", ".muster/bin"] {
            std::fs::create_dir_all(at(path)).unwrap();
            std::fs::write(at(path).join("file"), "x").unwrap();
        }
        for path in ["fleet.json", "fleet.lock", "port", "users.lock"] {
            std::fs::write(at(".muster").join(path), "x").unwrap();
        }
        let program = at("target").join(built).join("muster");
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::fs::write(&program, "#!/bin/sh\necho \"$@\" >asked\n").unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();

        let made = Command::new("make").arg("clean-state").current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        assert_eq!(std::fs::read_to_string(at("asked")).unwrap(), "down\n", "of target/{built}");
        let left: Vec<_> =
            std::fs::read_dir(at(".muster")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["bin"]);
    }
}
