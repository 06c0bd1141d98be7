//! Runs are marked, come from elsewhere and are removed, whoever is killed in between.

use std::time::Duration;

use bytes::Bytes;
use muster_bus::{Bus, BusError, ImportedRecord, KeepNote, Outside, RecordFilter, Removal, RemovalNote};
use muster_shared::flow::Artifact;
use muster_shared::ids::{RunId, Seq};
use muster_shared::time::Millis;
use muster_shared::wire::Encoding;

use crate::fixture::{Fixture, in_memory_removable, key, on_nats_removable, released, run, started};

crate::whatever_the_parts!(
    a_run_from_elsewhere_is_read_as_it_was_and_is_no_open_work,
    a_record_that_keeps_all_lets_nobody_remove_a_run,
);

/// A run of five entries, one with a body that lies apart.
async fn make(f: &Fixture, run: RunId) {
    let record = f.bus.record();
    f.offer(run, Seq(0), &["1", "2"]).await;
    record.append_agent(run, &key("w", "1"), Seq(0), &started(1), Encoding::Json).await.unwrap();
    let large = released("x".repeat(400_000));
    record.append_agent(run, &key("w", "2"), Seq(0), &large, Encoding::Json).await.unwrap();
}

async fn entries(bus: &Bus, run: RunId) -> usize {
    bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap().len()
}

/// The record of a run that is nowhere here, with all that it needs.
async fn from_elsewhere(f: &Fixture) -> (ImportedRecord, Outside) {
    let there = run();
    make(f, there).await;
    let lines = f.bus.record().lines(there).await.unwrap();
    assert_eq!(lines.len(), 5);
    let run = run();
    let renamed = lines.into_iter().map(|mut line| {
        line.subject = line.subject.replace(&there.to_string(), &run.to_string());
        line
    });
    let content = Bytes::from_static(b"# Notes");
    let file = Artifact { path: "notes.md".into(), bytes: 7, hash: "ab".into(), task: "1".into() };
    let objects = vec![(format!("file/{run}/ab"), content)];
    (ImportedRecord { run, keys: None, lines: renamed.collect() }, Outside { files: vec![file], objects })
}

async fn a_run_from_elsewhere_is_read_as_it_was_and_is_no_open_work(f: Fixture) {
    let (record, kept) = (f.bus.record(), f.bus.kept());
    let (imported, outside) = from_elsewhere(&f).await;
    let run = imported.run;
    let newest = record.newest().await.unwrap();
    assert_eq!(kept.import(&imported, outside.clone(), Millis(7)).await.unwrap().entries, 5);
    assert_eq!(record.newest().await.unwrap(), newest, "it is no part of the streams");
    assert!(!record.runs().await.unwrap().contains(&run));

    assert_eq!(record.lines(run).await.unwrap(), imported.lines);
    assert_eq!((record.counted(run).await.unwrap(), record.counted_here(run).await.unwrap()), (5, 0));
    let read = record.kept(run).await.unwrap();
    assert_eq!(
        read.iter().map(|message| message.seq).collect::<Vec<_>>(),
        imported.lines.iter().map(|line| line.seq).collect::<Vec<_>>()
    );
    assert_eq!(f.bus.files().read(run, "notes.md").await.unwrap().unwrap(), "# Notes");
    assert_eq!(kept.imported(run).await.unwrap().unwrap(), imported);
    assert!(matches!(
        kept.import(&imported, outside.clone(), Millis(8)).await,
        Err(BusError::Conflict { .. })
    ));

    // It can be removed from any record, and come again.
    let removed = kept.remove(run, removal(None)).await.unwrap();
    assert!(
        removed.done && removed.entries == 5 && removed.places.is_none() && removed.objects == 2,
        "{removed:?}"
    );
    assert_eq!(entries(&f.bus, run).await, 0);
    assert!(f.bus.files().list(run).await.unwrap().files.is_empty());
    assert_eq!(record.lost().await.unwrap(), 0);
    kept.import(&imported, outside, Millis(9)).await.unwrap();
    assert!(kept.note(run).await.unwrap().gone().is_none());
    assert_eq!(record.lines(run).await.unwrap(), imported.lines);
}

async fn a_record_that_keeps_all_lets_nobody_remove_a_run(f: Fixture) {
    let run = run();
    make(&f, run).await;
    let refused = f.bus.kept().remove(run, removal(None)).await;
    assert!(matches!(refused, Err(BusError::Unsupported { .. })), "{refused:?}");
    assert_eq!(f.bus.kept().note(run).await.unwrap(), KeepNote::default());
    assert_eq!(entries(&f.bus, run).await, 5);
}

fn removal(summary: Option<&'static str>) -> Removal {
    Removal {
        rule: "keep.completed = 1s".into(),
        summary: summary.map(|text| Bytes::from_static(text.as_bytes())),
    }
}

async fn one_run_goes_and_the_others_stay(f: Fixture) {
    let (record, kept, [gone, stays]) = (f.bus.record(), f.bus.kept(), [run(), run()]);
    make(&f, gone).await;
    make(&f, stays).await;
    let marked = kept.change(stays, |note| KeepNote { kept: true, ..note }).await.unwrap();
    assert!(marked.kept && !kept.note(gone).await.unwrap().kept);

    let removed = kept.remove(gone, removal(Some("in short"))).await.unwrap();
    assert!(removed.done && removed.summary.is_some() && removed.entries == 5, "{removed:?}");
    assert_eq!((entries(&f.bus, gone).await, entries(&f.bus, stays).await), (0, 5));
    assert_eq!(kept.summary(gone).await.unwrap().unwrap(), "in short");
    assert_eq!(record.lost().await.unwrap(), 0, "what was removed is no loss");
    assert_eq!(record.runs().await.unwrap(), [stays]);
    assert!(kept.note(gone).await.unwrap().gone().is_some());
    assert!(kept.all().await.unwrap().contains_key(&gone));

    // Its summary goes with a second removal.
    let removed = kept.remove(gone, removal(None)).await.unwrap();
    assert!(removed.done && removed.summary.is_none() && removed.entries == 5, "{removed:?}");
    assert_eq!(kept.summary(gone).await.unwrap(), None);
    assert_eq!(record.lost().await.unwrap(), 0);
}

/// Whoever began has noted it and got some of the way.
async fn a_removal_that_was_cut_short_is_finished(f: Fixture) {
    let (record, kept, run) = (f.bus.record(), f.bus.kept(), run());
    make(&f, run).await;
    let cut_short = RemovalNote {
        at: Millis(1),
        rule: "muster runs delete".into(),
        entries: 5,
        places: Some((Seq(1), Seq(5))),
        bytes: 1,
        objects: 0,
        summary: None,
        done: false,
    };
    kept.change(run, |note| KeepNote { removed: Some(cut_short.clone()), ..note }).await.unwrap();
    assert!(kept.note(run).await.unwrap().gone().is_some_and(|removed| !removed.done));
    for _ in 0..2 {
        let removed = kept.go_on_removing(run).await.unwrap();
        assert!(removed.done, "{removed:?}");
        assert_eq!(entries(&f.bus, run).await, 0);
        assert_eq!(record.lost().await.unwrap(), 0);
    }
    assert!(
        f.bus.store().list("").await.unwrap().iter().all(|object| !object.name.contains(&run.to_string()))
    );
}

/// What was set up so that runs can be removed stays so, whatever others have in their settings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_connects_with_other_settings_changes_nothing() {
    let f = on_nats_removable().await;
    let run = run();
    make(&f, run).await;
    let other = crate::fixture::connect(f.server.as_ref().unwrap()).await;
    other.provision().await.unwrap();
    assert!(f.bus.kept().remove(run, removal(None)).await.unwrap().done);
    tokio::time::timeout(Duration::from_secs(5), other.server()).await.unwrap().unwrap();
}

mod removable_in_memory {
    #[tokio::test]
    async fn one_run_goes_and_the_others_stay() {
        super::one_run_goes_and_the_others_stay(super::in_memory_removable()).await;
    }
    #[tokio::test]
    async fn a_removal_that_was_cut_short_is_finished() {
        super::a_removal_that_was_cut_short_is_finished(super::in_memory_removable()).await;
    }
}

mod removable_on_nats {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_run_goes_and_the_others_stay() {
        super::one_run_goes_and_the_others_stay(super::on_nats_removable().await).await;
    }
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_removal_that_was_cut_short_is_finished() {
        super::a_removal_that_was_cut_short_is_finished(super::on_nats_removable().await).await;
    }
}
