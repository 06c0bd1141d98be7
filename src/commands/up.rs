//! `muster up`: a local fleet, watched over until told to stop.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::{CommandWrap, ProcessSession};
use serde_json::{Value, json};

use crate::app::App;
use crate::args::UpArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::member::Change;
use crate::fleet::process::ProcessRef;
use crate::fleet::scale;
use crate::fleet::supervisor::Fleet;
use crate::output;
use crate::render::figures;
use crate::render::paint::Paint;
use crate::signals::StopSignals;

/// How often a fleet that comes up in the background is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Brings the fleet up.
pub(super) async fn up(app: &App, args: UpArgs) -> Result<Exit, Failure> {
    let scale: BTreeMap<String, u16> = args.scale.iter().cloned().collect();
    if args.detach && !args.in_background {
        // Said here: what the process in the background says is in its log.
        scale::of(app, &scale)?;
        return detach(app, &args).await;
    }
    let mut stop = StopSignals::listen()?;
    let mut fleet = Fleet::start(app, &scale).await?;
    if !args.json {
        output::note(&format!(
            "bus {}; logs in {}; Ctrl-C stops the fleet",
            fleet.url(),
            app.fleet.path().join("log").display()
        ));
    }
    let mut given_up = Vec::new();
    let ended_by_itself = loop {
        tokio::select! {
            () = stop.wait() => break false,
            change = fleet.change() => match change {
                Some((name, change)) => {
                    if matches!(change, Change::GivenUp { .. }) {
                        given_up.push(name.clone());
                    }
                    tell(&name, &change, args.json, app.paint_notes())?;
                }
                None => break true,
            },
        }
    };
    if !args.json {
        output::note("stopping the fleet …");
    }
    fleet.stop().await;
    if ended_by_itself {
        return Err(Failure::failed(format!("the fleet has ended: {} died too often", given_up.join(", ")))
            .help(format!("see why in {}", app.fleet.path().join("log").display())));
    }
    Ok(Exit::Completed)
}

fn tell(name: &str, change: &Change, as_json: bool, paint: Paint) -> Result<(), Failure> {
    if as_json {
        return output::json_line(&change_json(name, change));
    }
    output::note(&match change {
        Change::Started(process) => format!("{} {name} (pid {})", paint.good("started"), process.pid),
        Change::Died { how, again_after } => {
            format!(
                "{} {name} {how}; starting it again in {}",
                paint.warn("died"),
                figures::span(*again_after)
            )
        }
        Change::GivenUp { how } => {
            format!("{} {name} {how}, and too often: it is not started again", paint.bad("given up"))
        }
        Change::Stopped => format!("{} {name}", paint.dim("stopped")),
        Change::Refused { reason } => format!("{} {reason}", paint.warn("refused")),
    });
    Ok(())
}

fn change_json(name: &str, change: &Change) -> Value {
    match change {
        Change::Started(process) => json!({ "name": name, "change": "started", "pid": process.pid }),
        Change::Died { how, again_after } => {
            json!({ "name": name, "change": "died", "how": how, "again_after_ms": u64::try_from(again_after.as_millis()).unwrap_or(u64::MAX) })
        }
        Change::GivenUp { how } => json!({ "name": name, "change": "given_up", "how": how }),
        Change::Stopped => json!({ "name": name, "change": "stopped" }),
        Change::Refused { reason } => json!({ "name": name, "change": "refused", "reason": reason }),
    }
}

/// Starts this same command in a session of its own, and waits until the fleet is up.
async fn detach(app: &App, args: &UpArgs) -> Result<Exit, Failure> {
    if let Some(state) = app.fleet.live() {
        return Err(Failure::failed(format!(
            "a fleet is up already (process {}, {})",
            state.supervisor.pid, state.url
        ))
        .help("use it as it is, or stop it with `muster down`"));
    }
    let cannot = |what: &str, e: std::io::Error| Failure::failed(format!("cannot {what}: {e}"));
    app.fleet.create().map_err(|e| cannot("make the fleet's folder", e))?;
    let log = app.fleet.log("supervisor");
    let file = std::fs::File::create(&log).map_err(|e| cannot("write the supervisor's log", e))?;
    let errors = file.try_clone().map_err(|e| cannot("write the supervisor's log", e))?;
    let program = std::env::current_exe().map_err(|e| cannot("tell where this program is", e))?;
    let mut command = CommandWrap::with_new(program, |command| {
        command.args(std::env::args_os().skip(1)).arg("--in-background");
        command.stdin(Stdio::null()).stdout(file).stderr(errors).kill_on_drop(false);
    });
    let mut child = command.wrap(ProcessSession).spawn().map_err(|e| cannot("start the supervisor", e))?;
    let supervisor = child.id().map(ProcessRef::of);
    let limit = app.settings().fleet.start_limit;
    let up = async {
        loop {
            if let Some(state) =
                app.fleet.live().filter(|state| state.up && Some(&state.supervisor) == supervisor.as_ref())
            {
                return Some(state);
            }
            if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    match tokio::time::timeout(limit, up).await {
        Ok(Some(state)) if args.json => output::json(&state)?,
        Ok(Some(state)) => output::line(&format!(
            "the fleet is up: {} processes on {} (supervisor {}); `muster down` stops it",
            state.members.len(),
            state.url,
            state.supervisor.pid
        ))?,
        Ok(None) => {
            let words = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(Failure::failed(format!(
                "the fleet did not come up:\n{}",
                figures::harmless(words.trim())
            )));
        }
        Err(_) => {
            return Err(Failure::failed(format!(
                "the fleet did not come up within {}",
                figures::span(limit)
            ))
            .help(format!("see {}; `muster down` stops what has started", log.display())));
        }
    }
    Ok(Exit::Completed)
}
