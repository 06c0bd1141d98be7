//! `muster mcp`: which MCP servers there are, and whether Muster is authorized at them.

use std::path::Path;

use muster_mcp::{Authorization, Reached, ServerConfig, authorization, authorize, forget};
use muster_shared::text::counted;
use serde_json::json;

use super::agent::mcp::{chosen, reached};
use crate::app::App;
use crate::args::McpAction;
use crate::exit::{Exit, Failure, usage};
use crate::{mcp_file, output};

/// Does what was asked.
pub(super) async fn mcp(app: &App, action: &McpAction) -> Result<Exit, Failure> {
    match action {
        McpAction::List(args) => list(app, args.json).await,
        McpAction::Login(args) => login(app, &args.server, args.limit).await,
        McpAction::Logout(args) => logout(app, &args.server),
    }
}

async fn list(app: &App, as_json: bool) -> Result<Exit, Failure> {
    let (file, tokens) = (mcp_file::read(app)?, mcp_file::tokens_of(app));
    let mut shown = Vec::new();
    for server in &file.servers {
        shown.push((server, authorization(server, &tokens).await));
    }
    if as_json {
        let servers: Vec<_> = shown
            .iter()
            .map(|(server, is)| {
                let (word, why) = (word(is.as_ref().ok()), is.as_ref().err().map(ToString::to_string));
                json!({
                    "name": server.name, "tools": format!("{}.*", server.namespace), "reached": reached(server),
                    "authorization": word, "fault": why,
                })
            })
            .collect();
        let left_out: Vec<_> =
            file.left_out.iter().map(|one| json!({ "name": one.server, "why": one.reason })).collect();
        output::json(&json!({ "servers": servers, "left_out": left_out, "warnings": file.warnings }))?;
        return Ok(Exit::Completed);
    }
    for (server, is) in &shown {
        let said = match is {
            Ok(is) => in_words(is).to_owned(),
            Err(error) => error.to_string(),
        };
        output::line!("{}: {}; {said}", server.name, reached(server))?;
    }
    for one in &file.left_out {
        output::note!("{} is left out: {}", one.server, one.reason);
    }
    file.warnings.iter().for_each(|warning| output::note(warning));
    output::note(&counted(file.servers.len(), "server", "servers"));
    Ok(Exit::Completed)
}

const fn word(is: Option<&Authorization>) -> &'static str {
    match is {
        Some(Authorization::NotNeeded) => "not_needed",
        Some(Authorization::None) => "none",
        Some(Authorization::Kept { renews: true }) => "renewed",
        Some(Authorization::Kept { renews: false }) => "kept",
        None => "unreadable",
    }
}

const fn in_words(is: &Authorization) -> &'static str {
    match is {
        Authorization::NotNeeded => "a program",
        Authorization::None => "asked without a token",
        Authorization::Kept { renews: true } => "authorized, and renewed without you",
        Authorization::Kept { renews: false } => "authorized until its token ends",
    }
}

fn server(app: &App, name: &str) -> Result<ServerConfig, Failure> {
    let server = chosen(&mcp_file::read(app)?, Some(Path::new(name)), app)?;
    match &server.reached {
        Reached::Http(_) => Ok(server),
        Reached::Child(_) => {
            Err(usage!("the MCP server {name} is a program on this machine, and needs no authorization")
                .help("what it needs to know stands in its `env`"))
        }
    }
}

async fn login(app: &App, name: &str, limit: std::time::Duration) -> Result<Exit, Failure> {
    let server = server(app, name)?;
    let show = |address: &str| {
        output::note!(
            "Open this address in a browser on this machine, and come back when it says that Muster is authorized:\n\n{address}\n"
        );
    };
    let failed = |error: muster_mcp::McpError| {
        Failure::failed(error).help("nothing was kept: `muster mcp login` begins anew")
    };
    Box::pin(authorize(&server, &mcp_file::tokens_of(app), limit, show)).await.map_err(failed)?;
    output::note!(
        "{name} is authorized. A fleet that is up uses it with the next start of the server's process (`muster ps`)."
    );
    Ok(Exit::Completed)
}

fn logout(app: &App, name: &str) -> Result<Exit, Failure> {
    let server = server(app, name)?;
    let had = forget(&server, &mcp_file::tokens_of(app)).map_err(Failure::failed)?;
    output::note(&match had {
        true => format!(
            "the token of {name} is removed here. The server may still take it: withdraw it there, too, if it was seen by others"
        ),
        false => format!("no token of {name} is kept"),
    });
    Ok(Exit::Completed)
}
