//! The record of a run fits its hash chain, and whatever is changed in it is found: on the bus and in an exported file.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use muster_support::fleet::{Folder, both};
use muster_support::foreign::Stranger;
use serde_json::{Value, json};

use super::support::{folder, write_documents};

/// Audits a run of which nothing was changed.
pub(crate) fn fits(folder: &Folder, run: &str) -> Value {
    let audited = folder.run(&["audit", run, "--json"]).unwrap();
    assert_eq!(audited.status.code(), Some(0), "{}", both(&audited));
    let audit: Value = serde_json::from_slice(&audited.stdout).unwrap();
    assert_eq!(audit["result"], "fits", "{audit}");
    let count = |name: &str| audit[name].as_u64().unwrap();
    assert_eq!(count("before"), 0, "{audit}");
    assert_eq!(count("covered") + count("uncovered"), count("entries"), "{audit}");
    assert!(count("links") > 1, "{audit}");
    audit
}

fn audited(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = folder.run(&[&["audit"], arguments].concat()).unwrap();
    (output.status.code(), both(&output))
}

/// What the audit of a record that does not fit says of the first entry that does not.
fn misfit(folder: &Folder, arguments: &[&str]) -> Value {
    let output = folder.run(&[&["audit"], arguments, &["--json"]].concat()).unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", both(&output));
    let audit: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(audit["result"], "misfit", "{audit}");
    audit
}

/// The verifier that the documents show, where there is a Python.
fn outsider(file: &Path) -> Option<Output> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/examples/verify_audit.py");
    let output = Command::new("python3").arg(script).arg(file).output();
    output.map_err(|error| println!("no python3 is here, so no outsider verifies: {error}")).ok()
}

fn exported(folder: &Folder, run: &str) -> (PathBuf, Vec<Value>) {
    let file = folder.path().join("run.audit.jsonl");
    folder.output(&["audit", run, "--export", file.to_str().unwrap()]).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (file, lines)
}

fn write(file: &Path, lines: &[Value]) {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(file, text.join("\n") + "\n").unwrap();
}

/// A step in the middle of what the chain covers.
fn a_step(lines: &[Value]) -> usize {
    let is_step = |line: &Value| line["subject"].as_str().is_some_and(|subject| subject.ends_with(".step"));
    let steps: Vec<usize> = (1..lines.len()).filter(|at| is_step(&lines[*at])).collect();
    steps[steps.len() / 2]
}

#[test]
fn what_was_changed_in_a_record_is_named_and_a_stranger_can_verify_an_exported_one() {
    let folder = folder();
    write_documents(&folder);
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let thorough = ["run", "How deep may delegation go?", "--docs", "docs", "--effort", "thorough", "--json"];
    let summary = folder.json(&thorough).unwrap();
    let run = summary["run"].as_str().unwrap();
    let found = fits(folder, run);
    println!("{}", folder.output(&["audit", run]).unwrap());

    let (file, lines) = exported(folder, run);
    let path = file.to_str().unwrap();
    let (code, said) = audited(folder, &["--file", path]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(found["head"].as_str().unwrap()), "{said}");
    if let Some(output) = outsider(&file) {
        assert!(
            output.status.success() && both(&output).contains(found["head"].as_str().unwrap()),
            "{}",
            both(&output)
        );
    }
    changed_files(folder, &file, &lines);
    seals(folder, &file, &lines);
    no_record(folder, &file, &lines);
    changed_on_the_bus(folder, &fleet.url(), run, &lines);
}

/// One change at a time, each found at its place by us and by the outsider.
fn changed_files(folder: &Folder, file: &Path, lines: &[Value]) {
    let (path, at) = (file.to_str().unwrap(), a_step(lines));
    let seq = lines[at]["seq"].clone();
    let mut payload = STANDARD.decode(lines[at]["payload"].as_str().unwrap()).unwrap();
    *payload.last_mut().unwrap() ^= 1;
    let mut changed = lines.to_vec();
    changed[at]["payload"] = json!(STANDARD.encode(payload));
    let mut removed = lines.to_vec();
    removed.remove(at);
    removed[0]["entries"] = json!(lines.len() - 2);
    let mut inserted = lines.to_vec();
    let twin = lines[at].clone();
    let before = lines[at - 1]["seq"].as_u64().unwrap();
    inserted.insert(at, twin);
    inserted[at]["seq"] = json!(before + 1);
    inserted[at + 1]["seq"] = json!(before + 1);
    inserted[0]["entries"] = json!(lines.len());
    let mut swapped = lines.to_vec();
    swapped.swap(at, at + 1);
    for (how, lines, seq) in [
        ("changed", changed, seq.clone()),
        ("missing", removed, seq.clone()),
        ("out_of_order", inserted, json!(before + 1)),
        ("out_of_order", swapped, seq),
    ] {
        write(file, &lines);
        let found = misfit(folder, &["--file", path]);
        assert_eq!((&found["seq"], &found["fault"]["kind"]), (&seq, &json!(how)), "{found}");
        if let Some(output) = outsider(file) {
            assert_eq!(output.status.code(), Some(1), "{how}: {}", both(&output));
        }
    }
}

/// Each link is sealed by the orchestrator, and the goal is signed by whoever asked.
fn seals(folder: &Folder, file: &Path, lines: &[Value]) {
    let path = file.to_str().unwrap();
    write(file, lines);
    let audit = folder.json(&["audit", "--file", path, "--json"]).unwrap();
    assert_eq!((&audit["sealed"], &audit["signed"]["keys"]), (&audit["links"], &json!("own")), "{audit}");
    let sealed = audit["signed"]["sealed_by"].as_object().unwrap();
    assert!(sealed.keys().all(|by| by.starts_with("orchestrator-")) && !sealed.is_empty(), "{audit}");
    let order = &audit["signed"]["orders"][0];
    assert_eq!(
        (&order["what"], &order["as"], &order["kept"]),
        (&json!("goal"), &json!("operator"), &json!(true))
    );

    // By the keys that were noted down, and by those of another fleet; without any by those in the file.
    let keys = folder.path().join("fleet-keys.json");
    std::fs::write(&keys, folder.output(&["keys", "public"]).unwrap()).unwrap();
    let (code, said) = audited(folder, &["--file", path, "--keys", keys.to_str().unwrap()]);
    assert_eq!((code, said.contains("by the fleet's keys, fingerprint")), (Some(0), true), "{said}");
    let other = super::support::folder();
    assert!(other.run(&["keys", "init"]).unwrap().status.success());
    let (code, said) = audited(&other, &["--file", path]);
    assert_eq!((code, said.contains("by the keys that the file itself brings")), (Some(0), true), "{said}");
    let foreign = other.path().join("foreign.json");
    std::fs::write(&foreign, other.output(&["keys", "public"]).unwrap()).unwrap();
    let found = misfit(folder, &["--file", path, "--keys", foreign.to_str().unwrap()]);
    assert_eq!((&found["seq"], &found["fault"]["kind"]), (&lines[1]["seq"], &json!("wrong_seal")), "{found}");

    // A seal that is another one's, and one that is gone.
    let linked: Vec<usize> = (1..lines.len()).filter(|at| lines[*at]["link"].is_string()).collect();
    let at = linked[linked.len() / 2];
    let link = |at: usize| serde_json::from_str::<Value>(lines[at]["link"].as_str().unwrap()).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let (mut changed, mut of) = (lines.to_vec(), link(at));
        change(&mut of);
        changed[at]["link"] = json!(of.to_string());
        write(file, &changed);
        misfit(folder, &["--file", path])
    };
    let other = link(linked[1])["seal"]["signature"].clone();
    let found = with(&|link| link["seal"]["signature"] = other.clone());
    assert_eq!(
        (&found["seq"], &found["fault"]["kind"]),
        (&lines[at]["seq"], &json!("wrong_seal")),
        "{found}"
    );
    let found = with(&|link| drop(link.as_object_mut().unwrap().remove("seal")));
    assert_eq!((&found["seq"], &found["fault"]["kind"]), (&lines[at]["seq"], &json!("no_seal")), "{found}");

    // All of them: what is left anybody could have computed.
    let mut bare = lines.to_vec();
    for at in &linked {
        let mut of = link(*at);
        of.as_object_mut().unwrap().remove("seal");
        bare[*at]["link"] = json!(of.to_string());
    }
    write(file, &bare);
    let (of_fleet, first) = (keys.to_str().unwrap(), &lines[linked[0]]["seq"]);
    for by in [&["--file", path][..], &["--file", path, "--keys", of_fleet]] {
        let found = misfit(folder, by);
        assert_eq!((&found["seq"], &found["fault"]["kind"]), (first, &json!("no_seal")), "{by:?}: {found}");
    }
    bare[0].as_object_mut().unwrap().remove("keys");
    write(file, &bare);
    let found = misfit(folder, &["--file", path]);
    assert_eq!((&found["seq"], &found["fault"]["kind"]), (first, &json!("no_seal")), "{found}");

    // Cut off before its last decision, it fits: where it stops is said.
    let mut cut = lines[..*linked.last().unwrap()].to_vec();
    cut[0]["entries"] = json!(cut.len() - 1);
    write(file, &cut);
    let audit = folder.json(&["audit", "--file", path, "--json"]).unwrap();
    assert_eq!((&audit["ended"], &audit["last"]), (&json!(false), &cut.last().unwrap()["seq"]), "{audit}");
    let (code, said) = audited(folder, &["--file", path]);
    assert_eq!((code, said.contains("the run has not ended at entry")), (Some(0), true), "{said}");
}

/// What is no exported record, or only a part of one.
fn no_record(folder: &Folder, file: &Path, lines: &[Value]) {
    let path = file.to_str().unwrap();
    write(file, &lines[..lines.len() - 1]);
    let (code, said) = audited(folder, &["--file", path]);
    assert_eq!((code, said.contains("it was cut off")), (Some(2), true), "{said}");
    std::fs::write(file, [0xff, 0x00, b'\n']).unwrap();
    let (code, said) = audited(folder, &["--file", path]);
    assert_eq!((code, said.contains("line 1")), (Some(2), true), "{said}");
    let (code, said) = audited(folder, &["--file", "nowhere.jsonl"]);
    assert_eq!((code, said.contains("nowhere.jsonl")), (Some(2), true), "{said}");
    let (code, said) = audited(folder, &["ffffffffffff"]);
    assert_eq!((code, said.contains("no run's id")), (Some(2), true), "{said}");
}

/// By whoever has the bus: an entry is taken out, others are published.
fn changed_on_the_bus(folder: &Folder, url: &str, run: &str, lines: &[Value]) {
    let stranger = Stranger::connect(url).unwrap();
    let uncovered = |found: &Value| found["uncovered"].as_u64().unwrap();
    let before = uncovered(&fits(folder, run));
    let outcome =
        lines.iter().rfind(|line| line["subject"].as_str().is_some_and(|of| of.ends_with(".outcome")));
    let subject = outcome.unwrap()["subject"].as_str().unwrap();
    stranger.publish(subject, b"another outcome").unwrap();
    stranger.flush().unwrap();
    assert_eq!(
        uncovered(&fits(folder, run)),
        before + 1,
        "what comes after the last decision changes nothing"
    );

    stranger.publish(&format!("run.{run}.decided"), b"another decision").unwrap();
    stranger.flush().unwrap();
    let forged = misfit(folder, &[run]);
    assert_eq!(
        (&forged["fault"]["kind"], &forged["entry"]["what"]),
        (&json!("no_link"), &json!("a decision"))
    );
    let (_, said) = audited(folder, &[run]);
    assert!(said.contains(&format!("entry {} does not fit", forged["seq"])), "{said}");

    // The stream lets nobody delete messages or purge it, its owner neither.
    let step = &lines[a_step(lines)];
    let purge = json!({ "filter": step["subject"], "seq": step["seq"].as_u64().unwrap() + 1 }).to_string();
    let delete = json!({ "seq": step["seq"] }).to_string();
    for (ask, what) in [("STREAM.PURGE", purge), ("STREAM.MSG.DELETE", delete)] {
        let answer = stranger.request(&format!("$JS.API.{ask}.RUNS"), what.as_bytes()).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.contains("not permitted"), "{answer}");
    }
    let still = misfit(folder, &[run]);
    assert_eq!(still["seq"], forged["seq"], "{still}");
    println!("{}", audited(folder, &[run]).1);
}
