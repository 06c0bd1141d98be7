//! What of the asker's settings reaches a run that a fleet works on which is up already: limits and the model travel with
//! the goal. What belongs to the fleet's processes cannot be set for one run: given by a flag it is refused, from
//! elsewhere it is told. Pure.

use std::collections::BTreeMap;

use muster_shared::setting::Reach;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::effort;
use super::guards;
use super::keys::{Keys, is_secret};
use super::{DEFAULT, Effective, Settings};

/// Most settings that are named in one line.
const MOST_NAMED: usize = 5;

/// A setting that a fleet was brought up with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// Its value.
    value: Value,
    /// Where it came from.
    origin: String,
}

/// What a fleet was brought up with, as far as it was set; no secrets.
pub(crate) type RunsWith = BTreeMap<String, Held>;

/// What becomes of the asker's settings.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Carried {
    /// Limits that travel with the goal, by the names that runs have for them.
    pub(crate) limits: Map<String, Value>,
    /// The model that travels with the goal.
    pub(crate) model: Option<String>,
    /// What was given by a flag and cannot hold for one run.
    pub(crate) refused: Vec<String>,
    /// What is told to the person, a line each.
    pub(crate) notes: Vec<String>,
    /// Whether the asker has guards that the fleet has not.
    pub(crate) guards: bool,
}

/// Reach of a setting. An unknown key belongs to the fleet.
fn reach(keys: &Keys, key: &str) -> Reach {
    keys.find(key).map_or(Reach::Fleet, |known| known.reach)
}

/// Whether nobody set what has this origin: a default, or what the effort gives that holds where none is set.
pub(super) fn is_usual(origin: &str) -> bool {
    origin == DEFAULT || effort::set_by(origin) == Some("")
}

/// How much a source counts: files, the environment, flags. What an effort gives counts as much as the effort.
fn rank(origin: &str) -> u8 {
    match effort::set_by(origin).unwrap_or(origin) {
        "" | DEFAULT => 0,
        flag if flag.starts_with("--") => 3,
        variable if variable.starts_with("environment ") => 2,
        _ => 1,
    }
}

/// What a fleet that is brought up with these settings runs with.
pub(crate) fn runs_with(effective: &[Effective]) -> RunsWith {
    let keys = Keys::of(Settings::SETTINGS);
    let kept = |one: &&Effective| {
        !is_usual(&one.origin) && !is_secret(&one.key) && reach(&keys, &one.key) != Reach::User
    };
    let held =
        |one: &Effective| (one.key.clone(), Held { value: one.value.clone(), origin: one.origin.clone() });
    effective.iter().filter(kept).map(held).collect()
}

/// Whether a setting is one that all processes of a fleet share, on whichever machine.
pub(crate) fn is_shared_by_all(key: &str) -> bool {
    key.starts_with("bus.") && reach(&Keys::of(Settings::SETTINGS), key) == Reach::Fleet
}

/// What of these settings a machine is told that joins, as `--set` takes it.
pub(crate) fn shared_by_all(effective: &[Effective]) -> BTreeMap<String, String> {
    let shared = runs_with(effective).into_iter().filter(|(key, _)| is_shared_by_all(key));
    let text = |held: Held| held.value.as_str().map_or_else(|| held.value.to_string(), str::to_owned);
    shared.map(|(key, held)| (key, text(held))).collect()
}

/// What of the asker's settings goes with a goal, and what cannot. Nothing is known of what a fleet elsewhere runs with.
pub(crate) fn carry(asker: &[Effective], fleet: Option<&RunsWith>) -> Carried {
    let mut carried = Carried::default();
    let mut ignored = Vec::new();
    let keys = Keys::of(Settings::SETTINGS);
    let set = asker.iter().filter(|one| !is_usual(&one.origin) && !is_secret(&one.key));
    for one in set {
        let held = fleet.and_then(|fleet| fleet.get(&one.key));
        if held.is_some_and(|held| held.value == one.value) {
            continue;
        }
        match reach(&keys, &one.key) {
            Reach::User => {}
            Reach::Project if guards::named(&one.key).is_some() => {
                let of_fleet = |key: &String| guards::named(key) == guards::named(&one.key);
                match fleet.filter(|fleet| fleet.keys().any(of_fleet)) {
                    Some(_) => carried.notes.push(format!(
                        "{} is {} in {}; a guard of the fleet that is up holds as the fleet has it",
                        one.key, one.value, one.origin
                    )),
                    None => carried.guards = true,
                }
            }
            // Both read the file: who brought the fleet up has said over it what is to hold.
            Reach::Project if rank(&one.origin) < held.map_or(0, |held| rank(&held.origin)).min(2) => {
                carried.notes.extend(held.map(|held| {
                    let Held { value, origin } = held;
                    let (key, own, from) = (&one.key, &one.value, &one.origin);
                    format!("{key} is {own} in {from}; the fleet was brought up with {value} ({origin}), which holds")
                }));
            }
            Reach::Project if one.key == "agent.model" => {
                carried.model = one.value.as_str().map(str::to_owned);
            }
            Reach::Project => {
                if let Some((name, value)) = limit(&keys, &one.key, &one.value) {
                    put(&mut carried.limits, &name, value);
                }
            }
            Reach::Fleet if rank(&one.origin) == 3 => carried.refused.push(named(one, held)),
            Reach::Fleet => ignored.push(named(one, held)),
        }
    }
    if !ignored.is_empty() {
        let all = list(&ignored);
        carried.notes.push(if fleet.is_some() {
            format!("the fleet that is up was brought up without {all}: it goes on as it is; `muster down`, then `muster up`, makes it hold")
        } else {
            format!("the fleet that is asked has settings of its own: nothing here changes {all}")
        });
    }
    carried
}

/// The limit of a run that a setting is, by its fields, with what these hold.
fn limit(keys: &Keys, key: &str, value: &Value) -> Option<(String, Value)> {
    let known = keys.find(key)?;
    Some((known.fields.strip_prefix("limits.")?.to_owned(), known.setting.held(value)?))
}

fn put(limits: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            limits.insert(name.to_owned(), value);
        }
        Some((group, rest)) => {
            let inner = limits.entry(group).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

fn named(one: &Effective, held: Option<&Held>) -> String {
    let Effective { key, value, origin, .. } = one;
    match held {
        Some(held) => format!("{key} = {value} ({origin}; the fleet has {})", held.value),
        None => format!("{key} = {value} ({origin})"),
    }
}

/// Names in one line; of many, the first.
pub(crate) fn list(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let shown = names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::RunLimits;
    use muster_shared::span;
    use serde_json::json;

    use super::super::{Inputs, load};
    use super::*;

    fn settings(toml: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> super::super::Loaded {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("muster.toml"), toml).unwrap();
        load(&Inputs {
            folder: folder.path().to_owned(),
            variables: variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            flags: flags
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned(), "--set".to_owned()))
                .collect(),
            ..Inputs::default()
        })
        .unwrap()
    }

    fn flags(flags: &[(&str, &str)]) -> super::super::Loaded {
        settings("", &[], flags)
    }

    /// A value of a limit that differs from the default, as it is written.
    fn another(key: &str, default: &Value, is_list: bool) -> Option<String> {
        let words = [
            ("reflection", "brief"),
            ("planning", "never"),
            ("writer", "unless-single"),
            ("verification", "all"),
            ("granularity", "fine"),
            ("pattern", "committee:3:1"),
            ("draft_review", "on"),
            ("responses.acceptance", "off"),
            ("conflicts.policy", "majority,person"),
            ("people.review", "ask"),
            ("people.on_timeout", "abort"),
        ];
        let own = key.strip_prefix("limits.")?;
        if let Some((_, word)) = words.iter().find(|(name, _)| *name == own) {
            return Some((*word).to_owned());
        }
        match default {
            Value::Bool(flag) => Some((!flag).to_string()),
            Value::Number(number) => Some((number.as_u64()? + 1).to_string()),
            Value::String(text) if span::parse(text).is_some() => Some("7s".to_owned()),
            Value::Null if own.ends_with("cost") => Some("1.25".to_owned()),
            Value::Null => Some("7".to_owned()),
            Value::Array(_) if is_list => Some("a,b".to_owned()),
            _ => None,
        }
    }

    /// Whatever limit is set for a run, the run has it.
    #[test]
    fn every_limit_travels() {
        let defaults = flags(&[]);
        let keys = Keys::of(Settings::SETTINGS);
        for one in defaults.effective.iter().filter(|one| one.key.starts_with("limits.")) {
            let key = keys.find(&one.key).unwrap();
            let value = another(&one.key, &one.value, key.is_list());
            let value = value.unwrap_or_else(|| format!("say in this test what else {} can be", one.key));
            let loaded = flags(&[("ask.effort", "thorough"), (&one.key, &value)]);
            let carried = carry(&loaded.effective, None);
            // A fleet that has everything otherwise.
            let mut fleet = RunLimits::default();
            fleet.max_tasks += 1;
            fleet.max_width += 1;
            let mut wanted = loaded.settings.limits.clone();
            if one.key != "limits.max_tasks" {
                wanted.max_tasks += 1;
            }
            if one.key != "limits.max_width" {
                wanted.max_width += 1;
            }
            assert_eq!(
                fleet.with(&carried.limits),
                Ok(wanted),
                "{} = {value}: {:?}",
                one.key,
                carried.limits
            );
        }
    }

    #[test]
    fn limits_and_the_model_travel_wherever_they_were_set() {
        let asker = settings(
            "[limits]\nmax_width = 4\n[agent]\nmodel = \"offline\"\n",
            &[("MUSTER_LIMITS_MAX_STEPS", "7")],
            &[("limits.people.ask", "ann")],
        );
        for fleet in [None, Some(RunsWith::new())] {
            let carried = carry(&asker.effective, fleet.as_ref());
            assert_eq!(
                Value::Object(carried.limits),
                json!({ "max_width": 4, "max_steps": 7, "people": { "ask": ["ann"] } })
            );
            assert_eq!(carried.model.as_deref(), Some("offline"));
            assert_eq!((carried.refused, carried.notes), (Vec::new(), Vec::new()));
        }
    }

    #[test]
    fn what_the_fleet_has_already_is_not_repeated_nor_refused() {
        let same =
            settings("[limits]\nmax_width = 4\n", &[], &[("agent.model", "a"), ("agent.slots.worker", "2")]);
        let fleet = runs_with(&same.effective);
        assert_eq!(carry(&same.effective, Some(&fleet)), Carried::default());
    }

    #[test]
    fn what_was_said_over_a_file_when_the_fleet_came_up_holds() {
        let fleet =
            runs_with(&settings("[limits]\nmax_width = 4\n", &[], &[("limits.max_width", "8")]).effective);
        let carried = carry(&settings("[limits]\nmax_width = 4\n", &[], &[]).effective, Some(&fleet));
        assert!(carried.limits.is_empty());
        let [note] = &carried.notes[..] else { unreachable!("{:?}", carried.notes) };
        for part in ["limits.max_width is 4", "muster.toml:2", "8 (--set), which holds"] {
            assert!(note.contains(part), "{part}: {note}");
        }
        for asker in
            [flags(&[("limits.max_width", "3")]), settings("", &[("MUSTER_LIMITS_MAX_WIDTH", "3")], &[])]
        {
            assert_eq!(
                Value::Object(carry(&asker.effective, Some(&fleet)).limits),
                json!({ "max_width": 3 })
            );
        }
    }

    #[test]
    fn an_effort_travels_as_the_values_that_it_gives() {
        let chosen = |effort: &str| flags(&[("ask.effort", effort)]);
        assert_eq!(carry(&flags(&[]).effective, None), Carried::default(), "the fleet's own holds");
        let thorough = carry(&chosen("thorough").effective, Some(&RunsWith::new())).limits;
        assert_eq!(Value::Object(thorough.clone())["reflection"], json!("full"));
        // A fleet that is up with another.
        let held = flags(&[]).settings.limits;
        assert_eq!(held.with(&thorough), Ok(RunLimits::default()));
        let fleet = runs_with(&chosen("quick").effective);
        assert_eq!(carry(&chosen("quick").effective, Some(&fleet)), Carried::default());
        assert!(carry(&flags(&[]).effective, Some(&fleet)).limits.is_empty());
    }

    #[test]
    fn what_belongs_to_processes_is_refused_or_told_by_name() {
        let asker = settings(
            "[agent]\ntemperature = 0.5\n",
            &[
                ("MUSTER_BUS_ACK_WAIT", "5s"),
                ("MUSTER_BUS_TOKEN", "hunter2"),
                ("MUSTER_ASK_LOST_LIMIT", "5s"),
            ],
            &[("orchestrator.max_runs", "2"), ("bus.user", "ann"), ("log.level", "debug")],
        );
        let fleet = runs_with(&settings("[agent]\ntemperature = 0.25\n", &[], &[]).effective);
        let carried = carry(&asker.effective, Some(&fleet));
        assert_eq!(carried.refused, ["orchestrator.max_runs = 2 (--set)"]);
        let [note] = &carried.notes[..] else { unreachable!("{:?}", carried.notes) };
        for part in
            ["bus.ack_wait = \"5s\" (environment MUSTER_BUS_ACK_WAIT)", "the fleet has 0.25", "muster up"]
        {
            assert!(note.contains(part), "{part}: {note}");
        }
        assert!(!note.contains("hunter2") && !note.contains("lost_limit"), "{note}");
        let elsewhere = carry(&asker.effective, None);
        assert_eq!(elsewhere.refused, carried.refused);
        assert!(elsewhere.notes[0].contains("settings of its own"), "{:?}", elsewhere.notes);
        assert!(!runs_with(&asker.effective).contains_key("bus.token"));
    }
}
