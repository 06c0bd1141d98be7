use std::time::Duration;

use futures::StreamExt;
use muster_bus::{AppendError, BusError, NewestRuns, RecordFilter};
use muster_shared::flow::{Goal, RunLimits, TaskOffered};
use muster_shared::ids::{Generation, RunId, Seq};
use muster_shared::run::{AgentEvent, Decided, Entry, EventKind, Input, RecordEvent};
use muster_shared::wire::Encoding;
use uuid::Uuid;

use crate::fixture::{
    Fixture, decided, key, leaf, next, offer, on_nats, released, run, started, until, worker,
};

crate::whatever_the_parts!(
    a_second_writer_is_refused,
    agents_of_one_task_exclude_each_other,
    different_tasks_do_not_exclude_each_other,
    a_batch_is_all_or_nothing,
    a_batch_that_contradicts_itself_is_refused,
    everything_reads_as_written,
    a_decision_with_one_offer_is_one_message,
    an_offer_inside_must_be_alone_and_tell_no_secret,
    filters_select,
    follow_goes_on_from_what_was_read,
    json_is_written_when_asked_for,
    large_events_are_spilled_and_read_back,
    events_above_the_object_limit_are_refused,
    runs_are_listed_newest_first,
    the_newest_runs_are_those_at_the_top_of_all,
    whoever_goes_on_with_a_task_finds_its_offer_and_its_messages,
);

/// What a gateway has to know to go on with a task that another one began.
async fn whoever_goes_on_with_a_task_finds_its_offer_and_its_messages(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    assert_eq!(record.offer_of(run, &leaf("1")).await.unwrap(), None);
    assert_eq!(record.secret_of(run).await.unwrap(), None);
    f.offer(run, Seq(0), &["1"]).await;
    assert_eq!(record.offer_of(run, &leaf("1")).await.unwrap().map(|offer| offer.task), Some(leaf("1")));
    assert_eq!(record.secret_of(run).await.unwrap(), None, "no decision tells it");
    let (key, id) = (key("w", "1"), Uuid::from_u128(7));
    let first = record.append_named(id, run, &key, Seq(0), &started(1), Encoding::MessagePack).await.unwrap();
    record.append_agent(run, &key, first, &released("enough"), Encoding::Json).await.unwrap();
    let filter = RecordFilter::Task { run, task: leaf("1"), generation: Generation(1) };
    let named = record.read_named(&filter, Seq(0)).await.unwrap();
    assert_eq!(named.iter().filter(|one| one.id == id).count(), 1);
    assert_eq!((named[0].id, named[0].entry.seq, named.len()), (id, first, 2));
    assert_eq!(record.read_named(&filter, first).await.unwrap().len(), 1);
}

async fn a_second_writer_is_refused(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    let first = f.offer(run, Seq(0), &["1"]).await;
    assert_eq!(first.last.0 - first.first.0, 1);
    let stale = record.append_decision(run, Seq(0), &decided(0), &[], Encoding::MessagePack).await;
    assert!(matches!(stale, Err(AppendError::Conflict)), "{stale:?}");
    let next = record.append_decision(run, first.last, &decided(0), &[], Encoding::MessagePack).await;
    assert_eq!(next.unwrap().first, first.last.next());
}

async fn agents_of_one_task_exclude_each_other(f: Fixture) {
    let run = run();
    let writes = (0..8).map(|n| {
        let record = f.bus.record();
        async move {
            let key = key(&format!("worker-{n}"), "1-2");
            record.append_agent(run, &key, Seq(0), &started(1), Encoding::MessagePack).await
        }
    });
    let results = futures::future::join_all(writes).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    let conflicts = results.iter().filter(|result| matches!(result, Err(AppendError::Conflict))).count();
    assert_eq!(conflicts, 7);
}

async fn different_tasks_do_not_exclude_each_other(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    for task in ["1", "1-2", "2", "1-2~a"] {
        record.append_agent(run, &key("w", task), Seq(0), &started(1), Encoding::MessagePack).await.unwrap();
    }
    let mut again = key("w", "1");
    again.generation = Generation(2);
    record.append_agent(run, &again, Seq(0), &started(1), Encoding::MessagePack).await.unwrap();
}

async fn a_batch_is_all_or_nothing(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    let first = f.offer(run, Seq(0), &["1"]).await;
    let offers: Vec<_> = (2..50).map(|n| offer(run, &n.to_string(), worker())).collect();
    let decision = decided(u32::try_from(offers.len()).unwrap());
    let stale = record.append_decision(run, first.first, &decision, &offers, Encoding::MessagePack).await;
    assert!(matches!(stale, Err(AppendError::Conflict)), "{stale:?}");
    assert_eq!(record.read(&RecordFilter::Run(run), Seq(0)).await.unwrap().len(), 2);
    let done =
        record.append_decision(run, first.last, &decision, &offers, Encoding::MessagePack).await.unwrap();
    assert_eq!(done.last.0 - done.first.0 + 1, 49);
    let entries = record.read(&RecordFilter::Run(run), first.last).await.unwrap();
    assert_eq!(
        entries.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(),
        (done.first.0..=done.last.0).collect::<Vec<_>>()
    );
    assert!(matches!(entries[0].event, RecordEvent::Decided(_)));
}

async fn a_batch_that_contradicts_itself_is_refused(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    let wrong_count = record.append_decision(run, Seq(0), &decided(2), &[], Encoding::MessagePack).await;
    assert!(matches!(wrong_count, Err(AppendError::Bus(_))));
    let stray = [offer(crate::fixture::run(), "1", worker())];
    let wrong_run = record.append_decision(run, Seq(0), &decided(1), &stray, Encoding::MessagePack).await;
    assert!(matches!(wrong_run, Err(AppendError::Bus(_))));
    assert!(record.newest().await.unwrap().is_beginning());
}

async fn everything_reads_as_written(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    let (decision, offers) = (decided(1), [offer(run, "1-2", worker())]);
    record.append_decision(run, Seq(0), &decision, &offers, Encoding::MessagePack).await.unwrap();
    let key = key("worker-1", "1-2");
    let seq = record.append_agent(run, &key, Seq(0), &started(1), Encoding::MessagePack).await.unwrap();
    record.append_agent(run, &key, seq, &released("enough"), Encoding::MessagePack).await.unwrap();
    let entries = record.read(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    let expected = [
        RecordEvent::Decided(decision),
        RecordEvent::Offered(offers[0].clone()),
        RecordEvent::Agent(key.clone(), started(1)),
        RecordEvent::Agent(key, released("enough")),
    ];
    assert_eq!(
        entries.iter().map(|entry| &entry.event).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    assert!(entries.iter().all(|entry| entry.run == run && entry.at.0 > 0));
    let newest = record.newest().await.unwrap();
    assert!(newest.covers(run, Seq(4)) && !newest.covers(run, Seq(5)), "{newest:?}");
}

/// An offer inside is in the record, in its queue, and behind the fence; a large one too.
async fn a_decision_with_one_offer_is_one_message(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    let mut after = Seq(0);
    for length in [10, 200_000] {
        let task = TaskOffered { goal: "g".repeat(length), ..offer(run, "1-2", worker()) };
        let (decision, rest) = decided(0).with_offers(vec![task.clone()]);
        assert!(rest.is_empty());
        let written =
            record.append_decision(run, after, &decision, &rest, Encoding::MessagePack).await.unwrap();
        assert_eq!(written.first, written.last);
        let again = record.append_decision(run, after, &decided(0), &[], Encoding::MessagePack).await;
        assert!(matches!(again, Err(AppendError::Conflict)), "{again:?}");
        let read = record.read(&RecordFilter::Decisions(run), after).await.unwrap();
        assert_eq!(
            read.iter().map(|entry| &entry.event).collect::<Vec<_>>(),
            [&RecordEvent::Decided(decision)]
        );
        let taken = queue.take(std::time::Duration::from_secs(5)).await.unwrap().unwrap();
        assert_eq!(taken.offer, task);
        taken.done().await.unwrap();
        after = written.last;
    }
}

async fn an_offer_inside_must_be_alone_and_tell_no_secret(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    let one = || offer(run, "1", worker());
    let goal = Input::Goal {
        goal: Box::new(Goal::new("g")),
        limits: RunLimits::default(),
        secret: "s".to_owned(),
        lessons: Vec::new(),
        signed: None,
    };
    let (telling, apart) = Decided { inputs: vec![goal], ..decided(0) }.with_offers(vec![one()]);
    assert_eq!((telling.offers, &telling.offer, apart.len()), (1, &None, 1));
    let secret = Decided { offers: 0, offer: Some(Box::new(one())), ..telling };
    let (inside, _) = decided(0).with_offers(vec![one()]);
    let two = Decided { offers: 1, ..inside.clone() };
    let foreign = Decided { offer: Some(Box::new(offer(crate::fixture::run(), "1", worker()))), ..inside };
    for (wrong, rest) in [(secret, vec![]), (two, vec![one()]), (foreign, vec![])] {
        let refused = record.append_decision(run, Seq(0), &wrong, &rest, Encoding::MessagePack).await;
        assert!(matches!(refused, Err(AppendError::Bus(BusError::Other { .. }))), "{refused:?}");
    }
    assert!(record.newest().await.unwrap().is_beginning());
}

async fn filters_select(f: Fixture) {
    let (record, one, two) = (f.bus.record(), run(), run());
    f.offer(one, Seq(0), &["1", "2"]).await;
    f.offer(two, Seq(0), &["1"]).await;
    for task in ["1", "2"] {
        record.append_agent(one, &key("w", task), Seq(0), &started(1), Encoding::MessagePack).await.unwrap();
    }
    let task = RecordFilter::Task { run: one, task: leaf("1"), generation: Generation(1) };
    let table = [
        (RecordFilter::Run(one), 5),
        (RecordFilter::Run(two), 2),
        (task, 1),
        (RecordFilter::Decisions(one), 3),
        (RecordFilter::AllDecisions, 5),
        (RecordFilter::AgentSignals, 2),
        (RecordFilter::Everything, 7),
    ];
    for (filter, expected) in table {
        assert_eq!(record.read(&filter, Seq(0)).await.unwrap().len(), expected, "{filter:?}");
    }
}

async fn follow_goes_on_from_what_was_read(f: Fixture) {
    let (record, run) = (f.bus.record(), run());
    let first = f.offer(run, Seq(0), &["1"]).await;
    let mut entries = record.follow(&RecordFilter::Run(run), first.first).await.unwrap();
    assert_eq!(next(&mut entries).await.unwrap().seq, first.last);
    let mut last = first.last;
    for _ in 0..20 {
        let appended =
            record.append_decision(run, last, &decided(0), &[], Encoding::MessagePack).await.unwrap();
        assert_eq!(next(&mut entries).await.unwrap().seq, appended.last);
        last = appended.last;
    }
}

async fn json_is_written_when_asked_for(f: Fixture) {
    let run = run();
    let mut tapped = f.bus.tap().watch(Some(run)).await.unwrap();
    f.bus.record().append_decision(run, Seq(0), &decided(0), &[], Encoding::Json).await.unwrap();
    let seen = next(&mut tapped).await;
    let value: serde_json::Value = serde_json::from_slice(&seen.bytes).expect("it is JSON");
    assert_eq!(value["body"]["type"], "decided");
    assert_eq!(seen.content.unwrap().run, Some(run));
    assert_eq!(f.bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap().len(), 1);
}

async fn large_events_are_spilled_and_read_back(f: Fixture) {
    let (record, run, key) = (f.bus.record(), run(), key("w", "1"));
    let mut tapped = f.bus.tap().watch(Some(run)).await.unwrap();
    let mut after = Seq(0);
    for encoding in [Encoding::MessagePack, Encoding::Json] {
        let event = released("x".repeat(2_000_000));
        after = record.append_agent(run, &key, after, &event, encoding).await.unwrap();
        assert!(next(&mut tapped).await.bytes.len() < 2048);
        let entries = record.read(&RecordFilter::Run(run), Seq(after.0 - 1)).await.unwrap();
        assert_eq!(entries[0].event, RecordEvent::Agent(key.clone(), event));
    }
}

async fn events_above_the_object_limit_are_refused(f: Fixture) {
    let event = released("x".repeat(5_000_000));
    let refused =
        f.bus.record().append_agent(run(), &key("w", "1"), Seq(0), &event, Encoding::MessagePack).await;
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
}

async fn runs_are_listed_newest_first(f: Fixture) {
    let runs = [run(), run(), run()];
    for run in runs {
        f.offer(run, Seq(0), &["1"]).await;
    }
    let listed = f.bus.record().runs().await.unwrap();
    assert_eq!(listed, runs.iter().rev().copied().collect::<Vec<_>>());
}

async fn the_newest_runs_are_those_at_the_top_of_all(f: Fixture) {
    let record = f.bus.record();
    // Ids are chosen by clients, whose clocks differ: the order is that of the event log.
    let all: Vec<RunId> = (0..13).map(|_| RunId::from_uuid(Uuid::new_v4())).collect();
    let (old, others) = all.split_last().unwrap();
    let mut last = f.offer(*old, Seq(0), &["1"]).await.last;
    for run in others.iter().rev() {
        // Partitions are compared by the time of their entries.
        let before = muster_bus::now();
        until("the clock moves", || async { muster_bus::now() > before }).await;
        f.offer(*run, Seq(0), &["1", "2"]).await;
        // One that goes on for long is not new for that.
        last =
            record.append_decision(*old, last, &decided(0), &[], Encoding::MessagePack).await.unwrap().last;
    }
    for limit in [0, 1, 3, 12, 13, 50] {
        let newest = record.newest_runs(limit).await.unwrap();
        let expected = NewestRuns { runs: all.iter().copied().take(limit).collect(), fragments: vec![] };
        assert_eq!(newest, expected, "{limit}");
    }
}

/// However much ended before, the newest runs are found by reading the end of the record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_runs_cost_what_they_have_and_not_what_there_was() {
    let f = on_nats().await;
    let tasks: Vec<String> = (1..=400).map(|n| n.to_string()).collect();
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    for _ in 0..8 {
        f.offer(run(), Seq(0), &tasks).await;
    }
    let newest = run();
    f.offer(newest, Seq(0), &["1"]).await;
    let foreigner = f.foreigner().await.unwrap();
    let mut answers = foreigner.subscribe("_INBOX.>").await.unwrap();
    foreigner.flush().await.unwrap();
    assert_eq!(f.bus.record().newest_runs(1).await.unwrap().runs, [newest]);
    foreigner.publish("_INBOX.end", "".into()).await.unwrap();
    let mut heard = 0;
    while let Some(answer) = answers.next().await.filter(|answer| answer.subject.as_str() != "_INBOX.end") {
        assert!(answer.payload.len() < 4096, "{} bytes", answer.payload.len());
        heard += 1;
    }
    assert!((100..130).contains(&heard), "{heard} messages for the newest of 3,210 entries");
}

/// A message in the record that nobody of ours wrote stops whoever reads, with its place and the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_messages_in_the_record_are_unreadable() {
    let f = on_nats().await;
    let (record, run, foreigner) = (f.bus.record(), run(), f.foreigner().await.unwrap());
    let mut entries = record.follow(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    let mut looked_on =
        record.look_on(&RecordFilter::Run(run), Seq(0), Duration::from_millis(5)).await.unwrap();
    for payload in [&b"\xc1\xff nonsense"[..], b"{}", b"", &[b'['; 10_000], &[0x91; 10_000]] {
        foreigner.publish(format!("run.{run}.decided"), payload.to_vec().into()).await.unwrap();
        let unreadable = next(&mut entries).await.unwrap_err();
        assert_eq!(unreadable.subject, format!("run.{run}.decided"));
        assert!(!unreadable.reason.is_empty());
        assert_eq!(next(&mut looked_on).await.unwrap_err(), unreadable);
    }
    let read = record.read(&RecordFilter::Run(run), Seq(0)).await;
    assert!(matches!(read, Err(BusError::Unreadable { seq: Seq(1), .. })), "{read:?}");
    let other = crate::fixture::run();
    f.offer(other, Seq(0), &["1"]).await;
    assert_eq!(record.read(&RecordFilter::Run(other), Seq(0)).await.unwrap().len(), 2);
}

/// An event under a subject that promises another one is not taken for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_must_be_what_its_subject_says() {
    let f = on_nats().await;
    let (record, run, foreigner) = (f.bus.record(), run(), f.foreigner().await.unwrap());
    let mut tapped = f.bus.tap().watch(Some(run)).await.unwrap();
    record.append_agent(run, &key("w", "1"), Seq(0), &started(1), Encoding::Json).await.unwrap();
    let payload = next(&mut tapped).await.bytes;
    foreigner.publish(format!("evt.{run}.worker.w.1.1.outcome"), payload).await.unwrap();
    foreigner.flush().await.unwrap();
    let mut entries = record.follow(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    let good = next(&mut entries).await.unwrap();
    assert!(matches!(good.event, RecordEvent::Agent(_, AgentEvent::Started(_))));
    let bad = next(&mut entries).await.unwrap();
    let RecordEvent::Agent(_, AgentEvent::Unreadable(unreadable)) = bad.event else {
        panic!("{bad:?}");
    };
    assert_eq!(unreadable.kind, EventKind::Outcome);
    assert!(unreadable.why.contains("outcome"), "{}", unreadable.why);
}

/// What an agent wrote about a task is an entry whatever it says; what names no task is left out; neither hides what
/// else there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agents_wrote_hides_nothing_else_however_bad_it_is() {
    let f = on_nats().await;
    let (record, run, foreigner) = (f.bus.record(), run(), f.foreigner().await.unwrap());
    f.offer(run, Seq(0), &["1"]).await;
    let whole = format!("evt.{run}.worker.w.1.1.outcome");
    for (subject, payload) in [
        (whole.clone(), &br#"{"body":{"type":"outcome","content":{"ending":"success"}}}"#[..]),
        (whole.clone(), b"I am done."),
        (whole.clone(), b""),
        (whole, &[0x91; 10_000]),
        (format!("evt.{run}.worker.w.1.1.finished"), b"{}"),
        (format!("evt.{run}.worker"), b"{}"),
        (format!("evt.{run}.worker.w.1.zero.outcome"), b"{}"),
    ] {
        foreigner.publish(subject, payload.to_vec().into()).await.unwrap();
    }
    let everything = RecordFilter::Run(run);
    until("all of it is stored", || async {
        record.read_each(&everything, Seq(0)).await.unwrap().len() == 9
    })
    .await;
    let of_agent = |entry: &Entry| match &entry.event {
        RecordEvent::Agent(_, AgentEvent::Unreadable(unreadable)) => Some(unreadable.why.clone()),
        _ => None,
    };
    let read = record.read(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    let found: Vec<String> = read.iter().filter_map(of_agent).collect();
    assert_eq!((read.len(), found.len()), (6, 4), "{found:?}");
    assert!(found[0].contains("field body.content.ending: unknown variant `success`"), "{found:?}");
    let each = record.read_each(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    let strays: Vec<_> = each.into_iter().filter_map(Result::err).collect();
    assert!(strays.len() == 3 && strays.iter().all(|stray| stray.of_nobody), "{strays:?}");
    let bad = read.iter().find(|entry| of_agent(entry).is_some()).unwrap();
    f.bus.dead().put_entry(run, bad.seq, "it cannot be read").await.unwrap();
    let letters = f.bus.dead().list(10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert!(String::from_utf8_lossy(&letters[0].payload).contains("success"), "{letters:?}");
}

/// Nothing ever removes an entry, so that what is gone is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_without_its_beginning_is_named() {
    let f = on_nats().await;
    let (record, whole, headless) = (f.bus.record(), run(), run());
    f.offer(whole, Seq(0), &["1"]).await;
    let foreigner = f.foreigner().await.unwrap();
    foreigner.publish(format!("run.{headless}.task.worker.1"), "{}".into()).await.unwrap();
    let everything = RecordFilter::Run(headless);
    until("it is stored", || async { record.read_each(&everything, Seq(0)).await.unwrap().len() == 1 }).await;
    assert_eq!(record.runs().await.unwrap(), [whole]);
    assert_eq!(record.fragments().await.unwrap(), [headless]);
    let newest = NewestRuns { runs: vec![whole], fragments: vec![headless] };
    assert_eq!(record.newest_runs(5).await.unwrap(), newest);
    assert_eq!(record.lost().await.unwrap(), 0);
}
