//! What somebody can do on the bus who has nothing, and who has the credentials of one worker.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use muster_bus::credentials::rights::inbox;
use muster_support::async_nats::{Client, ConnectOptions, Event};
use muster_support::fleet::{Fleet, both, wait_until};
use muster_support::way;
use serde_json::{Value, json};

use super::support::folder;

const LIMIT: Duration = Duration::from_secs(10);

/// What the server refused, in its words.
pub(super) type Refused = Arc<Mutex<Vec<String>>>;

/// A client with the credentials of a worker of its own name, what it is refused, and that name.
pub(super) async fn captured(fleet: &Fleet) -> (Client, Refused, String) {
    let (client, refused) = holding(fleet, "worker", CAPTURED).await;
    (client, refused, CAPTURED.to_owned())
}

/// What the process is called whose credentials were captured.
const CAPTURED: &str = "captured-1";

/// A client with the credentials of somebody else, and what it is refused.
async fn holding(fleet: &Fleet, holder: &str, name: &str) -> (Client, Refused) {
    let file = fleet.folder().path().join(format!("{name}.creds"));
    let out = file.display().to_string();
    fleet.folder().output(&["keys", "issue", holder, "--name", name, "--out", &out]).unwrap();
    let refused = Refused::default();
    let heard = Arc::clone(&refused);
    let options = ConnectOptions::with_credentials_file(file).await.unwrap();
    let inbox = inbox(&name.parse().unwrap());
    let options = options.custom_inbox_prefix(inbox).event_callback(move |event| {
        if let Event::ServerError(error) = event {
            heard.lock().unwrap().push(error.to_string());
        }
        std::future::ready(())
    });
    (options.connect(fleet.url()).await.unwrap(), refused)
}

/// Has a client publish and listen where it may not; each is refused by the server.
async fn tries(client: &Client, refused: &Refused, attacks: &[String], ears: &[String]) {
    let refusal = |kind: &'static str, subject: &str| {
        let (refused, subject) = (Arc::clone(refused), subject.to_owned());
        move || refused.lock().unwrap().iter().any(|said| said.contains(kind) && said.contains(&subject))
    };
    for subject in attacks {
        client.publish(subject.clone(), "forged".into()).await.unwrap();
        client.flush().await.unwrap();
        wait_until(&format!("{subject} is refused"), LIMIT, refusal("Publish", subject)).unwrap();
    }
    for subject in ears {
        let _heard = client.subscribe(subject.clone()).await.unwrap();
        client.flush().await.unwrap();
        let what = format!("listening to {subject} is refused");
        wait_until(&what, LIMIT, refusal("Subscription", subject)).unwrap();
    }
}

/// The attacks on a fleet with one run, for somebody who is of none of the roles but this.
struct Attacks {
    run: String,
    other: String,
}

impl Attacks {
    fn on(fleet: &Fleet) -> Self {
        let folder = fleet.folder();
        assert!(folder.run(&["run", "What is 17.5 % of 2480?", "--quiet"]).unwrap().status.success());
        let run = folder.json(&["runs", "-n", "1", "--json"]).unwrap()[0]["run"].as_str().unwrap().to_owned();
        let others = folder.json(&["ps", "--json"]).unwrap().to_string();
        let other = others.split('"').find(|word| word.starts_with("worker-")).unwrap().to_owned();
        Self { run, other }
    }

    fn of(&self, subjects: &[&str], role: &str) -> Vec<String> {
        let elsewhere = if role == "writer" { "planner" } else { "writer" };
        let told = |subject: &&str| {
            let subject = subject.replace("OTHER", &self.other).replace("ELSE", elsewhere);
            if subject.starts_with("$JS") { subject } else { subject.replace("RUN", &self.run) }
        };
        subjects.iter().map(told).collect()
    }
}

/// Subjects on which an agent has nothing to say, for a run that there is. `RUN` stands for it, `OTHER` for another agent, `ELSE` for
/// another role.
const ATTACKS: [&str; 49] = [
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
    // Dead letters of another process: its name says who is responsible for the content.
    "dlq.OTHER.cmd.RUN.approve",
    "dlq.cmd.RUN.approve",
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
    "$KV.LESSONS.x",
    "$KV.ANSWERS.another_role.x",
    "$KV.TRACK_RECORD.x",
    "$KV.TRIALS.x",
    "$KV.ASKED.x",
    // Streams and queues.
    "$JS.API.STREAM.PURGE.RUNS",
    "$JS.API.STREAM.DELETE.RUNS",
    "$JS.API.STREAM.UPDATE.RUNS",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.MSG.DELETE.RUNS",
    "$JS.API.STREAM.PURGE.OBJ_MUSTER",
    "$JS.API.CONSUMER.CREATE.TASKS.mine.task.writer.>",
    "$JS.API.CONSUMER.MSG.NEXT.TASKS.ELSE",
    "$JS.API.CONSUMER.DELETE.TASKS.worker",
    "$JS.ACK.TASKS.ELSE.1.1.1.1.0",
    "$JS.API.CONSUMER.CREATE.COMMANDS.mine",
];

/// What an agent cannot listen to.
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

/// The captured worker writes entries of its own that say what an orchestrator says, and has the server answer with them where
/// somebody listens: the server does not hold where an answer goes against the asker's rights.
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
                "name": format!("{own}-{}", n + 1), "filter_subject": subject, "ack_policy": "none", "deliver_policy": "all",
                "inactive_threshold": 60_000_000_000_u64, "mem_storage": true, "num_replicas": 1,
            } });
            let ask = format!("$JS.API.CONSUMER.CREATE.RUNS.{own}-{}.{subject}", n + 1);
            let made = client.request(ask, reader.to_string().into()).await.unwrap();
            let made = String::from_utf8_lossy(&made.payload).into_owned();
            assert!(made.contains("consumer_create_response") && !made.contains("error"), "{made}");
            let next = format!("$JS.API.CONSUMER.MSG.NEXT.RUNS.{own}-{}", n + 1);
            client.publish_with_reply(next, to.clone(), r#"{"batch":1}"#.into()).await.unwrap();
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

/// The fleet goes on, and has taken nothing of what was said by others.
fn goes_on(fleet: &Fleet) {
    let folder = fleet.folder();
    assert!(folder.run(&["run", "What is 3 + 4?", "--quiet"]).unwrap().status.success());
    let listed = folder.json(&["runs", "-n", "5", "--json"]).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}

#[test]
fn a_captured_worker_can_do_no_more_than_its_own_tasks() {
    let fleet = folder().up(&[]).unwrap();
    let attacks = Attacks::on(&fleet);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (client, refused, _) = captured(&fleet).await;
        let (said, heard) = (attacks.of(&ATTACKS, "worker"), attacks.of(&EARS, "worker"));
        tries(&client, &refused, &said, &heard).await;
        // Under its own name it can forge a letter that looks like an approval. It never becomes an order.
        let letter = format!("dlq.{CAPTURED}.cmd.{}.approve", attacks.run);
        client.publish(letter, "{}".into()).await.unwrap();
        client.flush().await.unwrap();
    });
    let folder = fleet.folder();
    let listed = || folder.json(&["dead", "list", "--json"]).unwrap_or_default();
    wait_until("the letter is stored", LIMIT, || listed()[0]["writer"] == CAPTURED).unwrap();
    let retried = folder.run(&["dead", "retry", "1", "--yes"]).unwrap();
    let said = both(&retried);
    assert!(retried.status.code() == Some(2) && said.contains("captured-1 wrote it"), "{said}");
    goes_on(&fleet);
}

/// Agents of the other roles, a guard, and whoever only watches.
#[test]
fn whoever_captured_somebody_else_can_say_and_hear_no_more_than_he() {
    let fleet = folder().up(&[]).unwrap();
    let attacks = Attacks::on(&fleet);
    // An observer hears what happens; not what is meant for others alone.
    let hidden = [">", "agent.>", "queue.>", "_INBOX.>", "_INBOX.OTHER.>", "$JS.API.>", "gateway.>"];
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        for holder in ["planner", "researcher", "reflector", "refiner", "writer", "guard:secrets", "observer"]
        {
            let name = format!("captured-{}", holder.rsplit(':').next().unwrap());
            let (client, refused) = holding(&fleet, holder, &name).await;
            let heard = if holder == "observer" { &hidden[..] } else { &EARS[..] };
            tries(&client, &refused, &attacks.of(&ATTACKS, holder), &attacks.of(heard, holder)).await;
        }
    });
    goes_on(&fleet);
}

/// An observer has eight consumers of each stream, in its own name, for a limited time; the next person reads anyway.
#[test]
fn an_observer_takes_neither_the_event_log_nor_requests_from_others() {
    let fleet = folder().up(&[]).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let create = async |client: &Client, name: &str, config: Value| {
        let body = json!({ "stream_name": "RUNS", "config": config }).to_string();
        let asked = client.request(format!("$JS.API.CONSUMER.CREATE.RUNS.{name}"), body.into()).await;
        serde_json::from_slice::<Value>(&asked.unwrap().payload).unwrap()
    };
    let consumers = async || {
        let owner = way::client(&fleet.url()).await.unwrap();
        let listed = owner.request("$JS.API.CONSUMER.NAMES.RUNS", "".into()).await.unwrap();
        String::from_utf8_lossy(&listed.payload).into_owned()
    };
    runtime.block_on(async {
        let (client, refused) = holding(&fleet, "observer", "dash").await;
        let (other, _) = holding(&fleet, "observer", "eve").await;
        create(&other, "eve-1", json!({ "ack_policy": "none" })).await;
        for number in 1..=8 {
            let made = create(&client, &format!("dash-{number}"), json!({ "ack_policy": "none" })).await;
            assert_eq!(made["config"]["inactive_threshold"], 300_000_000_000_u64, "{made}");
        }
        for (config, error) in [
            (json!({ "inactive_threshold": 301_000_000_000_u64, "ack_policy": "none" }), 10153),
            (json!({ "durable_name": "eve-2", "ack_policy": "none" }), 10017),
        ] {
            assert_eq!(create(&client, "dash-1", config).await["error"]["err_code"], error);
        }
        let attacks = "CREATE.RUNS.dash-9 CREATE.RUNS.eve-2 CREATE.RUNS DURABLE.CREATE.RUNS.dash-9 DELETE.RUNS.eve-1 MSG.NEXT.RUNS.eve-1";
        let attacks = attacks.split(' ').map(|end| format!("$JS.API.CONSUMER.{end}")).collect::<Vec<_>>();
        tries(&client, &refused, &attacks, &[]).await;
        for (subject, group) in [("guard.*", "watch"), ("ask.*", "orchestrators"), ("dlq.>", "x")] {
            let _member = client.queue_subscribe(subject, group.to_owned()).await.unwrap();
            client.flush().await.unwrap();
            let denied = format!("\"{subject}\" using queue \"{group}\"");
            wait_until(&denied, LIMIT, || refused.lock().unwrap().iter().any(|said| said.contains(&denied))).unwrap();
        }
    });
    assert!(runtime.block_on(consumers()).contains("dash-8"));
    fleet.folder().output(&["keys", "revoke", "dash"]).unwrap();
    let left = runtime.block_on(consumers());
    assert!(!left.contains("dash-") && left.contains("eve-1"), "{left}");
    assert!(fleet.folder().run(&["run", "What is 3 + 4?", "--quiet"]).unwrap().status.success());
}
