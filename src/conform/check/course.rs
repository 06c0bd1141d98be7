//! What the agent wrote, in order: envelopes, fences, the start, the steps, the end.

use muster_bus::subject::{Subject, task_fence};
use muster_shared::flow::{Outcome, Product, Step};
use muster_shared::ids::AgentId;
use muster_shared::run::Started;
use muster_shared::text::counted;
use muster_shared::wire::Body;

use super::super::{End, Observations};
use super::{Writing, outcome, stored, verdict, worked};
use crate::render::checks::Check;

/// The header that names the last sequence its author saw.
const FENCE_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";
/// The header that says of which subjects.
const FENCE_FILTER: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

pub(super) fn envelopes(watch: &Observations, writings: &[Writing<'_>]) -> Check {
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
        let written = said.body.clone().into_agent_event().map(|event| event.kind());
        if written != Some(*kind) {
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
    verdict(
        "envelopes",
        faults,
        format!("{} read as it should be", counted(writings.len(), "message", "messages")),
        mend,
    )
}

pub(super) fn fences(writings: &[Writing<'_>]) -> Check {
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
    verdict("fence", faults, format!("{} fenced", counted(writings.len(), "write", "writes")), mend)
}

pub(super) fn started(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let mend = "take offers from task.<role>.> and task.@<agent>.>, and write started before anything else: attempt \
                one higher than the last started of the generation (or left out), ack the reply subject of the delivery, \
                after_step the last step";
    let mut faults = Vec::new();
    for trial in worked(watch) {
        let (named, (attempts, steps)) = (trial.kind.name(), trial.kind.before());
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

pub(super) fn steps(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let mend = "number steps from 1 within a generation, over all attempts, without a gap";
    let (mut faults, mut count) = (Vec::new(), 0);
    for trial in worked(watch) {
        let mut last = trial.kind.before().1;
        for one in stored(writings, trial) {
            let Ok(Body::Step(Step { number, .. })) = one.body.as_ref().map(|said| &said.body) else {
                continue;
            };
            if *number != last + 1 {
                faults.push(format!("step {number} follows step {last} in {}", trial.kind.name()));
            }
            (last, count) = (*number, count + 1);
        }
    }
    verdict("steps", faults, format!("{} in order", counted(count, "step", "steps")), mend)
}

pub(super) fn outcomes(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let mend = "end every task with one outcome; one that is done has product.result with a conclusion";
    let mut faults = Vec::new();
    for trial in worked(watch).filter(|trial| trial.kind.end() == End::Outcome) {
        let named = trial.kind.name();
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

pub(super) fn after_the_end(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let mend = "write nothing more about a generation once its outcome stands";
    let mut faults = Vec::new();
    for trial in &watch.trials {
        let all = writings.iter().filter(|one| one.trial.run == trial.run);
        let mut after = all.skip_while(|one| outcome(one).is_none() || one.passed.stored.is_none()).skip(1);
        if let Some(late) = after.next() {
            faults.push(format!("{} was written after the outcome of {}", late.kind, trial.kind.name()));
        }
    }
    verdict("after the outcome", faults, "nothing".to_owned(), mend)
}
