//! `muster tools call`: one call, by the engine of agents, in this process.

use std::io::Read;
use std::sync::Arc;

use muster_agents::tools::{Permission, ToolContext, ToolResult, ToolSpec, ToolStatus};
use muster_corpus::{Corpus, MemoryBlobs};
use muster_shared::ids::RunId;
use serde_json::Value;
use uuid::Uuid;

use super::Desk;
use super::workspace::HandWorkspace;
use crate::app::App;
use crate::args::ToolsCallArgs;
use crate::commands::run::documents::{failure, options};
use crate::exit::{Exit, Failure, usage};
use crate::output;

/// Largest arguments that are read from a file or from standard input, in bytes; the engine takes less.
const MOST_ARGUMENTS: u64 = 4 * 1024 * 1024;

/// Calls a tool and prints what came of it.
pub(super) async fn call(app: &App, desk: &Desk, args: &ToolsCallArgs) -> Result<Exit, Failure> {
    let spec = desk.find(&args.name)?;
    let arguments = arguments(&args.args)?;
    let run = RunId::from_uuid(Uuid::now_v7());
    let mut context = ToolContext::new(run.to_string(), "by-hand")
        .within(Arc::clone(&desk.rights))
        .granting(desk.granted(&spec))
        // Whoever types a call approves it.
        .approved();
    if !args.docs.is_empty() {
        context = context.with_corpus(documents(app, args).await?.within(&desk.rights));
    }
    // Some tools read a workspace if there is one, but do not need it.
    let touched = [Permission::ReadWorkspace, Permission::WriteWorkspace];
    let workspace = if args.workspace.is_some() || touched.iter().any(|need| spec.grants.contains(need)) {
        Some(HandWorkspace::open(args.workspace.as_deref()).await?)
    } else {
        None
    };
    if let Some(workspace) = &workspace {
        context = context.with_workspace(Arc::<HandWorkspace>::clone(workspace));
    }
    if !spec.pure {
        context = context.under_key(format!("{run}/by-hand/1/1"));
    }
    let mut result = desk.engine.call(&spec.name, arguments, &context).await;
    result.content = app.redactor.redact(&result.content).into_owned();
    if let Some(workspace) = workspace {
        // Also what a call that failed has left.
        for written in workspace.write_back()? {
            output::note!("wrote {}", written.display());
        }
    }
    tell(&spec, args, &result)
}

fn tell(spec: &ToolSpec, args: &ToolsCallArgs, result: &ToolResult) -> Result<Exit, Failure> {
    let exit = match result.status {
        ToolStatus::Success => Exit::Completed,
        ToolStatus::Error | ToolStatus::Timeout => Exit::Failed,
        ToolStatus::Refused => Exit::Usage,
    };
    if args.json {
        output::json(result)?;
        return Ok(exit);
    }
    if let Some(wait) = &result.wait {
        output::line!("A task would be put down here, and wait for {}.", wait.in_words())?;
        return Ok(exit);
    }
    if exit == Exit::Completed {
        output::text(&result.content)?;
        return Ok(exit);
    }
    let needs_documents = spec.grants.contains(&Permission::ReadDocuments) && args.docs.is_empty();
    let help = if needs_documents {
        "give it documents with --docs FOLDER".to_owned()
    } else {
        format!("`muster tools show {}` says what it takes and whether it is on", spec.name)
    };
    Err(Failure::new(exit, result.content.clone()).help(help))
}

/// The documents that are given, indexed as for a run.
async fn documents(app: &App, args: &ToolsCallArgs) -> Result<Corpus, Failure> {
    let opened = Corpus::open_or_build(options(app, args.docs.clone()), &MemoryBlobs::default()).await;
    Ok(opened.map_err(|error| failure(&error))?.corpus)
}

/// The arguments as they are given: JSON, `@FILE`, or `-` for standard input.
fn arguments(given: &str) -> Result<Value, Failure> {
    let text = match given.strip_prefix('@') {
        Some(path) => {
            let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
            read(path, file)?
        }
        None if given == "-" => read("standard input", std::io::stdin().lock())?,
        None => given.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        usage!("the arguments are no JSON: {error}")
            .help("write them as one object: --args '{\"name\": \"value\"}'")
    })
}

fn read(what: &str, from: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    let read = from.take(MOST_ARGUMENTS + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(what, &error))?;
    if text.len() as u64 > MOST_ARGUMENTS {
        return Err(usage!("{what} has more than {MOST_ARGUMENTS} bytes"));
    }
    Ok(text)
}

fn unreadable(what: &str, error: &std::io::Error) -> Failure {
    usage!("the arguments in {what} cannot be read: {error}")
        .help("give JSON, @FILE, or - for standard input")
}
