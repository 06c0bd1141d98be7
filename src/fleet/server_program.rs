//! Which program the fleet's own NATS server is. One that lies in the project, or that its file names there, is run as it
//! was when it was trusted, and not otherwise.

use std::path::{Path, PathBuf};

use muster_bus::server::{ServerError, find_binary};

use crate::app::App;
use crate::exit::{Failure, usage};
use crate::trust::{project_server, real};

/// The program, if it is not left to the search for one.
///
/// # Errors
/// When it is the project's own and is not trusted as it is.
pub(crate) fn of(app: &App) -> Result<Option<PathBuf>, Failure> {
    if let Some(binary) = &app.settings().server.binary {
        let project = app.loaded.file.as_deref().and_then(Path::parent).map(real);
        let is_own = project.is_some_and(|project| real(binary).starts_with(project));
        return if app.loaded.is_of_project("server.binary") && is_own {
            trusted(app, binary).map(Some)
        } else {
            Ok(Some(binary.clone()))
        };
    }
    let here = std::env::current_dir().unwrap_or_default();
    match (find_binary(), project_server(&here)) {
        (Err(ServerError::NotFound), Some(own)) => trusted(app, &own).map(Some),
        _ => Ok(None),
    }
}

fn trusted(app: &App, program: &Path) -> Result<PathBuf, Failure> {
    // What is not there is told by whoever is to run it.
    if app.trust.trusts_program(program) || !program.is_file() {
        return Ok(program.to_owned());
    }
    Err(usage!("{} lies in the project and is not trusted as it is now", program.display())
        .help(
            "`muster trust` shows it and asks you once, and nobody else may be able to write it; or name another nats-server with \
         MUSTER_NATS_SERVER",
        ))
}
