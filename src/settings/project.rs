//! The settings file of a project, and what of it counts: it may be somebody else's, or ask for what needs the user's word.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use muster_shared::setting::Sensitivity;

use super::error::SettingsError;
use super::file;
use super::guards;
use super::keys::Keys;
use super::layer::Layer;
use super::{Care, Inputs, shown};
use crate::trust::{Danger, Grant, Item, danger, difference};

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
    /// Whether the user's own settings have a value for a key.
    pub(super) own_value: &'a dyn Fn(&str) -> bool,
}

/// Reads the file that is named, or the nearest.
pub(super) fn read(
    inputs: &Inputs,
    keys: &Keys,
    own: Option<&Path>,
    Outside { over, mine, own_value }: Outside<'_>,
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
    if let Some(error) = foreign(inputs, &path, &text, is_found) {
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
        project.needs = needs(&layer, keys, mine, own_value);
    }
    let held_back = match inputs.care {
        Care::Everything => Vec::new(),
        Care::Strict | Care::Lenient => {
            let open: Vec<Item> = project.needs.iter().filter(|item| !over(&item.name)).cloned().collect();
            untrusted(inputs, &path, open, &mut project.left_out)?
        }
    };
    let names: BTreeSet<&str> = held_back.iter().map(|item| item.name.as_str()).collect();
    project.layer = layer.without(&names);
    project.file = Some(path);
    Ok(project)
}

/// Why a file does not count at all.
pub(super) fn foreign(inputs: &Inputs, path: &Path, text: &str, is_found: bool) -> Option<SettingsError> {
    let fault = if is_found {
        inputs.trust.fault_of_found(path, path.parent()?, text)
    } else {
        inputs.trust.fault_of_named(path, text)
    };
    fault.map(|fault| SettingsError::Foreign {
        path: path.to_owned(),
        mend: fault.mend(),
        fault: fault.about(path),
    })
}

/// Settings of a file that need the user's consent. Pure.
fn needs(
    layer: &Layer,
    keys: &Keys,
    mine: &dyn Fn(&str) -> bool,
    own_value: &dyn Fn(&str) -> bool,
) -> Vec<Item> {
    let item = |(name, value, place): (String, String, String)| {
        let key = keys.find(&name)?;
        let what = match (guards::named(&name), key.sensitivity) {
            // A project may add guards, and change none of the user's.
            (Some(guard), _) => {
                let adds = name.ends_with(".enabled") && value == "true";
                (mine(&guard) && !adds).then_some(Danger::Guard)
            }
            (None, Sensitivity::Narrowing) => own_value(&name).then_some(Danger::Rights),
            (None, sensitivity) => danger(&key.name, sensitivity, &value),
        };
        what.map(|what| Item::setting(what, &name, &value, place))
    };
    layer.texts().filter_map(item).collect()
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
        inputs.trust.grant(folder).map_err(|error| SettingsError::Trust { reason: error.to_string() });
    let grant = match (grant, inputs.care) {
        (Ok(grant), _) => grant,
        (Err(error), Care::Strict) => return Err(error),
        (Err(error), Care::Lenient | Care::Everything) => {
            left_out.push(error.to_string());
            None
        }
    };
    let held_back: Vec<Item> = open.into_iter().filter(|item| !is_allowed(grant.as_ref(), item)).collect();
    if held_back.is_empty() {
        return Ok(held_back);
    }
    let error =
        SettingsError::Untrusted { path: path.to_owned(), what: in_words(grant.as_ref(), &held_back) };
    match inputs.care {
        Care::Strict => Err(error),
        Care::Lenient | Care::Everything => {
            left_out.push(error.to_string());
            Ok(held_back)
        }
    }
}

fn is_allowed(grant: Option<&Grant>, item: &Item) -> bool {
    grant.is_some_and(|grant| grant.allows(item))
}

/// What was not allowed, a line each; where something else was, the difference.
fn in_words(grant: Option<&Grant>, held_back: &[Item]) -> String {
    let lines = match grant {
        None => held_back.iter().map(one).collect(),
        Some(grant) => {
            let names: BTreeSet<&str> = held_back.iter().map(|item| item.name.as_str()).collect();
            let before = grant.items.iter().filter(|item| names.contains(item.name.as_str())).cloned();
            let mut lines = vec!["(changed since you trusted it)".to_owned()];
            lines.extend(difference(&before.collect::<Vec<_>>(), held_back));
            lines
        }
    };
    lines.iter().map(|line| format!("\n  {line}")).collect()
}

fn one(item: &Item) -> String {
    let Item { what, name, place, shown, .. } = item;
    format!("{}: {name} = {shown} ({place})", what.words())
}
