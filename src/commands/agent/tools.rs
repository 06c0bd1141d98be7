//! `muster agent tools`: serves the tools that files of a folder define to the fleet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use muster_agents::AgentSettings;
use muster_agents::tools::edges::{http_caller, program_runner};
use muster_agents::tools::{Tool, registry_of};
use muster_bus::Bus;
use muster_composite::{Composite, Composites};
use muster_shared::text::counted;
use muster_shared::wire::Profile;
use muster_shared::wire::tool_server::{SERVER_NAME_RULE, is_tool_server_name};
use muster_tool_server::file::{Does, ENDING, Hands};
use muster_tool_server::{PlainRunner, ToolServer, under_name};
use muster_tools::{Program, ProgramEnd, ProgramRunner, ToolFailure};
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::args::AgentArgs;
use crate::commands::bystander::profile;
use crate::commands::rejoin::connect_and_work;
use crate::exit::{Exit, Failure, usage};
use crate::fleet::specialists::{self, Content};
use crate::signals::StopSignals;
use crate::telemetry::Role;
use crate::trust::{Programs, TRUST_HELP, Trust};
use crate::{output, tool_files};

/// Under which name a fleet's own tools are served, unless told otherwise.
pub(crate) const OWN: &str = "own";

/// Under which role the tool server of a name is in the registry: none that a task can have.
pub(crate) fn role_of(name: &str) -> String {
    Profile::role_of_tool_server(name)
}

/// What carries out what tool files say.
pub(super) fn hands(app: &App) -> Hands {
    let settings = super::settings(app);
    let base = app.beside_fleet(Path::new(""));
    Hands {
        sandbox: program_runner(&settings),
        plain: Arc::new(TrustedRunner { trust: app.trust.clone(), base }),
        http: http_caller(&settings.tool.web),
    }
}

/// Runs programs outside of the sandbox. Programs of the project run only with the content that the user trusted: they may
/// have changed after their tool file was read.
struct TrustedRunner {
    trust: Trust,
    base: PathBuf,
}

#[async_trait]
impl ProgramRunner for TrustedRunner {
    async fn run(&self, program: Program, cancel: &CancellationToken) -> Result<ProgramEnd, ToolFailure> {
        let mut programs = Programs::default();
        // It starts in an empty directory: relative paths are none of the project.
        programs.add(&program.command, &program.environment, Path::new("/"), &self.base);
        match programs.files.iter().find(|path| !self.trust.trusts_program(path)) {
            Some(changed) => {
                let shown = changed.display();
                Err(ToolFailure::Refused(format!("{shown} is not trusted as it is now; {TRUST_HELP}")))
            }
            None => PlainRunner.run(program, cancel).await,
        }
    }
}

/// Effects of a tool of the fleet's directory that the user has trusted: hosts, secrets and programs.
pub(crate) fn access(app: &App, tool: &str) -> Vec<String> {
    let folder = tool_files::folder_of(app);
    let stem = tool.strip_prefix(OWN).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
    let path = folder.join(format!("{stem}{ENDING}"));
    tool_files::wanted(&path, base(app, &folder)).iter().map(ToString::to_string).collect()
}

/// Serves the tools of a folder until told to stop; or only says what there is.
pub(super) async fn serve(app: &App, args: &AgentArgs) -> Result<Exit, Failure> {
    let folder = args.folder.clone().unwrap_or_else(|| tool_files::folder_of(app));
    let hands = hands(app);
    if args.check {
        return check(app, args, &folder, &hands);
    }
    let name = args.name.clone().unwrap_or_else(|| OWN.to_owned());
    if !is_tool_server_name(&name) {
        let failure = usage!("{name:?} cannot be the name of a tool server");
        return Err(failure.help(format!("use {SERVER_NAME_RULE}")));
    }
    let stop = StopSignals::listen()?.into_token();
    let role = role_of(&name);
    connect_and_work(app, &role, Role::ToolServer, &stop.clone(), async |bus, url| {
        let shown = folder.display();
        tracing::info!("serving the tools of {shown} as {name} at {url}; Ctrl-C or SIGTERM ends it");
        work(app, bus, name, role.clone(), &folder, &hands, stop).await
    })
    .await
}

async fn work(
    app: &App,
    bus: &Bus,
    name: String,
    role: String,
    folder: &Path,
    hands: &Hands,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let first = read(app, folder, hands);
    let names = names(&name, &first);
    let (offer, offered) = watch::channel(first);
    let server =
        ToolServer::new(bus.clone(), name.clone(), app.settings().tool.server, Arc::clone(&app.redactor));
    bus.provision().await?;
    let serving = server.begin(offered, stop).await?;
    // Whoever sees it in the registry may count on it.
    let announced = bus.registry().announce(profile(app, bus, role, names)).await?;
    let changed = |tools: Vec<Arc<dyn Tool>>| {
        announced.set_tools(self::names(&name, &tools));
        offer.send_replace(tools);
    };
    let following = follow(app, folder, hands, changed);
    tokio::select! {
        () = serving => {}
        () = following => {}
    }
    Ok(announced.leave().await?)
}

/// The full names of these tools of a server.
fn names(server: &str, tools: &[Arc<dyn Tool>]) -> Vec<String> {
    tools.iter().map(|tool| format!("{server}.{}", tool.spec().name)).collect()
}

/// Reads the folder again whenever anything in it changes.
async fn follow(app: &App, folder: &Path, hands: &Hands, changed: impl Fn(Vec<Arc<dyn Tool>>)) {
    let mut before = tool_files::stamp(folder);
    let mut look = tokio::time::interval(crate::settings::FOLDER_SCAN_INTERVAL);
    loop {
        look.tick().await;
        let now = tool_files::stamp(folder);
        if now != before {
            before = now;
            changed(read(app, folder, hands));
        }
    }
}

fn read(app: &App, folder: &Path, hands: &Hands) -> Vec<Arc<dyn Tool>> {
    let found = tool_files::read(folder, base(app, folder), &app.trust, hands);
    for fault in &found.faults {
        tracing::warn!(fault, "a tool file is left out");
    }
    found.tools
}

/// The composite tools of a folder, and what is wrong with those that are left out.
pub(crate) fn composites(app: &App, folder: &Path) -> (Composites, Vec<String>) {
    let (all, faults) = tool_files::read_composites(folder, base(app, folder), &app.trust);
    (Composites::new(all), faults)
}

/// Tool files, composites, agent files and members of the team that are left out, each with the reason.
pub(super) fn left_out(app: &App) -> Vec<String> {
    let folder = tool_files::folder_of(app);
    let found = tool_files::read(&folder, base(app, &folder), &app.trust, &hands(app));
    let faulty = match app.fleet.live() {
        Some(state) => state.refused.into_iter().map(|file| file.reason).collect(),
        None => {
            let agents = specialists::settle(&specialists::look_for(app, &specialists::Files::new()));
            let reason = |content| match content {
                Content::Faulty { reason, .. } => Some(reason),
                Content::Specialist { .. } => None,
            };
            agents.into_values().filter_map(reason).collect::<Vec<_>>()
        }
    };
    found.faults.into_iter().chain(composites(app, &folder).1).chain(faulty).collect()
}

/// The tools of the fleet's folder under the name by which agents know them, called in this process.
pub(crate) fn own_tools(app: &App, folder: &Path) -> Vec<Arc<dyn Tool>> {
    if tool_files::files_in(folder, ENDING).is_empty() {
        return Vec::new();
    }
    let found = tool_files::read(folder, base(app, folder), &app.trust, &hands(app));
    found.faults.iter().for_each(|fault| output::note(fault));
    found.tools.into_iter().map(|tool| under_name(OWN, tool)).collect()
}

/// Up to where it is looked who else could change what lies there.
fn base<'a>(app: &'a App, folder: &'a Path) -> &'a Path {
    app.fleet.path().parent().filter(|base| folder.starts_with(base)).unwrap_or(folder)
}

/// Says what the files define, and what is wrong with those that define nothing.
fn check(app: &App, args: &AgentArgs, folder: &Path, hands: &Hands) -> Result<Exit, Failure> {
    let mut found = tool_files::read(folder, base(app, folder), &app.trust, hands);
    let (composites, faults) = composites(app, folder);
    found.faults.extend(faults);
    let composed = composed(app, &found, composites);
    found.faults.extend(composed.iter().filter_map(|one| one.fault.clone()));
    let does = |does: &Does| match does {
        Does::Program { command, .. } => command.join(" "),
        Does::Http(http) => http.in_words(),
        Does::OpenApi(openapi) => openapi.in_words(),
    };
    if args.json {
        let files: Vec<_> = found
            .files
            .iter()
            .map(|(path, file)| {
                json!({ "file": path, "name": file.name, "description": file.description, "pure": file.pure,
                        "does": does(&file.does), "hosts": file.hosts })
            })
            .collect();
        output::json(&json!({ "tools": files, "composites": composed, "faults": found.faults }))?;
    } else {
        for (_, file) in &found.files {
            output::line!("{}: {}\n  {}", file.name, file.description, does(&file.does))?;
        }
        for Composed { name, description, calls, .. } in &composed {
            output::line!("{name}: {description}\n  calls {}", calls.join(", "))?;
        }
        for Composed { name, missing, .. } in composed.iter().filter(|one| !one.missing.is_empty()) {
            output::note!("{name} is there once these are, which are not here: {}", missing.join(", "));
        }
        for fault in &found.faults {
            output::note(fault);
        }
        output::note(&counted(found.files.len() + composed.len(), "tool", "tools"));
    }
    Ok(if found.faults.is_empty() { Exit::Completed } else { Exit::Usage })
}

/// What a file with a composite tool comes to here.
#[derive(Serialize)]
struct Composed {
    name: String,
    description: String,
    calls: Vec<String>,
    /// Those of them that only agents may know: of tool servers elsewhere, and of other protocols.
    missing: Vec<String>,
    #[serde(skip)]
    fault: Option<String>,
}

/// What composites come to beside the tools of agents and those of the folder.
fn composed(app: &App, found: &tool_files::Found, composites: Composites) -> Vec<Composed> {
    let own: Vec<_> = found.tools.iter().map(|tool| under_name(OWN, Arc::clone(tool))).collect();
    let settings = AgentSettings { composites, ..super::settings(app) };
    let (registry, composites) = (registry_of(&settings, &own), &settings.composites);
    let one = |composite: &Composite| {
        let name = &composite.name;
        Composed {
            name: name.clone(),
            description: composite.description.clone(),
            calls: composite.tools().into_iter().map(str::to_owned).collect(),
            missing: composites.missing(name, &registry),
            fault: composites.fault(name, &registry).map(|why| format!("{name}: {why}")),
        }
    };
    composites.iter().map(one).collect()
}
