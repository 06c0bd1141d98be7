//! When a fleet that comes up takes work of every kind. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::ids::Role;
use muster_shared::time::Millis;
use muster_shared::wire::Profile;

use super::state::{MemberState, role_in};

/// How long a tool server is waited for: one that hangs must not hold up the fleet.
const TOOL_SERVER_WAIT: Duration = Duration::from_secs(10);

/// The members that have not joined yet, by name: of each role as many as have not been heard of. Who was given up is not
/// waited for, nor is the server, which joins nothing, nor a program of the user's, which may never do.
///
/// Who joined before the fleet came up is of an earlier one that was killed, unless it does not say when it started.
pub(crate) fn awaited(members: &[MemberState], joined: &[Profile], since: u64, now: Millis) -> Vec<String> {
    let mut there: BTreeMap<&str, usize> = BTreeMap::new();
    let is_ours = |profile: &&Profile| profile.started_at == 0 || profile.started_at >= since;
    for profile in joined.iter().filter(is_ours) {
        *there.entry(profile.role.as_str()).or_default() += 1;
    }
    let mut awaited = Vec::new();
    let is_late = now.since(Millis(since)) > TOOL_SERVER_WAIT;
    let is_late = |member: &MemberState| is_late && member.role().starts_with(Profile::TOOL_SERVER);
    let joins = |member: &&MemberState| {
        !member.given_up && !member.is_foreign && member.name != super::supervisor::SERVER && !is_late(member)
    };
    for member in members.iter().filter(joins) {
        match there.get_mut(member.role()) {
            Some(left @ 1..) => *left -= 1,
            _ => awaited.push(member.name.clone()),
        }
    }
    awaited
}

/// Whether a member, by its name, is one of those that a run needs first.
pub(crate) fn begins_runs(name: &str) -> bool {
    let role = role_in(name);
    role == super::scale::ORCHESTRATOR || role == Role::Planner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(role: &str, started_at: u64) -> Profile {
        serde_json::from_value(serde_json::json!({
            "agent": format!("{role}-{started_at}"), "role": role, "started_at": started_at,
        }))
        .unwrap()
    }

    fn member(name: &str, given_up: bool) -> MemberState {
        MemberState { given_up, ..MemberState::new(name.to_owned(), None) }
    }

    #[test]
    fn a_run_begins_with_orchestrators_and_planners() {
        let begins =
            ["orchestrator-2", "planner-1", "worker-1", "planner_b-1", "nats-server"].map(begins_runs);
        assert_eq!(begins, [true, true, false, false, false]);
    }

    #[test]
    fn as_many_of_each_role_are_awaited_as_were_started_and_not_heard_of() {
        let members = [
            member("nats-server", false),
            member("orchestrator-1", false),
            member("worker-1", false),
            member("worker-2", false),
            member("writer-1", true),
            member("word_counter-1", false),
            MemberState { is_foreign: true, ..member("lookout-1", false) },
            member("tools-house-1", false),
        ];
        let soon = awaited(&members, &[], 100, Millis(10_100));
        assert_eq!(soon.last().map(String::as_str), Some("tools-house-1"));
        let awaited = |joined: &[Profile]| awaited(&members, joined, 100, Millis(10_101));
        assert_eq!(awaited(&[]), ["orchestrator-1", "worker-1", "worker-2", "word_counter-1"]);
        let joined = [profile("orchestrator", 100), profile("worker", 150), profile("worker", 20)];
        assert_eq!(awaited(&joined), ["worker-2", "word_counter-1"], "one worker is of an earlier fleet");
        let all = [
            profile("orchestrator", 100),
            profile("worker", 150),
            profile("worker", 160),
            profile("word_counter", 0),
        ];
        assert_eq!(awaited(&all), Vec::<String>::new());
    }
}
