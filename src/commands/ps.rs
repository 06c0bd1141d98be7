//! `muster ps`: the processes of the fleet.

use muster_bus::allowance::breaker::BreakerState;
use muster_orchestrator::decide::{AgentsByRole, waits_for};
use muster_shared::track_record::{Identity, TrackRecords};
use serde_json::{Value, json};

use crate::app::{App, bus_failure, now};
use crate::args::JsonArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::state::FleetState;
use crate::render::figures;
use crate::render::processes::Listed;
use crate::{output, render};

/// Longest line about a provider.
const LINE: usize = 300;

/// How many runs, newest first, are looked at for those that are paused or lack something.
const LOOKED_AT: usize = 20;

/// The local fleet, if it is the one that is asked.
fn local(app: &App) -> Option<FleetState> {
    let url = app.url()?;
    app.fleet.live().filter(|state| state.url == url)
}

/// Prints the registry.
pub(super) async fn ps(app: &App, args: &JsonArgs) -> Result<Exit, Failure> {
    let bus = app.connect("reader").await?;
    let profiles = bus.registry().list().await.map_err(bus_failure)?;
    let mut track_records = TrackRecords::default();
    // A fleet of before there was this has no place for it.
    for kept in bus.track_record().all().await.unwrap_or_default() {
        track_records.learn(kept);
    }
    let agents: AgentsByRole = profiles.iter().collect();
    let listed: Vec<Listed> = profiles
        .into_iter()
        .map(|profile| Listed {
            track_record: track_records.of_agent(&Identity::of(&profile.agent, &profile.name, &profile.host)),
            profile,
        })
        .collect();
    let members = local(app).map(|state| state.members).unwrap_or_default();
    // The rates and budgets of a fleet have a place of their own; one that began before it has none.
    let breakers = bus.allowances().breakers().await.unwrap_or_default();
    let open: Vec<BreakerState> = breakers.into_iter().filter(BreakerState::is_open).collect();
    if args.json {
        let mut all: Vec<Value> = listed.iter().map(|listed| json!(listed)).collect();
        let given_up = members.iter().filter(|member| member.given_up);
        all.extend(
            given_up.map(
                |member| json!({ "name": member.name, "role": member.role(), "given_up": member.gave_up }),
            ),
        );
        all.extend(open.iter().map(|breaker| {
            let said = breaker.in_words(now());
            json!({ "provider": breaker.provider, "outage": said, "open_until": breaker.open_until })
        }));
        output::json(&all)?;
    } else {
        if let Some(team) = app.fleet.live().and_then(|state| state.team) {
            output::line(&format!("team {team}"))?;
        }
        let set_aside = render::processes::set_aside(&listed, now());
        let here: Vec<String> = listed.iter().map(|listed| listed.profile.role.clone()).collect();
        output::line(&render::processes::table(listed, now()))?;
        for line in set_aside {
            output::line(&line)?;
        }
        for line in render::processes::given_up(&members, &here, now()) {
            output::line(&line)?;
        }
        for breaker in &open {
            output::line(&figures::one_line(&breaker.in_words(now()), LINE))?;
        }
        for file in app.fleet.live().into_iter().flat_map(|state| state.refused) {
            output::line(&format!("an agent file is left out: {}", file.reason))?;
        }
        let newest = super::runs::newest(&bus, LOOKED_AT).await?;
        if let Some(text) = super::runs::summary(&newest.left_out) {
            output::note(&text);
        }
        for run in newest.runs {
            let short = run.id.short();
            if run.control.paused.is_some() {
                output::line(&format!("run {short} is paused; `muster resume {short}` lets it go on"))?;
            }
            for waits in waits_for(&run, &agents).iter().filter(|waits| waits.is_lacking()) {
                output::line(&format!("run {short} waits for {waits}"))?;
            }
        }
    }
    Ok(Exit::Completed)
}
