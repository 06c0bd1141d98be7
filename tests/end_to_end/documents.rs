//! The main job: from a goal and a folder of documents to a cited report.

use std::collections::BTreeSet;
use std::fs;

use super::support::{citations, folder, of_kind, write_documents};

const GOAL: &str = "What limits delegation loops, how does a run survive the death of a worker, and who won the regatta in Lisbon?";

#[test]
fn a_goal_becomes_a_cited_report_by_all_six_roles() {
    let folder = folder();
    write_documents(&folder);
    let summary = folder.json(&["run", GOAL, "--docs", "docs", "-o", "report.md", "--json"]).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());

    let report = fs::read_to_string(folder.path().join("report.md")).unwrap();
    let cited = citations(&report);
    assert!(cited.len() >= 2, "at least one finding for each question:\n{report}");
    for (path, line) in &cited {
        let text = fs::read_to_string(folder.path().join("docs").join(path)).unwrap();
        let there = text.lines().nth(line - 1).unwrap_or_default();
        assert!(!there.trim().is_empty(), "{path}:{line} is an empty line");
    }
    let paths: BTreeSet<&str> = cited.iter().map(|(path, _)| path.as_str()).collect();
    assert!(paths.contains("delegation.md") && paths.contains("recovery.txt"), "{report}");
    assert!(report.contains("five hops") || report.contains("in the chain already"), "{report}");
    assert!(report.to_lowercase().contains("not answered"), "the open question is named:\n{report}");
    assert!(report.to_lowercase().contains("regatta"), "{report}");
    assert!(report.to_lowercase().contains("no language model"), "{report}");

    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let started: BTreeSet<(String, u64)> = of_kind(&trace, "started")
        .map(|entry| (entry["role"].as_str().unwrap().to_owned(), entry["event"]["pid"].as_u64().unwrap()))
        .collect();
    let roles: BTreeSet<&str> = started.iter().map(|(role, _)| role.as_str()).collect();
    let all = ["planner", "refiner", "reflector", "researcher", "worker", "writer"];
    assert_eq!(roles, BTreeSet::from(all), "every role took part");
    let pids: BTreeSet<u64> = started.iter().map(|(_, pid)| *pid).collect();
    assert_eq!(pids.len(), 6, "each role under a pid of its own: {started:?}");

    let mut steps = 0;
    for step in of_kind(&trace, "step") {
        steps += 1;
        assert!(!step["event"]["thought"]["text"].as_str().unwrap().is_empty(), "{step}");
        assert!(!step["event"]["action"]["name"].as_str().unwrap().is_empty(), "{step}");
        assert!(!step["event"]["observation"]["content"].as_str().unwrap().is_empty(), "{step}");
    }
    assert!(steps > 0, "steps are in the record");
    let text = folder.output(&["trace", "last"]).unwrap();
    for role in all {
        assert!(text.contains(role), "{role} is named in the timeline:\n{text}");
    }
}

#[test]
fn progress_is_plain_when_output_is_no_terminal() {
    let folder = folder();
    write_documents(&folder);
    let output = folder.run(&["run", "How deep may delegation go?", "--docs", "docs"]).unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("delegation.md:"), "the report goes to standard output:\n{out}");
    assert!(!err.contains('\u{1b}') && !out.contains('\u{1b}'), "no control sequences:\n{err}");
    assert!(err.contains("[x]"), "progress marks:\n{err}");
    assert!(!folder.path().join(".muster/fleet.json").exists(), "the fleet of the run is gone");

    let runs = folder.json(&["runs", "--json"]).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 1);
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("[x]"), "{shown}");
}

/// Serves one text at every path but `/robots.txt`, until the test ends.
fn serve(text: String) -> std::net::SocketAddr {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut asked = [0; 4096];
            let read = stream.read(&mut asked).unwrap_or(0);
            let is_robots = asked[..read].starts_with(b"GET /robots.txt");
            let (status, body) = if is_robots { ("404 Not Found", "") } else { ("200 OK", text.as_str()) };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/markdown\r\nLast-Modified: Sun, 22 Nov 2026 10:00:00 GMT\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    address
}

#[test]
fn documents_that_lie_elsewhere_are_fetched_cited_and_told_of() {
    let folder = folder();
    write_documents(&folder);
    let address = serve(fs::read_to_string(folder.path().join("docs/delegation.md")).unwrap());
    let page = format!("http://{address}/guide/delegation");
    let goal = "How deep may delegation go?";

    let refused = folder.run(&["run", goal, "--docs", &page]).unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("was not fetched") && said.contains("tool.web.allow_hosts"), "{said}");
    assert!(folder.json(&["runs", "--json"]).unwrap().as_array().unwrap().is_empty(), "no run was begun");

    let allowed = format!("tool.web.allow_hosts={address}");
    let output = folder.run(&["run", goal, "--docs", &page, "--set", &allowed, "-o", "report.md"]).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{}", folder.logs());
    let report = fs::read_to_string(folder.path().join("report.md")).unwrap();
    let path = format!("{}/guide/delegation.md", address.to_string().replace(':', "_"));
    assert!(report.contains(&format!("{path}:")), "cited by host and path:\n{report}");
    assert!(
        report.contains(&format!("`{path}` from {page}, changed Sun, 22 Nov 2026 10:00:00 GMT, fetched 20")),
        "{report}"
    );
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("fetched") && shown.contains(&page), "{shown}");
}
