//! `muster ps`.

use muster_shared::flow::AgentState;
use muster_shared::ids::{AgentId, Role};
use muster_shared::text::counted;
use muster_shared::time::Millis;
use muster_shared::track_record::Tally;
use muster_shared::wire::{Profile, SetAside};

use super::{figures, table};
use crate::fleet::state::{GaveUp, MemberState};

/// A process of a fleet, with what its work in earlier runs came to, as far as that is known.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Listed {
    /// What it says of itself.
    #[serde(flatten)]
    pub(crate) profile: Profile,
    /// What its work came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) track_record: Option<Tally>,
}

impl Listed {
    /// A process as it is listed, in words and as JSON.
    pub(crate) fn new(profile: Profile, track_record: Option<Tally>) -> Self {
        Self { profile: Profile { busy: profile.in_hand(), ..profile }, track_record }
    }
}

/// A machine that joined.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Machine {
    /// What it is called.
    pub(crate) joined_host: AgentId,
    /// Of which roles it may start agents.
    pub(crate) roles: Vec<Role>,
    /// Since when.
    pub(crate) since: Millis,
    /// Its agents that are there.
    pub(crate) agents: Vec<AgentId>,
}

/// A machine that joined, in a line.
pub(crate) fn machine(machine: &Machine) -> String {
    let roles = figures::list(&machine.roles);
    let there = match machine.agents.len() {
        0 => "none of its agents is there".to_owned(),
        some => format!("{} there", counted(some, "agent", "agents")),
    };
    format!(
        "machine {} joined {} UTC for {roles}: {there}",
        machine.joined_host,
        figures::date(machine.since)
    )
}

/// The processes of this machine, which works for a fleet that is elsewhere.
pub(crate) fn of_this_machine(members: &[MemberState]) -> String {
    let row = |member: &MemberState| {
        let state = match (&member.process, member.given_up) {
            (_, true) => "given up".to_owned(),
            (Some(_), false) => "started".to_owned(),
            (None, false) => "to be started".to_owned(),
        };
        let pid = member.process.as_ref().map_or_else(|| "-".to_owned(), |process| process.pid.to_string());
        vec![
            member.name.clone(),
            pid,
            state,
            member.restarts.to_string(),
            figures::bytes(member.resident_bytes),
        ]
    };
    let rows = members.iter().map(row).collect();
    table::plain(&["NAME", "PID", "STATE", "RESTARTS", "MEMORY"], rows, &[1, 3, 4])
}

/// How the roles of guards begin.
const GUARD: &str = "guard-";

/// The processes of a fleet, orchestrators first, then by role.
pub(crate) fn table(mut listed: Vec<Listed>, now: Millis) -> String {
    if listed.is_empty() {
        return "no process has joined the fleet".to_owned();
    }
    listed
        .sort_by_key(|Listed { profile: p, .. }| (p.role != "orchestrator", p.role.clone(), p.agent.clone()));
    let rows = listed.iter().map(|listed| row(&listed.profile, listed.track_record.as_ref(), now)).collect();
    table::plain(
        &["AGENT", "ROLE", "HOST", "PID", "BUSY", "STATE", "DONE", "MODEL", "MEMORY", "UP"],
        rows,
        &[3, 4, 6, 8, 9],
    )
}

/// How many of the tasks that ended with it ended well, and how many bids it broke.
pub(crate) fn done(track_record: Option<&Tally>) -> String {
    let Some(tally) = track_record else { return "-".to_owned() };
    let broken = match tally.bids_broken {
        0 => String::new(),
        broken => format!(", {} broken", figures::plural(broken, "bid")),
    };
    format!("{}/{}{broken}", tally.done, tally.ended())
}

/// What its slots do, as of its last heartbeat; those that say nothing of it are idle or busy.
pub(crate) fn state(profile: &Profile) -> String {
    let states = &profile.presence.states;
    if profile.role == "orchestrator" {
        return "-".to_owned();
    }
    if states.is_empty() {
        return if profile.busy == 0 { "idle" } else { "busy" }.to_owned();
    }
    let words =
        AgentState::ALL.iter().filter_map(|state| match states.iter().filter(|one| *one == state).count() {
            0 => None,
            1 => Some(state.name().to_owned()),
            many => Some(format!("{many} {}", state.name())),
        });
    figures::list(words)
}

/// What is said of processes of a fleet that died too often: since when, why, and how there is one of them again.
pub(crate) fn given_up(members: &[MemberState], here: &[String], now: Millis) -> Vec<String> {
    let mut lines = Vec::new();
    let mut roles = std::collections::BTreeSet::new();
    for member in members.iter().filter(|member| member.given_up) {
        let name = &member.name;
        let why = match &member.gave_up {
            Some(GaveUp { at, how }) => {
                let since = Millis(*at);
                let clock = figures::date(since);
                format!(
                    "given up {} ago ({clock} UTC): it {how}, and too often",
                    figures::span(now.since(since))
                )
            }
            None => "given up: it died too often".to_owned(),
        };
        lines.push(figures::one_line(&format!("{name} was {why}; see .muster/log/{name}.log"), 400));
        roles.insert(member.role());
    }
    for role in roles.into_iter().filter(|role| !here.iter().any(|there| there == role)) {
        let by_hand = match role {
            "orchestrator" => "muster orchestrator".to_owned(),
            role if role.starts_with(GUARD) => "muster guard".to_owned(),
            role => format!("muster agent {role}"),
        };
        lines.push(format!("there is no {role} left: what only it can do waits; `{by_hand}` starts one"));
    }
    if !lines.is_empty() {
        lines.push("`muster down`, then `muster up`, starts all of them again".to_owned());
    }
    lines
}

/// The role; of an orchestrator with the domains that it is there for.
pub(crate) fn role(profile: &Profile) -> String {
    let domains = profile.specialist.as_ref().filter(|_| profile.role == "orchestrator");
    match domains {
        Some(said) => figures::one_line(&format!("{} of {}", profile.role, said.capabilities.join(", ")), 60),
        None => profile.role.clone(),
    }
}

fn row(profile: &Profile, track_record: Option<&Tally>, now: Millis) -> Vec<String> {
    let memory = match profile.resident_bytes {
        0 => "?".to_owned(),
        known => figures::bytes(known),
    };
    let up = match profile.started_at {
        0 => "-".to_owned(),
        since => figures::span(now.since(Millis(since))),
    };
    let model = if profile.model.is_empty() { "-" } else { &profile.model };
    vec![
        profile.agent.to_string(),
        role(profile),
        figures::one_line(&profile.host, 30),
        profile.pid.to_string(),
        format!("{}/{}", profile.busy, profile.slots),
        state(profile),
        done(track_record),
        figures::one_line(model, 40),
        memory,
        up,
    ]
}

/// The runs that orchestrators leave alone for now, and the agents that get no tasks, a line each.
pub(crate) fn set_aside(profiles: &[Listed], now: Millis) -> Vec<String> {
    let all = profiles.iter().flat_map(|listed| &listed.profile.set_aside);
    let line = |aside: &SetAside| {
        let (short, reason) = (aside.run.short(), figures::one_line(&aside.reason, 120));
        let left = figures::span(Millis(aside.until).since(now));
        format!("run {short} is left alone for {left}: {reason}")
    };
    let excluded = profiles.iter().flat_map(|listed| &listed.profile.excluded).map(|one| {
        let left = figures::span(Millis(one.until).since(now));
        figures::one_line(&format!("{} gets no tasks for {left}: {}", one.agent, one.reason), 300)
    });
    all.map(line).chain(excluded).collect()
}

#[cfg(test)]
mod tests {
    use muster_shared::wire::ExcludedAgent;

    use super::*;

    fn profile(agent: &str, role: &str) -> Profile {
        let profile = serde_json::json!({
            "agent": agent, "role": role, "pid": 77, "host": "mill", "version": "0.1.0", "slots": 8, "busy": 3,
            "started_at": 1_000, "resident_bytes": 12 * 1024 * 1024,
        });
        serde_json::from_value(profile).unwrap()
    }

    #[test]
    fn orchestrators_stand_first() {
        let track_record = Some(Tally { done: 9, failed: 1, ..Tally::default() });
        let listed = vec![
            Listed::new(profile("worker-1", "worker"), track_record),
            Listed::new(profile("o-1", "orchestrator"), None),
        ];
        let text = table(listed, Millis(66_000));
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("AGENT") && lines[1].starts_with("o-1") && lines[2].starts_with("worker-1")
        );
        for part in ["mill", "77", "3/8", "9/10", "12.0 MiB", "1m05s"] {
            assert!(lines[2].contains(part), "{part} in {}", lines[2]);
        }
    }

    #[test]
    fn an_agent_that_works_is_told_as_busy_in_words_and_as_json() {
        let mut worker = Profile { busy: 0, ..profile("worker-1", "worker") };
        worker.presence.states = vec![AgentState::Thinking, AgentState::Acting];
        let listed = Listed::new(worker, None);
        assert_eq!(serde_json::to_value(&listed).unwrap()["busy"], 2);
        let text = table(vec![listed], Millis(1_000));
        assert!(text.contains("2/8") && text.contains("thinking, acting"), "{text}");
        let idle = Listed::new(Profile { busy: 0, ..profile("worker-2", "worker") }, None);
        assert_eq!(idle.profile.busy, 0);
    }

    #[test]
    fn runs_that_are_left_alone_are_told_with_the_reason() {
        let run: muster_shared::ids::RunId = "0197a1b2-0000-7000-8000-000000000001".parse().unwrap();
        let aside = SetAside { run, reason: "it decided 100 times in a row".into(), until: 5_000 };
        let (agent, reason) = ("worker-1".parse().unwrap(), "it failed 3 tasks in a row: no key".to_owned());
        let excluded = vec![ExcludedAgent { agent, reason, until: 61_000 }];
        let orchestrator = Profile { set_aside: vec![aside], excluded, ..profile("o-1", "orchestrator") };
        let lines = set_aside(&[Listed::new(orchestrator, None)], Millis(1_000));
        let expected = format!("run {} is left alone for 4.0s: it decided 100 times in a row", run.short());
        let gets_none = "worker-1 gets no tasks for 1m00s: it failed 3 tasks in a row: no key".to_owned();
        assert_eq!(lines, [expected, gets_none]);
    }

    #[test]
    fn bids_that_were_broken_are_told() {
        let track_record = Tally { done: 1, bids_kept: 1, ..Tally::default() };
        assert_eq!(done(None), "-");
        assert_eq!(done(Some(&track_record)), "1/1");
        assert_eq!(done(Some(&Tally { bids_broken: 1, ..track_record })), "1/1, 1 bid broken");
        assert_eq!(done(Some(&Tally { bids_broken: 2, failed: 1, ..track_record })), "1/2, 2 bids broken");
    }

    #[test]
    fn what_the_slots_do_is_told() {
        let mut worker = profile("worker-1", "worker");
        assert_eq!(state(&worker), "busy", "one that says nothing of its slots");
        worker.busy = 0;
        assert_eq!(state(&worker), "idle");
        worker.presence.states = vec![AgentState::Thinking, AgentState::Thinking, AgentState::Acting];
        assert_eq!(state(&worker), "2 thinking, acting");
        assert_eq!(state(&profile("o-1", "orchestrator")), "-");
    }

    #[test]
    fn what_was_given_up_is_told_with_since_when_and_why() {
        let member = |name: &str, gave_up: Option<GaveUp>| MemberState {
            restarts: 5,
            given_up: gave_up.is_some(),
            gave_up,
            ..MemberState::new(name.to_owned(), None)
        };
        let gave_up = GaveUp { at: 5_000, how: "ended with exit code 3".to_owned() };
        let members = [
            member("fact_checker-12", Some(gave_up.clone())),
            member("worker-2", Some(gave_up)),
            member("writer-1", None),
        ];
        let lines = given_up(&members, &["worker".to_owned()], Millis(65_000));
        assert_eq!(lines.len(), 4, "{lines:?}");
        for (line, part) in [
            (
                0,
                "fact_checker-12 was given up 1m00s ago (1970-01-01 00:00:05 UTC): it ended with exit code 3",
            ),
            (1, "see .muster/log/worker-2.log"),
            (2, "there is no fact_checker left"),
            (3, "`muster down`, then `muster up`"),
        ] {
            assert!(lines[line].contains(part), "{part}: {lines:?}");
        }
        assert_eq!(given_up(&members[2..], &[], Millis(0)), Vec::<String>::new());
    }

    #[test]
    fn an_empty_fleet_is_said_to_be_empty() {
        assert!(table(Vec::new(), Millis(0)).contains("no process"));
    }
}
