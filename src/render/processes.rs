//! `muster ps`.

use muster_shared::standing::Tally;
use muster_shared::time::Millis;
use muster_shared::wire::Profile;

use super::{figures, table};

/// A process of a fleet, with what its work in earlier runs came to, as far as that is known.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Listed {
    /// What it says of itself.
    #[serde(flatten)]
    pub(crate) profile: Profile,
    /// What its work came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) standing: Option<Tally>,
}

/// The processes of a fleet, orchestrators first, then by role.
pub(crate) fn table(mut listed: Vec<Listed>, now: Millis) -> String {
    if listed.is_empty() {
        return "no process has joined the fleet".to_owned();
    }
    listed
        .sort_by_key(|Listed { profile: p, .. }| (p.role != "orchestrator", p.role.clone(), p.agent.clone()));
    let rows = listed.iter().map(|listed| row(&listed.profile, listed.standing.as_ref(), now)).collect();
    table::plain(
        &["AGENT", "ROLE", "HOST", "PID", "BUSY", "DONE", "MODEL", "MEMORY", "UP"],
        rows,
        &[3, 4, 5, 7, 8],
        None,
    )
}

/// How many of the tasks that ended with it ended well, and how many bids it broke.
fn done(standing: Option<&Tally>) -> String {
    let Some(tally) = standing else { return "-".to_owned() };
    let broken = match tally.bids_broken {
        0 => String::new(),
        broken => format!(", {} broken", figures::plural(broken, "bid")),
    };
    format!("{}/{}{broken}", tally.done, tally.ended())
}

/// The role; of an orchestrator with the domains that it is there for.
fn role(profile: &Profile) -> String {
    let domains = profile.specialist.as_ref().filter(|_| profile.role == "orchestrator");
    match domains {
        Some(said) => figures::one_line(&format!("{} of {}", profile.role, said.capabilities.join(", ")), 60),
        None => profile.role.clone(),
    }
}

fn row(profile: &Profile, standing: Option<&Tally>, now: Millis) -> Vec<String> {
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
        done(standing),
        figures::one_line(model, 40),
        memory,
        up,
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn profile(agent: &str, role: &str) -> Profile {
        Profile {
            agent: agent.parse().unwrap(),
            role: role.into(),
            pid: 77,
            host: "mill".into(),
            version: "0.1.0".into(),
            event_version: 1,
            slots: 8,
            busy: 3,
            model: String::new(),
            tools: Vec::new(),
            started_at: 1_000,
            resident_bytes: 12 * 1024 * 1024,
            specialist: None,
            encoding: muster_shared::wire::Encoding::default(),
        }
    }

    #[test]
    fn orchestrators_stand_first() {
        let standing = Some(Tally { done: 9, failed: 1, ..Tally::default() });
        let listed = vec![
            Listed { profile: profile("worker-1", "worker"), standing },
            Listed { profile: profile("o-1", "orchestrator"), standing: None },
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
    fn bids_that_were_broken_are_told() {
        let standing = Tally { done: 1, bids_kept: 1, ..Tally::default() };
        assert_eq!(done(None), "-");
        assert_eq!(done(Some(&standing)), "1/1");
        assert_eq!(done(Some(&Tally { bids_broken: 1, ..standing })), "1/1, 1 bid broken");
        assert_eq!(done(Some(&Tally { bids_broken: 2, failed: 1, ..standing })), "1/2, 2 bids broken");
    }

    #[test]
    fn an_empty_fleet_is_said_to_be_empty() {
        assert!(table(Vec::new(), Millis(0)).contains("no process"));
    }
}
