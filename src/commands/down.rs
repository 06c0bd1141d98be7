//! `muster down`: stops the local fleet.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::app::{App, not_believed};
use crate::args::DownArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::process::ProcessRef;
use crate::fleet::state::FleetState;
use crate::output;

/// Asks the supervisor to end, and ends what is left over when it is gone.
pub(super) async fn down(app: &App, args: &DownArgs) -> Result<Exit, Failure> {
    // What somebody else can write does not say which processes are ended.
    if let Some(fault) = app.fleet.fault() {
        let why = format!("what stands in {} is not believed: {fault}", app.fleet.path().display());
        return Err(not_believed(&format!("nothing is stopped: {why}")));
    }
    let Some(state) = app.fleet.live() else { return nothing_runs(app, args) };
    if let Some(stranger) = processes(&state).find(|process| process.is_alive() && !process.is_ours()) {
        let why = format!("process {} belongs to somebody else", stranger.pid);
        return Err(not_believed(&format!("nothing is stopped: {why}")));
    }
    // The supervisor's own limit for its processes, and as much again for itself.
    let limit = crate::settings::STOP_TIMEOUT * 2;
    state.supervisor.signal(Signal::SIGTERM);
    if !state.supervisor.gone_within(limit).await {
        state.supervisor.signal(Signal::SIGKILL);
    }
    end_left_over(&state, limit).await;
    app.fleet.clear();
    let named = |given_up: bool| -> Vec<&str> {
        let members = state.members.iter().filter(|member| member.given_up == given_up);
        members.map(|member| member.name.as_str()).collect()
    };
    let (stopped, given_up) = (named(false), named(true));
    let before = if given_up.is_empty() {
        String::new()
    } else {
        format!("; given up before: {}", given_up.join(", "))
    };
    output::json_or_line(
        args.json,
        || json!({ "stopped": stopped, "given_up": given_up }),
        || format!("stopped {}{before}", stopped.join(", ")),
    )
}

/// No supervisor watches over this folder. What its state file names may be anybody's processes, as when the folder is a copy:
/// none of them is ended.
fn nothing_runs(app: &App, args: &DownArgs) -> Result<Exit, Failure> {
    let left = app.fleet.read();
    let is_left = |(name, process): (&str, &ProcessRef)| {
        process.is_ours().then(|| format!("{name} (process {})", process.pid))
    };
    let named = left.iter().flat_map(named_processes).filter_map(is_left).collect::<Vec<_>>();
    output::note!("no fleet is running in {}", app.fleet.path().display());
    if !named.is_empty() {
        output::note!(
            "not stopped, as nobody watches over what was left in {}: {}; `kill` ends what is yours",
            app.fleet.path().display(),
            named.join(", ")
        );
    }
    app.fleet.clear();
    if args.json {
        output::json(&json!({ "stopped": [] }))?;
    }
    Ok(Exit::Completed)
}

/// The processes that a state names, with their names.
fn named_processes(state: &FleetState) -> impl Iterator<Item = (&str, &ProcessRef)> {
    let members = state.members.iter();
    let members = members.filter_map(|member| Some((member.name.as_str(), member.process.as_ref()?)));
    members.chain([("supervisor", &state.supervisor)])
}

fn processes(state: &FleetState) -> impl Iterator<Item = &ProcessRef> {
    named_processes(state).map(|(_, process)| process)
}

/// Processes that outlived their supervisor, where the system does not end them with it.
async fn end_left_over(state: &FleetState, limit: std::time::Duration) {
    let left = || state.members.iter().filter_map(|member| member.process.as_ref());
    for process in left() {
        process.signal(Signal::SIGTERM);
    }
    for process in left() {
        if !process.gone_within(limit).await {
            process.signal(Signal::SIGKILL);
        }
    }
}
