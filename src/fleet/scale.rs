//! How many processes each role of a fleet has: asked for by name, those of specialists too.

use std::collections::BTreeMap;

use muster_shared::ids::Role;
use muster_shared::text::nearest_name;

use super::specialists::{self, Content, Files};
use crate::app::App;
use crate::exit::{Failure, usage};

/// The name under which orchestrators are scaled.
pub(crate) const ORCHESTRATOR: &str = "orchestrator";

/// What was asked for on the command line, over what settings say.
///
/// # Errors
/// When somebody is named whom this fleet does not have.
pub(crate) fn of(app: &App, asked: &BTreeMap<String, u16>) -> Result<BTreeMap<String, u16>, Failure> {
    let mut scale = app.settings().fleet.scale.clone();
    scale.extend(asked.iter().map(|(name, count)| (name.clone(), *count)));
    let mut known: Vec<String> = Role::BUILT_IN.iter().map(Role::to_string).collect();
    known.push(ORCHESTRATOR.to_owned());
    if scale.keys().all(|name| known.contains(name)) {
        return Ok(scale);
    }
    let files = specialists::look_for(app, &Files::new());
    known.extend(files.into_values().filter_map(|file| match file.content {
        Content::Specialist { role, .. } => Some(role),
        Content::Faulty { .. } => None,
    }));
    known.extend(app.loaded.team.iter().flat_map(|team| &team.specialists).map(|member| member.role.clone()));
    match scale.keys().find(|name| !known.contains(name)) {
        None => Ok(scale),
        Some(name) => Err(unknown(name, known)),
    }
}

fn unknown(name: &str, mut known: Vec<String>) -> Failure {
    let nearest = nearest_name(name, known.iter().map(String::as_str));
    let meant = nearest.map_or_else(String::new, |known| format!("did you mean {known}? "));
    known.sort();
    known.dedup();
    usage!("this fleet has no role or specialist {name} to scale").help(format!(
        "{meant}There are {}. A specialist is known by its file, agents/NAME.agent.md, if that has no fault, or by the \
         team of --fleet",
        known.join(", ")
    ))
}
