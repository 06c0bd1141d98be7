//! The files under `deploy/` name settings that there are, and a NATS server takes its configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

fn deploy(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Variables of Muster that a file sets.
fn variables(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let mut found: Vec<String> =
        words.filter(|word| word.starts_with("MUSTER_")).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn manifests_set_only_variables_that_muster_knows() {
    let known = Command::new(env!("CARGO_BIN_EXE_muster")).args(["config", "--json"]).output().unwrap();
    let known = String::from_utf8(known.stdout).unwrap();
    for file in ["compose.yaml", "kubernetes/muster.yaml", "kubernetes/nats.yaml"] {
        let set = variables(&deploy(file));
        assert!(set.len() >= 2, "{file}: {set:?}");
        for variable in set {
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
        for role in ["planner", "researcher", "worker", "reflector", "refiner", "writer"] {
            assert!(text.contains(&format!("[\"agent\", \"{role}\"]")), "{role} is missing in {file}");
        }
    }
}

#[test]
fn a_nats_server_takes_the_configuration_of_the_cluster() {
    let program = std::env::var("MUSTER_NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/cluster/nats.conf");
    let checked = Command::new(program)
        .arg("-t")
        .arg("-c")
        .arg(config)
        .env("NATS_NAME", "nats-0")
        .env("MUSTER_BUS_PASSWORD", "one")
        .env("MUSTER_BUS_SYSTEM_PASSWORD", "two")
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// A folder as `make` finds it, with what a fleet leaves, and with a program that notes what it was asked.
#[cfg(unix)]
#[test]
fn clean_state_stops_the_fleet_and_leaves_nothing_but_the_server() {
    use std::os::unix::fs::PermissionsExt;

    for built in ["release", "demo", "debug"] {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("Makefile"), at("Makefile")).unwrap();
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
