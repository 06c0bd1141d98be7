//! `muster down`: stops the local fleet.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::app::App;
use crate::args::DownArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::state::FleetState;
use crate::output;

/// Asks the supervisor to end, and ends what is left over when it is gone.
pub(super) async fn down(app: &App, args: &DownArgs) -> Result<Exit, Failure> {
    let Some(state) = app.fleet.read() else {
        output::note(&format!("no fleet is running in {}", app.fleet.path().display()));
        if args.json {
            output::json(&json!({ "stopped": [] }))?;
        }
        return Ok(Exit::Completed);
    };
    // The supervisor's own limit for its processes, and as much again for itself.
    let limit = app.settings().fleet.stop_limit * 2;
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
    if args.json {
        output::json(&json!({ "stopped": stopped, "given_up": given_up }))?;
    } else {
        let before = match given_up.is_empty() {
            true => String::new(),
            false => format!("; given up before: {}", given_up.join(", ")),
        };
        output::line(&format!("stopped {}{before}", stopped.join(", ")))?;
    }
    Ok(Exit::Completed)
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
