//! What is hashed when a decision is written is what is read, followed and kept.

use muster_bus::{KeptMessage, LinkedDecision, Record};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::Chain;
use muster_shared::run::chain::{Read, verify};
use muster_shared::wire::Encoding;

use crate::fixture::{Fixture, decided, key, next, offer, released, run, started, worker};

crate::whatever_the_parts!(
    a_linked_record_fits_as_it_is_kept_read_and_followed,
    a_body_that_lies_apart_is_held_against_its_hash,
);

/// Decides with a link, and offers these tasks.
async fn decide(record: &Record, run: RunId, chain: &mut Chain, after: Seq, tasks: &[&str]) -> Seq {
    let offers: Vec<_> = tasks.iter().map(|task| offer(run, task, worker())).collect();
    let decided = decided(u32::try_from(offers.len()).unwrap());
    let new = LinkedDecision { after, decided, offers, link: chain.draft(run), encoding: Encoding::Json };
    let written = record.append_linked(run, new).await.unwrap();
    chain.wrote(written.first, written.link);
    Seq(written.first.0 + tasks.len() as u64)
}

async fn kept(record: &Record, run: RunId) -> Vec<Read> {
    record.kept(run).await.unwrap().iter().map(KeptMessage::to_verify).collect()
}

async fn a_linked_record_fits_as_it_is_kept_read_and_followed(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    let mut written = record.follow_agents(Seq(0)).await.unwrap();
    let mut chain = Chain::default();
    let last = decide(&record, run, &mut chain, Seq(0), &["1", "2"]).await;
    for task in ["1", "2"] {
        record.append_agent(run, &key("w", task), Seq(0), &started(1), Encoding::MessagePack).await.unwrap();
        let heard = next(&mut written).await;
        assert_eq!(heard.run, run);
        assert!(matches!(heard.signal, Some(Ok(_))), "{heard:?}");
        chain.note(heard.covered());
    }
    decide(&record, run, &mut chain, last, &[]).await;
    let found = verify(run, &kept(&record, run).await).unwrap();
    assert_eq!((found.entries, found.covered, found.links, found.uncovered), (6, 6, 2, 0));
    assert_eq!(found.head, chain.head());

    let read = record.read_deciding(run, Seq(0)).await.unwrap();
    assert_eq!(read.entries.len(), 6);
    let mut again = Chain::default();
    read.chain.into_iter().for_each(|entry| again.read(entry));
    assert_eq!(again, chain);
}

async fn a_body_that_lies_apart_is_held_against_its_hash(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    let event = released("x".repeat(2_000_000));
    record.append_agent(run, &key("w", "1"), Seq(0), &event, Encoding::Json).await.unwrap();
    record.append_agent(run, &key("w", "2"), Seq(0), &started(1), Encoding::Json).await.unwrap();
    let kept = record.kept(run).await.unwrap();
    assert_eq!(record.body_apart(&kept[0]).await.unwrap(), Some(Ok(())));
    assert_eq!(record.body_apart(&kept[1]).await.unwrap(), None, "it is in the message");
    let value: serde_json::Value = serde_json::from_slice(&kept[0].payload).unwrap();
    let name = value["body"]["content"]["hash"].as_str().unwrap();
    f.bus.store().put_named(name, "another".into()).await.unwrap();
    let changed = record.body_apart(&kept[0]).await.unwrap().unwrap().unwrap_err();
    assert!(changed.contains("does not have the content its name promises"), "{changed}");
    f.bus.store().delete(name).await.unwrap();
    let gone = record.body_apart(&kept[0]).await.unwrap().unwrap().unwrap_err();
    assert!(gone.contains("is not in the store"), "{gone}");
}
