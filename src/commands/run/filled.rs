//! The blueprint that a goal is to be worked on by, with the values given on the command line.

use std::collections::BTreeMap;

use muster_shared::blueprint::{Filled, MAX_FILE_BYTES, fill_text, schema};
use serde_json::{Map, Value};

use super::super::blueprint;
use crate::app::App;
use crate::args::RunArgs;
use crate::exit::{Failure, usage};
use crate::render::figures;

/// The blueprint that was asked for, filled.
pub(super) fn filled(app: &App, args: &RunArgs) -> Result<Option<Box<Filled>>, Failure> {
    let Some(wanted) = &args.blueprint else { return Ok(None) };
    let found = blueprint::find(app, wanted)?;
    let mut given = from_file(args)?;
    for (name, value) in &args.param {
        given.insert(name.clone(), Value::String(value.clone()));
    }
    given.values_mut().for_each(|value| app.redactor.redact_value(value));
    let given: BTreeMap<String, Value> = given.into_iter().collect();
    match fill_text(&found, &given) {
        Ok(filled) => Ok(Some(Box::new(filled))),
        Err(wrong) => {
            let lines: Vec<String> = wrong.iter().map(|error| format!("  {error}")).collect();
            let takes: Vec<String> = schema(&found)["properties"]
                .as_object()
                .map(|names| names.keys().cloned().collect())
                .unwrap_or_default();
            Err(usage!("{} cannot be filled:\n{}", found.name, lines.join("\n")).help(
                format!(
                    "give values with --param NAME=VALUE or --params FILE; it takes {}. `muster blueprint show {}` \
                     tells what they mean",
                    if takes.is_empty() { "none".to_owned() } else { takes.join(", ") },
                    figures::quoted(wanted)
                ),
            ))
        }
    }
}

fn from_file(args: &RunArgs) -> Result<Map<String, Value>, Failure> {
    let Some(path) = &args.params else { return Ok(Map::new()) };
    let wrong = |why: String| {
        usage!("cannot take values from {}: {why}", path.display())
            .help("write a JSON object or a TOML table of names and values")
    };
    let text = muster_agents::input::text(path, MAX_FILE_BYTES as u64).map_err(wrong)?;
    if path.extension().is_some_and(|end| end == "toml") {
        return toml::from_str(&text).map_err(|error| wrong(error.to_string()));
    }
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}
