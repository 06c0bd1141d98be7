//! The checks: from what was seen to what is wrong, and how to mend it. Pure.

use std::time::Duration;

use muster_bus::subject::{Subject, task_fence};
use muster_shared::flow::{Ending, Outcome, Product, Step};
use muster_shared::ids::AgentId;
use muster_shared::run::{AgentKey, EventKind, Started};
use muster_shared::wire::{Body, Encoding, Envelope, Profile, decode};

use super::{Kind, Passed, Trial, Watch};
use crate::render::checks::Check;

/// The registry forgets whoever is silent for 15 s; a heartbeat is due every 5 s, and this much later it is missed.
pub(crate) const LATE: Duration = Duration::from_secs(10);
/// An end that comes so soon after a cancellation was on its way already.
const CROSSED: Duration = Duration::from_millis(150);
/// A task is given to somebody else after so long without a sign of progress.
const PATIENCE: Duration = Duration::from_secs(30);
/// How soon a cancelled task must have ended.
const OBEDIENCE: Duration = Duration::from_secs(5);
/// Messages of two subscriptions that come closer together than this may be seen in either order.
const SIMULTANEOUS: Duration = Duration::from_millis(20);
/// How many faults of one kind are named.
const MOST_NAMED: usize = 3;

/// The header that names the last sequence its author saw.
const FENCE_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";
/// The header that says of which subjects.
const FENCE_FILTER: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// Everything that can be said of an agent, in the order of the protocol.
pub(crate) fn check(watch: &Watch) -> Vec<Check> {
    let writings: Vec<Writing<'_>> =
        watch.passed.iter().filter_map(|passed| writing(watch, passed)).collect();
    vec![
        registry(watch),
        heartbeat(watch),
        envelopes(watch, &writings),
        fences(&writings),
        started(watch, &writings),
        steps(watch, &writings),
        outcomes(watch, &writings),
        after_the_end(watch, &writings),
        after_a_refusal(watch, &writings),
        acknowledgements(watch, &writings),
        progress(watch, &writings),
        cancellation(watch, &writings),
        closed(watch, &writings),
    ]
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

fn writing<'a>(watch: &'a Watch, passed: &'a Passed) -> Option<Writing<'a>> {
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

fn registry(watch: &Watch) -> Check {
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

fn profile_faults(watch: &Watch, profile: &Profile) -> Vec<String> {
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

fn heartbeat(watch: &Watch) -> Check {
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
    verdict(what, faults, format!("heard {} times", beats.len()), mend)
}

fn envelopes(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let mend = "write envelopes by `muster schema`: v, id, sender, sent, run, task, body with type and content; say \
                Content-Type: application/json for JSON";
    let mut faults = Vec::new();
    for Writing { passed, key, kind, body, trial } in writings {
        let said = match body {
            Ok(said) => said,
            Err(reason) => {
                faults.push(format!("{kind} cannot be read: {reason}"));
                continue;
            }
        };
        if kind_of(&said.body) != Some(*kind) {
            faults.push(format!("a body of type {} stands on a subject of {kind}", said.body.kind().name()));
        }
        if said.sender != watch.agent && said.sender != AgentId::anonymous() {
            faults.push(format!("{kind} has the sender {}, its subject says {}", said.sender, watch.agent));
        }
        if said.run.is_some_and(|run| run != trial.run)
            || said.task.as_ref().is_some_and(|task| *task != key.task)
        {
            faults.push(format!("{kind} names another run or task than its subject"));
        }
        if key.role.to_string() != watch.role {
            faults.push(format!("{} stands under the role {}, not {}", passed.subject, key.role, watch.role));
        }
    }
    // Nobody reads a subject that is none of ours.
    let strange = watch
        .passed
        .iter()
        .filter(|passed| passed.subject.starts_with("evt.") && Subject::parse(&passed.subject).is_err());
    faults.extend(strange.map(|passed| format!("{} is no subject of the protocol", passed.subject)));
    verdict("envelopes", faults, format!("{} messages read as they should", writings.len()), mend)
}

const fn kind_of(body: &Body) -> Option<EventKind> {
    match body {
        Body::Started(_) => Some(EventKind::Started),
        Body::ToolStarted(_) => Some(EventKind::Tool),
        Body::Step(_) => Some(EventKind::Step),
        Body::Released(_) => Some(EventKind::Released),
        Body::Outcome(_) => Some(EventKind::Outcome),
        Body::Decided(_)
        | Body::Offered(_)
        | Body::Command(_)
        | Body::Heartbeat(_)
        | Body::Profile(_)
        | Body::Live(_)
        | Body::Control(_)
        | Body::Context(_)
        | Body::Call(_)
        | Body::Bid(_)
        | Body::Stored(_) => None,
    }
}

fn fences(writings: &[Writing<'_>]) -> Check {
    let mend = "send both headers with every write: Nats-Expected-Last-Subject-Sequence, and -Subject with \
                evt.<run>.*.*.<task>.<gen>.> byte for byte";
    let mut faults = Vec::new();
    for Writing { passed, key, kind, trial, .. } in writings {
        let wanted = task_fence(trial.run, &key.task, key.generation);
        match passed.header(FENCE_FILTER) {
            None => faults.push(format!("{kind} has no header {FENCE_FILTER}")),
            Some(filter) if filter != wanted => {
                faults.push(format!(
                    "{kind} is fenced by {filter}, which excludes nobody: it must be {wanted}"
                ));
            }
            Some(_) => {}
        }
        match passed.header(FENCE_SEQUENCE).map(str::parse::<u64>) {
            None => faults.push(format!("{kind} has no header {FENCE_SEQUENCE}")),
            Some(Err(_)) => faults.push(format!("{FENCE_SEQUENCE} of {kind} is no number")),
            Some(Ok(_)) => {}
        }
    }
    verdict("fence", faults, format!("{} writes were fenced", writings.len()), mend)
}

/// What was done before the agent came: tries and steps.
const fn before(kind: Kind) -> (u32, u32) {
    match kind {
        Kind::TakenOver => (1, 1),
        Kind::Plain | Kind::Closed | Kind::Cancelled => (0, 0),
    }
}

/// The trials in which the agent is to work.
fn worked(watch: &Watch) -> impl Iterator<Item = &Trial> {
    watch.trials.iter().filter(|trial| trial.kind != Kind::Closed)
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Plain => "the plain task",
        Kind::TakenOver => "the task that another agent had begun",
        Kind::Closed => "the closed task",
        Kind::Cancelled => "the cancelled task",
    }
}

fn started(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let mend = "take offers from task.<role>.> and task.@<agent>.>, and write started before anything else: attempt \
                one higher than the last started of the generation (or left out), ack the reply subject of the delivery, \
                after_step the last step";
    let mut faults = Vec::new();
    for trial in worked(watch) {
        let (named, (attempts, steps)) = (name(trial.kind), before(trial.kind));
        let written = stored(writings, trial);
        let Some(first) = written.first() else {
            faults.push(format!("{named} was never started"));
            continue;
        };
        let Ok(Body::Started(Started { attempt, ack, after_step, .. })) =
            first.body.as_ref().map(|said| &said.body)
        else {
            faults.push(format!("of {named}, {} was written before started", first.kind));
            continue;
        };
        if attempt.0 != 0 && attempt.0 != attempts + 1 {
            faults.push(format!("attempt of {named} is {attempt}, it is number {}", attempts + 1));
        }
        if *after_step != steps {
            faults.push(format!("after_step of {named} is {after_step}, step {steps} stands in the record"));
        }
        if !ack.starts_with("$JS.ACK.TASKS.") {
            faults.push(format!("ack of {named} is {ack:?}, not the reply subject of the delivery"));
        }
    }
    verdict("started", faults, "written first, with its place".to_owned(), mend)
}

fn steps(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let mend = "number steps from 1 within a generation, over all attempts, without a gap";
    let (mut faults, mut count) = (Vec::new(), 0_u32);
    for trial in worked(watch) {
        let mut last = before(trial.kind).1;
        for one in stored(writings, trial) {
            let Ok(Body::Step(Step { number, .. })) = one.body.as_ref().map(|said| &said.body) else {
                continue;
            };
            if *number != last + 1 {
                faults.push(format!("step {number} follows step {last} in {}", name(trial.kind)));
            }
            (last, count) = (*number, count + 1);
        }
    }
    verdict("steps", faults, format!("{count} steps in order"), mend)
}

fn outcomes(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let mend = "end every task with one outcome; one that is done has product.result with a conclusion";
    let mut faults = Vec::new();
    for trial in worked(watch) {
        let named = name(trial.kind);
        let all = stored(writings, trial);
        let ends: Vec<&Outcome> = all.iter().filter_map(|one| outcome(one)).collect();
        match ends.as_slice() {
            [] => faults.push(format!("{named} has no outcome")),
            [only] if only.ending.is_success() => match &only.product {
                Some(Product::Result(result)) if !result.conclusion.trim().is_empty() => {}
                Some(Product::Result(_)) => faults.push(format!("the result of {named} has no conclusion")),
                Some(
                    Product::Plan(_)
                    | Product::Reflection(_)
                    | Product::Refinement(_)
                    | Product::Report(_)
                    | Product::DraftReview(_),
                )
                | None => faults.push(format!("{named} is called done and gives no result")),
            },
            [_] => {}
            several => faults.push(format!("{named} has {} outcomes", several.len())),
        }
    }
    verdict("outcome", faults, "one for each task".to_owned(), mend)
}

fn outcome<'a>(one: &'a Writing<'_>) -> Option<&'a Outcome> {
    if let Body::Outcome(outcome) = &one.body.as_ref().ok()?.body { Some(outcome) } else { None }
}

fn after_the_end(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let mend = "write nothing more about a generation once its outcome stands";
    let mut faults = Vec::new();
    for trial in &watch.trials {
        let all = writings.iter().filter(|one| one.trial.run == trial.run);
        let mut after = all.skip_while(|one| outcome(one).is_none() || one.passed.stored.is_none()).skip(1);
        if let Some(late) = after.next() {
            faults.push(format!("{} was written after the outcome of {}", late.kind, name(trial.kind)));
        }
    }
    verdict("after the outcome", faults, "nothing".to_owned(), mend)
}

fn after_a_refusal(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let what = "after a refused write";
    let mend = "a write that is refused (10071, 10164) means that another agent has the task: read the record, or drop it";
    let mut refused = 0_u32;
    let mut faults = Vec::new();
    for trial in &watch.trials {
        let all: Vec<&Writing<'_>> = writings.iter().filter(|one| one.trial.run == trial.run).collect();
        for pair in all.windows(2) {
            if pair[0].passed.stored.is_some() {
                continue;
            }
            refused += 1;
            // Starting anew with what the record holds is how it should be.
            if pair[1].kind != EventKind::Started {
                faults.push(format!(
                    "{} follows a refused {} in {}",
                    pair[1].kind,
                    pair[0].kind,
                    name(trial.kind)
                ));
            }
        }
    }
    if refused == 0 && faults.is_empty() {
        return Check::ok(what, "no write was refused");
    }
    verdict(what, faults, "it stopped".to_owned(), mend)
}

/// Acknowledgements of the agent's own queues within a trial, with when they came.
fn acks<'a>(watch: &'a Watch, trial: &'a Trial) -> impl Iterator<Item = &'a Passed> {
    let own = |consumer: &str| consumer == watch.role || consumer == format!("@{}", watch.agent);
    watch.passed.iter().filter(move |passed| {
        let consumer = passed.subject.strip_prefix("$JS.ACK.TASKS.").and_then(|rest| rest.split('.').next());
        consumer.is_some_and(own) && passed.at >= trial.from && passed.at <= trial.until
    })
}

fn is_done(ack: &Passed) -> bool {
    ack.payload.is_empty() || ack.payload.starts_with(b"+ACK")
}

fn acknowledgements(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let mend = "acknowledge the delivery after the outcome is stored, and wait for the answer (double ack)";
    let mut faults = Vec::new();
    for trial in worked(watch) {
        let named = name(trial.kind);
        let end =
            stored(writings, trial).into_iter().find(|one| outcome(one).is_some()).map(|one| one.passed.at);
        match (acks(watch, trial).find(|ack| is_done(ack)), end) {
            (None, Some(_)) => {
                faults.push(format!("{named} was not acknowledged: it would be given out again"))
            }
            (Some(_), None) => {
                faults.push(format!("{named} was acknowledged without an outcome: it would be lost"))
            }
            (Some(ack), Some(end)) if end.since(ack.at) > SIMULTANEOUS => {
                faults.push(format!("{named} was acknowledged before its outcome: it could be lost"));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    verdict("acknowledgement", faults, "after the outcome".to_owned(), mend)
}

fn progress(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let what = "progress";
    let mend = "send +WPI on the delivery's reply subject every 10 s while working";
    let (mut faults, mut long) = (Vec::new(), 0);
    for trial in worked(watch) {
        let written = stored(writings, trial);
        let (Some(first), Some(last)) = (written.first(), written.last()) else { continue };
        let (begun, ended) = (first.passed.at, last.passed.at);
        if ended.since(begun) < PATIENCE / 2 {
            continue;
        }
        long += 1;
        let signs = acks(watch, trial).filter(|ack| ack.payload.starts_with(b"+WPI")).map(|ack| ack.at);
        let times: Vec<_> = [begun].into_iter().chain(signs).chain([ended]).collect();
        let longest = times.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or_default();
        if longest > PATIENCE * 2 / 3 {
            faults.push(format!(
                "{} showed no progress for {} s: after {} s it would be given to another",
                name(trial.kind),
                longest.as_secs(),
                PATIENCE.as_secs()
            ));
        }
    }
    if long == 0 {
        return Check::warn(what, "not seen: no task took longer than 15 s", mend);
    }
    verdict(what, faults, format!("told in {long} long tasks"), mend)
}

fn cancellation(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let what = "cancellation";
    let mend = "listen on ctl.all, ctl.role.<role> and ctl.agent.<agent>; on cancel_task and cancel_run stop at once \
                and write an outcome that ends as cancelled";
    let Some(trial) = watch.trials.iter().find(|trial| trial.kind == Kind::Cancelled) else {
        return Check::warn(what, "not tried", mend);
    };
    let end = stored(writings, trial).into_iter().find_map(|one| Some((one.passed.at, outcome(one)?.ending)));
    match (trial.cancelled_at, end) {
        (None, _) => Check::warn(what, "not seen: the task had ended before it could be cancelled", mend),
        (Some(_), None) => Check::fail(what, "a cancelled task did not end", mend),
        (Some(at), Some((ended, Ending::Cancelled))) if ended.since(at) <= OBEDIENCE => {
            Check::ok(what, format!("obeyed within {} ms", ended.since(at).as_millis()))
        }
        (Some(at), Some((ended, Ending::Cancelled))) => {
            Check::fail(what, format!("obeyed after {} s only", ended.since(at).as_secs()), mend)
        }
        (Some(at), Some((ended, _))) if ended.since(at) < CROSSED => {
            Check::warn(what, "not seen: the task had ended before the cancellation came to it", mend)
        }
        (Some(_), Some((_, ending))) => {
            Check::fail(what, format!("a cancelled task ended as {ending:?}"), mend)
        }
    }
}

fn closed(watch: &Watch, writings: &[Writing<'_>]) -> Check {
    let what = "closed generation";
    let mend = "look up the last entry of evt.<run>.*.*.<task>.<gen>.>: after an outcome, acknowledge and drop the task";
    let Some(trial) = watch.trials.iter().find(|trial| trial.kind == Kind::Closed) else {
        return Check::warn(what, "not tried", mend);
    };
    let mut faults = Vec::new();
    if let Some(one) = stored(writings, trial).first() {
        faults.push(format!("{} was written though the outcome stood in the record", one.kind));
    }
    if !acks(watch, trial).any(is_done) {
        faults.push("it was not acknowledged: it would be given out for ever".to_owned());
    }
    verdict(what, faults, "dropped".to_owned(), mend)
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
