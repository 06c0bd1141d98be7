#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use muster_bus::Bus;
use muster_shared::flow::ObservationStatus;
use muster_shared::ids::{AgentId, Role};
use serde_json::json;

use super::*;
use crate::testing::{leaf, step};

/// A process that was frozen gets the very task that it still holds, in another slot: what the first slot writes
/// meanwhile is news to the second, though both go by one name.
#[tokio::test]
async fn whoever_starts_takes_nothing_for_its_own_that_it_has_not_read() {
    let agent = AgentId::new("worker", 1);
    let bus = Bus::in_memory(&agent);
    let offer = leaf(Role::Worker);
    let (task, generation) = (offer.task.clone(), offer.generation);
    let key = AgentKey { role: Role::Worker, agent, task, generation };
    let starter = |ack: &str, delivered| Starter {
        key: key.clone(),
        ack: ack.to_owned(),
        host: String::new(),
        delivered,
    };
    let patience = Duration::from_secs(5);
    let opened = Journal::open(bus.record(), &offer, &starter("first", 1), patience).await.unwrap();
    let Opening::Ours(opened) = opened else { panic!("the task is new") };
    let (mut first, _) = *opened;
    // What the second slot read before the first wrote its step.
    let read = History::fold(first.entries(Seq(0)).await.unwrap());
    let mut second = Journal {
        record: bus.record(),
        offer_key: (offer.run, key.clone()),
        encoding: offer.encoding,
        last: read.last(),
        patience,
    };
    let taken = step(1, "corpus.search", json!({"query": 1}), ObservationStatus::Success);
    first.append(&AgentEvent::Step(taken)).await.unwrap();
    let begun = second.append(&started(&read, &starter("second", 2))).await;
    assert!(matches!(begun, Err(JournalError::Lost)), "{begun:?}");

    let opened = Journal::open(bus.record(), &offer, &starter("second", 2), patience).await.unwrap();
    let Opening::Ours(opened) = opened else { panic!("the task is open") };
    let (_, history) = *opened;
    assert_eq!(history.next_step(), 2, "it goes on after the step that was journaled");
}
