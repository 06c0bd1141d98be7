//! Settings: defaults, then what the effort gives, then the user's own file, then the project's `muster.toml`, then the team's file, then the environment, then flags. Every value knows its origin.

mod alerts;
mod effort;
mod environment;
mod error;
mod example;
mod explain;
mod file;
mod guards;
mod held;
mod keep;
mod keys;
mod layer;
mod list;
mod metrics;
mod narrowing;
mod project;
mod ranges;
mod sections;
mod team;
mod travel;
mod trials;
mod ui;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError};
use muster_shared::secret;
use muster_shared::setting::Takes;
use serde::Serialize;
use serde_json::Value;

pub(crate) use alerts::AlertSettings;
pub(crate) use effort::KEY as EFFORT;
pub(crate) use error::SettingsError;
pub(crate) use example::example;
pub(crate) use explain::{Explained, explain};
pub(crate) use file::{FILE_NAME, nearest};
pub(crate) use guards::{GuardKind, GuardSettings};
pub(crate) use keep::KeepSettings;
use keys::Keys;
use layer::{Layer, Origin};
use project::Project;
pub(crate) use sections::{
    AGENTS_DIR, Dollars, FOLDER_SCAN_INTERVAL, FleetSettings, LogFormat, LogSettings, MOST_PROCESSES,
    STOP_TIMEOUT, Settings, TOOLS_DIR,
};
pub(crate) use team::{Source as MemberSource, Team, TeamSpecialist};
pub(crate) use travel::{Carried, RunsWith, carry, is_shared_by_all, list, runs_with, shared_by_all};

pub(crate) use ui::{MAX_REQUEST, PORT as UI_PORT, ProxySettings, SESSION_TIME, UiSettings};

use crate::trust::{Item, Trust};

/// Where a value comes from that nobody set.
pub(crate) const DEFAULT: &str = "default";

/// How much care is taken of files that do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Care {
    /// What is not trusted is an error.
    #[default]
    Strict,
    /// It is left out, and told.
    Lenient,
    /// It is read all the same, by whoever only shows it.
    Everything,
}

/// What settings are made from. Gathered by the caller, so that making them is pure but for the files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs {
    /// The user's own settings file, where there is a place for one.
    pub(crate) own: Option<PathBuf>,
    /// A settings file that was found by whoever started this process.
    pub(crate) found: Option<PathBuf>,
    /// What the user trusts.
    pub(crate) trust: Trust,
    /// How much care is taken.
    pub(crate) care: Care,
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
    /// The project's file that was read.
    pub(crate) file: Option<PathBuf>,
    /// Whether that was found, and not named.
    pub(crate) is_found: bool,
    /// The user's own file that was read.
    pub(crate) own: Option<PathBuf>,
    /// What of the project's file needs the user's word.
    pub(crate) needs: Vec<Item>,
    /// What was left out, and why.
    pub(crate) left_out: Vec<String>,
    /// The team of the team's file.
    pub(crate) team: Option<Team>,
    /// What looks wrong without being an error.
    pub(crate) warnings: Vec<String>,
}

impl Loaded {
    /// Returns true if the effective value is from the project's file and needs the user's consent.
    pub(crate) fn is_of_project(&self, key: &str) -> bool {
        let origin = self.effective.iter().find(|one| one.key == key).map(|one| &one.origin);
        self.needs.iter().any(|item| item.name == key && Some(&item.place) == origin)
    }

    /// Directory of prompt templates, if the project's file sets it.
    pub(crate) fn templates_of_project(&self) -> Option<&Path> {
        self.settings.agent.template_dir.as_deref().filter(|_| self.is_of_project("agent.template_dir"))
    }
}

/// Makes the settings.
pub(crate) fn load(inputs: &Inputs) -> Result<Loaded, SettingsError> {
    let keys = Keys::of(Settings::SETTINGS);
    let Own { file: own, layer: from_own, left_out: of_own } = own(inputs, &keys)?;
    let (team, from_team) = team(inputs, &keys)?;
    let (from_environment, mut warnings) = environment::layer(&inputs.variables, &keys)?;
    let from_flags = flags(&inputs.flags, &keys)?;
    warnings.extend(inputs.flags.iter().filter_map(|(key, value, flag)| open_password(key, value, flag)));
    let over = |key: &str| [&from_team, &from_environment, &from_flags].iter().any(|layer| layer.has(key));
    let mine = |name: &str| from_own.origins().any(|(key, _)| guards::named(&key).as_deref() == Some(name));
    let outside = project::Outside { over: &over, mine: &mine, own: &from_own };
    let project = project::read(inputs, &keys, own.as_deref(), outside)?;

    let from_effort = effort::layer(&[&from_own, &project.layer, &from_team, &from_environment, &from_flags]);
    let merged = Config::builder()
        .add_source(Layer::of_defaults(&keys))
        .add_source(from_effort.clone())
        .add_source(from_own.clone())
        .add_source(project.layer.clone())
        .add_source(from_team.clone())
        .add_source(from_environment.clone())
        .add_source(from_flags.clone())
        .build()
        .map_err(|error| wrong_value(&error, &keys, &BTreeMap::new()))?;
    let given =
        origins(&[&from_effort, &from_own, &project.layer, &from_team, &from_environment, &from_flags]);
    let mut settings: Settings =
        held::held(&merged)?.try_deserialize().map_err(|error| wrong_value(&error, &keys, &given))?;
    let effective = effective(&settings, &merged, &keys, &given);
    ranges::check(&effective, &keys)?;
    settings.limits.guards = guards::rules(&settings.guards, &effective)?;
    settings.limits.trials = trials::rules(&settings.trials, &effective)?;
    let others = [&project.layer, &from_team, &from_environment, &from_flags];
    let is_own = |key: &str| from_own.has(key) && others.iter().all(|layer| !layer.has(key));
    guards::beside_own(&mut settings.guards, own.as_deref(), is_own);
    let Project { file, is_found, needs, mut left_out, .. } = project;
    left_out.extend(of_own);
    Ok(Loaded { settings, effective, file, is_found, own, needs, left_out, team, warnings })
}

/// What the user's own file gives.
#[derive(Default)]
struct Own {
    file: Option<PathBuf>,
    layer: Layer,
    left_out: Option<String>,
}

/// The user's own settings.
fn own(inputs: &Inputs, keys: &Keys) -> Result<Own, SettingsError> {
    let Some(path) = inputs.own.as_ref().filter(|path| path.is_file()) else { return Ok(Own::default()) };
    // The home may be another user's, as under `sudo`.
    let text = file::read(path)?;
    // A link there is the user's, as for a directory of settings in version control.
    match (project::foreign(inputs, path, &text, Some(&crate::trust::real(path))), inputs.care) {
        (None, _) => {}
        (Some(error), Care::Strict) => return Err(error),
        (Some(error), Care::Lenient | Care::Everything) => {
            return Ok(Own { left_out: Some(error.to_string()), ..Own::default() });
        }
    }
    let layer = file::parse(&path.display().to_string(), &text, keys)?;
    Ok(Own { file: Some(path.clone()), layer, left_out: None })
}

/// The team, and the settings in its file.
fn team(inputs: &Inputs, keys: &Keys) -> Result<(Option<Team>, Layer), SettingsError> {
    let Some(path) = &inputs.team else { return Ok((None, Layer::default())) };
    let text = file::read(path)?;
    if inputs.care != Care::Everything
        && let Some(error) = project::foreign(inputs, path, &text, None)
    {
        return Err(error);
    }
    let (team, layer) = team::parse(path, &shown(path, &inputs.folder), &text, keys)?;
    Ok((Some(team), layer))
}

/// Reads the text of a settings file, and makes settings of what it says.
#[cfg(test)]
pub(crate) fn read_settings_text(text: &str) -> Result<(), SettingsError> {
    let keys = Keys::of(Settings::SETTINGS);
    made_of(file::parse(FILE_NAME, text, &keys)?, &keys)
}

/// Reads the text of a team's file, and makes settings of what it says.
#[cfg(test)]
pub(crate) fn read_team_text(text: &str) -> Result<(), SettingsError> {
    let keys = Keys::of(Settings::SETTINGS);
    let (_, layer) = team::parse(Path::new("fleet.toml"), "fleet.toml", text, &keys)?;
    made_of(layer, &keys)
}

#[cfg(test)]
fn made_of(layer: Layer, keys: &Keys) -> Result<(), SettingsError> {
    let given = origins(&[&layer]);
    let merged = Config::builder()
        .add_source(Layer::of_defaults(keys))
        .add_source(layer)
        .build()
        .map_err(|error| wrong_value(&error, keys, &BTreeMap::new()))?;
    let settings: Settings =
        held::held(&merged)?.try_deserialize().map_err(|error| wrong_value(&error, keys, &given))?;
    ranges::check(&effective(&settings, &merged, keys, &given), keys)
}

/// Whether nobody set it, nor anything that gives it a value.
pub(crate) fn is_default(one: &Effective) -> bool {
    travel::is_usual(&one.origin)
}

/// The sections of the settings with what they are about, in order.
pub(crate) fn sections() -> Vec<(&'static str, &'static str)> {
    Settings::SETTINGS.iter().map(|section| (section.name(), section.help())).collect()
}

/// Assignments of flags as they are handed to a process that is started: key, value, the flag's name. An empty list replaces the one
/// that this process was started with.
pub(crate) fn handed_down(assignments: &[(String, String, String)]) -> Option<(String, String)> {
    let text = serde_json::to_string(assignments).ok()?;
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
            advice: error::advice_for_unknown(name, keys),
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

fn wrong_value(error: &ConfigError, keys: &Keys, given: &BTreeMap<String, String>) -> SettingsError {
    SettingsError::Value { problem: describe(error, keys, given) }
}

fn describe(error: &ConfigError, keys: &Keys, given: &BTreeMap<String, String>) -> String {
    // What a type itself refuses carries the fields that were to hold it, and not its origin.
    let place = |fields: &Option<String>, origin: &Option<String>| {
        let key = fields.as_deref().map(|fields| keys.of_fields(fields));
        // An item of a list comes from where the list does.
        let listed = |key: &str| key.split('[').next().and_then(|list| given.get(list));
        let origin = origin.as_ref().or_else(|| key.and_then(listed));
        let key = key.unwrap_or("a setting");
        origin.map_or_else(|| key.to_owned(), |origin| format!("{key} (from {origin})"))
    };
    match error {
        ConfigError::Type { origin, unexpected, expected, key } => {
            let known = key.as_deref().and_then(|fields| keys.find(keys.of_fields(fields)));
            let bounds = known.map(|key| key.setting.takes).filter(Takes::is_bounded);
            let expected = bounds.map_or_else(|| (*expected).to_owned(), |takes| takes.to_string());
            format!("{} must be {expected}, not {unexpected}", place(key, origin))
        }
        ConfigError::At { error, origin, key } => {
            format!("{}: {}", place(key, origin), describe(error, keys, given))
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
fn effective(
    settings: &Settings,
    merged: &Config,
    keys: &Keys,
    given: &BTreeMap<String, String>,
) -> Vec<Effective> {
    let values = serde_json::to_value(settings).unwrap_or(Value::Null);
    let mut all = Vec::new();
    for key in keys.iter() {
        for (name, value) in expand(key, &values) {
            let origin = given.get(&name).cloned();
            let value = match (key.is_secret(), &origin, value) {
                (true, Some(_), _) => Value::from("[set]"),
                (true, None, _) => Value::Null,
                (false, _, Some(held)) => without_passwords(key.setting.written(Some(held))),
                // What is not written into records is held all the same, as it was given.
                (false, Some(_), None) => held::as_given(merged, &name, key),
                (false, None, None) => key.setting.written(None),
            };
            let origin = origin.unwrap_or_else(|| DEFAULT.to_owned());
            all.push(Effective { key: name, value, origin, doc: key.help().to_owned() });
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

/// What the fields of a key hold, by its name; one for each name where the key has a `*`.
fn expand<'a>(key: &keys::Key, values: &'a Value) -> Vec<(String, Option<&'a Value>)> {
    let mut found = vec![(String::new(), Some(values))];
    for (part, field) in key.name.split('.').zip(key.fields.split('.')) {
        found = found
            .into_iter()
            .flat_map(|(name, value)| {
                let join =
                    |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
                match (part, value.and_then(Value::as_object)) {
                    ("*", Some(map)) => map.iter().map(|(k, v)| (join(&keys::written(k)), Some(v))).collect(),
                    ("*", None) => Vec::new(),
                    (_, map) => vec![(join(part), map.and_then(|map| map.get(field)))],
                }
            })
            .collect();
    }
    found
}

#[cfg(test)]
mod tests;
