//! What became of deliveries and orders: refusals, acknowledgements, progress, cancellation, putting down.

use std::time::Duration;

use muster_shared::flow::Ending;
use muster_shared::run::EventKind;
use muster_shared::text::counted;
use muster_shared::wire::Body;

use super::super::{End, Observations, Passed, Trial, TrialKind};
use super::{Writing, outcome, stored, verdict, worked};
use crate::render::checks::Check;

/// An end that comes so soon after an order was on its way already.
const CROSSED: Duration = Duration::from_millis(150);
/// A task is given to somebody else after so long without a sign of progress.
const PATIENCE: Duration = Duration::from_secs(30);
/// How soon an order must have been obeyed.
const OBEDIENCE: Duration = Duration::from_secs(5);
/// Messages of two subscriptions that come closer together than this may be seen in either order.
const SIMULTANEOUS: Duration = Duration::from_millis(20);

pub(super) fn after_a_refusal(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let what = "after a refused write";
    let mend = "a write that is refused (10071, 10164) means that another agent has the task: read the record, or drop it";
    let mut refused = 0_u32;
    let mut faults = Vec::new();
    // Of a task that was delivered twice, one delivery may go on when the other is refused.
    for trial in watch.trials.iter().filter(|trial| trial.kind != TrialKind::Redelivered) {
        let mut all = writings.iter().filter(|one| one.trial.run == trial.run).peekable();
        while let Some(one) = all.next() {
            if one.passed.stored.is_some() {
                continue;
            }
            refused += 1;
            // Starting anew with what the record holds is how it should be.
            if let Some(next) = all.peek().filter(|next| next.kind != EventKind::Started) {
                faults.push(format!("{} follows a refused {} in {}", next.kind, one.kind, trial.kind.name()));
            }
        }
    }
    if refused == 0 {
        return Check::warn(what, "not seen: no write was refused, its tasks had ended too soon", mend);
    }
    verdict(what, faults, "it stopped".to_owned(), mend)
}

/// Acknowledgements of the agent's own queues within a trial, with when they came.
fn acks<'a>(watch: &'a Observations, trial: &'a Trial) -> impl Iterator<Item = &'a Passed> {
    let own = |consumer: &str| consumer == watch.role || consumer == format!("@{}", watch.agent);
    watch.passed.iter().filter(move |passed| {
        let consumer = passed.subject.strip_prefix("$JS.ACK.TASKS.").and_then(|rest| rest.split('.').next());
        consumer.is_some_and(own) && passed.at >= trial.from && passed.at <= trial.until
    })
}

fn is_done(ack: &Passed) -> bool {
    ack.payload.is_empty() || ack.payload.starts_with(b"+ACK")
}

pub(super) fn acknowledgements(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let mend = "acknowledge the delivery after the outcome is stored, and wait for the answer (double ack)";
    let mut faults = Vec::new();
    for trial in worked(watch).filter(|trial| trial.kind.end() != End::Nothing) {
        let (named, last) =
            (trial.kind.name(), if trial.kind.end() == End::PutDown { "end" } else { "outcome" });
        let end = stored(writings, trial).into_iter().find(|one| ends(one)).map(|one| one.passed.at);
        match (acks(watch, trial).find(|ack| is_done(ack)), end) {
            (None, Some(_)) => {
                faults.push(format!("{named} was not acknowledged: it would be given out again"));
            }
            (Some(_), None) => {
                faults.push(format!("{named} was acknowledged without an {last}: it would be lost"));
            }
            (Some(ack), Some(end)) if end.since(ack.at) > SIMULTANEOUS => {
                faults.push(format!("{named} was acknowledged before its {last}: it could be lost"));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    verdict("acknowledgement", faults, "after the outcome".to_owned(), mend)
}

/// Whether a generation ends with this.
fn ends(one: &Writing<'_>) -> bool {
    outcome(one).is_some() || is_put_down(one)
}

fn is_put_down(one: &Writing<'_>) -> bool {
    matches!(one.body.as_ref().map(|said| &said.body), Ok(Body::Released(released)) if released.parked)
}

pub(super) fn progress(watch: &Observations, writings: &[Writing<'_>]) -> Check {
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
                trial.kind.name(),
                longest.as_secs(),
                PATIENCE.as_secs()
            ));
        }
    }
    if long == 0 {
        return Check::warn(what, "not seen: no task took longer than 15 s", mend);
    }
    verdict(what, faults, format!("told in {}", counted(long, "long task", "long tasks")), mend)
}

pub(super) fn cancellation(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let what = "cancellation";
    let mend = "listen on ctl.all, ctl.role.<role> and ctl.agent.<agent>; on cancel_task and cancel_run stop at once \
                and write an outcome that ends as cancelled";
    let Some(trial) = watch.trial(TrialKind::Cancelled) else {
        return Check::warn(what, "not tried", mend);
    };
    let end = stored(writings, trial).into_iter().find_map(|one| Some((one.passed.at, outcome(one)?.ending)));
    match (trial.disturbed_at, end) {
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

pub(super) fn closed(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let what = "closed generation";
    let mend = "look up the last entry of evt.<run>.*.*.<task>.<gen>.>: after an outcome, acknowledge and drop the task";
    let Some(trial) = watch.trial(TrialKind::Closed) else {
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

/// A task that is delivered again while it is in hand, as after a reconnect, is done once.
pub(super) fn redelivery(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let what = "second delivery";
    let mend = "look up the last entry of the generation before you start, and write behind the fence: one of two \
                deliveries goes on, the other stops";
    let Some(trial) = watch.trial(TrialKind::Redelivered) else {
        return Check::warn(what, "not tried", mend);
    };
    if trial.disturbed_at.is_none() {
        return Check::warn(what, "not seen: the task had ended before it could be delivered again", mend);
    }
    let written = stored(writings, trial);
    let mut steps: Vec<u32> = written.iter().filter_map(|one| step_number(one)).collect();
    let all = steps.len();
    steps.sort_unstable();
    steps.dedup();
    let mut faults = Vec::new();
    if steps.len() != all {
        faults.push(format!("{} of its steps were taken twice", all - steps.len()));
    }
    match written.iter().filter(|one| outcome(one).is_some()).count() {
        1 => {}
        number => faults.push(format!("it has {number} outcomes")),
    }
    verdict(what, faults, "done once".to_owned(), mend)
}

fn step_number(one: &Writing<'_>) -> Option<u32> {
    if let Body::Step(step) = &one.body.as_ref().ok()?.body { Some(step.number) } else { None }
}

pub(super) fn parking(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let what = "putting down";
    let mend =
        "on park_task and park_run stop, write released with parked: true, and acknowledge the delivery";
    let Some(trial) = watch.trial(TrialKind::Parked) else {
        return Check::warn(what, "not tried", mend);
    };
    let Some(at) = trial.disturbed_at else {
        return Check::warn(what, "not seen: the task had ended before it could be put down", mend);
    };
    let written = stored(writings, trial);
    let end = written.iter().find(|one| one.kind == EventKind::Released || outcome(one).is_some());
    let Some(end) = end else {
        return Check::fail(what, "a task that was to be put down went on without an end", mend);
    };
    let late = end.passed.at.since(at);
    if let Some(outcome) = outcome(end) {
        return if late < CROSSED {
            Check::warn(what, "not seen: the task had ended before the order came to it", mend)
        } else {
            Check::fail(what, format!("a task that was to be put down ended as {:?}", outcome.ending), mend)
        };
    }
    if !is_put_down(end) {
        return Check::fail(
            what,
            "released without parked: true: it would be given to another agent at once",
            mend,
        );
    }
    if late > OBEDIENCE {
        return Check::fail(what, format!("obeyed after {} s only", late.as_secs()), mend);
    }
    Check::ok(what, format!("obeyed within {} ms", late.as_millis()))
}
