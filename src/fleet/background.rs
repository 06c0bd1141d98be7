//! A supervisor in the background, in a session of its own: it outlives the command that started it.

use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use serde::{Deserialize, Serialize};

use super::private;
use super::process::{ProcessRef, own_program};
use super::state::{FleetFolder, FleetState};
use super::supervisor::global_words;
use crate::app::App;
use crate::commands::join::INVITATION;
use crate::exit::{Failure, failed};
use crate::render::figures;
use crate::settings;

/// How often a fleet that comes up in the background is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Starts `muster` with these words as a supervisor in the background, and waits until its fleet is as far as `far_enough`
/// says. What its state file says meanwhile is told.
pub(crate) async fn start(
    app: &App,
    words: &[String],
    far_enough: impl Fn(&FleetState) -> bool,
    mut tell: impl FnMut(&FleetState),
) -> Result<FleetState, Failure> {
    let mut child = spawn(app, words)?;
    let supervisor = child.id().map(ProcessRef::of);
    let limit = app.settings().fleet.start_limit;
    let mut last = None;
    let up = async {
        loop {
            if let Some(state) =
                app.fleet.live().filter(|state| Some(&state.supervisor) == supervisor.as_ref())
            {
                if far_enough(&state) {
                    return Some(state);
                }
                tell(&state);
                last = Some(state);
            }
            if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    match tokio::time::timeout(limit, up).await {
        Ok(Some(state)) => Ok(state),
        Ok(None) => Err(why_not(app)),
        Err(_) => Err(too_late(app, last.as_ref(), limit)),
    }
}

fn spawn(app: &App, words: &[String]) -> Result<Box<dyn ChildWrapper>, Failure> {
    let cannot = |what: &str, e: std::io::Error| failed!("cannot {what}: {e}");
    app.fleet.create().map_err(|e| cannot("make the fleet's folder", e))?;
    let _ = std::fs::remove_file(app.fleet.word());
    let log =
        private::create(&app.fleet.log("supervisor")).map_err(|e| cannot("write the supervisor's log", e))?;
    let errors = log.try_clone().map_err(|e| cannot("write the supervisor's log", e))?;
    let program = own_program().map_err(|e| cannot("tell where this program is", e))?;
    let mut command = CommandWrap::with_new(program, |command| {
        command.args(global_words(app)).args(words);
        // Not as arguments, which can be read by everybody: a URL may hold a password, and so may what is set.
        command.envs(settings::handed_down(&app.flags)).envs(app.found_file()).env_remove(INVITATION);
        command.stdin(Stdio::null()).stdout(log).stderr(errors).kill_on_drop(false);
    });
    command.wrap(ProcessSession).spawn().map_err(|e| cannot("start the supervisor", e))
}

/// Why a supervisor could not bring its fleet up, in its own words.
#[derive(Debug, Serialize, Deserialize)]
struct Word {
    code: u8,
    message: String,
    help: Option<String>,
}

/// Leaves word for whoever started this supervisor.
pub(crate) fn leave_word(folder: &FleetFolder, failure: &Failure) {
    let help = miette::Diagnostic::help(failure).map(|help| help.to_string());
    let word = Word { code: failure.exit().code(), message: failure.to_string(), help };
    if let Ok(text) = serde_json::to_vec(&word) {
        let _ = private::write(&folder.word(), &text);
    }
}

fn why_not(app: &App) -> Failure {
    let word = std::fs::read(app.fleet.word()).ok();
    let word = word.and_then(|text| serde_json::from_slice::<Word>(&text).ok());
    match word {
        Some(Word { code, message, help }) => {
            let failure =
                Failure::new(crate::exit::Exit::of(code), format!("the fleet did not start: {message}"));
            match help {
                Some(help) => failure.help(help),
                None => failure,
            }
        }
        None => {
            let said = std::fs::read_to_string(app.fleet.log("supervisor")).unwrap_or_default();
            failed!("the fleet did not start:\n{}", figures::harmless(said.trim()))
        }
    }
}

fn too_late(app: &App, last: Option<&FleetState>, limit: Duration) -> Failure {
    let awaited = last.map(|state| state.awaited.join(", ")).filter(|names| !names.is_empty());
    let who = awaited.map_or_else(String::new, |names| format!(": {names} did not join"));
    let log = app.fleet.path().join("log");
    failed!("the fleet did not start within {}{who}", figures::span(limit)).help(format!(
        "see {}; `muster down` stops what has started; fleet.start_limit gives it more time",
        log.display()
    ))
}
