//! The `muster` command: parse, perform, end with an exit code that says how it went.

// Code that serves only an absent capability needs no gate of its own.
#![cfg_attr(
    not(all(
        feature = "dashboard",
        feature = "top",
        feature = "web",
        feature = "sandbox",
        feature = "data",
        feature = "mcp",
        feature = "readers",
        feature = "telemetry"
    )),
    allow(dead_code, unused_imports)
)]

mod absent;
mod agent_file;
mod alerts;
mod app;
mod args;
mod audit;
mod commands;
mod compare;
mod delivered_file;
#[cfg(test)]
mod doors_tests;
mod eval;
mod exit;
mod fleet;
mod guard;
#[cfg(any(feature = "dashboard", feature = "telemetry"))]
mod http;
mod keeping;
#[cfg(any(feature = "dashboard", feature = "top"))]
mod live;
mod log_line;
mod logging;
mod mcp_file;
mod output;
mod place;
mod redaction;
mod render;
mod secrets;
mod settings;
mod signals;
#[cfg(feature = "telemetry")]
mod telemetry;
mod tool_files;
#[cfg(feature = "top")]
mod top;
mod trust;
#[cfg(feature = "dashboard")]
mod ui;

use std::process::ExitCode;

#[cfg(not(feature = "telemetry"))]
use absent::telemetry;

use clap::Parser;
use clap::error::ErrorKind;
use tokio::runtime::Builder;

use crate::args::{Cli, Command};
use crate::exit::{Exit, Failure};
use crate::render::safe;

/// Threads that serve the dashboard, besides those on which what takes long is worked out.
const SERVING: usize = 2;

fn main() -> ExitCode {
    #[cfg(feature = "readers")]
    // One of our processes may have started this one to read documents for it: then it is nothing else.
    if let Some(read) = muster_readers::child_main(std::env::args_os().skip(1)) {
        return read;
    }
    #[cfg(feature = "sandbox")]
    // The same for programs that tools run: it keeps them in.
    if let Some(ended) = muster_sandbox::child_main(std::env::args_os()) {
        return ended;
    }
    // If the path is not known, each command that needs it reports this.
    let _ = fleet::process::own_program();
    // Without a provider of its own, the first TLS connection would panic.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Text of others may stand in an error: it is painted at the door, where it is told apart.
    let _ = miette::set_hook(Box::new(|_| Box::new(render::fault::FaultHandler)));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misread(&error).into(),
    };
    match perform(cli) {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(report)) => tell(&report).into(),
        Err(reason) => {
            output::note!("error: cannot start: {reason}");
            Exit::Failed.into()
        }
    }
}

/// Performs a command; the outer error says why it could not be begun. Not part of `main`: what reading the command line
/// takes of the stack and what this takes would add up there, and the pages stay with the process.
#[inline(never)]
fn perform(cli: Cli) -> Result<miette::Result<Exit>, String> {
    let Cli { command, global } = cli;
    // Actors need a system of their own.
    if matches!(command, Command::Agent(_) | Command::Orchestrator | Command::CheckAgent(_)) {
        let begin = || Box::pin(commands::perform(command, global));
        return muster_orchestrator::with_system(begin).map_err(|error| error.to_string());
    }
    if matches!(command, Command::Ui(_)) {
        let runtime = Builder::new_multi_thread().worker_threads(SERVING).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let performed = runtime.block_on(Box::pin(commands::perform(command, global)));
        // Somebody may still wait for a line to be typed, which nobody will.
        runtime.shutdown_background();
        return Ok(performed);
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    Ok(runtime.block_on(Box::pin(commands::perform(command, global))))
}

/// What there is to say where the command line asks for nothing but words, or is wrong. Errors name arguments, which may come
/// from anybody, such as file names that a shell put there.
#[inline(never)]
fn misread(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayVersion => {
            // All of it is ours. Losing it harms nothing.
            let _ = error.print();
        }
        _ => {
            // Plain, an error leaves escapes out: it is told of words in which they are to be seen.
            let words = std::env::args_os().map(|word| safe::text(&word.to_string_lossy()).into_owned());
            let shown = Cli::try_parse_from(words).err().filter(|shown| shown.kind() == error.kind());
            output::misread(&shown.as_ref().unwrap_or(error).render().to_string());
        }
    }
    if error.use_stderr() { Exit::Usage } else { Exit::Completed }
}

/// Says what went wrong and what to do, and how the program is to end.
fn tell(report: &miette::Report) -> Exit {
    match report.downcast_ref::<Failure>() {
        Some(failure) if failure.is_reader_gone() => return failure.exit(),
        _ => output::fault(format!("{report:?}").trim_end()),
    }
    // What is no failure of ours is an error of the settings.
    report.downcast_ref::<Failure>().map_or(Exit::Usage, Failure::exit)
}
