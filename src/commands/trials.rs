//! `muster trials`: which trials there are, how they stand, and by what they are withdrawn.

use muster_bus::Bus;
use muster_shared::flow::TrialRule;
use muster_shared::trial_state::TrialState;
use serde_json::Value;

use super::select;
use crate::app::{App, now, user};
use crate::args::{TrialArgs, TrialsAction, TrialsArgs};
use crate::exit::{Exit, Failure, usage};
use crate::output;
use crate::render::{figures, trials};

/// Lists trials, or changes how one stands.
pub(super) async fn perform(app: &App, args: &TrialsArgs) -> Result<Exit, Failure> {
    match &args.action {
        None => list(app, args.json).await,
        Some(TrialsAction::Withdraw(trial)) => withdraw(app, trial).await,
        Some(TrialsAction::Resume(trial)) => resume(app, trial).await,
    }
}

async fn list(app: &App, as_json: bool) -> Result<Exit, Failure> {
    let known = select::reading(app, async |bus| Ok(bus.trials().all().await?)).await?;
    let rules = &app.settings().limits.trials;
    let state = |name: &str| known.iter().find(|state| state.name == name);
    let standing: Vec<trials::Standing<'_>> = rules
        .iter()
        .map(|rule| trials::Standing {
            rule: Some(rule),
            state: state(&rule.name).filter(|state| state.about == rule.about()),
        })
        .chain(
            known
                .iter()
                .filter(|state| rules.iter().all(|rule| rule.name != state.name))
                .map(|state| trials::Standing { rule: None, state: Some(state) }),
        )
        .collect();
    output::json_or_line(
        as_json,
        || standing.iter().map(trials::Standing::to_json).collect::<Vec<Value>>(),
        || trials::table(&standing),
    )
}

async fn withdraw(app: &App, args: &TrialArgs) -> Result<Exit, Failure> {
    let by = Some(user()).filter(|name| !name.is_empty()).unwrap_or_else(|| "a person".to_owned());
    let reason = if args.reason.trim().is_empty() { "a person withdrew it" } else { args.reason.trim() };
    change(app, &args.name, |state| state.withdraw(now(), &by, reason)).await?;
    output::note!("trial {} is withdrawn", args.name);
    Ok(Exit::Completed)
}

async fn resume(app: &App, args: &TrialArgs) -> Result<Exit, Failure> {
    change(app, &args.name, |state| state.resume(now())).await?;
    output::note!("trial {} goes on, in runs that begin from now on; it is counted anew", args.name);
    Ok(Exit::Completed)
}

async fn change(app: &App, name: &str, change: impl Fn(&mut TrialState)) -> Result<(), Failure> {
    let rule = app.settings().limits.trials.iter().find(|rule| rule.name == name);
    select::reading(app, async |bus| changed(bus, rule, name, change).await).await
}

async fn changed(
    bus: &Bus,
    rule: Option<&TrialRule>,
    name: &str,
    change: impl Fn(&mut TrialState),
) -> Result<(), Failure> {
    let known = if muster_shared::flow::is_trial_name(name) { bus.trials().of(name).await? } else { None };
    if rule.is_none() && known.is_none() {
        let shown = figures::one_line(name, 48);
        return Err(usage!("there is no trial {shown}").help("`muster trials` lists them"));
    }
    let apply = |known: Option<TrialState>| {
        let mut state = match rule {
            Some(rule) => TrialState::of(known, rule, now()),
            None => known.unwrap_or_default(),
        };
        change(&mut state);
        (state, ())
    };
    Ok(bus.trials().change(name, apply).await?)
}
