//! The settings file of a project, and what of it counts: it may be somebody else's, or ask for what needs the user's word.

use std::path::{Path, PathBuf};

use muster_agents::model::pricing::Pricing;
use muster_agents::roles;
use serde_json::{Value, json};

use super::error::SettingsError;
use super::file;
use super::guards;
use super::keys::Keys;
use super::layer::Layer;
use super::narrowing::widens;
use super::{Care, Inputs, shown};
use crate::trust::{Danger, Item, danger, untrusted_lines};

/// What a project's file gives.
#[derive(Debug, Default)]
pub(super) struct Project {
    /// The file.
    pub(super) file: Option<PathBuf>,
    /// Whether it was found, and not named.
    pub(super) is_found: bool,
    /// What of it counts.
    pub(super) layer: Layer,
    /// What in it needs the user's word, given or not.
    pub(super) needs: Vec<Item>,
    /// What was left out, and why.
    pub(super) left_out: Vec<String>,
}

/// What is set outside of the project.
pub(super) struct Outside<'a> {
    /// Whether something else that goes before sets a key.
    pub(super) over: &'a dyn Fn(&str) -> bool,
    /// Whether the user's own settings have a guard of this name.
    pub(super) mine: &'a dyn Fn(&str) -> bool,
    /// The user's own settings.
    pub(super) own: &'a Layer,
}

/// Reads the file that is named, or the nearest.
pub(super) fn read(
    inputs: &Inputs,
    keys: &Keys,
    own: Option<&Path>,
    Outside { over, mine, own: own_layer }: Outside<'_>,
) -> Result<Project, SettingsError> {
    let found = || inputs.found.clone().or_else(|| file::nearest(&inputs.folder));
    let Some(path) = inputs.file.clone().or_else(found) else { return Ok(Project::default()) };
    // In the user's own folder of settings there is but one file.
    if own.is_some_and(|own| crate::trust::real(own) == crate::trust::real(&path)) {
        return Ok(Project::default());
    }
    let is_found = inputs.file.is_none();
    let mut project = Project { is_found, ..Project::default() };
    let text = file::read(&path)?;
    if let Some(error) = foreign(inputs, &path, &text, path.parent().filter(|_| is_found)) {
        match inputs.care {
            Care::Strict => return Err(error),
            Care::Lenient => {
                project.left_out.push(error.to_string());
                return Ok(project);
            }
            Care::Everything => {}
        }
    }
    let layer = file::parse(&shown(&path, &inputs.folder), &text, keys)?;
    if is_found {
        project.needs = needs(&layer, keys, mine, own_layer);
    }
    let held_back = match inputs.care {
        Care::Everything => Vec::new(),
        Care::Strict | Care::Lenient => {
            let open: Vec<Item> = project.needs.iter().filter(|item| !over(&item.name)).cloned().collect();
            untrusted(inputs, &path, open, &mut project.left_out)?
        }
    };
    // A guard whose file is not read is left out whole.
    let is_held_back = |key: &str| {
        let is_part =
            |item: &Item| item.what == Danger::Read && guards::named(&item.name) == guards::named(key);
        held_back.iter().any(|item| item.name == key || is_part(item))
    };
    project.layer = layer.without(is_held_back);
    project.file = Some(path);
    Ok(project)
}

/// Why a file does not count at all: one that was found in `base`, or was named.
pub(super) fn foreign(
    inputs: &Inputs,
    path: &Path,
    text: &str,
    base: Option<&Path>,
) -> Option<SettingsError> {
    let fault = match base {
        Some(base) => inputs.trust.fault_of_found(path, base, text),
        None => inputs.trust.fault_of_named(path, text),
    };
    fault.map(|fault| SettingsError::Foreign {
        path: path.to_owned(),
        mend: fault.mend(),
        fault: fault.about(path),
    })
}

/// Settings of a file that need the user's consent. Pure.
fn needs(layer: &Layer, keys: &Keys, mine: &dyn Fn(&str) -> bool, own: &Layer) -> Vec<Item> {
    let item = |(name, value, place): (String, String, String)| {
        let key = keys.find(&name)?;
        let what = match guards::named(&name) {
            // A project may add guards, and change none of the user's.
            Some(guard) => {
                let adds = name.ends_with(".enabled") && value == "true";
                match danger(&key.name, &layer.value(&name)) {
                    _ if mine(&guard) && !adds => Some(Danger::Guard),
                    outside => outside.filter(|what| *what == Danger::Read),
                }
            }
            None => {
                let now = layer.value(&name);
                let before = Some(own.value(&name)).filter(|own| !own.is_null());
                let before =
                    before.or_else(|| usual_tools(&name)).unwrap_or_else(|| key.setting.written(None));
                let widens = widens(key, &before, &now) || replaces_a_price(&name, own);
                widens.then(|| danger(&key.name, &now)).flatten()
            }
        };
        what.map(|what| Item::setting(what, &name, &value, place))
    };
    layer.texts().filter_map(item).collect()
}

/// Tools that a built-in role has without a setting.
fn usual_tools(name: &str) -> Option<Value> {
    let role = name.strip_prefix("agent.tools.")?;
    let rules = roles::all().into_iter().find(|rules| rules.name == role)?;
    Some(json!(rules.tool_patterns().collect::<Vec<_>>()))
}

/// Returns true if a price replaces a known price of a model, by a longer or shorter prefix of its name: calls could be
/// recorded below their cost.
fn replaces_a_price(name: &str, own: &Layer) -> bool {
    let Some(priced) = priced(name) else { return false };
    let overlaps = |known: &str| known.starts_with(priced) || priced.starts_with(known);
    let is_compared = own.has(name);
    let of_own = |known: &str| overlaps(known) && !(is_compared && known == priced);
    Pricing::known().any(overlaps) || own.origins().any(|(key, _)| self::priced(&key).is_some_and(of_own))
}

/// Model of a price setting, without its provider.
fn priced(name: &str) -> Option<&str> {
    let (model, _) = name.strip_prefix("agent.prices.")?.rsplit_once('.')?;
    model.trim_matches('"').rsplit('/').next()
}

/// What of it the user has not allowed: an error, or left out.
fn untrusted(
    inputs: &Inputs,
    path: &Path,
    open: Vec<Item>,
    left_out: &mut Vec<String>,
) -> Result<Vec<Item>, SettingsError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    if open.is_empty() || inputs.trust.is_named(folder) {
        return Ok(Vec::new());
    }
    let grant =
        inputs.trust.records().of(folder).map_err(|error| SettingsError::Trust { reason: error.to_string() });
    let grant = match (grant, inputs.care) {
        (Ok(grant), _) => grant,
        (Err(error), Care::Strict) => return Err(error),
        (Err(error), Care::Lenient | Care::Everything) => {
            left_out.push(error.to_string());
            None
        }
    };
    let grants: Vec<_> = grant.into_iter().collect();
    let (held_back, what) = untrusted_lines(&grants, open);
    if held_back.is_empty() {
        return Ok(held_back);
    }
    let error = SettingsError::Untrusted { path: path.to_owned(), what };
    match inputs.care {
        Care::Strict => Err(error),
        Care::Lenient | Care::Everything => {
            left_out.push(error.to_string());
            Ok(held_back)
        }
    }
}
