//! Who is let in, and what a server lets each kind of holder do: by the table of rights, and no more.

mod document;
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_bus::credentials::{FleetKeys, Holder, Rights, Scope};
use muster_bus::partition::Partitions;
use muster_bus::server::{LocalServer, ServerSettings, reload};
use muster_bus::{Bus, BusError, BusSettings};
use muster_shared::secret::Redactor;
use nkeys::KeyPair;
use tempfile::TempDir;

use self::wire::{Own, Wire};
use crate::fixture::{SOON, server_settings};

const RUN: &str = "018f0000000070008000000000000001";
const ROLE: &str = "worker";
const OWN: &str = "me-1";

/// One subject of each family, and of each that somebody may not use where he may use others of the family.
const SUBJECTS: &str = "
    run.RUN.decided run.RUN.task.worker.1 run.> run.3.RUN.decided
    evt.RUN.ROLE.OWN.1.1.step evt.RUN.ROLE.other-2.1.1.step evt.RUN.planner.OWN.1.1.step
    evt.RUN.planner.other-2.1.1.step evt.> evt.RUN.>
    evt.3.RUN.ROLE.OWN.1.1.step evt.3.RUN.ROLE.other-2.1.1.step evt.3.RUN.planner.OWN.1.1.step
    cmd.RUN.cancel cmd.> task.ROLE.RUN.1 task.planner.RUN.1 task.>
    hb.ROLE.OWN hb.ROLE.other-2 hb.planner.OWN hb.>
    live.RUN.ROLE.OWN.1 live.RUN.ROLE.other-2.1 live.RUN.planner.OWN.1 live.>
    ctl.all ctl.role.ROLE ctl.role.planner ctl.agent.OWN ctl.agent.other-2 ctl.>
    files.RUN files.> allowance.RUN.x allowance.>
    cfp.ROLE.RUN.1 cfp.planner.RUN.1 cfp.ROLE.*.* cfp.>
    bid.ROLE.OWN.RUN.1 bid.ROLE.other-2.RUN.1 bid.planner.OWN.RUN.1 bid.>
    ask.submit ask.list ask.> queue.ROLE.OWN queue.ROLE.other-2 queue.planner.OWN queue.>
    agent.ROLE.next agent.ROLE.result agent.planner.result agent.> gateway.ROLE gateway.>
    agent.ROLE.take agent.ROLE.step agent.ROLE.finish agent.ROLE.wait agent.ROLE.beat agent.ROLE.files agent.ROLE.model
    agent.planner.take agent.planner.step agent.planner.finish agent.planner.model gateway.moved gateway.OWN.ROLE.step
    guard.ROLE guard.other guard.* guard.> hb.guard-ROLE.OWN hb.guard-ROLE.other-2 hb.guard-other.OWN ctl.role.guard-ROLE
    dlq.OWN.cmd.RUN.cancel dlq.other-2.cmd.RUN.cancel dlq.cmd.RUN.cancel dlq.>
    watch.all watch.who watch.RUN watch.>
    join.OWN join.other-2 join.> host.OWN.credentials host.other-2.credentials host.OWN.other host.>
    $KV.AGENTS.OWN $KV.AGENTS.other-2 $KV.LEASE.shard-1 $KV.ALLOWANCE.RUN.x $KV.LESSONS.one
    $KV.ANSWERS.ROLE.one $KV.ANSWERS.other.one $KV.ASKED.one $KV.FILES.RUN $KV.KEPT.one $KV.TRACK_RECORD.one $KV.TRIALS.one $KV.OTHER.one $KV.>
    $O.MUSTER.C.one $O.MUSTER.M.one $O.OTHER.C.one $O.>
    $JS.API.INFO $JS.API.ACCOUNT.PURGE.X $JS.API.STREAM.NAMES $JS.API.STREAM.LIST $JS.API.STREAM.INFO.RUNS
    $JS.API.STREAM.CREATE.RUNS $JS.API.STREAM.UPDATE.RUNS $JS.API.STREAM.DELETE.RUNS $JS.API.STREAM.PURGE.RUNS
    $JS.API.STREAM.MSG.DELETE.RUNS $JS.API.STREAM.RESTORE.RUNS $JS.API.STREAM.SNAPSHOT.RUNS
    $JS.API.STREAM.CREATE.TASKS $JS.API.STREAM.DELETE.TASKS $JS.API.STREAM.PURGE.TASKS $JS.API.STREAM.PURGE.COMMANDS
    $JS.API.STREAM.PURGE.KV_AGENTS $JS.API.STREAM.PURGE.KV_LEASE $JS.API.STREAM.PURGE.OBJ_MUSTER
    $JS.API.STREAM.MSG.GET.RUNS $JS.API.STREAM.MSG.GET.RUNS_1_OF_4 $JS.API.STREAM.MSG.GET.TASKS
    $JS.API.STREAM.MSG.GET.COMMANDS $JS.API.STREAM.MSG.GET.KV_LEASE $JS.API.STREAM.MSG.GET.DLQ
    $JS.API.STREAM.MSG.GET.KV_ANSWERS $JS.API.CONSUMER.CREATE.KV_ANSWERS.mine
    $JS.API.DIRECT.GET.RUNS $JS.API.DIRECT.GET.KV_AGENTS.$KV.AGENTS.other-2 $JS.API.DIRECT.GET.TASKS
    $JS.API.CONSUMER.CREATE.TASKS.ROLE $JS.API.CONSUMER.CREATE.TASKS.planner $JS.API.CONSUMER.CREATE.TASKS.x.task.>
    $JS.API.CONSUMER.CREATE.COMMANDS.mine $JS.API.CONSUMER.CREATE.RUNS.mine.evt.> $JS.API.CONSUMER.DURABLE.CREATE.RUNS.x
    $JS.API.CONSUMER.MSG.NEXT.TASKS.ROLE $JS.API.CONSUMER.MSG.NEXT.TASKS.planner $JS.API.CONSUMER.MSG.NEXT.TASKS.@OWN
    $JS.API.CONSUMER.MSG.NEXT.TASKS.@other-2 $JS.API.CONSUMER.MSG.NEXT.COMMANDS.orchestrators
    $JS.API.CONSUMER.CREATE.RUNS.OWN-1.evt.> $JS.API.CONSUMER.CREATE.RUNS.OWN-8 $JS.API.CONSUMER.CREATE.RUNS.OWN-9
    $JS.API.CONSUMER.CREATE.RUNS.other-2-1 $JS.API.CONSUMER.CREATE.RUNS $JS.API.CONSUMER.DELETE.RUNS.OWN-1
    $JS.API.CONSUMER.DELETE.RUNS.other-2-1 $JS.API.CONSUMER.DELETE.DLQ.other-2-1 $JS.API.CONSUMER.PAUSE.RUNS.OWN-1 $JS.API.CONSUMER.MSG.NEXT.RUNS.OWN-1 $JS.API.CONSUMER.MSG.NEXT.RUNS.other-2-1
    $JS.API.CONSUMER.CREATE.KV_AGENTS.OWN-1 $JS.API.CONSUMER.CREATE.OBJ_MUSTER.OWN-1 $SRV.PING $SRV.>
    $JS.API.CONSUMER.MSG.NEXT.RUNS.mine $JS.API.CONSUMER.DELETE.TASKS.ROLE $JS.API.CONSUMER.DELETE.TASKS.planner
    $JS.API.CONSUMER.DELETE.COMMANDS.orchestrators $JS.API.CONSUMER.DELETE.RUNS.mine $JS.API.CONSUMER.INFO.TASKS.ROLE
    $JS.API.CONSUMER.INFO.TASKS.planner $JS.API.CONSUMER.INFO.RUNS.mine
    $JS.ACK.TASKS.ROLE.1.1.1.1.1 $JS.ACK.TASKS.planner.1.1.1.1.1 $JS.ACK.TASKS.@OWN.1.1.1.1.1
    $JS.ACK.TASKS.@other-2.1.1.1.1.1 $JS.ACK.COMMANDS.orchestrators.1.1.1.1.1 $JS.>
    _INBOX.OWN.answer _INBOX.OWN.> _INBOX.other-2.answer _INBOX.other-2.> _INBOX.>
    $SYS.REQ.SERVER.PING $SYS.> other.subject >
";

fn filled(text: &str) -> String {
    text.replace("RUN.", &format!("{RUN}.")).replace("ROLE", ROLE).replace("OWN", OWN)
}

fn subjects() -> Vec<String> {
    SUBJECTS.split_whitespace().map(filled).collect()
}

fn holder(scope: Scope) -> Holder {
    scope.holder(ROLE.parse().unwrap(), OWN.parse().unwrap())
}

/// Settings of a server that asks nobody for signs of life: these clients read only what they wait for.
fn patient(folder: &TempDir) -> ServerSettings {
    ServerSettings { ping: Duration::from_secs(600), ..server_settings(folder.path(), 0) }
}

/// A server without a bus on it: nothing that is tried does anything.
async fn bare(partitions: Option<u8>) -> (LocalServer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = ServerSettings { partitions, ..patient(&folder) };
    (LocalServer::start(&settings).await.unwrap(), folder)
}

fn let_in(server: &LocalServer, scope: Scope) -> Wire {
    let own = Own::of(&server.keys().issue(&holder(scope), None).unwrap());
    Wire::connect(server.port(), Some(&own)).unwrap()
}

/// Whether a filter has a subject; wildcards of the subject stand for themselves.
fn has(filter: &str, subject: &str) -> bool {
    let (mut filter, mut subject) = (filter.split('.'), subject.split('.'));
    loop {
        match (filter.next(), subject.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(token)) if token != ">" => {}
            (Some(wanted), Some(token)) if wanted == token => {}
            _ => return false,
        }
    }
}

fn allows(allow: &[String], never: &[String], subject: &str) -> bool {
    let any = |filters: &[String]| filters.iter().any(|filter| has(filter, subject));
    (allow.is_empty() || any(allow)) && !any(never)
}

/// What is wrong: each thing that the server does otherwise than the table has it.
fn differences(wire: &mut Wire, scope: Scope, rights: &Rights) -> Vec<String> {
    let mut wrong = Vec::new();
    for subject in subjects() {
        // Nothing is published to a filter.
        if !subject.contains(['*', '>']) {
            let (table, server) =
                (allows(&rights.publish, &rights.never_publish, &subject), wire.may_publish(&subject));
            if table != server {
                wrong.push(format!("{scope:?} publish {subject}: table {table}, server {server}"));
            }
        }
        let (table, server) =
            (allows(&rights.subscribe, &rights.never_subscribe, &subject), wire.may_subscribe(&subject));
        if table != server {
            wrong.push(format!("{scope:?} subscribe {subject}: table {table}, server {server}"));
        }
        let may_join = wire.may_subscribe(&format!("{subject} group"));
        let denied = |filter: &String| filter.strip_suffix(" >").is_some_and(|filter| has(filter, &subject));
        let table = table && !rights.never_subscribe.iter().any(denied);
        if table != may_join {
            wrong.push(format!("{scope:?} join a group on {subject}: table {table}, server {may_join}"));
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_allows_what_the_table_says_and_nothing_else() {
    for count in [1, 4] {
        let parts = Partitions::of_count(usize::from(count)).unwrap();
        let (server, _folder) = bare(Some(count)).await;
        let wrong: Vec<String> = Scope::ALL
            .into_iter()
            .flat_map(|scope| differences(&mut let_in(&server, scope), scope, &holder(scope).rights(parts)))
            .collect();
        assert!(wrong.is_empty(), "in {count} parts:\n{}", wrong.join("\n"));
        server.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_matters_most_is_as_it_was_meant() {
    let (server, _folder) = bare(Some(1)).await;
    let lines = include_str!("credentials/expected.txt").lines();
    let expected: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(expected.len() >= 60, "{}", expected.len());
    for scope in Scope::ALL {
        let mut wire = let_in(&server, scope);
        for line in &expected {
            let words: Vec<&str> = line.split(' ').collect();
            let [kind, may, what, subject] = words[..] else { panic!("{line:?}") };
            if kind != scope.name() {
                continue;
            }
            let subject = filled(subject);
            let found = match what {
                "publish" => wire.may_publish(&subject),
                "subscribe" => wire.may_subscribe(&subject),
                _ => panic!("{line:?}"),
            };
            let wanted = match may {
                "may" => true,
                "never" => false,
                _ => panic!("{line:?}"),
            };
            assert_eq!(found, wanted, "{line}");
        }
    }
}

/// A store that has a record says how it is parted, whatever is wanted now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_follow_the_record_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let settings = patient(&folder);
    let server = LocalServer::start(&settings).await.unwrap();
    let mut agent = let_in(&server, Scope::Agent);
    let of = |part: &str| filled(&format!("evt.{part}RUN.ROLE.OWN.1.1.step"));
    assert!(agent.may_publish(&of("")) && agent.may_publish(&of("15.")), "nobody knows yet");
    crate::fixture::connect_for(&server, 4).await.provision().await.unwrap();
    server.stop().await.unwrap();

    let server = LocalServer::start(&ServerSettings { partitions: Some(1), ..settings }).await.unwrap();
    let mut agent = let_in(&server, Scope::Agent);
    assert!(agent.may_publish(&of("3.")));
    assert!(!agent.may_publish(&of("4.")) && !agent.may_publish(&of("")));
}

/// A JWT as somebody makes it himself.
fn forged(by: &KeyPair, user: &KeyPair, nats: &serde_json::Value) -> String {
    let claims = serde_json::json!({
        "jti": "x", "iat": 1, "iss": by.public_key(), "name": OWN, "sub": user.public_key(), "nats": nats,
    });
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let said = format!("{}.{}", encode(r#"{"typ":"JWT","alg":"ed25519-nkey"}"#), encode(&claims.to_string()));
    let signature = URL_SAFE_NO_PAD.encode(by.sign(said.as_bytes()).unwrap());
    format!("{said}.{signature}")
}

fn key_in(folder: &Path, name: &str) -> KeyPair {
    KeyPair::from_seed(std::fs::read_to_string(folder.join(name)).unwrap().trim()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_is_let_in() {
    let (server, folder) = bare(None).await;
    let port = server.port();
    let refused = |own: Option<&Own>, what: &str| {
        assert!(Wire::connect(port, own).is_err(), "{what} was let in");
    };
    refused(None, "somebody without credentials");

    let others = FleetKeys::open_or_make(&folder.path().join("others")).unwrap();
    for scope in Scope::ALL {
        refused(Some(&Own::of(&others.issue(&holder(scope), None).unwrap())), "a member of another fleet");
    }
    let issue = |scope| Own::of(&server.keys().issue(&holder(scope), None).unwrap());
    refused(
        Some(&Own { jwt: issue(Scope::Operator).jwt, key: KeyPair::new_user() }),
        "somebody with the JWT of another",
    );
    let ended = muster_shared::time::Millis(1_000);
    refused(
        Some(&Own::of(&server.keys().issue(&holder(Scope::Agent), Some(ended)).unwrap())),
        "somebody whose credentials ended",
    );

    let (account, user) = (server.keys().account(), KeyPair::new_user());
    let scoped = |more: serde_json::Value| {
        let mut nats = serde_json::json!({
            "type": "user", "version": 2, "issuer_account": account, "tags": ["muster:agent:worker", "role:worker"],
        });
        nats.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        nats
    };
    let as_he_says = |jwt| Own { jwt, key: KeyPair::from_seed(&user.seed().unwrap()).unwrap() };
    let jwt = forged(&KeyPair::new_account(), &user, &scoped(serde_json::json!({})));
    refused(Some(&as_he_says(jwt)), "somebody with a signing key of his own");
    let agents = key_in(server.keys().folder(), "signing-agent.nk");
    let jwt = forged(&agents, &user, &scoped(serde_json::json!({ "pub": { "allow": [">"] } })));
    refused(Some(&as_he_says(jwt)), "an agent with permissions of its own");

    // Who has the agents' signing key makes agents, whatever he calls them.
    let jwt =
        forged(&agents, &user, &scoped(serde_json::json!({ "tags": ["muster:operator", "role:worker"] })));
    let mut agent = Wire::connect(port, Some(&as_he_says(jwt))).unwrap();
    assert!(agent.may_publish(&filled("hb.ROLE.OWN")) && !agent.may_publish("ctl.all"));
    let jwt = forged(&agents, &user, &scoped(serde_json::json!({ "tags": [] })));
    let mut nobody = Wire::connect(port, Some(&as_he_says(jwt))).unwrap();
    assert!(!nobody.may_publish(&filled("hb.ROLE.OWN")));
    assert!(nobody.lives());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_revoked_is_cut_off_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let settings = patient(&folder);
    let server = LocalServer::start(&settings).await.unwrap();
    // A record, so that what others may do is as it was.
    crate::fixture::connect_for(&server, 1).await.provision().await.unwrap();
    server.stop().await.unwrap();
    let server = LocalServer::start(&settings).await.unwrap();
    let keys = server.keys();
    let agent = |name: &str| Scope::Agent.holder(ROLE.parse().unwrap(), name.parse().unwrap());
    let issue = |name: &str| Own::of(&keys.issue(&agent(name), None).unwrap());
    let (gone, stays) = (issue("gone-1"), issue("stays-1"));
    let connect = |own: &Own| Wire::connect(server.port(), Some(own));
    let (mut first, mut second, mut other) =
        (connect(&gone).unwrap(), connect(&gone).unwrap(), connect(&stays).unwrap());
    let mut operator = let_in(&server, Scope::Operator);

    let file = folder.path().join("process.creds");
    let process = agent("gone-2");
    keys.issue(&process, None).unwrap().write(&file).unwrap();
    let process = BusSettings { credentials: Some(file), ..BusSettings::of_server(&server) };
    let who = "gone-2".parse().unwrap();
    let process = Bus::connect(&process, &who, Arc::new(Redactor::default())).await.unwrap();

    assert_eq!(keys.revoke(&"gone-1".parse().unwrap()).unwrap(), 1);
    assert_eq!(keys.revoke(&who).unwrap(), 1);
    assert!(keys.issued().unwrap().iter().all(|one| one.name.as_str() != "gone-1"));
    assert!(keys.issued().unwrap().iter().any(|one| one.name.as_str() == "stays-1"));
    assert!(first.lives(), "the server knows nothing of it yet");
    assert!(reload(&settings.store_dir).unwrap());
    for cut_off in [&mut first, &mut second] {
        let said = cut_off.last_word();
        assert!(said.contains("Revoked"), "{said}");
    }
    assert!(connect(&gone).is_err(), "the revoked came back");
    let failed =
        tokio::time::timeout(SOON, process.failed()).await.expect("a process is told that it is out");
    assert!(matches!(failed, BusError::Unauthorized { .. }), "{failed}");
    assert!(other.lives() && operator.lives(), "others stay");
    assert!(other.may_publish("hb.worker.stays-1"));
    connect(&stays).unwrap();
    connect(&issue("gone-1")).expect("new credentials of the same name count");

    server.stop().await.unwrap();
    assert!(!reload(&settings.store_dir).unwrap(), "no server runs");
    let server = LocalServer::start(&settings).await.unwrap();
    assert!(Wire::connect(server.port(), Some(&gone)).is_err(), "it is remembered");
    Wire::connect(server.port(), Some(&stays)).unwrap();
}
