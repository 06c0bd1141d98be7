#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use muster_bus::Bus;
use muster_shared::flow::ObservationStatus;
use muster_shared::ids::{AgentId, Role};
use serde_json::json;

use super::*;
use crate::model::gate::Ownership as _;
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
    let JournalOpening::Ours(opened) = opened else { panic!("the task is new") };
    let (mut first, _) = *opened;
    // What the second slot read before the first wrote its step.
    let read = History::fold(first.place.entries(Seq(0)).await.unwrap());
    let place = TaskAssignment::new(bus.record(), offer.run, key.clone(), patience);
    let ownership = Arc::new(TaskOwnership::new(place.clone()));
    let mut second = Journal { place, encoding: offer.encoding, last: read.last(), ownership };
    let taken = step(1, "corpus.search", json!({"query": 1}), ObservationStatus::Success);
    first.append(&AgentEvent::Step(taken)).await.unwrap();
    let begun = second.append(&started(&read, &starter("second", 2))).await;
    assert!(matches!(begun, Err(JournalError::Lost)), "{begun:?}");

    let opened = Journal::open(bus.record(), &offer, &starter("second", 2), patience).await.unwrap();
    let JournalOpening::Ours(opened) = opened else { panic!("the task is open") };
    let (_, history) = *opened;
    assert_eq!(history.next_step(), 2, "it goes on after the step that was journaled");
}

/// A server that was killed gives out the same delivery again, word for word: what the first slot wrote when it began is
/// not the second's own word.
#[tokio::test]
async fn whoever_begins_by_the_same_delivery_takes_the_task_over_and_the_other_asks_no_more() {
    let agent = AgentId::new("worker", 1);
    let bus = Bus::in_memory(&agent);
    let offer = leaf(Role::Worker);
    let key = AgentKey { role: Role::Worker, agent, task: offer.task.clone(), generation: offer.generation };
    let starter = Starter { key, ack: "the same".to_owned(), host: String::new(), delivered: 1 };
    let patience = Duration::from_secs(5);
    let open = async || match Journal::open(bus.record(), &offer, &starter, patience).await.unwrap() {
        JournalOpening::Ours(opened) => opened.0,
        JournalOpening::Closed => panic!("the task is open"),
    };
    let mut first = open().await;
    let ownership = first.ownership();
    assert_eq!(ownership.holds().await, Ok(()));
    let mut second = open().await;
    let entries = second.place.entries(Seq(0)).await.unwrap();
    assert_eq!(entries.len(), 2, "both said that they begin");

    // It looks once it cannot be sure any more.
    let begun = Instant::now();
    while ownership.holds().await.is_ok() {
        assert!(begun.elapsed() < patience, "whoever lost the task does not notice");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(matches!(ownership.lost(), JournalError::Lost));
    let step = AgentEvent::Step(step(1, "corpus.search", json!({"query": 1}), ObservationStatus::Success));
    assert!(matches!(first.append(&step).await, Err(JournalError::Lost)));
    second.append(&step).await.unwrap();
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(second.ownership().holds().await, Ok(()), "whoever has it looks and goes on");
}
