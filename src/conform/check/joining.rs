//! Whether the agent is there: its process, its entry in the registry, its heartbeat, and its queues.

use std::time::Duration;

use muster_bus::QueueSettings;
use muster_bus::subject::matches;
use muster_shared::text::counted;
use muster_shared::wire::{Body, Profile};

use super::super::{Observations, Passed};
use super::{read, verdict};
use crate::render::checks::Check;

/// The registry forgets whoever is silent for 15 s; a heartbeat is due every 5 s, and this much later it is missed.
pub(crate) const LATE: Duration = Duration::from_secs(10);

/// What is said of a process that did not last.
pub(super) fn process(watch: &Observations) -> Option<Check> {
    let (kind, how) = watch.ended.as_ref()?;
    let mend = "see what it said on standard error: an agent stays until it is told to go, whatever comes";
    Some(Check::fail("process", format!("the command ended with {how} while it had {}", kind.name()), mend))
}

pub(super) fn registry(watch: &Observations) -> Check {
    let what = "registry";
    let mend = "publish the profile to $KV.AGENTS.<agent>, with a header Nats-TTL, every few seconds";
    let entry = format!("$KV.AGENTS.{}", watch.agent);
    let Some(newest) =
        watch.passed.iter().rev().find(|passed| passed.subject == entry && !passed.payload.is_empty())
    else {
        return Check::fail(what, format!("nothing was published to {entry}"), mend);
    };
    let mut faults = Vec::new();
    match read(newest).map(|envelope| envelope.body) {
        Ok(Body::Profile(profile)) => faults.extend(profile_faults(watch, &profile)),
        Ok(other) => faults.push(format!("the entry holds {:?}, not a profile", other.kind())),
        Err(reason) => faults.push(format!("the entry cannot be read: {reason}")),
    }
    if newest.header("Nats-TTL").is_none() {
        faults.push("the entry has no Nats-TTL: a dead agent would stay listed".to_owned());
    }
    verdict(what, faults, format!("{} is listed as {}", watch.agent, watch.role), mend)
}

fn profile_faults(watch: &Observations, profile: &Profile) -> Vec<String> {
    let mut faults = Vec::new();
    if profile.agent != watch.agent {
        faults.push(format!("the profile is of {}, its key says {}", profile.agent, watch.agent));
    }
    if profile.role.parse::<muster_shared::ids::Role>().is_err() {
        faults.push(format!("{:?} is no role", profile.role));
    }
    if profile.slots == 0 {
        faults.push("it has no slots: nothing will be offered to it".to_owned());
    }
    if profile.event_version == 0 {
        faults.push("event_version is 0, versions begin with 1".to_owned());
    }
    faults
}

pub(super) fn heartbeat(watch: &Observations) -> Check {
    let what = "heartbeat";
    let mend = "publish a heartbeat to hb.<role>.<agent> and the profile at least every 5 s";
    let of = |subject: String| watch.passed.iter().filter(move |passed| passed.subject == subject);
    let beats: Vec<&Passed> = of(format!("hb.{}.{}", watch.role, watch.agent)).collect();
    let entries: Vec<&Passed> = of(format!("$KV.AGENTS.{}", watch.agent)).collect();
    let mut faults = Vec::new();
    if beats.is_empty() {
        faults.push(format!("nothing was heard on hb.{}.{}", watch.role, watch.agent));
    }
    let unreadable = |beat: &&Passed| !matches!(read(beat).map(|beat| beat.body), Ok(Body::Heartbeat(_)));
    if let Some(beat) = beats.iter().find(|beat| unreadable(beat)) {
        faults.push(format!("a message on {} is no heartbeat", beat.subject));
    }
    let times = entries.iter().map(|entry| entry.at);
    let gaps = times.clone().zip(times.skip(1).chain([watch.until])).map(|(one, next)| next.since(one));
    if let Some(longest) = gaps.max().filter(|gap| *gap > LATE) {
        faults.push(format!(
            "it was silent for {} s: its profile is due every 5 s, and the registry forgets it after 15 s",
            longest.as_secs()
        ));
    }
    verdict(what, faults, format!("heard {}", counted(beats.len(), "time", "times")), mend)
}

/// The queues of its role and of its own, which all who take from them share: their settings hold for everybody.
pub(super) fn queues(watch: &Observations) -> Check {
    let mend = "have one durable pull consumer per queue, <role> and @<agent>, named like the queue: explicit ack, \
                ack_wait 30 s, max_deliver -1, no backoff; inactive_threshold 600 s for @<agent>, none for <role>";
    let mut faults = Vec::new();
    for wanted in &watch.queues {
        let filter = wanted.filters.first().map_or("", String::as_str);
        let takes = |queue: &&QueueSettings| queue.filters.iter().any(|taken| overlap(taken, filter));
        let mut takers = watch.found.iter().filter(takes).peekable();
        if takers.peek().is_none() {
            faults.push(format!("nobody takes from {filter}"));
        }
        for found in takers {
            faults.extend(differences(wanted, found));
        }
    }
    verdict("queues", faults, "as all others have them".to_owned(), mend)
}

fn overlap(one: &str, other: &str) -> bool {
    one == other || matches(one, other) || matches(other, one)
}

fn differences(wanted: &QueueSettings, found: &QueueSettings) -> Vec<String> {
    let mut faults = Vec::new();
    let QueueSettings { name, filters, ack_wait, explicit_ack, max_deliver, backoff, idle } = found;
    if *name != wanted.name {
        faults.push(format!(
            "{} is taken by a consumer named {name}, it must be {}",
            wanted.filters.join(", "),
            wanted.name
        ));
    }
    if *filters != wanted.filters {
        faults.push(format!(
            "{name} takes {}, it must take {}",
            filters.join(", "),
            wanted.filters.join(", ")
        ));
    }
    if !explicit_ack {
        faults.push(format!("{name} does not acknowledge each delivery explicitly"));
    }
    if *ack_wait != wanted.ack_wait {
        let (found, wanted) = (ack_wait.as_secs(), wanted.ack_wait.as_secs());
        faults.push(format!("ack_wait of {name} is {found} s, it must be {wanted} s"));
    }
    if *max_deliver != wanted.max_deliver {
        faults.push(format!("max_deliver of {name} is {max_deliver}, it must be {}", wanted.max_deliver));
    }
    if *idle != wanted.idle {
        let (found, wanted) = (idle.as_secs(), wanted.idle.as_secs());
        faults.push(format!("inactive_threshold of {name} is {found} s, it must be {wanted} s (0 is never)"));
    }
    if *backoff {
        faults.push(format!("{name} has a backoff, which overrides its ack_wait"));
    }
    faults
}
