//! `muster scale`: how many processes of a role a fleet that is up has.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::app::{App, user};
use crate::args::ScaleArgs;
use crate::exit::{Exit, Failure, failed};
use crate::fleet::state::FleetState;
use crate::fleet::wish;
use crate::output;
use crate::render::figures;

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);

/// Asks the supervisor, and waits until it has done it.
pub(super) async fn scale(app: &App, args: &ScaleArgs) -> Result<Exit, Failure> {
    let wanted: BTreeMap<String, u16> = args.scale.iter().cloned().collect();
    let before = wish::leave(app, &wanted, &user())?;
    let limit = app.settings().fleet.start_limit + crate::settings::STOP_TIMEOUT;
    let until = Instant::now() + limit;
    loop {
        let live = app.fleet.live().ok_or_else(crate::app::no_fleet)?;
        if is_done(&live, &wanted) {
            return tell(args, &before, &wanted);
        }
        if Instant::now() >= until {
            return Err(failed!("it was not done within {}", figures::span(limit))
                .help("`muster ps` shows who is there; see .muster/log/supervisor.log"));
        }
        sleep(LOOK).await;
    }
}

/// Whether there are as many as wanted, all of them started.
fn is_done(state: &FleetState, wanted: &BTreeMap<String, u16>) -> bool {
    let is_there = |role: &str| {
        let of_role = state.members.iter().filter(|member| member.role() == role && !member.given_up);
        of_role.filter(|member| member.process.is_some()).count()
    };
    wanted
        .iter()
        .all(|(role, count)| wish::count(state, role) == *count && is_there(role) == usize::from(*count))
}

fn tell(args: &ScaleArgs, before: &FleetState, wanted: &BTreeMap<String, u16>) -> Result<Exit, Failure> {
    if args.json {
        let each: Vec<_> = wanted
            .iter()
            .map(|(role, count)| json!({ "role": role, "was": wish::count(before, role), "count": count }))
            .collect();
        output::json(&each)?;
    } else {
        for (role, count) in wanted {
            output::line!("{role}: {count} (was {})", wish::count(before, role))?;
        }
    }
    Ok(Exit::Completed)
}
