//! A suite: goals, what they are run with, and what is checked of each.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::text::quoted;
use serde::Deserialize;

/// Most characters of what is wrong with a suite: a line of it is shown, however long it is.
const MOST_SAID: usize = 4_000;
/// Most goals of a suite.
const MOST_GOALS: usize = 1_000;

/// A suite of goals.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    /// A word for it.
    pub(crate) name: String,
    /// What it is for.
    #[serde(default)]
    pub(crate) about: String,
    /// What all goals are run with, where they do not say otherwise.
    model: Option<String>,
    effort: Option<String>,
    deadline: Option<String>,
    /// Folders and files with documents, beside the suite.
    #[serde(default)]
    pub(crate) docs: Vec<String>,
    /// Settings by key, as `--set` takes them.
    #[serde(default)]
    settings: BTreeMap<String, toml::Value>,
    pub(crate) goals: Vec<EvalGoal>,
}

/// A goal with checks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvalGoal {
    /// A word for it.
    pub(crate) name: String,
    /// What is asked.
    pub(crate) goal: String,
    model: Option<String>,
    effort: Option<String>,
    planning: Option<String>,
    deadline: Option<String>,
    /// Instead of the suite's.
    pub(crate) docs: Option<Vec<String>>,
    #[serde(default)]
    settings: BTreeMap<String, toml::Value>,
    #[serde(default)]
    pub(crate) checks: Checks,
}

/// What is checked of a goal's run. What is not named is not checked, but for its end.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Checks {
    /// The report holds all of these, whatever their case.
    pub(crate) all: Vec<String>,
    /// It holds one of these.
    pub(crate) any: Vec<String>,
    /// It holds none of these: nothing false.
    pub(crate) none: Vec<String>,
    /// It matches all of these regular expressions.
    pub(crate) matches: Vec<String>,
    /// It cites at least so many places, and every one of them is true.
    pub(crate) citations: Option<usize>,
    /// Files that were made.
    pub(crate) files: Vec<FileCheck>,
    /// Most model calls, answered or not.
    pub(crate) calls: Option<u64>,
    /// Most tokens sent to models.
    pub(crate) prompt_tokens: Option<u64>,
    /// Most cost in US dollars.
    pub(crate) cost: Option<f64>,
    /// Longest time, such as `90s`.
    within: Option<String>,
    /// How the run ends: `completed` where nothing is said, `in_part`, or `any`.
    pub(crate) ends: Ends,
}

/// A file that is to be made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileCheck {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) contains: Vec<String>,
}

/// How a run may end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ends {
    /// With the whole answer.
    #[default]
    Completed,
    /// With the whole answer or a part of it.
    InPart,
    /// However it likes.
    Any,
}

impl Suite {
    /// Reads a suite.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let told = |why: String| quoted(why.trim_end(), MOST_SAID);
        let suite: Self = toml::from_str(text).map_err(|error| told(error.to_string()))?;
        suite.check().map_err(told)?;
        Ok(suite)
    }

    fn check(&self) -> Result<(), String> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.len() <= 60
                && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
        };
        if !is_name(&self.name) {
            return Err(format!("`name` is {:?}: letters, digits, `-`, `_` and `.` make a name", self.name));
        }
        if self.goals.is_empty() || self.goals.len() > MOST_GOALS {
            return Err(format!("it has {} goals: 1 to {MOST_GOALS} can be run", self.goals.len()));
        }
        for (at, goal) in self.goals.iter().enumerate() {
            if !is_name(&goal.name) || self.goals[..at].iter().any(|other| other.name == goal.name) {
                return Err(format!(
                    "the goal {:?} needs a name of its own: letters, digits, `-`, `_` and `.`",
                    goal.name
                ));
            }
            for pattern in &goal.checks.matches {
                regex::Regex::new(pattern).map_err(|error| format!("goal {}: {error}", goal.name))?;
            }
            goal.within().map_err(|error| format!("goal {}: {error}", goal.name))?;
        }
        Ok(())
    }
}

impl EvalGoal {
    /// The longest time that its run may take.
    pub(crate) fn within(&self) -> Result<Option<Duration>, String> {
        let Some(text) = &self.checks.within else { return Ok(None) };
        let wrong = || format!("`within` is {text:?}: write 90s, 10m or 1h30m");
        let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
        Duration::try_from(span).map(Some).map_err(|_| wrong())
    }
}

/// One of several settings that are compared: a name, and what is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) values: Vec<(String, String)>,
}

impl Setting {
    /// Reads `NAME=KEY=VALUE,KEY=VALUE`.
    ///
    /// # Errors
    /// How it is to be written.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not NAME=KEY=VALUE,KEY=VALUE");
        let (name, values) = text.split_once('=').ok_or_else(wrong)?;
        let pair = |pair: &str| {
            let (key, value) =
                pair.split_once('=').filter(|(key, _)| !key.trim().is_empty()).ok_or_else(wrong)?;
            Ok((key.trim().to_owned(), value.to_owned()))
        };
        let values = values.split(',').map(pair).collect::<Result<Vec<_>, String>>()?;
        if name.is_empty() { Err(wrong()) } else { Ok(Self { name: name.to_owned(), values }) }
    }
}

/// What a goal is run with: options of `muster run`, and settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunWith {
    /// Options by name, without the dashes.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) settings: BTreeMap<String, String>,
}

/// Options of `muster run` that a setting may name in place of a setting's key.
const OPTIONS: [&str; 5] = ["model", "effort", "planning", "deadline", "draft-review"];

/// What a goal is run with: the suite's, then the goal's own, then what is compared, then what the command says.
pub(crate) fn run_with(suite: &Suite, goal: &EvalGoal, setting: &Setting, model: Option<&str>) -> RunWith {
    let mut with = RunWith::default();
    let given = [
        ("model", suite.model.as_ref()),
        ("effort", suite.effort.as_ref()),
        ("deadline", suite.deadline.as_ref()),
        ("model", goal.model.as_ref()),
        ("effort", goal.effort.as_ref()),
        ("planning", goal.planning.as_ref()),
        ("deadline", goal.deadline.as_ref()),
    ];
    for (name, value) in given {
        with.options.extend(value.map(|value| (name.to_owned(), value.clone())));
    }
    with.options.extend(model.map(|model| ("model".to_owned(), model.to_owned())));
    for (key, value) in suite.settings.iter().chain(&goal.settings) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        with.settings.insert(key.clone(), text);
    }
    for (key, value) in &setting.values {
        let place = if OPTIONS.contains(&key.as_str()) { &mut with.options } else { &mut with.settings };
        place.insert(key.clone(), value.clone());
    }
    with
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_suites_can_be_read() {
        for (name, text) in super::super::shipped::SUITES {
            let suite = Suite::read(text).unwrap();
            assert_eq!(suite.name, name);
            assert!(!suite.about.is_empty());
        }
    }

    #[test]
    fn what_is_wrong_with_a_suite_is_said() {
        let goal = "[[goals]]\nname = \"a\"\ngoal = \"x\"\n";
        for (text, wanted) in [
            ("name = \"s\"\ngoals = []".to_owned(), "0 goals"),
            (format!("name = \"s s\"\n{goal}"), "make a name"),
            (format!("name = \"s\"\n{goal}{goal}"), "name of its own"),
            (format!("name = \"s\"\n{goal}checks = {{ matches = [\"(\"] }}"), "goal a: "),
            (format!("name = \"s\"\n{goal}checks = {{ within = \"soon\" }}"), "goal a: `within`"),
            (format!("name = \"s\"\n{goal}chekcs = {{}}"), "unknown field"),
        ] {
            let said = Suite::read(&text).unwrap_err();
            assert!(said.contains(wanted), "{said}");
        }
    }

    #[test]
    fn what_is_compared_goes_before_what_the_suite_says() {
        let text = "name = \"s\"\nmodel = \"m\"\n[settings]\n\"limits.max_steps\" = 5\n[[goals]]\nname = \"a\"\ngoal = \"x\"\neffort = \"quick\"";
        let suite = Suite::read(text).unwrap();
        let setting = Setting::read("b=model=n,limits.max_steps=7").unwrap();
        let with = run_with(&suite, &suite.goals[0], &setting, None);
        assert_eq!(
            with.options,
            [("effort", "quick"), ("model", "n")].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
        );
        assert_eq!(with.settings, [("limits.max_steps".to_owned(), "7".to_owned())].into());
        let plain = run_with(&suite, &suite.goals[0], &Setting::default(), Some("o"));
        assert_eq!(
            (plain.options["model"].as_str(), plain.settings["limits.max_steps"].as_str()),
            ("o", "5")
        );
        for wrong in ["a", "a=b", "=a=b", "a=b=c,d"] {
            assert!(Setting::read(wrong).is_err(), "{wrong}");
        }
    }
}
