//! Files that tasks wrote reach whoever asked for them; what a run does and uses is told where nobody looks at a tree.

use std::path::Path;

use muster_support::fleet::{Folder, both};
use muster_support::good_model::{GoodModel, Temper};
use muster_support::model_server::ModelServer;
use serde_json::Value;

use super::support::with_model;

const GOAL: &str = "Work out 17.5 % of 2480 and 12 % of 1995. Write the numbers to the file `shares.csv` with the columns \
                    share, of and result.";

fn server() -> ModelServer {
    ModelServer::start(GoodModel::new(Temper::default()).script()).unwrap()
}

/// Asks for the file, and gives the exit code and all that was said.
fn ask(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let ended = folder.run(&[&["run", GOAL, "--model", "openai/good"], arguments].concat()).unwrap();
    (ended.status.code(), both(&ended))
}

fn read(folder: &Folder, path: &str) -> String {
    std::fs::read_to_string(folder.path().join(path)).unwrap_or_default()
}

#[test]
fn files_that_were_asked_for_lie_beside_the_report() {
    let server = server();
    let folder = with_model(&server);
    folder.write("out/readme.txt", "").unwrap();
    let (code, said) = ask(&folder, &["-o", "out/report.md"]);
    assert_eq!(code, Some(0), "{said}");
    let wanted = "share,of,result\n17.5 %,2480,434\n12 %,1995,239.4\n";
    assert_eq!(read(&folder, "out/shares.csv"), wanted, "{said}");
    assert!(said.contains(&format!("file: out/shares.csv ({} B)", wanted.len())), "{said}");

    // The same again is no harm; another file of that name stays as it is.
    let (code, said) = ask(&folder, &["-o", "out/report.md"]);
    assert!(code == Some(0) && said.contains("as it was there already"), "{said}");
    folder.write("out/shares.csv", "mine\n").unwrap();
    let (code, said) = ask(&folder, &["-o", "out/report.md"]);
    assert!(
        code == Some(7) && said.contains("file not copied: shares.csv") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(read(&folder, "out/shares.csv"), "mine\n");
    let (code, said) = ask(&folder, &["-o", "out/report.md", "--force"]);
    assert_eq!((code, read(&folder, "out/shares.csv").as_str()), (Some(0), wanted), "{said}");
}

#[test]
fn a_file_with_the_name_of_the_report_does_not_take_its_place() {
    let server = server();
    let folder = with_model(&server);
    let (code, said) = ask(&folder, &["-o", "shares.csv"]);
    assert!(code == Some(7) && said.contains("file not copied: shares.csv"), "{said}");
    assert!(read(&folder, "shares.csv").starts_with("# Work out"), "the report stays");
}

#[test]
fn files_go_where_they_are_sent_or_where_we_are() {
    let server = server();
    let folder = with_model(&server);
    let ended = folder.run(&["run", GOAL, "--model", "openai/good", "--json", "--out", "made/here"]).unwrap();
    let summary: Value =
        serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", both(&ended)));
    assert_eq!(summary["files"][0]["path"], "shares.csv");
    assert_eq!(summary["files"][0]["to"], Path::new("made/here/shares.csv").display().to_string());
    assert!(read(&folder, "made/here/shares.csv").contains("239.4"));
    // Programs get nothing that they did not ask for.
    let ended = folder.run(&["run", GOAL, "--model", "openai/good", "--json"]).unwrap();
    let summary: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(summary.get("files").is_none() && read(&folder, "shares.csv").is_empty(), "{summary}");
    // A person who named the file finds it.
    let (code, said) = ask(&folder, &[]);
    assert!(code == Some(0) && said.contains("file: shares.csv ("), "{said}");
    assert!(read(&folder, "shares.csv").contains("239.4"));
    folder.write("taken", "").unwrap();
    assert_eq!(ask(&folder, &["--out", "taken"]).0, Some(2));
}

#[test]
fn a_log_gets_a_line_for_each_step_and_what_was_used_beside_what_was_expected() {
    let server = server();
    let folder = with_model(&server);
    let (_, said) = ask(&folder, &[]);
    assert!(said.contains("estimated: 2 to 8 model calls") && said.contains("a guess by its size"), "{said}");
    assert!(said.contains("task 1: computes 17.5 / 100 * 2480"), "{said}");
    assert!(said.contains("task 1: writes shares.csv"), "{said}");
    assert!(said.contains("used: ") && said.contains("; estimated: 2 to 8"), "{said}");
    ask(&folder, &[]);
    ask(&folder, &[]);
    // By then the record knows such runs.
    let (_, said) = ask(&folder, &[]);
    assert!(said.contains("as the last 3 like it took"), "{said}");
    let (_, said) = ask(&folder, &["-q"]);
    assert!(!said.contains("estimated") && !said.contains("task 1"), "{said}");
}
