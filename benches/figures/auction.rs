//! What an auction costs beyond the time in which bids are taken.

use std::time::Duration;

use muster_shared::run::event::TaskAwarded;
use muster_shared::run::{Entry, RecordEvent, RunEvent};
use muster_shared::time::Millis;
use muster_support::figures::{Aim, Figure, Measured};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::print::median;
use crate::runs::{connect, fleet, run};

/// Auctions that are held, one after the other.
const ROUNDS: usize = 20;
/// The usual time in which bids are taken.
const WINDOW: Duration = Duration::from_millis(250);

pub(crate) fn measure() -> Vec<Figure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = ModelServer::start(Script::answering(answer).keeping(0)).unwrap();
    let fleet = fleet(&server, &["--scale", "worker=2", "--set", "limits.planning=always"]);
    let mut times = Vec::new();
    runtime.block_on(async {
        let bus = connect(&fleet.url()).await;
        for _ in 0..ROUNDS {
            times.extend(held(&run(&bus, "Work out one sum by whoever bids best.").await));
        }
    });
    assert_eq!(times.len(), ROUNDS, "every run holds one auction");
    let whole = median(&mut times);
    let over = whole.saturating_sub(WINDOW);
    vec![
        Figure::new("auction: from the call to the award", Measured::time(whole)),
        Figure::new("auction: from the call to the award, over its window of 250 ms", Measured::time(over))
            .aiming(Aim::AtMost(5.0)),
    ]
}

/// How long each auction of a run took, by the broker's stamps.
fn held(entries: &[Entry]) -> Vec<Duration> {
    let mut opened: Option<Millis> = None;
    let mut times = Vec::new();
    for entry in entries {
        let RecordEvent::Decided(decided) = &entry.event else { continue };
        for event in &decided.events {
            match event {
                RunEvent::AuctionOpened(_) => opened = Some(entry.at),
                RunEvent::TaskAwarded(TaskAwarded { to: Some(_), .. }) => {
                    times.extend(opened.take().map(|opened| entry.at.since(opened)));
                }
                _ => {}
            }
        }
    }
    times
}

fn answer(request: &CapturedRequest) -> Reply {
    let submit = |arguments: Value| Reply::call("submit", &arguments);
    let system = request.system();
    if system.contains("You are the planner") {
        let task =
            json!({ "name": "the sum", "goal": "Work out the sum.", "role": "worker", "pattern": "auction" });
        submit(json!({ "thought": "One sum.", "goal": "Add up.", "tasks": [task] }))
    } else if system.contains("You are the reflector") {
        submit(json!({ "thought": "As planned.", "summary": "One sum." }))
    } else if system.contains("You are the writer") {
        submit(
            json!({ "thought": "It is known.", "title": "A sum", "body": "# A sum\n\nIt is 42.", "unanswered": [] }),
        )
    } else {
        submit(
            json!({ "thought": "It is known.", "ending": "done", "conclusion": "The sum is 42.", "findings": [] }),
        )
    }
}
