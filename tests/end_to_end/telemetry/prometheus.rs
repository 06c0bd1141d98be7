//! A real Prometheus reads the figures of a fleet, finds each process by `/targets`, and keeps exemplars.
//!
//! It is Debian's package (`apt-get install prometheus`), or unpacked by `.ci/prometheus`; `MUSTER_PROMETHEUS_BIN` names
//! another folder with it.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use muster_support::fleet::{Folder, wait_until};
use muster_support::process::Running;
use muster_support::skip::skipped;
use serde_json::Value;

use super::{asked, get, is_well};

const LIMIT: Duration = Duration::from_secs(30);

/// The folder that has it.
fn found() -> Option<PathBuf> {
    let given = std::env::var_os("MUSTER_PROMETHEUS_BIN").map(PathBuf::from);
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/prometheus/usr/bin");
    given.into_iter().chain([unpacked, "/usr/bin".into()]).find(|folder| folder.join("prometheus").is_file())
}

pub(super) fn scraped(folder: &Folder, fleet: &str, run: &str) {
    let Some(bin) = found() else {
        return skipped("a scrape by Prometheus", "there is none here (.ci/prometheus unpacks Debian's)");
    };
    // What is shipped, but for where it listens and how often it looks.
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/telemetry");
    let config = std::fs::read_to_string(shipped.join("prometheus.yml")).unwrap();
    let config = config.replace("127.0.0.1:9464", fleet).replace("15s", "500ms");
    let config = folder.write("prometheus.yml", config).unwrap();
    folder.write("alerts.yml", std::fs::read(shipped.join("alerts.yml")).unwrap()).unwrap();
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let running = Command::new(bin.join("prometheus"))
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("tsdb").display()))
        .arg(format!("--web.listen-address={at}"))
        .arg("--enable-feature=exemplar-storage")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _running = Running(running);
    wait_until("Prometheus listens", LIMIT, || TcpStream::connect(&at).is_ok()).unwrap();
    // It listens before it can answer.
    wait_until("Prometheus is ready", LIMIT, || is_well(&asked(&at, "/-/ready", "").0)).unwrap();
    let ask = |query: &str| -> Vec<Value> {
        let query = query.replace('{', "%7B").replace('}', "%7D").replace('"', "%22").replace(' ', "%20");
        let answer: Value =
            serde_json::from_str(&get(&at, &format!("/api/v1/query?query={query}"), "")).unwrap_or_default();
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    };
    let all_up = || {
        let up = ask("up");
        up.len() >= 9 && up.iter().all(|one| one["value"][1] == "1")
    };
    wait_until("every process is scraped", LIMIT, all_up)
        .unwrap_or_else(|late| panic!("{late}: {:#?}", ask("up")));
    // Who came last is found last.
    let has_worked = || {
        let steps = ask("sum by (role) (muster_steps_total)");
        steps.iter().any(|one| one["metric"]["role"] == "worker")
    };
    wait_until("steps of workers are seen", LIMIT, has_worked)
        .unwrap_or_else(|late| panic!("{late}: {:#?}", ask("muster_steps_total")));
    assert_eq!(ask("muster_dead_letters")[0]["value"][1], "0");
    let path = "/api/v1/query_exemplars?query=muster_step_duration_seconds_bucket&start=0&end=9999999999";
    let seen = || get(&at, path, "").contains(run);
    wait_until("an exemplar leads to the trace", LIMIT, seen).unwrap();
    let rules: Value = serde_json::from_str(&get(&at, "/api/v1/rules", "")).unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().cloned().unwrap_or_default();
    assert!(rules.len() > 10 && rules.iter().all(|rule| rule["health"] != "err"), "{rules:#?}");
}
