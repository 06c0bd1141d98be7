//! Nobody has the server do in his name what he may not do: by where its answers go, or by what else a message asks for.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, HeaderMap};
use bytes::Bytes;
use muster_bus::credentials::{Holder, Scope};
use muster_bus::server::LocalServer;
use muster_shared::ids::Seq;
use serde_json::{Value, json};

use crate::fixture::{Fixture, leaf, on_nats, run, worker};

/// Where somebody would like an answer to go.
const ELSEWHERE: [&str; 13] = [
    "$JS.API.STREAM.DELETE.RUNS",
    "$JS.API.STREAM.PURGE.OBJ_MUSTER",
    "$JS.API.STREAM.DELETE.KV_LEASE",
    "$JS.API.STREAM.PURGE.KV_TRACK_RECORD",
    "$JS.API.CONSUMER.DELETE.TASKS.worker",
    "run.X.decided",
    "evt.X.writer.other.write.1.outcome",
    "cmd.X.cancel",
    "$KV.LEASE.X",
    "$KV.AGENTS.other",
    "$KV.LESSONS.X",
    "$O.MUSTER.M.X",
    "dlq.X",
];

/// What anybody may ask who reads at all, and with what.
fn questions() -> Vec<(String, Bytes)> {
    let by_subject = |stream: &str, filter: &str| {
        let asked = json!({ "next_by_subj": filter, "seq": 1 }).to_string();
        [
            (format!("$JS.API.DIRECT.GET.{stream}"), asked.clone()),
            (format!("$JS.API.STREAM.MSG.GET.{stream}"), asked),
        ]
    };
    let questions = [
        by_subject("OBJ_MUSTER", "$O.MUSTER.>"),
        by_subject("KV_AGENTS", "$KV.AGENTS.>"),
        by_subject("RUNS", "run.>"),
        [("$JS.API.INFO".to_owned(), String::new()), ("$JS.API.STREAM.INFO.RUNS".to_owned(), String::new())],
        [
            ("$JS.API.CONSUMER.MSG.NEXT.RUNS.own-2".to_owned(), r#"{"batch":1,"no_wait":true}"#.to_owned()),
            (
                "$JS.API.CONSUMER.MSG.NEXT.KV_AGENTS.own-8".to_owned(),
                r#"{"batch":1,"no_wait":true}"#.to_owned(),
            ),
        ],
    ];
    questions.into_iter().flatten().map(|(subject, asked)| (subject, asked.into())).collect()
}

/// Somebody with credentials of a kind.
async fn somebody(server: &LocalServer, scope: Scope) -> Client {
    let holder: Holder = scope.holder("worker".parse().unwrap(), "own".parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.creds");
    server.keys().issue(&holder, None).unwrap().write(&file).unwrap();
    let options = ConnectOptions::with_credentials_file(file).await.unwrap();
    options.custom_inbox_prefix("_INBOX.own").connect(server.url()).await.unwrap()
}

/// How many messages there are of each subject, by stream, without what the server itself says of readers; nothing for a stream
/// that is gone.
async fn everything(owner: &Client) -> BTreeMap<String, BTreeMap<String, u64>> {
    let names = owner.request("$JS.API.STREAM.NAMES", Bytes::new()).await.unwrap();
    let names: Value = serde_json::from_slice(&names.payload).unwrap();
    let mut all = BTreeMap::new();
    for name in names["streams"].as_array().unwrap() {
        let name = name.as_str().filter(|name| *name != "ADVISORIES");
        let Some(name) = name else { continue };
        let asked = Bytes::from(json!({ "subjects_filter": ">" }).to_string());
        let info = owner.request(format!("$JS.API.STREAM.INFO.{name}"), asked).await.unwrap();
        let info: Value = serde_json::from_slice(&info.payload).unwrap();
        let subjects = serde_json::from_value(info["state"]["subjects"].clone()).unwrap_or_default();
        all.insert(name.to_owned(), subjects);
    }
    all
}

/// A bus with something in most of its streams, and a reader that everybody may know of.
async fn filled() -> (Fixture, Client) {
    let f = on_nats().await;
    f.offer(run(), Seq(0), &["1", "2"]).await;
    f.bus.store().put(Bytes::from_static(b"a document")).await.unwrap();
    let owner = f.foreigner().await.unwrap();
    let values = [
        "AGENTS.other",
        "LEASE.one",
        "FILES.run",
        "ALLOWANCE.rate",
        "LESSONS.a",
        "TRACK_RECORD.a",
        "TRIALS.a",
    ];
    for subject in values.map(|value| format!("$KV.{value}")) {
        owner.request(subject, Bytes::from_static(b"{}")).await.unwrap();
    }
    owner.request("dlq.worker.x", Bytes::from_static(b"{}")).await.unwrap();
    let reader = json!({ "stream_name": "RUNS", "config": { "name": "own-2", "ack_policy": "none", "mem_storage": true,
        "filter_subject": "evt.none.>", "inactive_threshold": 600_000_000_000_u64 } });
    owner.request("$JS.API.CONSUMER.CREATE.RUNS.own-2", reader.to_string().into()).await.unwrap();
    // Offers are copied to their queue by the server, in its time.
    crate::fixture::until("both offers wait", || async { everything(&owner).await["TASKS"].len() == 2 })
        .await;
    (f, owner)
}

/// Waits until the server has done all that a client asked for.
async fn settle(client: &Client, owner: &Client) {
    client.flush().await.unwrap();
    // What passes from account to account, and back, takes its turns.
    tokio::time::sleep(Duration::from_millis(300)).await;
    owner.flush().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_changes_nothing_wherever_it_is_sent() {
    let (f, owner) = filled().await;
    let before = everything(&owner).await;
    assert!(before.len() >= 12 && before["RUNS"].len() >= 2 && before["TASKS"].len() == 2, "{before:?}");
    for scope in [
        Scope::Agent,
        Scope::Person,
        Scope::Observer,
        Scope::Guard,
        Scope::ToolServer,
        Scope::Program,
        Scope::Host,
        Scope::Guest,
    ] {
        let client = somebody(f.server.as_ref().unwrap(), scope).await;
        for (question, asked) in questions() {
            for elsewhere in ELSEWHERE {
                client.publish_with_reply(question.clone(), elsewhere, asked.clone()).await.unwrap();
            }
        }
        settle(&client, &owner).await;
        assert_eq!(everything(&owner).await, before, "{scope:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_word_that_a_write_was_stored_is_stored_nowhere() {
    let (f, owner) = filled().await;
    let agent = somebody(f.server.as_ref().unwrap(), Scope::Agent).await;
    agent.request("$KV.AGENTS.own", Bytes::from_static(b"{}")).await.unwrap();
    let before = everything(&owner).await;
    for elsewhere in ELSEWHERE {
        agent.publish_with_reply("$KV.AGENTS.own", elsewhere, Bytes::from_static(b"{}")).await.unwrap();
    }
    settle(&agent, &owner).await;
    assert_eq!(everything(&owner).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_delivers_nowhere_of_itself() {
    let (f, owner) = filled().await;
    let before = everything(&owner).await;
    let agent = somebody(f.server.as_ref().unwrap(), Scope::Agent).await;
    let mut heard = owner.subscribe("ctl.>").await.unwrap();
    for elsewhere in ELSEWHERE.into_iter().chain(["ctl.all", "ask.submit"]) {
        let config = json!({ "name": "own-1", "deliver_subject": elsewhere, "ack_policy": "none", "deliver_policy": "all",
            "mem_storage": true, "inactive_threshold": 5_000_000_000_u64 });
        let asked = json!({ "stream_name": "RUNS", "config": config }).to_string();
        let made = agent.request("$JS.API.CONSUMER.CREATE.RUNS.own-1", asked.into()).await;
        assert!(made.is_ok(), "{elsewhere}: the server would not even make it");
        agent.request("$JS.API.CONSUMER.DELETE.RUNS.own-1", Bytes::new()).await.unwrap();
    }
    settle(&agent, &owner).await;
    assert_eq!(everything(&owner).await, before);
    assert!(futures::FutureExt::now_or_never(futures::StreamExt::next(&mut heard)).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_takes_others_away() {
    let (f, owner) = filled().await;
    let before = everything(&owner).await;
    for scope in [Scope::Agent, Scope::Person, Scope::Guard, Scope::ToolServer] {
        let client = somebody(f.server.as_ref().unwrap(), scope).await;
        for subject in [
            "$KV.AGENTS.own",
            "$KV.FILES.own",
            "$KV.ALLOWANCE.own",
            "$O.MUSTER.M.own",
            "$O.MUSTER.C.own",
            "dlq.own",
        ] {
            for roll_up in ["all", "sub"] {
                let mut headers = HeaderMap::new();
                headers.insert("Nats-Rollup", roll_up);
                client.publish_with_headers(subject, headers, Bytes::from_static(b"{}")).await.unwrap();
            }
        }
        settle(&client, &owner).await;
    }
    let after = everything(&owner).await;
    for (stream, subjects) in &before {
        let missing: Vec<_> =
            subjects.iter().filter(|(name, count)| after[stream].get(*name) != Some(*count)).collect();
        assert!(missing.is_empty(), "of {stream} is gone: {missing:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_made_anew_while_the_bus_is_used() {
    let f = on_nats().await;
    let owner = f.foreigner().await.unwrap();
    let before = everything(&owner).await;
    for stream in ["RUNS", "DLQ", "KV_AGENTS"] {
        owner.request(format!("$JS.API.STREAM.DELETE.{stream}"), Bytes::new()).await.unwrap();
    }
    f.bus.mend().await.unwrap();
    assert_eq!(everything(&owner).await.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    f.offer(run(), Seq(0), &["1"]).await;
}

/// A stream that somebody weakened is as it was meant to be after the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_weakened_is_made_strong_again() {
    let f = on_nats().await;
    let owner = f.foreigner().await.unwrap();
    let config = async || {
        let info = owner.request("$JS.API.STREAM.INFO.OBJ_MUSTER", Bytes::new()).await.unwrap();
        serde_json::from_slice::<Value>(&info.payload).unwrap()["config"].clone()
    };
    let meant = config().await;
    let mut weak = meant.clone();
    weak["allow_rollup_hdrs"] = json!(true);
    weak["allow_direct"] = json!(false);
    owner.request("$JS.API.STREAM.UPDATE.OBJ_MUSTER", weak.to_string().into()).await.unwrap();
    assert_eq!(config().await["allow_rollup_hdrs"], json!(true));
    f.bus.provision().await.unwrap();
    assert_eq!(config().await, meant);
}

/// What nobody refers to is swept out; what somebody does stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_object_store_is_swept() {
    let f = on_nats().await;
    let (store, owner) = (f.bus.store(), f.foreigner().await.unwrap());
    let large = Bytes::from(vec![7_u8; 400_000]);
    for content in [large.clone(), Bytes::from_static(b"two"), Bytes::from_static(b"three")] {
        store.put_named("notes", content).await.unwrap();
    }
    store.put_named("gone", large.clone()).await.unwrap();
    store.delete("gone").await.unwrap();
    let kept = store.put(large.clone()).await.unwrap();
    assert_eq!(everything(&owner).await["OBJ_MUSTER"].len(), 3 + 5, "nothing is taken away at once");
    assert_eq!(store.sweep(Duration::from_secs(3600)).await.unwrap(), 0, "it is not old enough");
    assert_eq!(everything(&owner).await["OBJ_MUSTER"].len(), 3 + 5);

    tokio::time::sleep(Duration::from_millis(30)).await;
    store.put_named("newest", Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(store.sweep(Duration::from_millis(1)).await.unwrap(), 3);
    assert_eq!(everything(&owner).await["OBJ_MUSTER"].len(), 4 + 3);
    assert_eq!(store.get("notes").await.unwrap().unwrap(), "three");
    assert_eq!(store.get(&kept).await.unwrap().unwrap(), large);
    assert_eq!(store.get("gone").await.unwrap(), None);
}

/// Messages without anything in them end what a server passes on from one account to another: readers go on behind them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_messages_hide_nothing() {
    let f = on_nats().await;
    let (run, foreigner) = (run(), f.foreigner().await.unwrap());
    f.offer(run, Seq(0), &["1"]).await;
    let all = muster_bus::RecordFilter::Run(run);
    let mut followed = f.bus.record().follow(&all, Seq(0)).await.unwrap();
    for _ in 0..3 {
        foreigner.publish(format!("evt.{run}.worker.w.{}.1.outcome", leaf("1")), Bytes::new()).await.unwrap();
    }
    let record = f.bus.record();
    crate::fixture::until("all of it is stored", || async {
        record.newest().await.unwrap() == Seq(5).into()
    })
    .await;
    assert_eq!(f.bus.record().read_each(&all, Seq(0)).await.unwrap().len(), 5);
    for _ in 0..5 {
        drop(crate::fixture::next(&mut followed).await);
    }
}

/// Requests that wait, and readers that follow, are answered as before once the server has learnt who counts no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_under_way_outlives_that_the_configuration_is_read_anew() {
    let f = on_nats().await;
    let server = f.server.as_ref().unwrap();
    let gone: Holder = Scope::Agent.holder("worker".parse().unwrap(), "gone".parse().unwrap());
    let revoked = f.folder.as_ref().unwrap().path().join("gone.creds");
    server.keys().issue(&gone, None).unwrap().write(&revoked).unwrap();
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    let mut followed = f.bus.record().follow(&muster_bus::RecordFilter::AllDecisions, Seq(0)).await.unwrap();
    let waits = tokio::spawn(async move { queue.take(Duration::from_secs(8)).await });
    let owner = f.foreigner().await.unwrap();
    crate::fixture::until("the request waits at the server", || async {
        let info = owner.request("$JS.API.CONSUMER.INFO.TASKS.worker", Bytes::new()).await.unwrap();
        serde_json::from_slice::<Value>(&info.payload).unwrap()["num_waiting"].as_u64() > Some(0)
    })
    .await;

    server.keys().revoke(&"gone".parse().unwrap()).unwrap();
    let store = f.folder.as_ref().unwrap().path().join("nats");
    assert!(muster_bus::server::reload(&store).unwrap());
    crate::fixture::until("the server refuses the revoked credentials", || async {
        let options = ConnectOptions::with_credentials_file(&revoked).await.unwrap();
        options.connect(server.url()).await.is_err()
    })
    .await;
    let began = std::time::Instant::now();
    f.offer(run(), Seq(0), &["1"]).await;
    assert!(waits.await.unwrap().unwrap().is_some(), "the task is given out");
    drop(crate::fixture::next(&mut followed).await);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}
