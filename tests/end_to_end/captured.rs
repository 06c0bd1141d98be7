//! What somebody can do on the bus who has nothing, and who has the credentials of one worker.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use muster_support::async_nats::{Client, ConnectOptions, Event};
use muster_support::fleet::{Fleet, wait_until};
use muster_support::way;
use serde_json::{Value, json};

use super::support::folder;

const LIMIT: Duration = Duration::from_secs(10);

/// What the server refused, in its words.
type Refused = Arc<Mutex<Vec<String>>>;

/// A client with the credentials of a worker of its own name, what it is refused, and that name.
async fn captured(fleet: &Fleet) -> (Client, Refused, String) {
    let told = way::program(&fleet.url(), "worker", true).unwrap();
    let of =
        |name: &str| told.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap();
    let refused = Refused::default();
    let heard = Arc::clone(&refused);
    let options = ConnectOptions::with_credentials_file(of("NATS_CREDS")).await.unwrap();
    let options = options.custom_inbox_prefix(of("NATS_INBOX_PREFIX")).event_callback(move |event| {
        if let Event::ServerError(error) = event {
            heard.lock().unwrap().push(error.to_string());
        }
        std::future::ready(())
    });
    (options.connect(fleet.url()).await.unwrap(), refused, of("MUSTER_AGENT_ID"))
}

/// Subjects on which a worker has nothing to say, for a run that there is. `RUN` stands for it, `OTHER` for another agent.
const ATTACKS: [&str; 46] = [
    // Decisions and offers in the name of an orchestrator.
    "run.RUN.decided",
    "run.RUN.task.worker.1",
    "run.RUN.task.writer.write",
    "task.worker.RUN.1",
    "task.@OTHER.RUN.1",
    // Reports of others, and of other roles.
    "evt.RUN.worker.OTHER.1.1.outcome",
    "evt.RUN.writer.OTHER.write.1.outcome",
    "evt.RUN.planner.OTHER.plan.1.outcome",
    "evt.RUN.reflector.OTHER.reflect-1-1.1.outcome",
    // Commands: cancel, approve, answer, edit, submit.
    "cmd.RUN.cancel",
    "cmd.RUN.approve",
    "cmd.RUN.answer",
    "cmd.RUN.edit",
    "cmd.RUN.submit",
    "ask.submit",
    "ask.context",
    // Control of others.
    "ctl.all",
    "ctl.role.worker",
    "ctl.role.orchestrator",
    "ctl.agent.OTHER",
    "hb.worker.OTHER",
    "hb.orchestrator.OTHER",
    "live.RUN.writer.OTHER.write",
    "bid.worker.OTHER.RUN.1",
    "cfp.worker.RUN.1",
    // The task gateway, and what gateways tell each other.
    "agent.word_counter.take",
    "agent.worker.finish",
    "gateway.moved",
    "gateway.OTHER.worker.step",
    // Buckets of others.
    "$KV.AGENTS.OTHER",
    "$KV.LEASE.OTHER",
    "$KV.BB.RUN.facts",
    "$KV.LESSONS.x",
    "$KV.TRACK_RECORD.x",
    "$KV.ASKED.x",
    // Streams and queues.
    "$JS.API.STREAM.PURGE.RUNS",
    "$JS.API.STREAM.DELETE.RUNS",
    "$JS.API.STREAM.UPDATE.RUNS",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.MSG.DELETE.RUNS",
    "$JS.API.STREAM.PURGE.OBJ_MUSTER",
    "$JS.API.CONSUMER.CREATE.TASKS.mine.task.writer.>",
    "$JS.API.CONSUMER.MSG.NEXT.TASKS.writer",
    "$JS.API.CONSUMER.DELETE.TASKS.worker",
    "$JS.ACK.TASKS.writer.1.1.1.1.0",
    "$JS.API.CONSUMER.CREATE.COMMANDS.mine",
];

/// What a worker cannot listen to.
const EARS: [&str; 12] = [
    ">",
    "run.>",
    "evt.>",
    "cmd.>",
    "task.>",
    "ask.>",
    "agent.>",
    "queue.>",
    "_INBOX.>",
    "_INBOX.OTHER.>",
    "ctl.agent.OTHER",
    "$JS.API.>",
];

/// The captured worker writes entries of its own that say what an orchestrator says, and has the server deliver them where
/// somebody listens: the server does not hold the subject of a reader against its rights.
#[test]
fn what_a_captured_worker_has_delivered_is_not_obeyed() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    assert!(folder.run(&["run", "What is 17.5 % of 2480?", "--quiet"]).unwrap().status.success());
    let run = folder.json(&["runs", "-n", "1", "--json"]).unwrap()[0]["run"].as_str().unwrap().to_owned();
    let others = folder.json(&["ps", "--json"]).unwrap().to_string();
    let named = |role: &str| others.split('"').find(|word| word.starts_with(role)).unwrap().to_owned();
    let (before, orchestrator) = (fleet.pids(), named("orchestrator-"));
    let new = "0193f0c0c0c07000800000000000dead";
    let submit = json!({ "command": "submit", "run": new, "goal": { "text": "What is 6 * 7?" } });
    let control = |content: Value| json!({ "type": "control", "content": content });
    let order = control(json!({ "control": "owners", "message": "order", "command": submit }));
    let ask = json!({ "type": "ask", "content": { "ask": "submit", "goal": { "text": "What is 6 * 7?" } } });
    let stop = control(json!({ "control": "shutdown" }));
    let attacks = [
        ("ctl.all".to_owned(), stop.clone()),
        ("ctl.role.reflector".to_owned(), stop.clone()),
        (format!("ctl.agent.{orchestrator}"), stop),
        (format!("ctl.agent.{orchestrator}"), order),
        ("ask.submit".to_owned(), ask),
    ];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, refused, own) = captured(&fleet).await;
        let owner = way::client(&fleet.url()).await.unwrap();
        for (n, (to, body)) in attacks.into_iter().enumerate() {
            let mut heard = owner.subscribe(to.clone()).await.unwrap();
            owner.flush().await.unwrap();
            let subject = format!("evt.{run}.worker.{own}.forged.{n}.step");
            let sent = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
            let id = format!("0193f0c0-c0c0-7000-8000-00000000000{n}");
            let forged = json!({ "v": 1, "id": id, "sender": orchestrator, "sent": sent, "body": body }).to_string();
            let kept = client.request(subject.clone(), forged.clone().into()).await.unwrap();
            assert!(String::from_utf8_lossy(&kept.payload).contains("\"seq\""), "{kept:?}");
            let reader = json!({ "stream_name": "RUNS", "config": {
                "deliver_subject": to, "filter_subject": subject, "ack_policy": "none", "deliver_policy": "all",
                "max_deliver": 1, "inactive_threshold": 60_000_000_000_u64, "mem_storage": true, "num_replicas": 1,
            } });
            let made = client.request("$JS.API.CONSUMER.CREATE.RUNS", reader.to_string().into()).await.unwrap();
            let made = String::from_utf8_lossy(&made.payload).into_owned();
            assert!(made.contains("deliver_subject"), "{made}");
            // It is delivered, to everybody who listens: what follows shows that nobody obeys.
            let delivered = tokio::time::timeout(LIMIT, heard.next()).await.expect("it is delivered").unwrap();
            assert_eq!(delivered.payload, forged, "{to}");
        }
        assert!(refused.lock().unwrap().is_empty(), "{:?}", refused.lock().unwrap());
    });
    // Whoever obeyed would leave before it does anything else.
    assert!(folder.run(&["run", "What is 3 + 4?", "--quiet"]).unwrap().status.success());
    assert_eq!(fleet.pids(), before, "{}", folder.logs());
    let runs = folder.json(&["runs", "--json"]).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 2, "{runs}");
    let logs = folder.logs();
    assert!(logs.contains("a control message is not obeyed") && logs.contains("it is not signed"), "{logs}");
}

#[test]
fn whoever_has_no_credentials_is_not_let_in() {
    let fleet = folder().up(&[]).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let url = fleet.url();
    runtime.block_on(async {
        assert!(muster_support::async_nats::connect(&url).await.is_err(), "nobody");
        let guessed = ConnectOptions::with_user_and_password("muster".into(), "muster".into());
        assert!(guessed.connect(&url).await.is_err(), "a password");
        // Credentials of another fleet are worth nothing here.
        let other = folder().up(&[]).unwrap();
        let foreign = way::credentials(&other.url()).unwrap();
        let foreign = ConnectOptions::with_credentials_file(foreign).await.unwrap();
        assert!(foreign.connect(&url).await.is_err(), "another fleet's owner");
    });
}

#[test]
fn a_captured_worker_can_do_no_more_than_its_own_tasks() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    assert!(folder.run(&["run", "What is 17.5 % of 2480?", "--quiet"]).unwrap().status.success());
    let run = folder.json(&["runs", "-n", "1", "--json"]).unwrap()[0]["run"].as_str().unwrap().to_owned();
    let others = folder.json(&["ps", "--json"]).unwrap().to_string();
    let other = others.split('"').find(|word| word.starts_with("worker-")).unwrap().to_owned();
    let told = |subject: &str| subject.replace("RUN", &run);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, refused, _) = captured(&fleet).await;
        let refusal = |kind: &'static str, subject: String| {
            let refused = Arc::clone(&refused);
            move || refused.lock().unwrap().iter().any(|said| said.contains(kind) && said.contains(&subject))
        };
        for attack in ATTACKS {
            let subject = match attack.starts_with("$JS") {
                true => attack.to_owned(),
                false => told(attack).replace("OTHER", &other),
            };
            client.publish(subject.clone(), "forged".into()).await.unwrap();
            client.flush().await.unwrap();
            wait_until(&format!("{subject} is refused"), LIMIT, refusal("Publish", subject.clone())).unwrap();
        }
        for ear in EARS {
            let subject = ear.replace("OTHER", &other);
            let _heard = client.subscribe(subject.clone()).await.unwrap();
            client.flush().await.unwrap();
            let what = format!("listening to {subject} is refused");
            wait_until(&what, LIMIT, refusal("Subscription", subject.clone())).unwrap();
        }
    });
    // The fleet goes on, and has taken none of it.
    assert!(folder.run(&["run", "What is 3 + 4?", "--quiet"]).unwrap().status.success());
    let listed = folder.json(&["runs", "-n", "5", "--json"]).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}
