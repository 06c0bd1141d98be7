//! `muster check-agent` with the example program, and with programs that have faults.

use std::path::{Path, PathBuf};

use muster_support::fleet::{Folder, both};
use muster_support::python;
use serde_json::Value;

use super::support::folder;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples/specialist.py")
}

/// The result of a test of a file in Python, and its checks as (name, verdict, finding).
fn check(folder: &Folder, python: &Path, file: &Path) -> (bool, Vec<(String, String, String)>) {
    let (python, file) = (python.display().to_string(), file.display().to_string());
    let words = ["check-agent", "word_counter", "--timeout", "8s", "--json", "--", &python, &file];
    let output = folder.run(&words).unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", both(&output)));
    assert_eq!(output.status.success(), found["passed"] == true, "{}", both(&output));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = found["checks"].as_array().unwrap().iter();
    let checks = checks.map(|one| (text(&one["what"]), text(&one["verdict"]), text(&one["found"]))).collect();
    (found["passed"] == true, checks)
}

#[test]
fn the_example_program_passes() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let (passed, checks) = check(&folder(), &python, &example());
    let names: Vec<&str> = checks.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["start", "task", "takeover", "cancel", "suspend", "requests"]);
    assert!(passed && checks.iter().all(|(_, verdict, _)| verdict == "ok"), "{checks:?}");
}

/// A change of the example, and the check, verdict and finding that it causes.
type Fault = (&'static str, &'static str, &'static str, &'static str, &'static str);

#[test]
fn each_fault_of_a_program_has_a_finding() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let good = std::fs::read_to_string(example()).unwrap();
    let ignores_revocation = "if answer.get(\"error\") or answer.get(\"over\"):";
    let faults: [Fault; 4] = [
        (ignores_revocation, "if False:", "cancel", "fail", "no longer its own"),
        ("\"conclusion\": f\"{words} words.\", ", "", "task", "fail", "no valid `finish`"),
        ("range(task[\"next_step\"], 4)", "range(1, 4)", "takeover", "warn", "steps were recorded"),
        ("\"slots\": 2,", "\"places\": 2,", "requests", "fail", "places"),
    ];
    std::thread::scope(|scope| {
        for (from, to, name, verdict, finding) in faults {
            let (good, python) = (&good, &python);
            scope.spawn(move || {
                assert!(good.contains(from), "{from}");
                let folder = folder();
                let file = folder.write("faulty.py", good.replace(from, to)).unwrap();
                let (passed, checks) = check(&folder, python, &file);
                let found =
                    checks.iter().any(|(of, is, text)| of == name && is == verdict && text.contains(finding));
                assert!(found && passed == (verdict == "warn"), "{name}: {checks:?}");
            });
        }
    });
}

#[test]
fn a_command_that_ends_at_once_is_reported() {
    let output = folder().run(&["check-agent", "word_counter", "--", "false"]).unwrap();
    let text = both(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the command ended with exit status: 1"), "{text}");
}
