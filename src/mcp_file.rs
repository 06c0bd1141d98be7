//! The file that names MCP servers (`mcp.json`), as the command line reads it: whose it is counts, since it runs programs.

use std::path::{Path, PathBuf};
#[cfg(feature = "mcp")]
use std::sync::Arc;
use std::time::SystemTime;

#[cfg(feature = "mcp")]
use muster_mcp::{
    ChildCommand, ConfigError, Environment, LeftOut, McpFile, Pins, Reached, Reading, ServerConfig, parse,
};
#[cfg(feature = "mcp")]
use muster_shared::claim::TrustClaim;
#[cfg(feature = "mcp")]
use muster_shared::wire::tool_server::{SERVER_NAME_RULE, is_tool_server_name};
#[cfg(feature = "mcp")]
use secrecy::{ExposeSecret, SecretString};

use crate::app::App;
#[cfg(feature = "mcp")]
use crate::commands::agent::tools::OWN;
use crate::exit::{Failure, usage};
#[cfg(feature = "mcp")]
use crate::render::figures::quoted;
#[cfg(feature = "mcp")]
use crate::trust::items_of;
use crate::trust::{Item, Programs};

/// Most servers in the file. Each one is a process.
const MAX_SERVERS: u32 = 32;

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The file, beside the fleet.
pub(crate) fn path_of(app: &App) -> PathBuf {
    app.beside_fleet(&app.settings().tool.mcp.file)
}

/// Where it is kept what was seen and accepted of the tools of an MCP server, by the name before those of its tools. Each
/// server has a file of its own: the processes of several never write over each other.
pub(crate) fn pins_of(app: &App, namespace: &str) -> PathBuf {
    app.fleet.path().join(format!("mcp-pins-{namespace}.json"))
}

/// A tool of an MCP server that is not served until a person accepts its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldTool {
    /// Its full name.
    pub(crate) name: String,
    /// The command that shows the change.
    pub(crate) look: String,
}

#[cfg(feature = "mcp")]
impl HeldTool {
    /// The held tools of a server.
    pub(crate) fn of(server: &ServerConfig, pins: &Pins) -> Vec<Self> {
        let one = |held: muster_mcp::HeldDefinition| Self {
            name: format!("{}.{}", server.namespace, held.name),
            look: accept_command(&server.name, &held.tool),
        };
        pins.held(&server.name).into_iter().map(one).collect()
    }
}

impl HeldTool {
    /// The state of the tool and the remedy.
    pub(crate) fn describe(&self) -> String {
        format!("held back: `{}` shows what changed", self.look)
    }
}

/// The command that shows the change of a tool.
#[cfg(feature = "mcp")]
pub(crate) fn accept_command(server: &str, tool: &str) -> String {
    format!("muster tools accept {} {}", quoted(server), quoted(tool))
}

/// The held tools of all servers of the file, as their processes last saw them.
#[cfg(feature = "mcp")]
pub(crate) fn held(app: &App) -> Vec<HeldTool> {
    let servers = read(app).map(|file| file.servers).unwrap_or_default();
    let of = |server: &ServerConfig| {
        HeldTool::of(server, &Pins::load(&pins_of(app, &server.namespace)).unwrap_or_default())
    };
    servers.iter().flat_map(of).collect()
}

/// A build without MCP holds no tool back: it starts no server.
#[cfg(not(feature = "mcp"))]
pub(crate) const fn held(_: &App) -> Vec<HeldTool> {
    Vec::new()
}

/// Returns true if the file contains this name as a text.
#[cfg(feature = "mcp")]
pub(crate) fn names(app: &App, name: &str) -> bool {
    let text = muster_agents::input::text(&path_of(app), MAX_BYTES).unwrap_or_default();
    text.contains(&format!("\"{name}\""))
}

/// The folder of the tokens by which we are authorized at MCP servers.
pub(crate) fn tokens_of(app: &App) -> PathBuf {
    app.fleet.path().join("mcp-tokens")
}

/// When a file was last written, and how long it is: one that has the same is not read again.
pub(crate) fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let known = std::fs::metadata(path).ok()?;
    Some((known.modified().ok()?, known.len()))
}

#[cfg(feature = "mcp")]
/// Reads the file.
///
/// # Errors
/// When it is not there, is somebody else's, or is no such file.
pub(crate) fn read(app: &App) -> Result<McpFile, Failure> {
    let path = path_of(app);
    let shown = path.display();
    if !path.exists() {
        return Err(usage!("there is no {shown}").help(
            "write it as for other tools: {\"mcpServers\": {\"time\": {\"command\": \"mcp-server-time\"}}}; tool.mcp.file names \
             another",
        ));
    }
    let text = muster_agents::input::text(&path, MAX_BYTES)
        .map_err(|why| usage!("{shown} cannot be read: {why}"))?;
    let base = app.fleet.path().parent().unwrap_or(&path);
    if let Some(fault) = app.trust.fault_of_found(&path, base, &text) {
        let (about, mend) = (fault.about(&path), fault.mend());
        return Err(usage!("{shown} does not count: {about}")
            .help(format!("{mend}, or `muster trust {shown}` lets it count as it is now")));
    }
    // It runs programs and says who is sent what, wherever it comes from.
    let consent = app.trust.consent(&path, items(&path, &text, base));
    consent.map_err(Failure::usage)?;
    let environment = |name: &str| std::env::var(name).ok();
    let mut file = parsed(&text, Some(&environment)).map_err(|error| usage!("{shown}: {error}"))?;
    let is_taken =
        |server: &mut ServerConfig| server.namespace == OWN || !is_tool_server_name(&server.namespace);
    for ServerConfig { name, namespace, .. } in file.servers.extract_if(.., is_taken) {
        let reason = format!(
            "{namespace:?} is not a name for its tools; rename the server: {SERVER_NAME_RULE}, and not {OWN}"
        );
        file.left_out.push(LeftOut { server: name, reason });
    }
    Ok(file)
}

/// A check that the file, and the programs of the project that it runs, are still trusted as they are.
#[cfg(feature = "mcp")]
pub(crate) fn check(app: &App) -> Arc<dyn Fn() -> Result<(), String> + Send + Sync> {
    let (path, trust) = (path_of(app), app.trust.clone());
    let base = app.beside_fleet(Path::new(""));
    Arc::new(move || trust.consent(&path, wanted(&path, &base)))
}

#[cfg(feature = "mcp")]
fn parsed(text: &str, environment: Option<Environment<'_>>) -> Result<McpFile, ConfigError> {
    parse(text, &Reading { max_servers: MAX_SERVERS as usize, environment })
}

/// Items of the file of a project in `base` that need the user's consent; empty if the file cannot be read.
pub(crate) fn wanted(path: &Path, base: &Path) -> Vec<Item> {
    let text = muster_agents::input::text(path, MAX_BYTES).unwrap_or_default();
    items(path, &text, base)
}

#[cfg(feature = "mcp")]
fn items(path: &Path, text: &str, base: &Path) -> Vec<Item> {
    // The items must not depend on the environment.
    let Ok(file) = parsed(text, None) else { return Vec::new() };
    let claims: Vec<TrustClaim> = file.servers.iter().flat_map(ServerConfig::claims).collect();
    items_of(path, text, &claims, &programs_of(text, base).files)
}

/// Without support of MCP no server is started.
#[cfg(not(feature = "mcp"))]
fn items(_: &Path, _: &str, _: &Path) -> Vec<Item> {
    Vec::new()
}

/// The programs of all servers of the file, trusted or not.
pub(crate) fn programs(path: &Path, base: &Path) -> Programs {
    programs_of(&muster_agents::input::text(path, MAX_BYTES).unwrap_or_default(), base)
}

#[cfg(feature = "mcp")]
fn programs_of(text: &str, base: &Path) -> Programs {
    let mut programs = Programs::default();
    let environment = |name: &str| std::env::var(name).ok();
    // With variables as they are written, and as they are now.
    let readings = [parsed(text, None), parsed(text, Some(&environment))];
    for server in readings.into_iter().flatten().flat_map(|file| file.servers) {
        if let Reached::Child(ChildCommand { command, args, env, cwd }) = server.reached {
            let words: Vec<String> = std::iter::once(command).chain(args).collect();
            let exposed = |(name, value): (String, SecretString)| (name, value.expose_secret().to_owned());
            let folder = cwd.map_or_else(|| base.to_owned(), |cwd| base.join(cwd));
            programs.add(&words, &env.into_iter().map(exposed).collect(), &folder, base);
        }
    }
    programs
}

#[cfg(not(feature = "mcp"))]
fn programs_of(_: &str, _: &Path) -> Programs {
    Programs::default()
}
