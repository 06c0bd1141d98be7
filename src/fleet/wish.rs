//! How many processes of a role a fleet that is up is to have: a word left beside its state file, which its supervisor heeds.
//! Whoever can write there is the fleet's owner.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::scale::ORCHESTRATOR;
use super::state::{FleetState, MemberState};
use crate::app::App;
use crate::exit::{Failure, failed, usage};
use crate::settings::MOST_PROCESSES;

/// What is wished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    /// Tells it from the one before.
    pub(crate) id: Uuid,
    /// Who wishes it.
    pub(crate) by: String,
    /// How many processes of each role there are to be.
    pub(crate) scale: BTreeMap<String, u16>,
}

/// What a supervisor does about one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// It starts so many more.
    Start(u16),
    /// It stops these.
    Stop(Vec<String>),
}

/// What follows from a wish for one role; nothing where it is as it is to be. The newest go first. Pure.
pub(crate) fn change(members: &[MemberState], role: &str, wanted: u16) -> Option<Change> {
    let mut there: Vec<(u32, &str)> = members
        .iter()
        .filter(|member| member.role() == role && !member.given_up && !member.is_foreign)
        .map(|member| (number(&member.name), member.name.as_str()))
        .collect();
    there.sort_unstable();
    let (is, wanted) = (there.len(), usize::from(wanted));
    match wanted.checked_sub(is) {
        Some(0) => None,
        Some(more) => Some(Change::Start(u16::try_from(more).unwrap_or(MOST_PROCESSES))),
        None => {
            let last = there.into_iter().skip(wanted).rev();
            Some(Change::Stop(last.map(|(_, name)| name.to_owned()).collect()))
        }
    }
}

/// The number for the next process of a role: names are not used again while somebody bears them.
pub(crate) fn next_number(members: &[MemberState], role: &str) -> u32 {
    let of_role = members.iter().filter(|member| member.role() == role);
    of_role.map(|member| number(&member.name)).max().unwrap_or(0).saturating_add(1)
}

fn number(name: &str) -> u32 {
    name.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

/// How many processes of a role there are.
pub(crate) fn count(state: &FleetState, role: &str) -> u16 {
    let there = state.members.iter().filter(|member| member.role() == role && !member.given_up);
    u16::try_from(there.count()).unwrap_or(u16::MAX)
}

/// Leaves word for the supervisor of the fleet of this folder; gives the fleet as it was.
///
/// # Errors
/// When no fleet is up here, it is not its owner's to scale, or it has no such role.
pub(crate) fn leave(app: &App, scale: &BTreeMap<String, u16>, by: &str) -> Result<FleetState, Failure> {
    let live = app.fleet.live().ok_or_else(|| {
        failed!("no fleet is supervised here").help(
            "`muster up --scale ROLE=N` starts one; processes elsewhere are started there: `muster join`",
        )
    })?;
    if live.host.is_some() {
        return Err(failed!("the processes here are those of a machine that joined another fleet")
            .help("start more of them where it joins: `muster join --scale`"));
    }
    super::scale::of(app, scale)?;
    if scale.get(ORCHESTRATOR) == Some(&0) {
        return Err(usage!("a fleet without an orchestrator does nothing")
            .help("leave one; `muster down` stops the whole fleet"));
    }
    let is_of_team = |role: &str| {
        app.loaded.team.iter().flat_map(|team| &team.specialists).any(|member| member.role == role)
    };
    let unknown = scale.keys().find(|role| *role != ORCHESTRATOR && is_of_team(role));
    if let Some(role) = unknown {
        return Err(failed!("{role} belongs to the team file, which says how many there are")
            .help("change the team file, and bring the fleet up with it again"));
    }
    let wish = Wish { id: Uuid::new_v4(), by: by.to_owned(), scale: scale.clone() };
    app.fleet.leave_wish(&wish).map_err(|error| {
        failed!("the supervisor cannot be told: {error}").help("the fleet's folder must be writable by you")
    })?;
    Ok(live)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: &[&str]) -> Vec<MemberState> {
        names.iter().map(|name| MemberState::new((*name).to_owned(), None)).collect()
    }

    #[test]
    fn the_newest_go_first_and_names_are_not_used_twice() {
        let fleet =
            members(&["orchestrator-1", "worker-1", "worker-3", "worker-10", "planner-1", "nats-server"]);
        let stop = |names: &[&str]| Some(Change::Stop(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(change(&fleet, "worker", 3), None);
        assert_eq!(change(&fleet, "worker", 5), Some(Change::Start(2)));
        assert_eq!(change(&fleet, "worker", 1), stop(&["worker-10", "worker-3"]));
        assert_eq!(change(&fleet, "worker", 0), stop(&["worker-10", "worker-3", "worker-1"]));
        assert_eq!(change(&fleet, "writer", 1), Some(Change::Start(1)));
        assert_eq!(change(&fleet, "writer", 0), None);
        assert_eq!([next_number(&fleet, "worker"), next_number(&fleet, "writer")], [11, 1]);
    }

    #[test]
    fn who_was_given_up_does_not_count() {
        let mut fleet = members(&["worker-1", "worker-2"]);
        fleet[0].given_up = true;
        assert_eq!(change(&fleet, "worker", 2), Some(Change::Start(1)));
        assert_eq!(change(&fleet, "worker", 1), None);
    }
}
