//! `muster ps`: the processes of the fleet.

use muster_bus::Bus;
use muster_bus::allowance::breaker::BreakerState;
use muster_bus::credentials::{Issued, Place};
use muster_orchestrator::decide::{AgentsByRole, waits_for_within};
use muster_shared::ids::RunId;
use muster_shared::track_record::{Identity, TrackRecords};
use muster_shared::wire::Profile;
use serde_json::{Value, json};

use crate::app::{App, now};
use crate::args::JsonArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::state::{FleetState, MemberState};
use crate::mcp_file::HeldTool;
use crate::render::figures;
use crate::render::processes::{Listed, Machine};
use crate::{mcp_file, output, render};

/// Longest line about a provider.
const LINE: usize = 300;

/// How many runs, newest first, are looked at for those that are paused, wait for a person or lack something.
const LOOKED_AT: usize = 20;

/// The local fleet, if it is the one that is asked.
fn local(app: &App) -> Option<FleetState> {
    let url = app.url()?;
    app.fleet.live().filter(|state| state.url == url)
}

/// What `muster ps` tells of a fleet.
pub(crate) struct FleetShown {
    /// The processes, with what their work came to.
    pub(crate) listed: Vec<Listed>,
    /// The processes of a local fleet.
    pub(crate) members: Vec<MemberState>,
    /// Machines that joined it.
    pub(crate) hosts: Vec<Machine>,
    /// Providers that are not asked for now.
    pub(crate) open: Vec<BreakerState>,
    /// What is wrong with guards that give no verdict.
    pub(crate) silent: Vec<String>,
    /// Tools of MCP servers that wait for a person.
    pub(crate) held: Vec<HeldTool>,
    /// Files and servers of the fleet here that are not used, each with the reason.
    pub(crate) left_out: Vec<String>,
}

/// What there is to know of a fleet beside what its processes say of themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Around {
    track_records: TrackRecords,
    members: Vec<MemberState>,
    /// Credentials that this folder's keys gave to others.
    issued: Vec<Issued>,
    open: Vec<BreakerState>,
    silent: Vec<String>,
    held: Vec<HeldTool>,
}

/// Prints the registry.
pub(super) async fn ps(app: &App, args: &JsonArgs) -> Result<Exit, Failure> {
    if let Some(state) = app.fleet.live().filter(|state| state.host.is_some() && app.url().is_none()) {
        return joined(&state, args);
    }
    let bus = app.connect("reader").await?;
    let profiles = bus.registry().list().await?;
    let mut fleet = Around::look(app, &bus).await.with(profiles);
    if local(app).is_some() {
        fleet.left_out = super::agent::left_out(app);
    }
    if args.json {
        output::json(&fleet.in_json())?;
    } else {
        in_words(app, &bus, fleet).await?;
    }
    Ok(Exit::Completed)
}

impl Around {
    /// Looks now. What cannot be found out is left out.
    pub(crate) async fn look(app: &App, bus: &Bus) -> Self {
        let mut track_records = TrackRecords::default();
        for kept in bus.track_record().all().await.unwrap_or_default() {
            track_records.learn(kept);
        }
        let here = local(app);
        let breakers = bus.allowances().breakers().await.unwrap_or_default();
        Self {
            track_records,
            issued: here.as_ref().map(|_| issued(app)).unwrap_or_default(),
            held: here.as_ref().map(|_| mcp_file::held(app)).unwrap_or_default(),
            members: here.map(|state| state.members).unwrap_or_default(),
            open: breakers.into_iter().filter(|breaker| breaker.is_open_at(now())).collect(),
            silent: super::guard::silent(app, bus).await,
        }
    }

    /// The same, with the processes.
    pub(crate) fn with(&self, profiles: Vec<Profile>) -> FleetShown {
        let listed = profiles.into_iter().map(|profile| {
            let who = Identity::of(&profile.agent, &profile.name, &profile.host);
            Listed::new(profile, self.track_records.of_agent(&who))
        });
        let listed: Vec<Listed> = listed.collect();
        let hosts = machines(&self.issued, &listed);
        let (members, open, silent) = (self.members.clone(), self.open.clone(), self.silent.clone());
        let held = self.held.clone();
        FleetShown { listed, members, hosts, open, silent, held, left_out: Vec::new() }
    }
}

/// The credentials that this folder's keys gave to others.
fn issued(app: &App) -> Vec<Issued> {
    app.keys().and_then(|keys| keys.issued().ok()).unwrap_or_default()
}

/// The machines that joined, by the ledger of this folder's keys, with who of them is there.
fn machines(issued: &[Issued], listed: &[Listed]) -> Vec<Machine> {
    let is_there = |one: &&Issued| listed.iter().any(|listed| listed.profile.agent == one.name);
    let machine = |one: &Issued| match &one.place {
        Some(Place::Machine { roles, .. }) => Some(Machine {
            joined_host: one.name.clone(),
            roles: roles.clone(),
            since: one.issued,
            agents: issued
                .iter()
                .filter(|process| process.host() == Some(&one.name))
                .filter(is_there)
                .map(|process| process.name.clone())
                .collect(),
        }),
        Some(Place::Invitation { .. } | Place::On { .. }) | None => None,
    };
    issued.iter().filter_map(machine).collect()
}

/// The processes here of a fleet that is elsewhere, which is for others to look at.
fn joined(state: &FleetState, args: &JsonArgs) -> Result<Exit, Failure> {
    if args.json {
        output::json(&state.members)?;
        return Ok(Exit::Completed);
    }
    output::line(&render::processes::of_this_machine(&state.members))?;
    let host = state.host.as_ref().map_or("", |host| host.as_str());
    output::note(&format!(
        "this machine, {host}, works for the fleet at {}: `muster ps` there shows all",
        state.url
    ));
    Ok(Exit::Completed)
}

impl FleetShown {
    /// As `muster ps --json` prints it.
    pub(crate) fn in_json(&self) -> Vec<Value> {
        let listed = self.listed.iter().map(|listed| json!(listed));
        let given_up = self.members.iter().filter(|member| member.given_up);
        let given_up = given_up
            .map(|member| json!({ "name": member.name, "role": member.role(), "given_up": member.gave_up }));
        let hosts = self.hosts.iter().map(|host| json!(host));
        let open = self.open.iter().map(|breaker| {
            let said = breaker.in_words(now());
            json!({ "provider": breaker.provider, "outage": said, "open_until": breaker.open_until })
        });
        let silent = self.silent.iter().map(|why| json!({ "guard_without_verdict": why }));
        let held = self.held.iter().map(|one| json!({ "held_back": one.name, "look": one.look }));
        let left_out = self.left_out.iter().map(|why| json!({ "left_out": why }));
        listed.chain(given_up).chain(hosts).chain(open).chain(silent).chain(held).chain(left_out).collect()
    }

    /// Who is there by role, for the rules on who waits for whom.
    pub(crate) fn agents(&self) -> AgentsByRole {
        self.listed.iter().map(|listed| &listed.profile).collect()
    }
}

async fn in_words(app: &App, bus: &Bus, fleet: FleetShown) -> Result<(), Failure> {
    let agents = fleet.agents();
    let FleetShown { listed, members, hosts, open, silent, held, left_out } = fleet;
    if let Some(team) = app.fleet.live().and_then(|state| state.team) {
        output::line(&format!("team {team}"))?;
    }
    let set_aside = render::processes::set_aside(&listed, now());
    let here: Vec<String> = listed.iter().map(|listed| listed.profile.role.clone()).collect();
    output::line(&render::processes::table(listed, now()))?;
    for line in set_aside.into_iter().chain(render::processes::given_up(&members, &here, now())) {
        output::line(&line)?;
    }
    for host in &hosts {
        output::line(&render::processes::machine(host))?;
    }
    for breaker in &open {
        output::line(&figures::one_line(&breaker.in_words(now()), LINE))?;
    }
    for line in &silent {
        output::line(&figures::one_line(line, LINE))?;
    }
    for one in &held {
        output::line(&format!("the tool {} is {}", one.name, one.describe()))?;
    }
    for line in &left_out {
        // The remedy is at its end.
        output::line(&figures::one_line(&format!("left out: {line}"), 2 * LINE))?;
    }
    runs(bus, &agents).await
}

/// The runs that are paused, wait for a person or lack an agent.
async fn runs(bus: &Bus, agents: &AgentsByRole) -> Result<(), Failure> {
    let newest = super::runs::newest(bus, LOOKED_AT).await?;
    if let Some(text) = super::runs::summary(&newest.left_out) {
        output::note(&text);
    }
    let child = |wanted: RunId| newest.runs.iter().find(|run| run.id == wanted);
    for run in &newest.runs {
        let short = run.id.short();
        if run.control.paused.is_some() {
            output::line(&format!("run {short} is paused; `muster resume {short}` lets it go on"))?;
        }
        for waits in waits_for_within(run, agents, &child)
            .iter()
            .filter(|waits| waits.is_lacking() || waits.is_for_person())
        {
            output::line(&format!("run {short} waits for {waits}"))?;
        }
    }
    Ok(())
}
