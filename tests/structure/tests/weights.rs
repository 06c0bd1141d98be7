//! Compares the workspace with `weights.toml`, and checks that decision code stays pure and that promises have tests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure ends the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use muster_structure::{
    RECORD_FILE, UPDATE_VARIABLE, Weights, Workspace, modules_in_cycles, top_level_modules_in_cycles,
};
use regex::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Packages that a build of the binary links or runs, ours included.
fn crates_in_tree(features: &[&str]) -> u64 {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "tree",
            "--locked",
            "--offline",
            "--package",
            "muster",
            "--edges",
            "normal",
            "--prefix",
            "none",
        ])
        .args(features)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim_end_matches(" (*)")).collect::<BTreeSet<_>>().len() as u64
}

fn measured(workspace: &Workspace) -> Weights {
    let mut weights = Weights::default();
    for (name, one) in &workspace.crates {
        weights.set("production_tokens", name, one.tokens);
        for (section, count) in [
            ("modules_in_import_cycles", modules_in_cycles(one)),
            ("top_level_modules_in_an_import_cycle", top_level_modules_in_cycles(one)),
        ] {
            if count > 0 {
                weights.set(section, name, count);
            }
        }
    }
    weights.set("totals", "production_tokens", workspace.tokens());
    weights.set("totals", "test_lines", workspace.test_lines);
    weights.set("totals", "type_names_with_two_meanings", workspace.ambiguous_type_names());
    weights.set("totals", "crates", crates_in_tree(&[]));
    weights.set("totals", "crates_of_the_demo", crates_in_tree(&["--no-default-features"]));
    weights
}

/// The number of settings is recorded here and measured by the binary's own test, which has the table.
fn keep_settings(record: &Weights, measured: &mut Weights) {
    measured.set("totals", "settings", record.0["totals"]["settings"]);
}

#[test]
fn the_workspace_weighs_what_is_recorded() {
    let path = root().join(RECORD_FILE);
    let record = Weights::parse(&fs::read_to_string(&path).unwrap()).unwrap();
    let mut measured = measured(&Workspace::read(&root()).unwrap());
    keep_settings(&record, &mut measured);
    if env::var_os(UPDATE_VARIABLE).is_some() {
        fs::write(&path, record.lowered_to(&measured).to_toml().unwrap()).unwrap();
    }
    let record = Weights::parse(&fs::read_to_string(&path).unwrap()).unwrap();
    let complaints = record.complaints(&measured);
    assert!(complaints.is_empty(), "\n{complaints}");
}

/// Code that decides cannot link code that acts.
#[test]
fn decision_code_uses_no_runtime_bus_clock_or_randomness() {
    let forbidden = Regex::new(
        r"\b(tokio|async_nats|muster_bus|actix|reqwest|rand|getrandom|jiff)::|SystemTime::now|Instant::now|Uuid::(new_v|now_v)|std::(fs|process|env)\b|\b(Tcp|Udp|Unix)(Listener|Stream|Socket|Datagram)\b",
    )
    .unwrap();
    let workspace = Workspace::read(&root()).unwrap();
    let mut found = Vec::new();
    for (name, prefix) in [("shared", &[][..]), ("orchestrator", &["decide".to_owned()][..])] {
        for (module, text) in &workspace.crates[name].modules {
            if !module.starts_with(prefix) {
                continue;
            }
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                if forbidden.is_match(line) {
                    found.push(format!("{name}::{}: {}", module.join("::"), line.trim()));
                }
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn shared_depends_on_no_runtime_bus_or_clock() {
    let manifest: toml::Table =
        fs::read_to_string(root().join("shared/Cargo.toml")).unwrap().parse().unwrap();
    let dependencies = manifest["dependencies"].as_table().unwrap();
    for forbidden in
        ["tokio", "tokio-util", "async-nats", "actix", "reqwest", "rand", "getrandom", "jiff", "muster-bus"]
    {
        assert!(!dependencies.contains_key(forbidden), "shared must not depend on {forbidden}");
    }
}

/// Text of all Rust files below a directory.
fn rust_text(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() && !path.ends_with("target") {
            text += &rust_text(&path);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text += &fs::read_to_string(&path).unwrap();
        }
    }
    text
}

/// A promise ends with the names of its tests.
#[test]
fn each_promise_of_the_security_page_names_existing_tests() {
    let test = Regex::new(r"#\[(?:tokio::)?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)").unwrap();
    let code = rust_text(&root());
    let tests: BTreeSet<&str> = test.captures_iter(&code).map(|found| found.extract::<1>().1[0]).collect();
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (_, promises) = page.split_once("\n## Promises\n").unwrap();
    let (promises, _) = promises.split_once("\n## ").unwrap();
    for promise in promises.split("\n- ").skip(1) {
        let promise = promise.split("\n\n").next().unwrap();
        let words = promise.split_whitespace().rev().map(|word| word.trim_end_matches(','));
        let named: Vec<&str> = words.map_while(|word| word.strip_prefix('`')?.strip_suffix('`')).collect();
        assert!(!named.is_empty(), "no test proves this promise: {promise}");
        let missing: Vec<_> = named.into_iter().filter(|name| !tests.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?} are no tests, of: {promise}");
    }
}
