//! The asker's settings where a fleet is up already: what can belong to a run goes with the goal, the rest is refused or
//! told.

use muster_shared::flow::Goal;

use crate::app::App;
use crate::exit::{Failure, usage};
use crate::fleet::keys;
use crate::fleet::state::FleetState;
use crate::output;
use crate::settings::{Carried, carry, list};

/// Puts into the goal what of the asker's settings can belong to a run.
///
/// # Errors
/// When something was given by a flag that only the fleet's processes can have.
pub(super) fn settle(app: &App, goal: &mut Goal) -> Result<(), Failure> {
    let carried = carried(app)?;
    goal.set_limits = carried.limits;
    let guards = &app.settings().limits.guards;
    if carried.guards
        && let Ok(rules) = serde_json::to_value(guards)
    {
        goal.set_limits.insert("guards".to_owned(), rules);
    }
    if goal.model.is_none()
        && let Some(model) = carried.model
    {
        super::super::models::check(app, &model)?;
        goal.model = Some(model);
    }
    Ok(())
}

/// The model for a fork. Its limits are those of the run that it is made from.
///
/// # Errors
/// As [`settle`], and when a limit was given by a flag.
pub(in crate::commands) fn model_of_fork(app: &App) -> Result<Option<String>, Failure> {
    let limits: Vec<String> =
        app.flags.iter().map(|(key, ..)| key.clone()).filter(|key| key.starts_with("limits.")).collect();
    if !limits.is_empty() {
        return Err(usage!("{} cannot be set for a fork", list(&limits))
            .help("a fork has the limits of the run that it is made from: leave it out, or begin a run with `muster run`"));
    }
    Ok(carried(app)?.model)
}

/// What goes with a goal; what cannot go with it is told. Nothing where a fleet is brought up for the run, since that
/// has all settings.
fn carried(app: &App) -> Result<Carried, Failure> {
    let Some(url) = app.url() else { return Ok(Carried::default()) };
    let local = app.fleet.live().filter(|state| state.url == url);
    let mut carried = carry(&app.loaded.effective, local.as_ref().map(|state| &state.settings));
    if let Some(team) = &app.loaded.team
        && local.as_ref().is_none_or(|state| state.team.as_ref() != Some(&team.name))
    {
        let shown = team.path.display();
        match &local {
            Some(_) => carried.refused.push(format!("the team {} (--fleet {shown})", team.name)),
            None => carried.notes.push(format!("the team of {shown} does not reach a fleet elsewhere")),
        }
    }
    carried.notes.extend(local.as_ref().and_then(other_keys));
    if !carried.refused.is_empty() {
        return Err(usage!(
            "{} cannot be set for one run: it belongs to the processes of the fleet that is up",
            list(&carried.refused)
        )
        .help("leave it out, or bring the fleet up with it: `muster down`, then `muster up` with the same option. Limits (limits.*) and the model (--model) can be set for a run"));
    }
    for note in &carried.notes {
        output::note!("note: {note}");
    }
    Ok(carried)
}

/// A word on keys and addresses of models in this shell that are not those of the fleet.
fn other_keys(fleet: &FleetState) -> Option<String> {
    let known = fleet.keys.as_ref()?;
    let other = keys::here().into_iter().filter(|(name, mark)| known.get(name) != Some(mark));
    let names: Vec<String> = other.map(|(name, _)| name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the fleet that is up was started without {} as it is set in this shell, and goes on as it was; `muster down`, \
             then `muster up`, hands it on",
            list(&names)
        )
    })
}
