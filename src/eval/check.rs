//! What a run gave, held against the checks of its goal.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::time::millis;
use serde::{Deserialize, Serialize};

use super::citations::citations;
use super::suite::{Checks, Ends, EvalGoal};

/// What a run gave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// The exit code of `muster run`.
    pub(crate) exit: u8,
    /// What it said where it gave nothing.
    pub(crate) said: String,
    pub(crate) report: String,
    /// Files that were made, with their text.
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) calls: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) cost_micros: u64,
    pub(crate) took: Duration,
}

/// A check, and how it came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checked {
    /// Its name in the suite.
    pub(crate) check: String,
    pub(crate) passed: bool,
    /// What was seen, where it did not pass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
}

/// The texts of documents, by path.
pub(crate) type Documents = BTreeMap<String, String>;

/// Holds a run against the checks of its goal.
pub(crate) fn check(goal: &EvalGoal, given: &Given, documents: &Documents) -> Vec<Checked> {
    let checks = &goal.checks;
    let mut done = vec![ends(checks.ends, given)];
    done.extend(words(checks, &given.report));
    if let Some(least) = checks.citations {
        done.push(cites(least, &given.report, documents));
    }
    done.extend(checks.files.iter().map(|wanted| {
        let name = format!("file {}", wanted.name);
        match given.files.get(&wanted.name) {
            None => failed(&name, "was not made".to_owned()),
            Some(text) => none_wrong(&name, &wanted.contains, |part| !holds(text, part), "does not hold"),
        }
    }));
    let micros = |dollars: f64| (dollars * 1_000_000.0).max(0.0) as u64;
    let within = goal.within().ok().flatten().map(millis);
    let took = millis(given.took);
    for (name, most, seen) in [
        ("calls", checks.calls, given.calls),
        ("prompt_tokens", checks.prompt_tokens, given.prompt_tokens),
        ("cost", checks.cost.map(micros), given.cost_micros),
        ("within", within, took),
    ] {
        done.extend(most.map(|most| judged(name, seen <= most, || format!("{seen}, at most {most}"))));
    }
    done
}

fn ends(wanted: Ends, given: &Given) -> Checked {
    let passed = match wanted {
        Ends::Completed => given.exit == 0,
        Ends::InPart => given.exit == 0 || given.exit == 6,
        Ends::Any => true,
    };
    judged("ends", passed, || {
        let said = if given.said.is_empty() { String::new() } else { format!(": {}", given.said) };
        format!("exit code {}{said}", given.exit)
    })
}

fn words(checks: &Checks, report: &str) -> Vec<Checked> {
    let mut done = Vec::new();
    if !checks.all.is_empty() {
        done.push(none_wrong("all", &checks.all, |part| !holds(report, part), "the report lacks"));
    }
    if !checks.any.is_empty() {
        let found = checks.any.iter().any(|part| holds(report, part));
        done.push(judged("any", found, || format!("the report has none of {}", checks.any.join(", "))));
    }
    if !checks.none.is_empty() {
        done.push(none_wrong("none", &checks.none, |part| holds(report, part), "the report has"));
    }
    if !checks.matches.is_empty() {
        let fits = |pattern: &str| regex::Regex::new(pattern).is_ok_and(|regex| regex.is_match(report));
        let what = "the report does not match";
        done.push(none_wrong("matches", &checks.matches, |pattern| !fits(pattern), what));
    }
    done
}

fn cites(least: usize, report: &str, documents: &Documents) -> Checked {
    let found = citations(report, documents);
    if !found.faults.is_empty() {
        return failed("citations", found.faults.join("; "));
    }
    judged("citations", found.cited >= least, || {
        format!("{} places are cited, at least {least} are wanted", found.cited)
    })
}

fn holds(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// A check that passes if none of these parts is wrong.
fn none_wrong(check: &str, parts: &[String], is_wrong: impl Fn(&str) -> bool, what: &str) -> Checked {
    let wrong: Vec<&str> = parts.iter().map(String::as_str).filter(|part| is_wrong(part)).collect();
    judged(check, wrong.is_empty(), || format!("{what} {}", wrong.join(", ")))
}

fn judged(check: &str, passed: bool, why: impl FnOnce() -> String) -> Checked {
    let why = if passed { String::new() } else { why() };
    Checked { check: check.to_owned(), passed, why }
}

fn failed(check: &str, why: String) -> Checked {
    Checked { check: check.to_owned(), passed: false, why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Suite;

    fn goal(checks: &str) -> EvalGoal {
        let text = format!("name = \"s\"\n[[goals]]\nname = \"a\"\ngoal = \"x\"\n[goals.checks]\n{checks}");
        Suite::read(&text).unwrap().goals.remove(0)
    }

    fn failures(checks: &str, given: &Given) -> Vec<String> {
        let documents = Documents::from([("a.md".to_owned(), "Loops end after five hops.".to_owned())]);
        let done = check(&goal(checks), given, &documents);
        done.into_iter().filter(|one| !one.passed).map(|one| format!("{}: {}", one.check, one.why)).collect()
    }

    #[test]
    fn each_check_fails_by_itself_and_says_why() {
        let given = Given {
            report: "Loops end after FIVE hops (`a.md:1`).".to_owned(),
            files: [("x.csv".to_owned(), "a,b\n".to_owned())].into(),
            calls: 5,
            prompt_tokens: 100,
            cost_micros: 20_000,
            took: Duration::from_secs(2),
            ..Given::default()
        };
        let good = "all = [\"five\"]\nany = [\"six\", \"hops\"]\nnone = [\"seven\"]\nmatches = [\"a.md:\\\\d\"]\ncitations = 1\n\
                    files = [{ name = \"x.csv\", contains = [\"a,b\"] }]\ncalls = 5\nprompt_tokens = 100\ncost = 0.02\nwithin = \"2s\"";
        assert_eq!(failures(good, &given), Vec::<String>::new());
        for (checks, wanted) in [
            ("all = [\"five\", \"eight\"]", "all: the report lacks eight"),
            ("any = [\"eight\"]", "any: the report has none of eight"),
            ("none = [\"hops\"]", "none: the report has hops"),
            ("matches = [\"^x\"]", "matches: the report does not match ^x"),
            ("citations = 2", "citations: 1 places are cited, at least 2 are wanted"),
            ("files = [{ name = \"y.csv\" }]", "file y.csv: was not made"),
            ("files = [{ name = \"x.csv\", contains = [\"c\"] }]", "file x.csv: does not hold c"),
            ("calls = 4", "calls: 5, at most 4"),
            ("prompt_tokens = 99", "prompt_tokens: 100, at most 99"),
            ("cost = 0.01", "cost: 20000, at most 10000"),
            ("within = \"1s\"", "within: 2000, at most 1000"),
        ] {
            assert_eq!(failures(checks, &given), [wanted]);
        }
    }

    #[test]
    fn how_a_run_may_end_is_said_by_the_suite() {
        let ended = |exit| Given { exit, said: "no".to_owned(), ..Given::default() };
        assert_eq!(failures("", &ended(6)), ["ends: exit code 6: no"]);
        assert_eq!(failures("ends = \"in_part\"", &ended(6)), Vec::<String>::new());
        assert_eq!(failures("ends = \"in_part\"", &ended(1)).len(), 1);
        assert_eq!(failures("ends = \"any\"", &ended(1)), Vec::<String>::new());
    }
}
