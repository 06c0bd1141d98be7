//! Orders of which nothing came: whether one is a dead letter, and why.

use muster_bus::{Bus, DeadLetter};
use muster_shared::ids::RunId;
use muster_shared::wire::{Body, Encoding, Envelope, decode};
use uuid::Uuid;

use crate::exit::{Exit, Failure};
use crate::render::figures;

/// How many dead letters are looked through, newest first.
const LOOKED_AT: usize = 100;

/// An order that was given.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given {
    /// A goal, or a fork, which is to become this run.
    Goal(RunId),
    /// A request to a run, by its id.
    Request(RunId, Uuid),
}

/// That an order was refused, if it is among the dead letters. What cannot be looked up is not said.
pub(crate) async fn refused(bus: &Bus, given: Given) -> Option<Failure> {
    let letters = bus.dead().list(LOOKED_AT).await.ok()?;
    // Any agent can write a letter with the subject of this order.
    let letter = letters.iter().rev().find(|letter| letter.is_attested && is_it(letter, given))?;
    let what = match given {
        Given::Goal(run) => format!("the goal was refused, and run {} is not begun", run.short()),
        Given::Request(run, _) => {
            format!("run {}: the request was refused, and nothing was done", run.short())
        }
    };
    let why = figures::one_line(&letter.reason, 600);
    Some(Failure::new(Exit::BusUnreachable, format!("{what}: {why}")).help(format!(
        "`muster dead show {}` shows it; `muster doctor` checks the connection to the bus, and this machine's clock",
        letter.seq
    )))
}

fn is_it(letter: &DeadLetter, given: Given) -> bool {
    match given {
        // A run begins once, by a goal however large, or as a fork.
        Given::Goal(run) => {
            ["submit", "fork"].iter().any(|begins| letter.subject == format!("cmd.{run}.{begins}"))
        }
        Given::Request(run, id) => {
            let envelope: Option<Envelope> =
                decode(&letter.payload, Encoding::of(None, &letter.payload)).ok();
            letter.subject.starts_with(&format!("cmd.{run}."))
                && matches!(envelope.map(|of| of.body), Some(Body::Command(command)) if command.id() == Some(id))
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::ids::Seq;
    use muster_shared::run::{Request, RequestAction};
    use muster_shared::time::Millis;
    use muster_shared::wire::Command;
    use serde_json::json;

    use super::*;

    const RUN: RunId = RunId::from_uuid(Uuid::from_u128(7));

    fn letter(subject: String, payload: String) -> DeadLetter {
        let reason = "it was signed 3600 s before it came".to_owned();
        DeadLetter {
            subject,
            reason,
            payload: payload.into(),
            headers: Vec::new(),
            at: Millis(1),
            seq: Seq(4),
            writer: String::new(),
            is_attested: false,
        }
    }

    #[tokio::test]
    async fn an_order_that_was_refused_is_said_to_be() {
        let bus = Bus::in_memory(&"cli-1".parse().unwrap());
        let (goal, request) = (Given::Goal(RUN), Given::Request(RUN, Uuid::from_u128(9)));
        let other = Given::Request(RUN, Uuid::from_u128(8));
        assert!(refused(&bus, goal).await.is_none());
        bus.dead().put(letter(format!("cmd.{RUN}.submit"), "garbage".to_owned())).await.unwrap();
        let asked = Request::new(RUN, RequestAction::Pause).with_id(Uuid::from_u128(9));
        let payload = json!({ "body": { "type": "command", "content": Command::Request(asked) } });
        bus.dead().put(letter(format!("cmd.{RUN}.pause"), payload.to_string())).await.unwrap();
        for (given, words) in [(goal, "the goal was refused"), (request, "the request was refused")] {
            let said = refused(&bus, given).await.unwrap();
            let text = said.to_string();
            assert!(text.contains(words) && text.contains("3600 s before it came"), "{text}");
            assert_eq!(said.exit(), Exit::BusUnreachable);
        }
        assert!(refused(&bus, other).await.is_none());
    }
}
