//! `muster completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints a completion script.
pub(super) fn print(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "muster", &mut script);
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Completed)
}
