use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::credentials::Holder;
use muster_bus::server::{LocalServer, ServerError, ServerSettings};
use muster_bus::{AppendError, Bus, BusError, BusSettings, RecordFilter};
use muster_shared::ids::{Role, Seq};
use muster_shared::secret::Redactor;
use muster_shared::wire::Encoding;

use crate::fixture::{
    agent, connect, decided, next, offer, on_nats, run, server_settings, settings, settings_of, until, worker,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_tells_about_itself() {
    let f = on_nats().await;
    let info = f.bus.server().await.unwrap();
    assert!(info.jetstream && info.max_payload == 1024 * 1024, "{info:?}");
    assert!(info.version.starts_with("2."));
    assert!(info.clock_skew.unwrap().abs() < 1000, "{info:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn provisioning_twice_changes_nothing() {
    let f = on_nats().await;
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    f.offer(run(), Seq(0), &["1"]).await;
    f.bus.provision().await.unwrap();
    connect(f.server.as_ref().unwrap()).await.provision().await.unwrap();
    assert!(queue.take(Duration::from_secs(2)).await.unwrap().is_some());
    assert!(queue.take(Duration::from_millis(200)).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn provisioning_upgrades_in_place_and_refuses_what_is_newer() {
    let f = on_nats().await;
    f.offer(run(), Seq(0), &["1"]).await;
    let smaller = BusSettings { dead_bytes: 1024 * 1024, ..settings_of(f.server.as_ref().unwrap()) };
    let bus = Bus::connect(&smaller, &agent("tester"), Arc::new(Redactor::default())).await.unwrap();
    bus.provision().await.unwrap();
    let context = async_nats::jetstream::new(f.foreigner().await.unwrap());
    let mut config = context.get_stream("DLQ").await.unwrap().cached_info().config.clone();
    assert_eq!(config.max_bytes, 1024 * 1024);
    config.metadata.insert("muster.layout".into(), "4711".into());
    context.update_stream(config).await.unwrap();
    let refused = bus.provision().await;
    assert!(matches!(refused, Err(BusError::TopologyNewer { found: 4711, .. })), "{refused:?}");
    assert_eq!(bus.record().newest().await.unwrap(), Seq(2).into());
}

/// How long an onlooker gathers.
const PAUSE: Duration = Duration::from_millis(100);

/// Whoever looks on has the first entry at once and the others together, all of them and in order: the server is asked seldom.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_looks_on_has_what_comes_together() {
    const ENTRIES: u64 = 700;
    let f = on_nats().await;
    let (run, record) = (run(), f.bus.record());
    let mut looked_on = record.look_on(&RecordFilter::Run(run), Seq(0), PAUSE).await.unwrap();
    let foreigner = f.foreigner().await.unwrap();
    let mut asked = foreigner.subscribe("$JS.API.CONSUMER.MSG.NEXT.RUNS.>").await.unwrap();
    foreigner.flush().await.unwrap();
    let (began, mut last) = (Instant::now(), Seq(0));
    for at in 1..=ENTRIES {
        let appended =
            record.append_decision(run, last, &decided(0), &[], Encoding::MessagePack).await.unwrap();
        last = appended.last;
        if at == 1 {
            assert_eq!(next(&mut looked_on).await.unwrap().seq, last);
        }
    }
    for seq in 2..=ENTRIES {
        assert_eq!(next(&mut looked_on).await.unwrap().seq, Seq(seq));
    }
    let took = began.elapsed();
    let mut count = 0;
    while let Ok(Some(_)) = tokio::time::timeout(PAUSE, asked.next()).await {
        count += 1;
    }
    // Each pause is a question, and what is more than a question gives is asked for at once.
    let most = took.as_millis() / PAUSE.as_millis() + 6;
    assert!(count <= most, "asked {count} times for {ENTRIES} entries in {took:?}");
}

/// Each consumer that is left costs the server something with every write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_read_leaves_nothing_behind_on_the_server() {
    let f = on_nats().await;
    let run = run();
    f.offer(run, Seq(0), &["1"]).await;
    let context = async_nats::jetstream::new(f.foreigner().await.unwrap());
    let readers = async || context.get_stream("RUNS").await.unwrap().cached_info().state.consumer_count;
    let before = readers().await;
    let mut entries = f.bus.record().follow(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    assert!(next(&mut entries).await.is_ok());
    assert_eq!(readers().await, before + 1);
    let mut looked_on = f.bus.record().look_on(&RecordFilter::Run(run), Seq(0), PAUSE).await.unwrap();
    assert!(next(&mut looked_on).await.is_ok());
    assert_eq!(readers().await, before + 2);
    drop((entries, looked_on));
    drop(f.bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap());
    until("the consumers are gone", async || readers().await == before).await;
}

/// While a write waits for the disk, the watcher of Go's scheduler would look every 20 µs whether it is done.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_not_woken_from_every_short_sleep() {
    let f = on_nats().await;
    let pid = f.server.as_ref().unwrap().pid();
    // Not every system lets one look.
    if let Ok(slack) = std::fs::read_to_string(format!("/proc/{pid}/timerslack_ns")) {
        assert_eq!(slack.trim(), "200000");
    }
}

/// A follower and a queue outlive a server that is killed and comes back: no gap, nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_go_on_after_a_restart() {
    let mut f = on_nats().await;
    let run = run();
    let record = f.bus.record();
    let mut last = f.offer(run, Seq(0), &["1"]).await.last;
    let mut entries = record.follow(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    let mut looked_on = record.look_on(&RecordFilter::Run(run), Seq(0), PAUSE).await.unwrap();
    let mut seen = vec![next(&mut entries).await.unwrap().seq];
    let mut seen_looking_on = vec![next(&mut looked_on).await.unwrap().seq];
    for _ in 0..3 {
        let old = f.server.take().unwrap();
        let (port, folder) = (old.port(), f.folder.as_ref().unwrap());
        old.stop().await.unwrap();
        f.server = Some(LocalServer::start(&server_settings(folder.path(), port)).await.unwrap());
        for _ in 0..5 {
            last = loop {
                match record.append_decision(run, last, &decided(0), &[], Encoding::MessagePack).await {
                    Ok(appended) => break appended.last,
                    Err(AppendError::Conflict) => {
                        break record.last_decision(run).await.unwrap().unwrap().seq;
                    }
                    Err(error) => assert!(is_passing(&error), "{error:?}"),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            };
        }
        while *seen.last().unwrap() < last {
            seen.push(next(&mut entries).await.unwrap().seq);
        }
        while *seen_looking_on.last().unwrap() < last {
            seen_looking_on.push(next(&mut looked_on).await.unwrap().seq);
        }
    }
    assert_eq!(seen, (1..=last.0).map(Seq).collect::<Vec<_>>());
    assert_eq!(seen_looking_on, seen);
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    until("the task", || async { matches!(queue.take(Duration::from_secs(1)).await, Ok(Some(_))) }).await;
}

fn is_passing(error: &AppendError) -> bool {
    match error {
        AppendError::Ambiguous { .. } => true,
        AppendError::Bus(error) => error.is_transient(),
        AppendError::Conflict | AppendError::TooLarge { .. } => false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_end_in_time_while_the_server_is_away() {
    let mut f = on_nats().await;
    let quick = BusSettings {
        request_timeout: Duration::from_millis(300),
        ..settings_of(f.server.as_ref().unwrap())
    };
    let bus = Bus::connect(&quick, &agent("tester"), Arc::new(Redactor::default())).await.unwrap();
    let queue = bus.tasks().join(&worker()).await.unwrap();
    f.server.take().unwrap().stop().await.unwrap();
    let (begun, run) = (Instant::now(), run());
    let offers = [offer(run, "1", worker())];
    let write = bus.record().append_decision(run, Seq(0), &decided(1), &offers, Encoding::MessagePack).await;
    assert!(matches!(write, Err(AppendError::Ambiguous { .. })), "{write:?}");
    let read = bus.record().newest().await;
    assert!(read.as_ref().is_err_and(BusError::is_transient), "{read:?}");
    assert!(bus.store().get("x").await.is_err());
    let _ = queue.take(Duration::from_millis(100)).await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_subject_is_fatal_and_said() {
    let f = on_nats().await;
    let server = f.server.as_ref().unwrap();
    let worker = Holder::Agent { role: Role::Worker, id: agent("worker-1") };
    let credentials = f.folder.as_ref().unwrap().path().join("worker.creds");
    server.keys().issue(&worker, None).unwrap().write(&credentials).unwrap();
    let confined = BusSettings { credentials: Some(credentials), ..settings_of(server) };
    let bus = Bus::connect(&confined, &agent("tester"), Arc::new(Redactor::default())).await.unwrap();
    assert_eq!(bus.who(), &agent("worker-1"), "the name is that of the credentials");
    bus.provision().await.unwrap();
    let begun = Instant::now();
    let key = crate::fixture::key("w", "1");
    let write =
        bus.record().append_agent(run(), &key, Seq(0), &crate::fixture::started(1), Encoding::Json).await;
    assert!(matches!(write, Err(AppendError::Bus(BusError::Denied { .. }))), "{write:?}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(matches!(bus.failed().await, BusError::Denied { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_at_the_url_is_said() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = BusSettings { url: Some(format!("nats://u:secret@127.0.0.1:{port}")), ..settings() };
    let error = Bus::connect(&nowhere, &agent("tester"), Arc::new(Redactor::default())).await.unwrap_err();
    assert!(matches!(error, BusError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("muster up") && !error.to_string().contains("secret"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn something_else_at_the_url_is_said() {
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", deaf.local_addr().unwrap());
    let deaf = BusSettings { url: Some(url), connect_timeout: Duration::from_millis(300), ..settings() };
    let begun = Instant::now();
    let error = Bus::connect(&deaf, &agent("tester"), Arc::new(Redactor::default())).await.unwrap_err();
    assert!(matches!(error, BusError::Unreachable { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_jetstream_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let ports = folder.path().to_str().unwrap();
    let binary = muster_bus::server::find_binary().unwrap();
    let mut command = tokio::process::Command::new(binary);
    command
        .args(["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", ports, "-l"])
        .arg(folder.path().join("log"));
    let child = command.kill_on_drop(true).spawn().unwrap();
    let file = folder.path().join(format!("nats-server_{}.ports", child.id().unwrap()));
    until("the ports file", || async {
        std::fs::read_to_string(&file).is_ok_and(|text| text.contains("nats://"))
    })
    .await;
    let ports: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let plain = BusSettings { url: Some(ports["nats"][0].as_str().unwrap().into()), ..settings() };
    let error = Bus::connect(&plain, &agent("tester"), Arc::new(Redactor::default())).await.unwrap_err();
    assert!(matches!(error, BusError::NoJetStream { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let error = LocalServer::start(&server_settings(folder.path(), port)).await.unwrap_err();
    assert!(matches!(error, ServerError::PortTaken { port: named, .. } if named == port), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_belongs_to_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let settings = server_settings(folder.path(), 0);
    let first = LocalServer::start(&settings).await.unwrap();
    let error = LocalServer::start(&settings).await.unwrap_err();
    assert!(matches!(error, ServerError::StoreInUse { pid, .. } if pid == first.pid()), "{error:?}");
    let begun = Instant::now();
    first.stop().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3), "the end is in good order: {:?}", begun.elapsed());
    let again = LocalServer::start(&settings).await.unwrap();
    drop(again);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_or_odd_program_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for (text, old) in [("echo nats-server: v2.9.10", true), ("echo hello", false), ("exit 3", false)] {
        let binary = folder.path().join("nats-server");
        std::fs::write(&binary, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
        let settings = ServerSettings { binary: Some(binary), ..server_settings(folder.path(), 0) };
        let error = LocalServer::start(&settings).await.unwrap_err();
        assert_eq!(matches!(error, ServerError::TooOld { .. }), old, "{error:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_came_up_before_it_was_known_to_be_too_old_is_ended() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (binary, pid) = (folder.path().join("nats-server"), folder.path().join("pid"));
    // It says how old it is once it has come up.
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then\n  until [ -s {pid} ]; do sleep 0.01; done\n  echo nats-server: v2.9.10\nelse\n  echo $$ > {pid}\n  exec sleep 60\nfi\n",
        pid = pid.display(),
    );
    std::fs::write(&binary, text).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = ServerSettings { binary: Some(binary), ..server_settings(folder.path(), 0) };
    let error = LocalServer::start(&settings).await.unwrap_err();
    assert!(matches!(error, ServerError::TooOld { .. }), "{error:?}");
    let stat = format!("/proc/{}/stat", std::fs::read_to_string(&pid).unwrap().trim());
    let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    let limit = Instant::now() + Duration::from_secs(10);
    while !is_gone() {
        assert!(Instant::now() < limit, "it still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
