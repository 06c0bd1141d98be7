//! `muster completions` and `muster man`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints a completion script.
pub(super) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "muster", &mut script);
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Completed)
}

/// Prints the manual page of the whole or of one command.
pub(super) fn page(command: Option<&str>) -> Result<Exit, Failure> {
    let mut cli = Cli::command();
    cli.build();
    let page = match command {
        None => cli,
        Some(name) => match cli.find_subcommand(name) {
            Some(found) => found.clone(),
            None => {
                return Err(Failure::usage(format!("{name:?} is not a command"))
                    .help("`muster help` lists all commands"));
            }
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut text)
        .map_err(|error| Failure::failed(format!("cannot make the manual page: {error}")))?;
    output::text(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Completed)
}
