//! `muster agent`: be an agent of a role, or a specialist that a file defines; or serve tools.

#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod tools;

use std::path::Path;
use std::sync::Arc;

use muster_agents::definition::Definition;
use muster_agents::model::budget_lease::FleetBudget;
use muster_agents::{AgentError, AgentSettings, run_agent, run_specialist};
use muster_bus::Bus;
use muster_bus::credentials::{HolderKind, Identity, identity};
use muster_shared::ids::Role;
use muster_shared::text::counted;
use serde_json::json;

#[cfg(not(feature = "mcp"))]
pub(crate) use crate::absent::mcp;
use crate::app::{App, no_fleet};
use crate::args::{AgentArgs, AgentKind};
use crate::exit::{Exit, Failure, usage};
use crate::settings::{AGENTS_DIR, FleetSettings};
use crate::signals::StopSignals;
use crate::telemetry;
use crate::trust::real;
use crate::{agent_file, output};

/// Works until told to stop.
pub(super) async fn agent(app: &App, args: AgentArgs) -> miette::Result<Exit> {
    let serves_tools = matches!(args.kind, AgentKind::Tools | AgentKind::Mcp);
    if !serves_tools && (args.folder.is_some() || args.name.is_some()) {
        let failure = usage!("a folder and --name are for `muster agent tools` alone");
        return Err(failure.help("leave them out").into());
    }
    let (role, definition) = match &args.kind {
        AgentKind::Tools => return Ok(tools::serve(app, &args).await?),
        AgentKind::Mcp => return Ok(mcp::serve(app, &args).await?),
        AgentKind::BuiltIn(role) => (role.clone(), None),
        AgentKind::File(path) => {
            let definition = definition(app, path)?;
            (definition.role.clone(), Some(definition))
        }
    };
    if args.check {
        return Ok(check(&args, &role, definition.as_ref())?);
    }
    Ok(work(app, role, definition).await?)
}

/// Files and MCP servers of the fleet here that are left out, each with the reason.
pub(super) fn left_out(app: &App) -> Vec<String> {
    tools::left_out(app).into_iter().chain(mcp::left_out(app)).collect()
}

/// Definition in a file. A file in the directory of agents is a discovered file even if it is named: the fleet starts agents by name.
pub(crate) fn definition(app: &App, path: &Path) -> Result<Definition, agent_file::AgentFileError> {
    let folder = app.beside_fleet(Path::new(AGENTS_DIR));
    let base = folder.parent().filter(|_| real(path).parent() == Some(real(&folder).as_path()));
    match base {
        Some(base) => agent_file::read_found(path, base, &app.trust),
        None => agent_file::read_own(path, &app.trust),
    }
}

async fn work(app: &App, role: Role, definition: Option<Definition>) -> Result<Exit, Failure> {
    let stop = StopSignals::listen()?.into_token();
    let url = app.url().ok_or_else(no_fleet)?;
    let credentials = app.way_to(&url).credentials;
    if let Some(other) = credentials.as_deref().and_then(|path| are_of_another(path, &role)) {
        return Err(other);
    }
    let bus = app.connect_to(&url, &role.to_string()).await?;
    // An agent may be the first on a bus; doing it again changes nothing.
    bus.provision().await?;
    let work = async |bus: &Bus| {
        tracing::info!(
            "joining the fleet at {} as {role}; Ctrl-C or SIGTERM leaves it in good order",
            app.redactor.redact(&url),
        );
        let (mut settings, redactor) = (settings(app), Arc::clone(&app.redactor));
        let (composites, faults) = tools::composites(app, &crate::tool_files::folder_of(app));
        for fault in faults {
            tracing::warn!(fault, "a composite tool is left out");
        }
        settings.composites = composites;

        let bus = bus.clone();
        let worked = match definition {
            Some(definition) => Box::pin(run_specialist(bus, definition, settings, redactor, stop)).await,
            None => Box::pin(run_agent(bus, role.clone(), settings, redactor, stop)).await,
        };
        worked.map_err(|error| stopped(&role, error))
    };
    super::rejoin::with_telemetry(app, (bus, &url), telemetry::Role::Agent, work).await
}

/// Refuses credentials that let nobody be an agent of this role: the server would deny it one subject after another.
fn are_of_another(path: &Path, role: &Role) -> Option<Failure> {
    // What cannot be read is told when it is used.
    let Identity { name, kind } = identity(path).ok().flatten()?;
    let fits = [HolderKind::Operator, HolderKind::Agent(role.clone())].contains(&kind);
    (!fits).then(|| {
        usage!("the credentials in {} are those of {name} ({kind}), and not of a {role}", path.display())
            .help(format!("`muster keys issue agent:{role}` where the fleet runs makes such ones; bus.credentials names them"))
    })
}

/// Why an agent works no more.
fn stopped(role: &Role, error: AgentError) -> Failure {
    let said = format!("the {role} stopped: {error}");
    let exit = match error {
        AgentError::Bus(error) => Failure::from(error).exit(),
        AgentError::Stopped => Exit::Failed,
    };
    Failure::new(exit, said).help("`muster doctor` checks the bus and the models")
}

/// The settings of agents, with what lies beside the fleet.
pub(super) fn settings(app: &App) -> AgentSettings {
    let mut settings = app.settings().agent.clone();
    settings.cache_dir = app.cache_dir();
    settings.blueprints = super::blueprint::folders(app);
    for left_out in super::blueprint::left_out(app) {
        tracing::warn!("{left_out}");
    }
    let FleetSettings { budget, budget_per: per, .. } = app.settings().fleet;
    settings.fleet = FleetBudget { budget, per };
    settings.tool = app.settings().tool.clone();
    settings.documents = app.settings().documents.clone();
    settings
}

/// Says what a file defines.
fn check(args: &AgentArgs, role: &Role, definition: Option<&Definition>) -> Result<Exit, Failure> {
    let Some(definition) = definition else {
        return Err(usage!("{role} is a built-in role: there is no file to check")
            .help("`muster agent --check NAME.agent.md` checks a file"));
    };
    let Definition { description, capabilities, model, tools, sections, hash, .. } = definition;
    let in_json = || {
        json!({
            "role": role, "description": description, "capabilities": capabilities, "model": model,
            "tools": tools, "contract": definition.contract.schemas(), "sections": sections, "hash": hash,
        })
    };
    output::json_or_line(args.json, in_json, || described(role, definition))
}

fn described(role: &Role, definition: &Definition) -> String {
    let sections = &definition.sections;
    let lists = [
        counted(sections.typical_thoughts.len(), "typical thought", "typical thoughts"),
        counted(sections.specific_actions.len(), "specific action", "specific actions"),
        counted(sections.done_criteria.len(), "done criterion", "done criteria"),
        counted(sections.escalation_triggers.len(), "escalation trigger", "escalation triggers"),
    ];
    let promise = |given: bool| if given { "checked" } else { "anything" };
    let contract = &definition.contract;
    format!(
        "{role}: {}\n  can: {}\n  takes: {}; gives: {}\n  {}",
        definition.description,
        definition.capabilities.join(", "),
        promise(contract.input.is_some()),
        promise(contract.output.is_some()),
        lists.join(", ")
    )
}
