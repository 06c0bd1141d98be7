//! A record in several parts.

use std::collections::BTreeSet;

use muster_bus::{BusError, Places, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::wire::Encoding;

use crate::fixture::{
    Fixture, SOON, connect_for, decided, key, next, on_nats, on_nats_of, run, started, worker,
};

/// Runs enough that each of four parts has some.
const RUNS: usize = 24;

async fn with_runs(f: &Fixture) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let run = run();
        f.offer(run, Seq(0), &["1"]).await;
        runs.push(run);
    }
    runs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_spread_over_streams_and_their_offers_come_in_one_queue() {
    let f = on_nats_of(4).await;
    let context = async_nats::jetstream::new(f.foreigner().await.unwrap());
    let runs: BTreeSet<RunId> = with_runs(&f).await.into_iter().collect();
    let mut held = Vec::new();
    for part in 0..4 {
        let stream = context.get_stream(format!("RUNS_{part}_OF_4")).await.unwrap();
        held.push(stream.cached_info().state.messages);
    }
    assert!(held.iter().all(|messages| *messages > 0), "{held:?}");
    assert_eq!(held.iter().sum::<u64>(), 2 * RUNS as u64);
    assert!(context.get_stream("RUNS").await.is_err());
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    let mut offered = BTreeSet::new();
    for _ in 0..RUNS {
        // A source of the queue that missed its very first messages asks for them again after some seconds.
        let Some(taken) = queue.take(SOON * 3).await.unwrap() else {
            let tasks = context.get_stream("TASKS").await.unwrap();
            let (state, sources) = (&tasks.cached_info().state, &tasks.cached_info().sources);
            let missing: Vec<_> = runs.difference(&offered).collect();
            panic!("{missing:?} were not offered: {state:?}, {sources:?}");
        };
        offered.insert(taken.offer.run);
        taken.done().await.unwrap();
    }
    assert_eq!(offered, runs);
    let mut listed = f.bus.record().runs().await.unwrap();
    listed.sort_unstable();
    assert_eq!(listed, runs.into_iter().collect::<Vec<_>>());
    assert_eq!(f.bus.record().lost().await.unwrap(), 0);
    assert!(f.bus.record().fullness().await.unwrap() > 0.0);
}

/// Whoever follows all runs goes on where it was in each part, and misses nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_follows_all_parts_goes_on_from_a_place_in_each() {
    let f = on_nats_of(4).await;
    let record = f.bus.record();
    let runs = with_runs(&f).await;
    let places = record.newest().await.unwrap();
    let mut signals = record.follow(&RecordFilter::AgentSignals, places.clone()).await.unwrap();
    for run in &runs {
        record.append_agent(*run, &key("w", "1"), Seq(0), &started(1), Encoding::MessagePack).await.unwrap();
    }
    let (mut seen, mut reached) = (BTreeSet::new(), places.clone());
    for _ in &runs {
        let entry = next(&mut signals).await.unwrap();
        assert!(!places.covers(entry.run, entry.seq), "{entry:?}");
        reached.reach(entry.run, entry.seq);
        seen.insert(entry.run);
    }
    assert_eq!(seen, runs.iter().copied().collect());
    assert_eq!(reached, record.newest().await.unwrap());
    assert!(record.read(&RecordFilter::Everything, reached).await.unwrap().is_empty());
    let all = record.read(&RecordFilter::Everything, Places::default()).await.unwrap();
    assert_eq!(all.len(), 3 * RUNS);
    assert!(all.is_sorted_by_key(|entry| entry.at), "in the order of their stamps");
}

/// Whoever only reads need not know of the parts; whoever sets the bus up must say the same as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_number_of_parts_is_refused_where_the_bus_is_set_up() {
    for (there, wanted) in [(4, 1), (1, 4), (4, 2)] {
        let f = if there == 1 { on_nats().await } else { on_nats_of(there).await };
        let run = run();
        let last = f.offer(run, Seq(0), &["1"]).await.last;
        let other = connect_for(f.server.as_ref().unwrap(), wanted).await;
        assert_eq!(other.record().runs().await.unwrap(), [run], "{there} {wanted}");
        let refused = other.provision().await.unwrap_err();
        assert!(matches!(refused, BusError::Parted { .. }) && refused.is_fatal(), "{refused}");
        assert!(refused.to_string().contains(&format!("set it to {there}")), "{refused}");
        // Nothing was changed: what was written is there, and more can be.
        let record = f.bus.record();
        record.append_decision(run, last, &decided(0), &[], Encoding::MessagePack).await.unwrap();
        f.bus.provision().await.unwrap();
    }
}
