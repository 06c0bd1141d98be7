//! What is shipped for figures and traces: rules that alert when they should, a dashboard whose questions are questions, and a
//! compose file that goes with the fleet's.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use muster_support::fleet::both;
use muster_support::skip::skipped;
use serde_json::Value;

use super::{deploy, root, yaml};

fn promtool() -> Option<PathBuf> {
    let given = std::env::var_os("MUSTER_PROMETHEUS_BIN").map(PathBuf::from);
    let folders = given.into_iter().chain([root("target/tools/prometheus/usr/bin"), "/usr/bin".into()]);
    folders.map(|folder| folder.join("promtool")).find(|program| program.is_file())
}

/// Every question of the dashboard.
fn asked() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&deploy("telemetry/grafana/dashboards/muster.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "5m")).collect()
}

#[test]
fn rules_alert_when_they_should_and_the_dashboard_asks_what_can_be_asked() {
    let Some(promtool) = promtool() else {
        return skipped(
            "the rules of Prometheus",
            "there is no promtool here (.ci/prometheus unpacks Debian's)",
        );
    };
    let folder = root("deploy/telemetry");
    for arguments in [
        &["check", "config", "prometheus.yml"][..],
        &["check", "config", "prometheus.compose.yml"],
        &["check", "rules", "alerts.yml"],
        &["test", "rules", "alerts_test.yml"],
    ] {
        let said = Command::new(&promtool).args(arguments).current_dir(&folder).output().unwrap();
        assert!(said.status.success(), "{arguments:?}: {}", both(&said));
    }
    // What a panel asks is read as a rule is.
    let rules: Vec<Value> = asked()
        .into_iter()
        .enumerate()
        .map(|(n, expr)| serde_json::json!({ "record": format!("panel:{n}"), "expr": expr }))
        .collect();
    assert!(rules.len() > 20);
    let rules = serde_json::json!({ "groups": [{ "name": "panels", "rules": rules }] });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rules.to_string()).unwrap();
    let said = Command::new(&promtool).args(["check", "rules"]).arg(file.path()).output().unwrap();
    assert!(said.status.success(), "{}", both(&said));
}

#[test]
fn every_rule_is_tried_both_ways() {
    let names = |text: &str, key: &str| -> BTreeSet<String> {
        let after = |line: &str| Some(line.split_once(key)?.1.trim_matches([' ', '}']).to_owned());
        text.lines().filter_map(after).collect()
    };
    let rules = names(&deploy("telemetry/alerts.yml"), "- alert:");
    let tried = deploy("telemetry/alerts_test.yml");
    let (quiet, loud) = tried.split_once("everything is wrong").unwrap();
    assert_eq!(names(quiet, "alertname:"), rules);
    assert_eq!(names(loud, "alertname:"), rules);
}

#[test]
fn the_compose_file_goes_with_that_of_the_fleet() {
    let services = |file: &str| -> BTreeSet<String> {
        let files = yaml(file);
        let services = files[0]["services"].as_mapping().unwrap().keys();
        services.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let (fleet, telemetry) = (services("compose.yaml"), services("telemetry/compose.yaml"));
    let looked_at: BTreeSet<String> =
        fleet.iter().filter(|name| !name.starts_with("nats") && *name != "ask").cloned().collect();
    assert!(looked_at.is_subset(&telemetry), "{looked_at:?} {telemetry:?}");
    let own: Vec<&String> = telemetry.difference(&fleet).collect();
    assert_eq!(own, ["figures", "grafana", "jaeger", "prometheus"]);
    for line in deploy("telemetry/compose.yaml").lines().filter(|line| line.contains("ports:")) {
        assert!(line.contains("\"127.0.0.1:"), "for this machine alone: {line}");
    }
}
