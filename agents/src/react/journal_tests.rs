use std::time::Instant;

use muster_bus::{Bus, RecordFilter};
use muster_journal::{JournalStep, Newest};
use muster_shared::flow::ObservationStatus;
use muster_shared::ids::{AgentId, Role, Seq};
use muster_shared::run::{Entry, RecordEvent};
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
        waited: Duration::ZERO,
    };
    let patience = Duration::from_secs(5);
    let opened = Journal::open(bus.record(), &offer, &starter("first", 1), patience).await.unwrap();
    let JournalOpening::Ours(opened) = opened else { panic!("the task is new") };
    let (mut first, _) = *opened;
    // What the second slot read before the first wrote its step.
    let second = Journal::new(bus.record(), &offer, &starter("second", 2), patience);
    let asking = second.place.journal().open(begin(&offer, &starter("second", 2)), second.place.now());
    let JournalStep::AskNewest(asking) = asking else { panic!("it was given out before: {asking:?}") };
    let newest = Newest { last: None, offered: None };
    let reading = asking.told(&mut second.place.journal(), Ok(newest), second.place.now());
    let JournalStep::Read(reading) = reading else { panic!("it was given out before: {reading:?}") };
    let read = entries(&bus, &offer).await;
    let beginning = reading.read(&mut second.place.journal(), Ok(read), second.place.now());
    assert!(matches!(beginning, JournalStep::Append(_)), "{beginning:?}");
    let taken = step(1, "corpus.search", json!({"query": 1}), ObservationStatus::Success);
    first.append(&AgentEvent::Step(taken)).await.unwrap();
    second.place.carry_out(beginning).await.unwrap();

    let after: Vec<Option<u32>> = entries(&bus, &offer).await.iter().map(after_step).collect();
    assert_eq!(after, [Some(0), None, Some(1)], "it did not begin by what it had read first");
    let history = History::of(second.place.journal().take_found());
    assert_eq!(history.next_step(), 2, "it goes on after the step that was journaled");
}

async fn entries(bus: &Bus, offer: &TaskOffered) -> Vec<Entry> {
    let TaskOffered { run, task, generation, .. } = offer;
    let filter = RecordFilter::Task { run: *run, task: task.clone(), generation: *generation };
    bus.record().read(&filter, Seq(0)).await.unwrap()
}

fn after_step(entry: &Entry) -> Option<u32> {
    match &entry.event {
        RecordEvent::Agent(_, AgentEvent::Started(started)) => Some(started.after_step),
        RecordEvent::Agent(..) | RecordEvent::Decided(_) | RecordEvent::Offered(_) => None,
    }
}

/// A server that was killed gives out the same delivery again, word for word: what the first slot wrote when it began is
/// not the second's own word.
#[tokio::test]
async fn whoever_begins_by_the_same_delivery_takes_the_task_over_and_the_other_asks_no_more() {
    let agent = AgentId::new("worker", 1);
    let bus = Bus::in_memory(&agent);
    let offer = leaf(Role::Worker);
    let key = AgentKey { role: Role::Worker, agent, task: offer.task.clone(), generation: offer.generation };
    let starter = Starter {
        key,
        ack: "the same".to_owned(),
        host: String::new(),
        delivered: 1,
        waited: Duration::ZERO,
    };
    let patience = Duration::from_secs(5);
    let open = async || match Journal::open(bus.record(), &offer, &starter, patience).await.unwrap() {
        JournalOpening::Ours(opened) => opened.0,
        JournalOpening::Closed => panic!("the task is open"),
    };
    let mut first = open().await;
    let ownership = first.ownership();
    assert_eq!(ownership.holds().await, Ok(()));
    let mut second = open().await;
    assert_eq!(entries(&bus, &offer).await.len(), 2, "both said that they begin");

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
    tokio::time::sleep(muster_journal::SURE).await;
    assert_eq!(second.ownership().holds().await, Ok(()), "whoever has it looks and goes on");
}
