//! The `muster` command: parse, perform, end with an exit code that says how it went.

mod agent_file;
mod app;
mod args;
mod commands;
mod conform;
mod exit;
mod fleet;
mod logging;
mod output;
mod place;
mod render;
mod secrets;
mod settings;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::exit::{Exit, Failure};

fn main() -> ExitCode {
    // Without a provider of its own, the first TLS connection would panic.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    let performed = if cli.command.has_actors() {
        muster_orchestrator::with_system(|| commands::perform(cli.command, cli.global))
            .map_err(|e| e.to_string())
    } else {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map(|runtime| runtime.block_on(commands::perform(cli.command, cli.global)))
            .map_err(|e| e.to_string())
    };
    match performed {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(report)) => tell(&report).into(),
        Err(reason) => {
            output::note(&format!("error: cannot start: {reason}"));
            Exit::Failed.into()
        }
    }
}

/// Says what went wrong and what to do, and how the program is to end.
fn tell(report: &miette::Report) -> Exit {
    match report.downcast_ref::<Failure>() {
        Some(failure) if failure.is_reader_gone() => return failure.exit(),
        Some(_) | None => output::note(format!("{report:?}").trim_end()),
    }
    // What is no failure of ours is an error of the settings.
    report.downcast_ref::<Failure>().map_or(Exit::Usage, Failure::exit)
}
