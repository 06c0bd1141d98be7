//! Rules and destinations as settings name them, and what is refused.
#![allow(clippy::unwrap_used)]
use super::super::{Inputs, Loaded, load};
use super::*;

fn with(toml: &str, variables: &[(&str, &str)]) -> Result<Loaded, SettingsError> {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.toml");
    std::fs::write(&own, toml).unwrap();
    let variables = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    load(&Inputs { folder: folder.path().to_owned(), own: Some(own), variables, ..Inputs::default() })
}

#[test]
fn nobody_is_told_by_default_and_to_name_somebody_is_enough() {
    let rules = with("", &[]).unwrap().alerts;
    assert_eq!(rules.len(), Condition::ALL.len());
    assert!(rules.iter().all(|rule| rule.to.is_empty() && rule.name == rule.when.as_str()));
    let rules = with("[alerts]\nto = [\"log\"]\n", &[]).unwrap().alerts;
    assert!(rules.iter().all(|rule| rule.to == ["log"]));
    let find = |rules: &[Rule], name: &str| rules.iter().find(|rule| rule.name == name).cloned().unwrap();
    let failures = find(&rules, "tool_failures");
    assert!((failures.above - 20.0).abs() < 1e-9 && failures.least == 5 && failures.window.as_secs() == 600);
    assert!((find(&rules, "step_time").above - 30_000.0).abs() < 1e-9);
    assert_eq!(find(&rules, "missing_role").lasts.as_secs(), 30);

    let toml = "[alerts]\nto = [\"log\"]\n[alerts.destinations.ops]\ncommand = [\"page\"]\n\
        [alerts.rules.tool_failures]\nenabled = false\n[alerts.rules.restarts]\nabove = 4\n\
        [alerts.rules.web]\nwhen = \"tool_failures\"\nabove = \"5%\"\nto = [\"ops\"]\nlasts = \"1m\"\nrepeat = \"0s\"\n";
    let rules = with(toml, &[]).unwrap().alerts;
    assert!(rules.iter().all(|rule| rule.name != "tool_failures"));
    assert!((find(&rules, "restarts").above - 4.0).abs() < 1e-9);
    let web = find(&rules, "web");
    assert_eq!(
        (web.to.as_slice(), web.lasts.as_secs(), web.repeat),
        (&["ops".to_owned()][..], 60, Duration::ZERO)
    );
}

#[test]
fn a_secret_comes_from_a_file_or_a_variable() {
    let toml = "[alerts]\nto = [\"ops\"]\n[alerts.destinations.ops]\nurl = \"https://h.example.org/\"\n";
    let why = with(toml, &[]).unwrap_err().to_string();
    assert!(why.contains("MUSTER_ALERTS_DESTINATIONS_OPS_SECRET"), "{why}");
    let variable = [("MUSTER_ALERTS_DESTINATIONS_OPS_SECRET", "0123456789abcdef")];
    let loaded = with(toml, &variable).unwrap();
    assert!(loaded.settings.alerts.destinations["ops"].secret.is_some());
    let shown = format!("{:?}", loaded.effective) + &format!("{:?}", loaded.settings.alerts);
    assert!(!shown.contains("0123456789abcdef"), "it is shown nowhere");
    let file = format!("{toml}secret_file = \"hook\"\n");
    let loaded = with(&file, &[]).unwrap();
    let own = loaded.own.unwrap();
    let read = loaded.settings.alerts.destinations["ops"].secret_file.clone().unwrap();
    assert_eq!(read, own.parent().unwrap().join("hook"), "it lies beside the settings");
    let written = format!("{toml}secret = \"0123456789abcdef\"\n");
    assert!(with(&written, &[]).unwrap_err().to_string().contains("secret"));
    assert!(with("", &variable).is_ok(), "a secret of nobody does no harm");
}

#[test]
fn what_cannot_work_is_refused_with_its_place_and_what_it_has_to_be() {
    let ops = "[alerts.destinations.ops]\nsecret_file = \"s\"\n";
    for (toml, words) in [
        (
            "[alerts]\nto = [\"opps\"]\n[alerts.destinations.ops]\ncommand = [\"a\"]\n".to_owned(),
            "did you mean ops",
        ),
        ("[alerts]\nto = [\"ops\"]\n[alerts.destinations.ops]\n".to_owned(), "no destination ops"),
        (format!("[alerts]\nto = [\"ops\"]\n{ops}"), "url for a webhook, or command"),
        (format!("{ops}url = \"http://h.example.org\"\n"), "it must be https"),
        (format!("{ops}url = \"ftp://h\"\nprivate = true\n"), "it must be https"),
        (format!("{ops}url = \"https://me:secret@h\"\n"), "user name"),
        (format!("{ops}url = \"nowhere\"\n"), "an address such as"),
        (format!("{ops}url = \"https://h\"\ncommand = [\"a\"]\n"), "either a webhook or a command"),
        (format!("{ops}command = [\"\"]\n"), "a program"),
        (format!("{ops}timeout = \"1h\"\n"), "alerts.destinations.ops.timeout"),
        ("[alerts.rules.mine]\nabove = \"3\"\n".to_owned(), "say what this rule looks at"),
        ("[alerts.rules.mine]\nwhen = \"nothing\"\n".to_owned(), "nothing"),
        ("[alerts.rules.\"No Name\"]\nwhen = \"budget\"\n".to_owned(), "lower-case letters"),
        ("[alerts.rules.step_time]\nabove = 30\n".to_owned(), "alerts.rules.step_time.above = 30"),
        ("[alerts.rules.step_time]\nabove = \"20%\"\n".to_owned(), "a span of time"),
        ("[alerts.rules.tool_failures]\nabove = \"30s\"\n".to_owned(), "a share from 0% to 100%"),
        ("[alerts.rules.restarts]\nabove = \"many\"\n".to_owned(), "a whole number"),
        ("[alerts.rules.restarts]\nto = [\"x\"]\n".to_owned(), "alerts.rules.restarts.to"),
        ("[alerts.rules.restarts]\nwindow = \"0s\"\n".to_owned(), "alerts.rules.restarts.window"),
        ("[alerts]\nevery = \"1ms\"\n".to_owned(), "alerts.every"),
    ] {
        let why = with(&toml, &[]).map(|loaded| loaded.alerts).unwrap_err().to_string();
        assert!(why.contains(words), "{toml}: {why}");
    }
    let why = with("[alerts.rules.step_time]\nabove = 30\n", &[]).unwrap_err().to_string();
    assert!(why.contains("own.toml:2") && why.contains("such as 30s"), "{why}");
}
