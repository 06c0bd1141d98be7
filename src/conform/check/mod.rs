//! The checks: from what was seen to what is wrong, and how to mend it. Pure.

mod course;
mod deliveries;
mod joining;
mod results;

use muster_bus::subject::Subject;
use muster_shared::flow::Outcome;
use muster_shared::ids::AgentId;
use muster_shared::run::{AgentKey, EventKind};
use muster_shared::wire::{Body, Encoding, Envelope, decode};

pub(crate) use joining::LATE;

use super::{Observations, Passed, Trial};
use crate::render::checks::{Check, CheckResult};

/// How many faults of one kind are named.
const MOST_NAMED: usize = 3;

/// What people are told of a verdict.
pub(crate) const fn word(verdict: CheckResult) -> &'static str {
    match verdict {
        CheckResult::Ok => "pass",
        CheckResult::Warn => "not seen",
        CheckResult::Fail => "fail",
    }
}

/// Everything that can be said of an agent, in the order of the protocol.
pub(crate) fn check(watch: &Observations) -> Vec<Check> {
    let writings: Vec<Writing<'_>> =
        watch.passed.iter().filter_map(|passed| writing(watch, passed)).collect();
    let process = joining::process(watch);
    let checks = [
        joining::registry(watch),
        joining::heartbeat(watch),
        joining::queues(watch),
        course::envelopes(watch, &writings),
        course::fences(&writings),
        course::started(watch, &writings),
        course::steps(watch, &writings),
        course::outcomes(watch, &writings),
        results::contract(watch, &writings),
        results::sizes(watch, &writings),
        course::after_the_end(watch, &writings),
        deliveries::after_a_refusal(watch, &writings),
        deliveries::acknowledgements(watch, &writings),
        deliveries::progress(watch, &writings),
        deliveries::redelivery(watch, &writings),
        deliveries::cancellation(watch, &writings),
        deliveries::parking(watch, &writings),
        deliveries::closed(watch, &writings),
    ];
    process.into_iter().chain(checks).collect()
}

/// What the agent wrote, or tried to write, to the record.
struct Writing<'a> {
    passed: &'a Passed,
    trial: &'a Trial,
    key: AgentKey,
    kind: EventKind,
    /// What it says, if it can be read.
    body: Result<Envelope, String>,
}

fn writing<'a>(watch: &'a Observations, passed: &'a Passed) -> Option<Writing<'a>> {
    let Ok(Subject::Event(run, key, kind)) = Subject::parse(&passed.subject) else { return None };
    let trial = watch.trials.iter().find(|trial| trial.run == run)?;
    (key.agent == watch.agent).then(|| Writing { passed, trial, key, kind, body: read(passed) })
}

fn read(passed: &Passed) -> Result<Envelope, String> {
    let encoding = Encoding::of(passed.header("Content-Type"), &passed.payload);
    decode(&passed.payload, encoding).map_err(|error| error.to_string())
}

/// What of a trial stands in the record, in order.
fn stored<'a>(writings: &'a [Writing<'a>], trial: &Trial) -> Vec<&'a Writing<'a>> {
    writings.iter().filter(|one| one.trial.run == trial.run && one.passed.stored.is_some()).collect()
}

/// The verdict upon faults of one kind.
fn verdict(what: &str, faults: Vec<String>, good: String, mend: &str) -> Check {
    if faults.is_empty() {
        return Check::ok(what, good);
    }
    let more = faults.len().saturating_sub(MOST_NAMED);
    let mut named = faults;
    named.truncate(MOST_NAMED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    Check::fail(what, format!("{}{more}", named.join("; ")), mend)
}

fn outcome<'a>(one: &'a Writing<'_>) -> Option<&'a Outcome> {
    if let Body::Outcome(outcome) = &one.body.as_ref().ok()?.body { Some(outcome) } else { None }
}

/// The trials in which the agent is to work.
fn worked(watch: &Observations) -> impl Iterator<Item = &Trial> {
    watch.trials.iter().filter(|trial| trial.kind.is_worked_on())
}

/// Why no agent can be checked.
pub(crate) enum Absence {
    /// It did not join in time; these are there.
    NotThere(Vec<AgentId>),
    /// The command that was to start it has ended.
    Ended(String),
}

/// The agent that no check can be made of.
pub(crate) fn nobody(wanted: Option<&AgentId>, role: Option<&str>, absence: &Absence) -> Check {
    let who = match (wanted, role) {
        (Some(agent), _) => agent.to_string(),
        (None, Some(role)) => format!("an agent of the role {role}"),
        (None, None) => "an agent".to_owned(),
    };
    let mend = "publish the profile to $KV.AGENTS.<agent> as an envelope whose body has the type profile";
    match absence {
        Absence::Ended(how) => {
            let mend = "see what it said on standard error; it finds the bus in NATS_URL";
            Check::fail("registry", format!("{who} did not join: the command ended with {how}"), mend)
        }
        Absence::NotThere(others) if others.is_empty() => {
            Check::fail("registry", format!("{who} did not join"), mend)
        }
        Absence::NotThere(others) => {
            let mut names: Vec<&str> = others.iter().map(AgentId::as_str).collect();
            names.sort_unstable();
            let found = format!("{who} is not there; there are {}", names.join(", "));
            let mend = "name one of them, or a role by --role; one that is meant and missing has to publish its \
                        profile to $KV.AGENTS.<agent>";
            Check::fail("registry", found, mend)
        }
    }
}
