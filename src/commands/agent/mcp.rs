//! `muster agent mcp NAME`: starts an MCP server, or connects to one, and serves its tools to the fleet.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use muster_agents::tools::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use muster_bus::{Announced, Bus};
use muster_mcp::{Callbacks, LeftOut, McpFile, McpServer, PinKeeper, Pins, Reached, ServerConfig, ToolNews};
use muster_shared::text::counted;
use muster_tool_server::ToolServer;
use muster_tools::settings::McpSettings;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::tools::role_of;
use crate::app::App;
use crate::args::{AgentArgs, ToolsAcceptArgs};
use crate::commands::bystander::profile;
use crate::commands::keep::agreed;
use crate::commands::rejoin::connect_and_work;
use crate::exit::{Exit, Failure};
use crate::render::figures;
use crate::signals::StopSignals;
use crate::telemetry::Role;
use crate::{mcp_file, output};

/// Serves the tools of an MCP server until told to stop; or only says what the file names.
pub(super) async fn serve(app: &App, args: &AgentArgs) -> Result<Exit, Failure> {
    let file = mcp_file::read(app)?;
    if args.check {
        return check(args, &file);
    }
    let config = chosen(&file, args.folder.as_deref(), app)?;
    let name = config.namespace.clone();
    let stop = StopSignals::listen()?.into_token();
    let role = role_of(&name);
    connect_and_work(app, &role, Role::ToolServer, &stop.clone(), async |bus, url| {
        tracing::info!("serving the MCP server {name} at {url}");
        work(app, bus, name, role.clone(), config, stop).await
    })
    .await
}

/// Returns the namespace of each usable server of the file, by server name. Servers with faults are logged.
pub(crate) fn named(app: &App) -> BTreeMap<String, String> {
    match mcp_file::read(app) {
        Ok(file) => {
            for left_out in &file.left_out {
                tracing::warn!(server = left_out.server, reason = left_out.reason, "MCP server skipped");
            }
            file.servers.into_iter().map(|server| (server.name, server.namespace)).collect()
        }
        Err(failure) => {
            tracing::warn!(%failure, "MCP servers skipped");
            BTreeMap::new()
        }
    }
}

/// MCP servers that are left out, each with the reason.
pub(crate) fn left_out(app: &App) -> Vec<String> {
    let path = mcp_file::path_of(app);
    match mcp_file::read(app) {
        _ if !path.exists() => Vec::new(),
        Ok(file) => {
            let line =
                |one: LeftOut| format!("{}: the MCP server {}: {}", path.display(), one.server, one.reason);
            let reported = file.servers.iter().filter_map(|server| reported(app, server));
            reported.chain(file.left_out.into_iter().map(line)).collect()
        }
        Err(failure) => vec![failure.to_string()],
    }
}

/// Reasons why a server of the fleet that is up, or a tool of it, is not used, as its process last saw it.
fn reported(app: &App, server: &ServerConfig) -> Option<String> {
    app.fleet.live()?;
    let reasons = match Pins::load(&mcp_file::pins_of(app, &server.namespace)) {
        Ok(pins) => pins.left_out.join("; "),
        Err(error) => error.to_string(),
    };
    (!reasons.is_empty())
        .then(|| app.redactor.redact(&format!("the MCP server {}: {reasons}", server.name)).into_owned())
}

/// The server of that name in the file.
pub(crate) fn chosen(file: &McpFile, name: Option<&Path>, app: &App) -> Result<ServerConfig, Failure> {
    let names = || figures::list(file.servers.iter().map(|server| &server.name));
    let path = mcp_file::path_of(app);
    let Some(name) = name.and_then(Path::to_str) else {
        return Err(Failure::usage("which MCP server is to be served is not said").help(format!(
            "`muster agent mcp NAME`: {} names {}",
            path.display(),
            names()
        )));
    };
    if let Some(LeftOut { reason, .. }) = file.left_out.iter().find(|left_out| left_out.server == name) {
        return Err(Failure::usage(format!(
            "{}: the server {name} cannot be used: {reason}",
            path.display()
        )));
    }
    file.servers.iter().find(|server| server.name == name).cloned().ok_or_else(|| {
        Failure::usage(format!("{} names no MCP server {name:?}", path.display())).help(
            match file.servers.is_empty() {
                true => "it names none; write it as for other tools: {\"mcpServers\": {…}}".to_owned(),
                false => format!("it names {}", names()),
            },
        )
    })
}

async fn work(
    app: &App,
    bus: &Bus,
    name: String,
    role: String,
    config: ServerConfig,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let listed_as = config.name.clone();
    let pins = mcp_file::pins_of(app, &name);
    let keeper = PinKeeper::new(load(&pins)?);
    let settings = &app.settings().tool.mcp;
    let tokens = Some(mcp_file::tokens_of(app));
    let (elicits, may_start) = (settings.may_elicit(&name), Some(mcp_file::check(app)));
    let callbacks = Callbacks { elicits, pins: keeper.clone(), tokens, may_start };
    // `muster ps` and `muster doctor` read the reason there.
    let started = stop.run_until_cancelled(start(config, settings, &callbacks)).await.transpose();
    let Some(mcp) = started.inspect_err(|_| save(&pins, &keeper.pins()))? else { return Ok(()) };
    let (offer, offered) = watch::channel(local_tools(&mcp, &name));
    let server =
        ToolServer::new(bus.clone(), name.clone(), app.settings().tool.server, Arc::clone(&app.redactor));
    bus.provision().await?;
    let serving = server.begin(offered, stop).await?;
    let announced = bus.registry().announce(profile(app, bus, role, full_names(&mcp))).await?;
    tokio::select! {
        () = serving => {}
        () = follow(&mcp, &name, &offer, &announced) => {}
        () = keep_pins(&pins, &keeper) => {}
        () = tell_news(&mcp, &listed_as) => {}
    }
    mcp.stop().await;
    Ok(announced.leave().await?)
}

async fn start(
    config: ServerConfig,
    settings: &McpSettings,
    callbacks: &Callbacks,
) -> Result<McpServer, Failure> {
    let name = config.name.clone();
    McpServer::start(config, settings, callbacks)
        .await
        .map_err(|error| Failure::failed(format!("the MCP server {name} cannot be used: {error}")))
}

fn load(path: &Path) -> Result<Pins, Failure> {
    Pins::load(path).map_err(|error| {
        Failure::failed(error)
            .help("it says which descriptions of tools were accepted: mend it, or remove it and look at all tools anew")
    })
}

/// Offers other tools when the server has others.
async fn follow(
    mcp: &McpServer,
    name: &str,
    offer: &watch::Sender<Vec<Arc<dyn Tool>>>,
    announced: &Announced,
) {
    let mut changes = mcp.changes();
    while changes.changed().await {
        offer.send_replace(local_tools(mcp, name));
        announced.set_tools(full_names(mcp));
    }
    std::future::pending().await
}

/// Saves what was seen, and takes what `muster tools accept` wrote.
async fn keep_pins(path: &Path, keeper: &PinKeeper) {
    let mut changes = keeper.changes();
    let mut look = tokio::time::interval(crate::settings::FOLDER_SCAN_INTERVAL);
    save(path, &keeper.pins());
    let mut known = mcp_file::stamp(path);
    loop {
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return std::future::pending().await;
                }
                save(path, &keeper.pins());
                known = mcp_file::stamp(path);
            }
            _ = look.tick() => {
                let now = mcp_file::stamp(path);
                if now != known {
                    known = now;
                    match Pins::load(path) {
                        Ok(pins) => keeper.replace(pins),
                        Err(error) => tracing::warn!(%error, "what was accepted of tools cannot be read"),
                    }
                }
            }
        }
    }
}

fn save(path: &Path, pins: &Pins) {
    if let Err(error) = pins.save(path) {
        tracing::warn!(%error, "what was seen of tools is not kept: a change of them will not be told");
    }
}

/// Tells of tools that wait for a person.
async fn tell_news(mcp: &McpServer, name: &str) {
    let mut news = mcp.news();
    loop {
        for one in news.borrow_and_update().iter() {
            tracing::warn!("{}", in_words(one, name));
        }
        if news.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

fn in_words(news: &ToolNews, server: &str) -> String {
    let look = |tool: &str| format!("`{}` shows it", mcp_file::accept_command(server, tool));
    match news {
        ToolNews::New { tool, held: false } => format!("{server} has a new tool, {tool}: it is served"),
        ToolNews::New { tool, held: true } => {
            format!("{server} has a new tool, {tool}, which is held back: {}", look(tool))
        }
        ToolNews::Changed { tool, difference } => format!(
            "{server} has changed the description of the tool {tool}, which is held back: {}:\n{difference}",
            look(tool)
        ),
        ToolNews::Refused { tool, reason } => format!("the tool {tool} of {server} is not served: {reason}"),
    }
}

fn full_names(mcp: &McpServer) -> Vec<String> {
    mcp.tools().iter().map(|tool| tool.spec().name).collect()
}

/// The tools without the name before theirs: the tool server puts its own there, which is the same.
fn local_tools(mcp: &McpServer, name: &str) -> Vec<Arc<dyn Tool>> {
    let prefix = format!("{name}.");
    let short = |inner: Arc<dyn Tool>| {
        let spec = inner.spec();
        let own = spec.name.strip_prefix(&prefix).unwrap_or(&spec.name).to_owned();
        Arc::new(Short { inner, spec: ToolSpec { name: own, ..spec } }) as Arc<dyn Tool>
    };
    mcp.tools().into_iter().map(short).collect()
}

/// A tool under a shorter name.
struct Short {
    inner: Arc<dyn Tool>,
    spec: ToolSpec,
}

#[async_trait]
impl Tool for Short {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        self.inner.call(ctx, args).await
    }
}

/// How a server is reached, in a line.
pub(crate) fn reached(server: &ServerConfig) -> String {
    match &server.reached {
        Reached::Child(child) => {
            [std::slice::from_ref(&child.command), child.args.as_slice()].concat().join(" ")
        }
        Reached::Http(http) => http.host(),
    }
}

/// Says which servers the file names, and what is wrong with others.
fn check(args: &AgentArgs, file: &McpFile) -> Result<Exit, Failure> {
    let faults: BTreeMap<&str, &str> =
        file.left_out.iter().map(|one| (one.server.as_str(), one.reason.as_str())).collect();
    if args.json {
        let servers: Vec<_> =
            file.servers.iter().map(|one| json!({ "name": one.name, "reached": reached(one) })).collect();
        output::json(&json!({ "servers": servers, "faults": faults }))?;
    } else {
        for one in &file.servers {
            output::line(&format!("{}: {}", one.name, reached(one)))?;
        }
        for (server, reason) in &faults {
            output::note(&format!("{server}: {reason}"));
        }
        output::note(&counted(file.servers.len(), "server", "servers"));
    }
    Ok(if faults.is_empty() { Exit::Completed } else { Exit::Usage })
}

/// Shows the change of a tool that is held back, and accepts what was shown if a person agrees.
pub(crate) fn accept(app: &App, args: &ToolsAcceptArgs) -> Result<Exit, Failure> {
    let ToolsAcceptArgs { server, tool, yes } = args;
    let config = chosen(&mcp_file::read(app)?, Some(Path::new(server)), app)?;
    let path = mcp_file::pins_of(app, &config.namespace);
    let mut pins = load(&path)?;
    let waiting = pins.held(server).into_iter().find(|held| held.tool == *tool);
    let Some(held) = waiting else {
        return Err(Failure::usage(format!("no change of {server}.{tool} waits to be accepted"))
            .help("`muster tools list` names the tools that are held back"));
    };
    let command = mcp_file::accept_command(server, tool);
    output::line(&held.difference)?;
    // A person may not have seen this change: the server can propose another one between two commands.
    let is_new = held.shown.as_ref() != Some(&held.digest);
    pins.show(server, tool, &held.digest);
    pins.save(&path).map_err(Failure::failed)?;
    let help = format!("`{command} --yes` accepts what is shown here");
    if *yes && is_new {
        return Err(Failure::usage(format!("this change of {server}.{tool} was not shown before")).help(help));
    }
    if !yes && !agreed("Accept it?", &help)? {
        return Err(
            Failure::usage(format!("{server}.{tool} is not accepted: it was not confirmed")).help(help)
        );
    }
    let mut pins = load(&path)?;
    if !pins.accept(server, tool, &held.digest) {
        return Err(Failure::usage(format!("{server} has changed the tool {tool} since it was shown"))
            .help(format!("`{command}` shows it")));
    }
    pins.save(&path).map_err(Failure::failed)?;
    output::note(&format!("{server}.{tool} is accepted as it is described now"));
    Ok(Exit::Completed)
}
