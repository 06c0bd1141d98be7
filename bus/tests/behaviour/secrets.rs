//! A secret planted in a message gets onto the bus in no encoding; what a run needs to be replayed stays.

use std::sync::Arc;

use futures::FutureExt;
use futures::StreamExt;
use muster_bus::{Bus, RecordFilter};
use muster_shared::flow::{Goal, RunLimits};
use muster_shared::ids::Seq;
use muster_shared::run::event::RunCreated;
use muster_shared::run::{AgentEvent, Input, RecordEvent, RunEvent};
use muster_shared::secret::Redactor;
use muster_shared::time::Millis;
use muster_shared::wire::Encoding;

use crate::fixture::{SOON, agent, cancel, decided, key, released, run, settings};

const PLANTED: &str = "hunter2-hunter2-hunter2";

fn bus() -> Bus {
    let redactor = Redactor::new([PLANTED.to_owned().into()]);
    Bus::in_memory_with(&agent("tester"), settings(), Arc::new(redactor))
}

#[tokio::test]
async fn planted_secrets_do_not_get_onto_the_bus() {
    let (bus, run) = (bus(), run());
    let mut tapped = bus.tap().watch(None).await.unwrap();
    let mut after = Seq(0);
    for encoding in [Encoding::MessagePack, Encoding::Json] {
        // Inline, and spilled to the object store.
        for filler in [0, 200_000] {
            let event = released(format!("the key is {PLANTED} {}", "x".repeat(filler)));
            after = bus.record().append_agent(run, &key("w", "1"), after, &event, encoding).await.unwrap();
        }
        let command = cancel(crate::fixture::run(), PLANTED);
        bus.commands().send(&command, encoding).await.unwrap();
    }
    let commands = bus.commands().join().await.unwrap();
    commands.take(SOON).await.unwrap().unwrap().reject(&format!("because of {PLANTED}")).await.unwrap();
    let entries = bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    assert_eq!(entries.len(), 4);
    for entry in entries {
        let RecordEvent::Agent(_, AgentEvent::Released(released)) = entry.event else { panic!("{entry:?}") };
        assert!(released.reason.contains("[redacted]") && !released.reason.contains(PLANTED));
    }
    let dead = bus.dead().list(10).await.unwrap();
    assert_eq!(dead[0].reason, "because of [redacted]");
    let mut seen = 0;
    while let Some(Some(message)) = tapped.next().now_or_never() {
        assert!(!message.bytes.windows(PLANTED.len()).any(|bytes| bytes == PLANTED.as_bytes()));
        seen += 1;
    }
    assert_eq!(seen, 7);
}

#[tokio::test]
async fn the_runs_own_secret_stays_even_beside_another() {
    let (bus, run) = (bus(), run());
    let secret = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned();
    let goal = Box::new(Goal::new(format!("what is {PLANTED}?")));
    let limits = RunLimits::default();
    let mut decision = decided(0);
    decision.inputs = vec![Input::Goal {
        goal: goal.clone(),
        limits: limits.clone(),
        secret: secret.clone(),
        lessons: Vec::new(),
        signed: None,
    }];
    let (event_version, deadline) = (1, Millis(1));
    decision.events = vec![RunEvent::RunCreated(RunCreated {
        goal,
        limits,
        event_version,
        secret: secret.clone(),
        deadline,
    })];
    bus.record().append_decision(run, Seq(0), &decision, &[], Encoding::Json).await.unwrap();
    let entries = bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    let RecordEvent::Decided(read) = &entries[0].event else { panic!("{entries:?}") };
    let RunEvent::RunCreated(RunCreated { secret: kept, goal, .. }) = &read.events[0] else {
        panic!("{read:?}")
    };
    assert_eq!(kept, &secret);
    assert!(matches!(&read.inputs[0], Input::Goal { secret: kept, .. } if kept == &secret));
    assert_eq!(goal.text, "what is [redacted]?");
}
