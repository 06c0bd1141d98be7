//! `muster config`.

use serde_json::Value;

use super::{figures, table};
use crate::settings::{Effective, Explained};

/// Settings with their values and origins.
pub(crate) fn table(settings: &[Effective]) -> String {
    let rows =
        settings.iter().map(|one| vec![one.key.clone(), shown(&one.value), one.origin.clone()]).collect();
    table::plain(&["SETTING", "VALUE", "FROM"], rows, &[])
}

/// The sections with how many settings of each are not shown.
pub(crate) fn sections(sections: &[(&str, &str)], later: &[Effective]) -> String {
    let row = |(name, about): &(&str, &str)| {
        let count = later.iter().filter(|one| one.key.split('.').next() == Some(name)).count();
        let about = about.split_once(". ").map_or(*about, |(first, _)| first).trim_end_matches('.');
        (count > 0).then(|| vec![(*name).to_owned(), count.to_string(), about.to_owned()])
    };
    let rows = sections.iter().filter_map(row).collect();
    let table = table::plain(&["SECTION", "MORE", "ABOUT"], rows, &[]);
    format!(
        "\n{table}\n\n`muster config SECTION` shows a section, `muster config --all` everything, `muster config --explain KEY` \
         what a setting does and how it is set"
    )
}

/// All that is known of settings, one after the other.
pub(crate) fn explained(all: &[Explained]) -> String {
    all.iter().map(explanation).collect::<Vec<_>>().join("\n\n")
}

fn explanation(one: &Explained) -> String {
    let words = one.words.iter().filter(|(_, meaning)| !meaning.is_empty());
    let meanings = words.map(|(word, meaning)| ("", format!("{word}: {meaning}")));
    let none = |value: &Value| if value.is_null() { "none".to_owned() } else { shown(value) };
    let lines = [
        ("group", one.group.clone()),
        ("value", format!("{} (from {})", none(&one.value), one.origin)),
        ("default", none(&one.default)),
        ("may be", one.takes.clone()),
    ];
    let ways = [
        ("unit", one.unit.clone()),
        ("reach", one.reach.to_owned()),
        ("sensitivity", one.sensitivity.to_owned()),
        ("file", one.file.clone().unwrap_or_default()),
        ("environment", one.variable.clone().unwrap_or_default()),
        ("flag", one.flag.clone().unwrap_or_default()),
    ];
    let ways = ways.into_iter().filter(|(_, text)| !text.is_empty());
    let lines = lines.into_iter().chain(meanings).chain(ways);
    let lines = figures::lines(lines.map(|(name, text)| format!("  {name:<12} {text}")));
    format!("{}\n  {}\n\n{lines}", one.key, one.help)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_line_with_value_and_origin() {
        let one = |key: &str, value: Value, origin: &str| Effective {
            key: key.into(),
            value,
            origin: origin.into(),
            doc: String::new(),
        };
        let text = table(&[
            one("limits.max_steps", 10.into(), "default"),
            one("bus.url", Value::Null, "default"),
            one("bus.token", "[set]".into(), "environment MUSTER_BUS_TOKEN"),
        ]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["limits.max_steps", "10", "default"]);
        assert_eq!(lines[2], ["bus.url", "-", "default"]);
        assert_eq!(lines[3], ["bus.token", "[set]", "environment", "MUSTER_BUS_TOKEN"]);
    }

    #[test]
    fn sections_are_counted_and_an_explanation_has_a_line_for_each_thing() {
        let one = |key: &str| Effective {
            key: key.into(),
            value: 1.into(),
            origin: "default".into(),
            doc: String::new(),
        };
        let text =
            sections(&[("limits", "Limits. More."), ("log", "Logs.")], &[one("limits.a"), one("limits.b.c")]);
        assert!(text.contains("limits   2     Limits\n") && !text.contains("Logs"), "{text}");
        let explained = explained(&[Explained {
            key: "limits.a".into(),
            help: "What it does.".into(),
            group: "Limits.".into(),
            value: Value::Null,
            origin: "default".into(),
            default: 1.into(),
            takes: "b, c".into(),
            words: vec![("b".into(), "The first.".into()), ("c".into(), String::new())],
            unit: String::new(),
            reach: "project",
            sensitivity: "harmless",
            file: None,
            variable: Some("MUSTER_LIMITS_A".into()),
            flag: None,
        }]);
        let lines: Vec<&str> = explained.lines().map(str::trim).collect();
        let wanted = [
            "limits.a",
            "What it does.",
            "",
            "group        Limits.",
            "value        none (from default)",
            "default      1",
            "may be       b, c",
            "b: The first.",
            "reach        project",
            "sensitivity  harmless",
            "environment  MUSTER_LIMITS_A",
        ];
        assert_eq!(lines, wanted);
    }
}
