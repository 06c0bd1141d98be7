//! `docs/rights.md`: the table of rights for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use muster_bus::BusSettings;
use muster_bus::credentials::{Rights, Scope};
use muster_bus::partition::Partitions;
use muster_bus::topology::streams;

const HEAD: &str = "\
# Rights

What each kind of holder of credentials may publish and subscribe to. The NATS server carries it out; what is not listed is
refused. This page is made from the table in `bus/src/credentials/rights.rs`, from which the server's configuration is made
too, so rights follow the version of Muster that starts the server. Credentials say only who their holder is.

Write it anew: `UPDATE_DOCS=1 cargo nextest run -E 'test(the_page_of_rights)'`.

`ROLE` and `NAME` are the holder's own, and `N` is a number from 1 to 8. A record in several parts has the number of the part after the first token of `run`
and `evt` (`evt.2.…`), and a stream for each part instead of `RUNS`.
";

/// The page.
fn page() -> String {
    let mut page = HEAD.to_owned();
    for scope in Scope::ALL {
        let rights = scope.holder("own_role".parse().unwrap(), "own-name".parse().unwrap());
        let rights = rights.rights(Partitions::default());
        let _ = write!(page, "\n## {}\n\n{}\n", title(scope), about(scope));
        section(&mut page, "May publish to", &rights.publish, true);
        section(&mut page, "Never publishes to", &rights.never_publish, false);
        section(&mut page, "May subscribe to", &rights.subscribe, true);
        section(&mut page, "Never subscribes to", &rights.never_subscribe, false);
        let Rights { answers, .. } = rights;
        if answers {
            page +=
                "\nIt may answer a request where its asker waits for the answer, once and within an hour.\n";
        }
    }
    page
}

const fn title(scope: Scope) -> &'static str {
    match scope {
        Scope::Operator => "Operator",
        Scope::Person => "Person",
        Scope::Observer => "Observer",
        Scope::Orchestrator => "Orchestrator",
        Scope::Agent => "Agent",
        Scope::Program => "Program",
        Scope::Guard => "Guard",
        Scope::ToolServer => "Tool server",
        Scope::Host => "Host",
        Scope::Guest => "Guest",
    }
}

const fn about(scope: Scope) -> &'static str {
    match scope {
        Scope::Operator => "Whoever runs the fleet: lays out the bus, asks, steers, reads and removes.",
        Scope::Person => {
            "A person who has a say in runs: asks, steers, answers, reads; each order is signed."
        }
        Scope::Observer => "Whoever watches and changes nothing.",
        Scope::Orchestrator => {
            "Decides all runs and restores missing parts of the bus; takes nothing out of the record. It writes dead letters for messages \
             that it cannot handle and for tasks whose agents died. NATS cannot deny all of `dlq.>` except its own subject, so it may publish \
             any of them. `muster dead retry` accepts a letter of an orchestrator only if the writer in its subject signed it."
        }
        Scope::Agent => {
            "Works by itself on queues and record, speaks for itself alone, and lends under the name of its role."
        }
        Scope::Program => "A program in any language that works by a task gateway.",
        Scope::Guard => "Whoever is asked before something is done, under one name.",
        Scope::ToolServer => "Whoever carries calls of tools out, under one name.",
        Scope::Host => "A machine that joined: asks for credentials for the agents that it starts.",
        Scope::Guest => "Whoever holds an invitation: asks to join, once for each of its uses.",
    }
}

fn section(page: &mut String, title: &str, subjects: &[String], all_when_empty: bool) {
    if subjects.is_empty() {
        if all_when_empty {
            let _ = write!(page, "\n{title}: everything.\n");
        }
        return;
    }
    let _ = write!(page, "\n{title}:\n\n");
    for line in lines(subjects) {
        let _ = writeln!(page, "- {line}");
    }
}

/// A line for each subject; those of JetStream that differ in their stream alone share one.
fn lines(subjects: &[String]) -> Vec<String> {
    let all = streams(&BusSettings::default());
    let mut streams_of: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    let numbered = |subject: &String| {
        let one_of = |subject: String, n| subject.replace(&format!("own-name-{n}"), "own-name-N");
        (1..=8).fold(subject.clone(), one_of)
    };
    for subject in subjects.iter().map(numbered).filter(|subject| seen.insert(subject.clone())) {
        let stream = all
            .iter()
            .map(|stream| stream.name)
            .find(|name| subject.starts_with("$JS.API.") && subject.split('.').any(|token| token == *name));
        let shown = subject.replace("own_role", "ROLE").replace("own-name", "NAME");
        match stream {
            Some(name) => {
                let of_any = shown.replace(&format!(".{name}"), ".STREAM");
                streams_of.entry(of_any).or_default().push(name);
            }
            None => lines.push(format!("`{shown}`")),
        }
    }
    // Those of the same streams go together.
    let mut same: BTreeMap<Vec<&str>, Vec<String>> = BTreeMap::new();
    for (of_any, names) in streams_of {
        same.entry(names).or_default().push(of_any);
    }
    for (names, of_any) in same {
        let quoted =
            |texts: Vec<String>| texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ");
        let names = quoted(names.into_iter().map(str::to_owned).collect());
        lines.push(format!("{}, where `STREAM` is {names}", quoted(of_any)));
    }
    lines
}

#[test]
fn the_page_of_rights_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rights.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let here = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(page(), here, "write it anew: UPDATE_DOCS=1 and this test again");
}
