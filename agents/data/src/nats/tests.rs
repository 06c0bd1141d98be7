//! Against a real nats-server with the keys and accounts of a fleet.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use async_nats::jetstream;
use async_nats::jetstream::{kv, stream};
use muster_bus::Bus;
use muster_bus::credentials::Scope;
use muster_bus::server::{LocalServer, ServerSettings};
use muster_shared::flow::{Grantor, Rights, TaskRights};
use muster_shared::secret::Redactor;
use muster_tools::{ToolEngine, ToolResult, ToolStatus};

use super::*;
use crate::testing::{Held, context, engine};

/// Longest wait for anything that must happen.
const SOON: Duration = Duration::from_secs(10);

struct Fixture {
    server: LocalServer,
    owner: jetstream::Context,
    own: BusSettings,
    folder: tempfile::TempDir,
}

impl Fixture {
    async fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = ServerSettings {
            store_dir: folder.path().join("nats"),
            port: 0,
            sync_always: false,
            ..ServerSettings::default()
        };
        let server = LocalServer::start(&settings).await.unwrap();
        let own = BusSettings::of_server(&server);
        let file = own.credentials.clone().unwrap();
        let options = async_nats::ConnectOptions::with_credentials_file(file).await.unwrap();
        let client = options.connect(server.url()).await.unwrap();
        Self { server, owner: jetstream::new(client), own, folder }
    }

    /// A stream `ORDERS` of 30 entries: `{"id": N}`, of which every third is paid and the others are new.
    async fn orders(&self) {
        let subjects = vec!["own.orders.>".to_owned()];
        let config = stream::Config { name: "ORDERS".into(), subjects, ..stream::Config::default() };
        self.owner.create_stream(config).await.unwrap();
        for id in 1..=30_u32 {
            let subject = if id % 3 == 0 { "own.orders.paid" } else { "own.orders.new" };
            self.put(subject, &format!("{{\"id\": {id}}}")).await;
        }
    }

    async fn put(&self, subject: &str, body: &str) {
        self.owner.publish(subject.to_owned(), body.to_owned().into()).await.unwrap().await.unwrap();
    }

    fn engine(&self, sources: &[(&str, NatsSettings)]) -> ToolEngine {
        let sources = sources.iter().map(|(name, settings)| ((*name).to_owned(), settings.clone()));
        engine(nats_tools(&sources.collect(), Some(&self.own)).unwrap())
    }

    /// A credentials file of a process of this kind.
    fn credentials(&self, scope: Scope) -> std::path::PathBuf {
        let file = self.folder.path().join("process.creds");
        let holder = scope.holder("worker".parse().unwrap(), "w-1".parse().unwrap());
        self.server.keys().issue(&holder, None).unwrap().write(&file).unwrap();
        file
    }
}

fn of_stream(stream: &str) -> NatsSettings {
    NatsSettings { stream: stream.to_owned(), per_minute: 1_000, ..NatsSettings::default() }
}

async fn call(engine: &ToolEngine, tool: &str, args: Value) -> ToolResult {
    engine.call(tool, args, &context(&Held::with(&[]))).await
}

/// The places of the entries that were given.
fn places(result: &ToolResult) -> Vec<u64> {
    assert_eq!(result.status, ToolStatus::Success, "{}", result.content);
    let data = result.data.as_ref().unwrap();
    let citations = data["citations"].as_array().unwrap();
    citations.iter().map(|one| one.as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_read_by_place_time_and_subject_and_keeps_no_reader() {
    let fixture = Fixture::begin().await;
    fixture.orders().await;
    let engine = fixture.engine(&[("orders", of_stream("ORDERS"))]);
    let read = async |args: Value| call(&engine, "nats.orders.read", args).await;

    let described = call(&engine, "nats.orders.describe", json!({})).await;
    for said in [
        "holds 30 entries",
        "orders:1 to orders:30",
        "- own.orders.new: 20 entries",
        "- own.orders.paid: 10 entries",
    ] {
        assert!(described.content.contains(said), "{}", described.content);
    }

    for (args, wanted) in [
        (json!({}), (21..=30).collect::<Vec<u64>>()),
        (json!({"last": 2}), vec![29, 30]),
        (json!({"last": 3, "subject": "own.orders.paid"}), vec![24, 27, 30]),
        (json!({"last": 200}), (1..=30).collect()),
        (json!({"from": 4, "to": 6}), vec![4, 5, 6]),
        (json!({"from": 0, "limit": 2}), vec![1, 2]),
        (json!({"from": 28, "subject": "own.orders.new"}), vec![28, 29]),
        (json!({"from": 31}), vec![]),
        (json!({"last_per_subject": 1}), vec![29, 30]),
        (json!({"last_per_subject": 2}), vec![27, 28, 29, 30]),
        (json!({"since": "1h", "limit": 3}), vec![1, 2, 3]),
        (json!({"since": "2100-01-01T00:00:00Z"}), vec![]),
    ] {
        let result = read(args.clone()).await;
        assert_eq!(places(&result), wanted, "{args}: {}", result.content);
    }

    let first = read(json!({"from": 1, "limit": 2})).await;
    assert!(first.content.starts_with("| entry | stored | subject | id |\n"), "{}", first.content);
    assert!(first.content.contains("28 more follow; go on with {\"from\": 3}."), "{}", first.content);
    assert!(first.content.contains("The newest entry of all is orders:30, stored 20"), "{}", first.content);
    assert_eq!(first.data.as_ref().unwrap()["rows"][1]["id"], json!(2));

    // Where answers come from another account, an empty message ends them.
    fixture.put("own.orders.new", "").await;
    fixture.put("own.orders.new", &format!("long {}", "x".repeat(5_000))).await;
    let result = read(json!({"from": 30})).await;
    assert_eq!(places(&result), [30, 31, 32], "{}", result.content);
    let long = read(json!({"from": 32})).await;
    assert!(long.content.starts_with("orders:32, `own.orders.new`, stored 20"), "{}", long.content);
    assert!(long.content.len() > 2_000 && long.content.len() < 2_500, "{}", long.content.len());

    for (args, said) in [
        (json!({"subject": "own.>.x"}), "is no subject"),
        (json!({"last": 1, "from": 1}), "name one of"),
        (json!({"since": "soon"}), "is no time"),
    ] {
        let result = read(args.clone()).await;
        assert!(
            result.status == ToolStatus::Refused && result.content.contains(said),
            "{args}: {}",
            result.content
        );
    }

    let begun = std::time::Instant::now();
    loop {
        let mut stream = fixture.owner.get_stream("ORDERS").await.unwrap();
        let info = stream.info().await.unwrap();
        assert_eq!(info.state.messages, 32, "nothing was taken");
        if info.state.consumer_count == 0 {
            break;
        }
        assert!(begun.elapsed() < SOON, "{} readers are left", info.state.consumer_count);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_gives_keys_values_and_what_they_were() {
    let fixture = Fixture::begin().await;
    let config = kv::Config { bucket: "prices".into(), history: 5, ..kv::Config::default() };
    let bucket = fixture.owner.create_key_value(config).await.unwrap();
    for (key, value) in [
        ("eur.usd", "1.10"),
        ("eur.usd", "1.12"),
        ("eur.chf", "0.94"),
        ("internal.margin", "7"),
        ("eur.gbp", "0.8"),
    ] {
        bucket.put(key, value.into()).await.unwrap();
    }
    bucket.delete("eur.gbp").await.unwrap();
    let settings = NatsSettings {
        bucket: "prices".to_owned(),
        subject: "eur.>".to_owned(),
        about: "exchange rates".to_owned(),
        ..NatsSettings::default()
    };
    let engine = fixture.engine(&[("prices", settings)]);
    let spec = engine.registry().get("nats.prices.get").unwrap();
    assert!(spec.spec().description.contains("exchange rates") && spec.spec().pure);

    let keys = call(&engine, "nats.prices.keys", json!({})).await;
    assert_eq!(places(&keys), [2, 3], "{}", keys.content);
    assert!(!keys.content.contains("margin") && !keys.content.contains("gbp"), "{}", keys.content);
    let one = call(&engine, "nats.prices.get", json!({"key": "eur.usd"})).await;
    assert!(
        one.content.starts_with("prices:2, `eur.usd`, stored 20") && one.content.contains(":\n1.12\n"),
        "{}",
        one.content
    );
    let all = call(&engine, "nats.prices.get", json!({"key": "eur.gbp", "history": 9})).await;
    assert_eq!(places(&all), [5, 6]);
    assert!(all.content.contains("| 0.8 |") && all.content.contains("| (removed) |"), "{}", all.content);

    for (args, said) in [
        (json!({"key": "eur.gbp"}), "no value under `eur.gbp` now"),
        (json!({"key": "eur.nok"}), "no value under `eur.nok` now"),
        (json!({"key": "internal.margin"}), "not within `eur.>`"),
        (json!({"key": "eur.*"}), "is not one key"),
    ] {
        let result = call(&engine, "nats.prices.get", args.clone()).await;
        assert!(
            result.status == ToolStatus::Refused && result.content.contains(said),
            "{args}: {}",
            result.content
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_for_tasks_is_refused_and_told() {
    let fixture = Fixture::begin().await;
    fixture.orders().await;
    let who = "tester".parse().unwrap();
    let bus = Bus::connect(&fixture.own, &who, Arc::new(Redactor::default())).await.unwrap();
    bus.provision().await.unwrap();
    let mirror = stream::Source { name: "COMMANDS".into(), ..stream::Source::default() };
    let copy =
        stream::Config { name: "COPY".into(), sources: Some(vec![mirror]), ..stream::Config::default() };
    fixture.owner.create_stream(copy).await.unwrap();

    let as_agent =
        NatsSettings { credentials: Some(fixture.credentials(Scope::Agent)), ..of_stream("ORDERS") };
    let no_file =
        NatsSettings { credentials: Some(Path::new("/nowhere.creds").to_owned()), ..of_stream("ORDERS") };
    let elsewhere = NatsSettings { server: "nats://127.0.0.1:1".to_owned(), ..of_stream("ORDERS") };
    let seldom = NatsSettings { per_minute: 1, ..of_stream("ORDERS") };
    let engine = fixture.engine(&[
        ("copy", of_stream("COPY")),
        ("gone", of_stream("GONE")),
        ("agent", as_agent),
        ("file", no_file),
        ("elsewhere", elsewhere),
        ("seldom", seldom),
    ]);
    for (tool, status, said) in [
        ("nats.copy.read", ToolStatus::Refused, "a copy of COMMANDS"),
        ("nats.gone.read", ToolStatus::Error, "there is no stream gone on that server"),
        ("nats.agent.read", ToolStatus::Error, "its credentials are not for it"),
        ("nats.file.read", ToolStatus::Error, "tool.nats.file"),
        ("nats.elsewhere.read", ToolStatus::Error, "cannot be read now"),
        ("nats.seldom.read", ToolStatus::Success, "seldom:30"),
        ("nats.seldom.describe", ToolStatus::Error, "1 queries in a minute are the most"),
    ] {
        let result = call(&engine, tool, json!({})).await;
        assert_eq!(result.status, status, "{tool}: {}", result.content);
        assert!(result.content.contains(said), "{tool}: {}", result.content);
    }

    // Hosts of a task are held against servers elsewhere.
    let rights = Rights {
        hosts: muster_shared::flow::rights::Allowed::read(["other.example.org"]).unwrap(),
        ..Rights::default()
    };
    let ctx =
        context(&Held::with(&[])).within(Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &rights)));
    let result = engine.call("nats.elsewhere.describe", json!({}), &ctx).await;
    assert!(result.denied.is_some(), "{}", result.content);
}

#[test]
fn tools_are_made_by_name_and_off_until_allowed() {
    let sources = BTreeMap::from([("orders".to_owned(), of_stream("ORDERS"))]);
    let tools = nats_tools(&sources, None).unwrap();
    assert!(tools.iter().all(|tool| tool.spec().off_until_allowed && tool.spec().pure));
    for (name, settings, said) in
        [("Orders", of_stream("ORDERS"), "small letters"), ("runs", of_stream("RUNS"), "Muster's own")]
    {
        let told = nats_tools(&BTreeMap::from([(name.to_owned(), settings)]), None).err().unwrap();
        assert!(told.starts_with(&format!("tool.nats.{name}: ")) && told.contains(said), "{told}");
    }
}
