//! Settings: defaults, then `muster.toml`, then the team's file, then the environment, then flags. Every value knows its origin.

mod auction;
mod committee;
mod conflicts;
mod environment;
mod error;
mod file;
mod keys;
mod layer;
mod list;
mod peers;
mod people;
mod ranges;
mod responses;
mod sections;
mod team;
mod travel;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError};
use muster_agents::AgentSettings;
use muster_bus::BusSettings;
use muster_bus::server::ServerSettings;
use muster_orchestrator::OrchestratorSettings;
use muster_shared::secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use error::SettingsError;
pub(crate) use file::FILE_NAME;
use keys::Keys;
use layer::{Layer, Origin};
pub(crate) use ranges::MOST_PROCESSES;
pub(crate) use sections::{AskSettings, Dollars, FleetSettings, LimitSettings, LogFormat, LogSettings};
pub(crate) use team::{Source as MemberSource, Team, TeamSpecialist};
pub(crate) use travel::{Carried, RunsWith, carry, list, runs_with};

/// Where a value comes from that nobody set.
pub(crate) const DEFAULT: &str = "default";

/// All settings.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// The bus.
    pub(crate) bus: BusSettings,
    /// The NATS server of a local fleet.
    pub(crate) server: ServerSettings,
    /// Orchestrators.
    pub(crate) orchestrator: OrchestratorSettings,
    /// Agents and their models.
    pub(crate) agent: AgentSettings,
    /// Limits of runs.
    pub(crate) limits: LimitSettings,
    /// The local fleet.
    pub(crate) fleet: FleetSettings,
    /// How a goal is asked.
    pub(crate) ask: AskSettings,
    /// Logs.
    pub(crate) log: LogSettings,
}

/// What settings are made from. Gathered by the caller, so that making them is pure but for one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs {
    /// The settings file, when one was named.
    pub(crate) file: Option<PathBuf>,
    /// The team's file, when one was named.
    pub(crate) team: Option<PathBuf>,
    /// The folder from which the nearest file is looked for.
    pub(crate) folder: PathBuf,
    /// The environment.
    pub(crate) variables: Vec<(String, String)>,
    /// Assignments from flags: key, value, the flag's name.
    pub(crate) flags: Vec<(String, String, String)>,
}

/// One setting in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Effective {
    /// Its key.
    pub(crate) key: String,
    /// Its value; `[set]` for a secret, null when it has none.
    pub(crate) value: Value,
    /// Where it comes from.
    pub(crate) origin: String,
    /// What it does.
    pub(crate) doc: String,
}

/// Settings with where they come from.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// The settings.
    pub(crate) settings: Settings,
    /// Each of them with its origin.
    pub(crate) effective: Vec<Effective>,
    /// The file that was read.
    pub(crate) file: Option<PathBuf>,
    /// The team of the team's file.
    pub(crate) team: Option<Team>,
    /// What looks wrong without being an error.
    pub(crate) warnings: Vec<String>,
}

/// Makes the settings.
pub(crate) fn load(inputs: &Inputs) -> Result<Loaded, SettingsError> {
    let keys = Keys::of::<Settings>();
    let file = inputs.file.clone().or_else(|| file::nearest(&inputs.folder));
    let from_file = match &file {
        Some(path) => file::parse(&shown(path, &inputs.folder), &file::read(path)?, &keys)?,
        None => Layer::default(),
    };
    let (team, from_team) = match &inputs.team {
        Some(path) => {
            let (team, layer) = team::parse(path, &shown(path, &inputs.folder), &file::read(path)?, &keys)?;
            (Some(team), layer)
        }
        None => (None, Layer::default()),
    };
    let (from_environment, mut warnings) = environment::layer(&inputs.variables, &keys)?;
    let from_flags = flags(&inputs.flags, &keys)?;
    warnings.extend(inputs.flags.iter().filter_map(|(key, value, flag)| open_password(key, value, flag)));

    let merged = Config::builder()
        .add_source(from_file.clone())
        .add_source(from_team.clone())
        .add_source(from_environment.clone())
        .add_source(from_flags.clone())
        .build()
        .map_err(|error| wrong_value(&error, &BTreeMap::new()))?;
    let given = origins(&[&from_file, &from_team, &from_environment, &from_flags]);
    let settings: Settings = merged.try_deserialize().map_err(|error| wrong_value(&error, &given))?;
    let effective = effective(&settings, &keys, &given);
    ranges::check(&effective)?;
    Ok(Loaded { settings, effective, file, team, warnings })
}

/// Assignments of flags as they are handed to a process that is started: key, value, the flag's name.
pub(crate) fn handed_down(assignments: &[(String, String, String)]) -> Option<(String, String)> {
    let text = serde_json::to_string(assignments).ok().filter(|_| !assignments.is_empty())?;
    Some((environment::HANDED_DOWN.to_owned(), text))
}

/// The assignments that this process was handed.
pub(crate) fn taken_over(
    variables: &[(String, String)],
) -> Result<Vec<(String, String, String)>, SettingsError> {
    let given = variables.iter().find(|(name, _)| name == environment::HANDED_DOWN);
    let Some((_, text)) = given.filter(|(_, text)| !text.is_empty()) else { return Ok(Vec::new()) };
    serde_json::from_str(text).map_err(|error| SettingsError::HandedDown {
        variable: environment::HANDED_DOWN,
        reason: error.to_string(),
    })
}

/// A word on a password that everybody on the machine can read.
fn open_password(key: &str, value: &str, flag: &str) -> Option<String> {
    let key = if flag == "--set" { format!("--set {key}") } else { flag.to_owned() };
    let hidden = matches!(secret::without_passwords(value), std::borrow::Cow::Owned(_));
    hidden.then(|| {
        format!("everybody on this machine can read the password in {key}: set it in the environment (MUSTER_BUS_URL) instead")
    })
}

fn flags(assignments: &[(String, String, String)], keys: &Keys) -> Result<Layer, SettingsError> {
    let mut layer = Layer::default();
    for (name, value, flag) in assignments {
        let key = keys.find(name).ok_or_else(|| SettingsError::UnknownFlagKey {
            key: name.clone(),
            origin: flag.clone(),
            advice: if keys.is_group(name) {
                error::one_of(name, &keys.under(name))
            } else {
                error::did_you_mean(keys.nearest(name))
            },
        })?;
        if key.is_secret() {
            let (key, origin, variable) = (name.clone(), flag.clone(), key.variable());
            return Err(SettingsError::SecretInFlag { key, origin, variable });
        }
        let origin = Origin::Flag(flag.clone());
        layer.set(name, list::value_of(value, name, key, &origin)?, origin);
    }
    Ok(layer)
}

/// A path as people like to see it: relative where that is shorter.
fn shown(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

/// Where each key that is given comes from; the last source wins.
fn origins(layers: &[&Layer]) -> BTreeMap<String, String> {
    layers.iter().flat_map(|layer| layer.origins()).map(|(key, origin)| (key, origin.to_string())).collect()
}

fn wrong_value(error: &ConfigError, given: &BTreeMap<String, String>) -> SettingsError {
    SettingsError::Value { problem: describe(error, given) }
}

fn describe(error: &ConfigError, given: &BTreeMap<String, String>) -> String {
    // What a type itself refuses carries its key and not its origin.
    let place = |key: &Option<String>, origin: &Option<String>| {
        // An item of a list comes from where the list does.
        let listed = |key: &str| key.split('[').next().and_then(|list| given.get(list));
        let origin = origin.as_ref().or_else(|| key.as_ref().and_then(|key| listed(key)));
        let key = key.as_deref().unwrap_or("a setting");
        origin.map_or_else(|| key.to_owned(), |origin| format!("{key} (from {origin})"))
    };
    match error {
        ConfigError::Type { origin, unexpected, expected, key } => {
            let range = key.as_deref().and_then(ranges::of).map(ranges::Range::to_string);
            let expected = range.unwrap_or_else(|| (*expected).to_owned());
            format!("{} must be {expected}, not {unexpected}", place(key, origin))
        }
        ConfigError::At { error, origin, key } => {
            format!("{}: {}", place(key, origin), describe(error, given))
        }
        other => {
            let text = other.to_string();
            match text.split_once(" does not have variant constructor ") {
                Some((_, word)) => format!("there is no {word} among its values"),
                None => text,
            }
        }
    }
}

/// Every setting with its value and origin, in order of the types.
fn effective(settings: &Settings, keys: &Keys, given: &BTreeMap<String, String>) -> Vec<Effective> {
    let values = serde_json::to_value(settings).unwrap_or(Value::Null);
    let mut all = Vec::new();
    for key in keys.iter() {
        for (name, value) in expand(&key.name, &values) {
            let origin = given.get(&name).cloned();
            let value = match (key.is_secret(), &origin) {
                (true, Some(_)) => Value::from("[set]"),
                (true, None) => Value::Null,
                (false, _) => without_passwords(value),
            };
            let origin = origin.unwrap_or_else(|| DEFAULT.to_owned());
            all.push(Effective { key: name, value, origin, doc: key.doc.clone() });
        }
    }
    all
}

/// A value as it may be shown: addresses without the passwords in them.
fn without_passwords(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(secret::without_passwords(&text).into_owned()),
        Value::Array(items) => Value::Array(items.into_iter().map(without_passwords).collect()),
        other => other,
    }
}

/// The values under a key; one for each name where the key has a `*`.
fn expand(key: &str, values: &Value) -> Vec<(String, Value)> {
    let mut found = vec![(String::new(), values.clone())];
    for part in key.split('.') {
        found = found
            .into_iter()
            .flat_map(|(name, value)| {
                let join =
                    |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
                match (part, value.as_object()) {
                    ("*", Some(map)) => {
                        map.iter().map(|(k, v)| (join(&keys::written(k)), v.clone())).collect()
                    }
                    ("*", None) => Vec::new(),
                    (_, map) => {
                        vec![(join(part), map.and_then(|m| m.get(part)).cloned().unwrap_or(Value::Null))]
                    }
                }
            })
            .collect();
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn inputs(toml: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> (tempfile::TempDir, Inputs) {
        let folder = tempfile::tempdir().unwrap();
        if !toml.is_empty() {
            std::fs::write(folder.path().join(FILE_NAME), toml).unwrap();
        }
        let inputs = Inputs {
            file: None,
            team: None,
            folder: folder.path().join("deeper/still"),
            variables: variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            flags: flags
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned(), "--set".to_owned()))
                .collect(),
        };
        (folder, inputs)
    }

    fn origin_of(loaded: &Loaded, key: &str) -> (Value, String) {
        let found = loaded.effective.iter().find(|e| e.key == key).unwrap();
        (found.value.clone(), found.origin.clone())
    }

    #[test]
    fn later_sources_win_and_each_value_knows_its_own() {
        let (_keep, inputs) = inputs(
            "[limits]\nmax_steps = 1\nmax_width = 2\n\n[fleet.scale]\nworker = 3\n",
            &[("MUSTER_LIMITS_MAX_STEPS", "4"), ("MUSTER_LIMITS_MAX_DEPTH", "2")],
            &[("limits.max_depth", "1")],
        );
        let loaded = load(&inputs).unwrap();
        let limits = &loaded.settings.limits;
        assert_eq!((limits.max_steps, limits.max_width, limits.max_depth), (4, 2, 1));
        assert_eq!(loaded.settings.fleet.scale.get("worker"), Some(&3));
        assert_eq!(
            origin_of(&loaded, "limits.max_steps"),
            (4.into(), "environment MUSTER_LIMITS_MAX_STEPS".into())
        );
        assert_eq!(origin_of(&loaded, "limits.max_depth"), (1.into(), "--set".into()));
        assert_eq!(origin_of(&loaded, "limits.max_tasks").1, "default");
        assert!(origin_of(&loaded, "fleet.scale.worker").1.ends_with("muster.toml:6"));
    }

    #[test]
    fn a_wrong_kind_of_value_names_its_key_and_origin() {
        let (_keep, inputs) = inputs("", &[("MUSTER_LIMITS_MAX_STEPS", "many")], &[]);
        let error = load(&inputs).unwrap_err().to_string();
        assert!(error.contains("max_steps") && error.contains("MUSTER_LIMITS_MAX_STEPS"), "{error}");
    }

    #[test]
    fn a_flag_may_not_invent_a_key() {
        let (_keep, inputs) = inputs("", &[], &[("limits.max_stps", "1")]);
        let error = load(&inputs).unwrap_err();
        let SettingsError::UnknownFlagKey { advice, .. } = error else { unreachable!("{error}") };
        assert!(advice.contains("limits.max_steps"));
    }

    #[test]
    fn a_list_is_written_as_toml_or_with_commas() {
        const KEY: &str = "limits.responses.stronger_models";
        let cases: [(&str, &[&str]); 10] = [
            ("a", &["a"]),
            ("a,b", &["a", "b"]),
            (" a , b,,", &["a", "b"]),
            ("", &[]),
            ("[]", &[]),
            ("[\"a\"]", &["a"]),
            (" [\"a\", 'b'] ", &["a", "b"]),
            ("[\n  \"a\",\n  \"b\",\n]", &["a", "b"]),
            ("[\"a, b\"]", &["a, b"]),
            ("openai/gpt-4.1", &["openai/gpt-4.1"]),
        ];
        for (text, wanted) in cases {
            let flag = inputs("", &[], &[(KEY, text)]).1;
            let variable = inputs("", &[("MUSTER_LIMITS_RESPONSES_STRONGER_MODELS", text)], &[]).1;
            for inputs in [flag, variable] {
                let loaded = load(&inputs).unwrap();
                assert_eq!(loaded.settings.limits.responses.stronger_models, wanted, "{text:?}");
            }
        }
        for text in ["[a]", "[\"a\"", "[\"a\"] b", "[\"a\"]\nx = 1", "[,]", "["] {
            let error = load(&inputs("", &[], &[(KEY, text)]).1).unwrap_err();
            let help = miette::Diagnostic::help(&error).unwrap().to_string();
            let said = error.to_string();
            assert!(said.contains(&format!("{KEY} (from --set) is a list, and {text} is none")), "{said}");
            assert!(help.contains("[\"a\", \"b\"]"), "{help}");
        }
        let nested = load(&inputs("", &[], &[(KEY, "[[\"a\"]]")]).1).unwrap_err().to_string();
        assert!(nested.contains("stronger_models"), "{nested}");
        // Where only some words are allowed, the wrong one is named, with where it comes from.
        let policy = |text: &str| load(&inputs("", &[], &[("limits.conflicts.policy", text)]).1);
        for text in ["[\"majority\", \"person\"]", "majority,person"] {
            assert_eq!(policy(text).unwrap().settings.limits.conflicts.policy.len(), 2, "{text}");
        }
        let said = "limits.conflicts.policy[0] (from --set): there is no luck among its values";
        assert_eq!(policy("[\"luck\"]").unwrap_err().to_string(), said);
    }

    #[test]
    fn every_span_is_written_as_people_write_it() {
        let (_keep, inputs) = inputs(
            "[agent]\npull_wait = \"45s\"\n",
            &[("MUSTER_AGENT_RETRIES_BASE", "250ms")],
            &[("fleet.stop_limit", "1m")],
        );
        let loaded = load(&inputs).unwrap();
        let shown = |key: &str| origin_of(&loaded, key).0;
        assert_eq!(shown("agent.pull_wait"), "45s");
        assert_eq!(shown("agent.retries.base"), "250ms");
        assert_eq!(shown("fleet.stop_limit"), "1m");
        assert_eq!(shown("limits.run_deadline"), "1h");
        let raw = |key: &str| key.ends_with(".secs") || key.ends_with("_ms") || key.ends_with("_s");
        let bare: Vec<&str> =
            loaded.effective.iter().map(|e| e.key.as_str()).filter(|key| raw(key)).collect();
        assert_eq!(bare, Vec::<&str>::new());
    }

    #[test]
    fn a_span_without_a_unit_is_refused_with_its_place() {
        let (_keep, inputs) = inputs("[ask]\ngrace = \"30\"\n", &[], &[]);
        let error = load(&inputs).unwrap_err().to_string();
        assert!(error.contains("ask.grace") && error.contains("muster.toml:2"), "{error}");
        assert!(error.contains("500ms, 30s, 10m"), "{error}");
    }

    /// The example states defaults, or examples where nothing is set by default: both must be taken.
    #[test]
    fn every_line_of_the_example_is_true() {
        let example = include_str!("../deploy/muster.example.toml");
        let is_setting = |line: &str| {
            line.split_once(" = ").is_some_and(|(key, _)| {
                !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
            })
        };
        let uncommented: String = example
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line))
            .map(|line| format!("{line}\n"))
            .collect();
        let (_keep, inputs) = inputs(&uncommented, &[], &[]);
        let loaded = load(&inputs).unwrap();
        let defaults = load(&self::inputs("", &[], &[]).1).unwrap();
        let lines = uncommented.lines().filter(|line| is_setting(line)).count();
        let given: Vec<&Effective> = loaded.effective.iter().filter(|e| e.origin != "default").collect();
        assert_eq!(given.len(), lines, "every line sets a value");
        for setting in given {
            let default = defaults.effective.iter().find(|e| e.key == setting.key);
            // Empty by default: the line is an example of a value.
            let example_only = default.is_none_or(|e| e.value.is_null() || e.value == serde_json::json!([]));
            assert!(
                example_only || default.is_some_and(|e| e.value == setting.value),
                "{} is {} in the example and {:?} by default",
                setting.key,
                setting.value,
                default.map(|e| &e.value)
            );
        }
        let named = |key: &str| loaded.effective.iter().any(|e| e.key == key && e.origin != "default");
        let missing: Vec<&str> = defaults
            .effective
            .iter()
            .map(|e| e.key.as_str())
            .filter(|key| !named(key) && !keys::is_secret(key))
            .collect();
        assert_eq!(missing, Vec::<&str>::new(), "settings without a line in the example");
    }
}
