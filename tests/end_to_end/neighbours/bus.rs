//! Whoever has a worker's credentials sends again what was sent, floods the bus, and fills the store.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::credentials::rights::inbox;
use muster_support::async_nats::{Client, ConnectOptions, HeaderMap, Message};
use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::model_server::{ModelServer, Reply, Script};
use muster_support::way;
use serde_json::json;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::{LIMIT, goes_on};
use crate::support::{of_kind, with_model};

/// What the run in hand comes to.
const RIGHT: &str = "The ferry leaves at nine.";
/// What an earlier one came to.
const OLD: &str = "The ferry leaves never.";
/// How long the run in hand is in hand.
const SLOW: Duration = Duration::from_secs(3);

/// A model that takes its time for one goal.
fn model() -> ModelServer {
    ModelServer::start(Script::answering(|request| {
        let is_slow = request.holds("slowly");
        let conclusion = if is_slow { RIGHT } else { OLD };
        let reply =
            Reply::call("submit", &json!({ "ending": "done", "conclusion": conclusion, "findings": [] }));
        if is_slow { reply.with_delay(SLOW) } else { reply }
    }))
    .unwrap()
}

fn up(model: &ModelServer, more: &[&str]) -> Fleet {
    let folder = with_model(model);
    folder.up(&[&["--set", "agent.model=openai/scripted"], more].concat()).unwrap()
}

/// A run that is in hand for a while.
struct InHand {
    run: String,
    child: Child,
    begun: Instant,
}

fn in_hand(folder: &Folder) -> InHand {
    let run = Uuid::now_v7().to_string();
    let ask = [
        "run",
        "Say slowly when it leaves.",
        "--effort",
        "quick",
        "--run-id",
        &run,
        "--quiet",
        "--deadline",
        "60s",
    ];
    let child = folder.command(&ask).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_begun = || {
        let traced = folder.run(&["trace", &run, "--json"]).unwrap();
        String::from_utf8_lossy(&traced.stdout).contains("\"started\"")
    };
    wait_until("the run is in hand", LIMIT, is_begun).unwrap();
    InHand { run, child, begun: Instant::now() }
}

/// It ends with what is right, and soon.
fn ends_rightly(fleet: &Fleet, InHand { run, child, begun }: InHand) {
    let output = child.wait_with_output().unwrap();
    let said = both(&output);
    assert!(output.status.success() && said.contains(RIGHT), "{said}\n{}", fleet.folder().logs());
    assert!(!said.contains(OLD), "{said}");
    assert!(begun.elapsed() < LIMIT, "it took {:?}", begun.elapsed());
    let replayed = fleet.folder().json(&["replay", &run, "--json"]).unwrap();
    assert_eq!(replayed["same"], true, "{replayed}");
}

/// A client with credentials of a worker, and its name.
async fn worker(fleet: &Fleet) -> (Client, String) {
    let told = way::agent(&fleet.url(), "worker").unwrap();
    let of =
        |name: &str| told.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap();
    let options = ConnectOptions::with_credentials_file(of("NATS_CREDS")).await.unwrap();
    let client = options.custom_inbox_prefix(of("NATS_INBOX_PREFIX")).connect(fleet.url()).await.unwrap();
    (client, of("MUSTER_AGENT_ID"))
}

/// A client with the credentials of the fleet's own worker, and its name.
async fn stolen(fleet: &Fleet) -> (Client, String) {
    let listed = fleet.folder().json(&["ps", "--json"]).unwrap().to_string();
    let name =
        listed.split('"').find(|word| word.starts_with("worker-") && word.len() > "worker-1".len()).unwrap();
    let file = fleet.folder().path().join(".muster/nats/keys/worker-1.creds");
    let options = ConnectOptions::with_credentials_file(file).await.unwrap();
    let options = options.custom_inbox_prefix(inbox(&name.parse().unwrap()));
    (options.connect(fleet.url()).await.unwrap(), name.to_owned())
}

/// Everything that goes over the bus while something is done, as its owner sees it.
fn recorded(runtime: &Runtime, fleet: &Fleet, what: impl FnOnce()) -> Vec<Message> {
    let owner = runtime.block_on(way::client(&fleet.url())).unwrap();
    let mut heard = runtime.block_on(async {
        let heard = owner.subscribe(">").await.unwrap();
        owner.flush().await.unwrap();
        heard
    });
    what();
    runtime.block_on(async {
        owner.flush().await.unwrap();
        let mut all = Vec::new();
        while let Ok(Some(message)) = tokio::time::timeout(Duration::from_millis(300), heard.next()).await {
            all.push(message);
        }
        all
    })
}

async fn again(client: &Client, subject: &str, headers: Option<&HeaderMap>, payload: &[u8]) {
    let payload = payload.to_vec().into();
    match headers {
        Some(headers) => {
            client.publish_with_headers(subject.to_owned(), headers.clone(), payload).await.unwrap()
        }
        None => client.publish(subject.to_owned(), payload).await.unwrap(),
    }
}

fn ask_quickly(folder: &Folder) {
    let asked = folder.run(&["run", "When does it leave?", "--effort", "quick", "--quiet"]).unwrap();
    assert!(asked.status.success() && both(&asked).contains(OLD), "{}", both(&asked));
}

#[test]
fn what_was_sent_once_changes_nothing_when_it_is_sent_again() {
    let model = model();
    let fleet = up(&model, &[]);
    let folder = fleet.folder();
    let runtime = Runtime::new().unwrap();
    let messages = recorded(&runtime, &fleet, || ask_quickly(folder));
    let events: Vec<&Message> =
        messages.iter().filter(|message| message.subject.starts_with("evt.")).collect();
    let outcome = events.iter().find(|message| message.subject.ends_with(".outcome")).expect("an outcome");
    assert!(events.len() >= 3 && messages.iter().any(|message| message.subject.starts_with("$JS.ACK.")));
    let shown = || {
        let mut shown = folder.json(&["show", "last", "--json"]).unwrap();
        // What is there to be seen beside its state.
        if let Some(fields) = shown.as_object_mut() {
            fields.remove("last");
        }
        shown
    };
    let before = shown();

    // Everything, verbatim, with the credentials of whoever sent the most of it.
    let holder = outcome.subject.split('.').nth(3).unwrap().to_owned();
    runtime.block_on(async {
        let (client, name) = stolen(&fleet).await;
        assert_eq!(name, holder, "the worker that did it");
        for message in messages.iter().filter(|message| !message.subject.starts_with("_INBOX")) {
            again(&client, &message.subject, message.headers.as_ref(), &message.payload).await;
        }
        for message in &events {
            // And without what tells the broker that it was sent before.
            again(&client, &message.subject, None, &message.payload).await;
        }
        client.flush().await.unwrap();
    });
    let replayed = folder.json(&["replay", "last", "--json"]).unwrap();
    assert_eq!(replayed["same"], true, "{replayed}");
    let after = shown();
    for field in ["status", "phase", "report", "tasks", "plan"] {
        assert_eq!(after[field], before[field], "{field}");
    }

    // The same of an old run, said of the run in hand by a worker that does not have it.
    let hand = in_hand(folder);
    let old = outcome.subject.split('.').nth(1).unwrap();
    let trace = folder.json_lines(&["trace", &hand.run, "--json"]).unwrap();
    assert_eq!(of_kind(&trace, "outcome").count(), 0);
    let new = hand.run.replace('-', "");
    let said: Vec<String> = runtime.block_on(async {
        let (client, name) = worker(&fleet).await;
        let mut said = Vec::new();
        for message in &events {
            let subject = message.subject.replace(old, &new).replace(&holder, &name);
            for generation in ["1", "2"] {
                let subject = in_generation(&subject, generation);
                again(&client, &subject, None, &message.payload).await;
                said.push(subject);
            }
        }
        client.flush().await.unwrap();
        said
    });
    assert!(said.iter().any(|subject| subject.ends_with("outcome") && subject.contains(&new)), "{said:?}");
    ends_rightly(&fleet, hand);
    // What it said of a task that it does not have is put where people see it.
    let dead = || both(&folder.run(&["dead", "list", "--json"]).unwrap());
    wait_until("dead letters tell of it", LIMIT, || dead().contains(&new) && dead().contains("outcome"))
        .unwrap_or_else(|late| panic!("{late}: {}", dead()));

    // Acknowledgements of what others have in hand: an offer that is gone is made again.
    let acks: Vec<&Message> =
        messages.iter().filter(|message| message.subject.starts_with("$JS.ACK.TASKS.worker")).collect();
    let first = acks.first().expect("what was taken was acknowledged");
    let parts: Vec<String> = first.subject.split('.').map(str::to_owned).collect();
    assert!(parts.len() > 7, "{}", first.subject);
    let hand = in_hand(folder);
    runtime.block_on(async {
        let (client, _) = worker(&fleet).await;
        for ack in &acks {
            again(&client, &ack.subject, None, &ack.payload).await;
        }
        for place in 1..200 {
            let mut parts = parts.clone();
            (parts[5], parts[6]) = (place.to_string(), place.to_string());
            client.publish(parts.join("."), "+TERM".into()).await.unwrap();
        }
        client.flush().await.unwrap();
    });
    ends_rightly(&fleet, hand);
    goes_on(&fleet);
}

/// The subject of the same in another generation.
fn in_generation(subject: &str, generation: &str) -> String {
    let mut parts: Vec<&str> = subject.split('.').collect();
    let at = parts.len() - 2;
    parts[at] = generation;
    parts.join(".")
}

/// Messages of the flood, and every how many of them one is written to a stream: each such write waits for the disk, and
/// whoever else writes waits behind it.
const FLOOD: usize = 100_000;
const KEPT: usize = 25;

#[test]
fn a_flood_does_not_keep_the_run_in_hand_from_its_end() {
    let model = model();
    let fleet = up(&model, &[]);
    let folder = fleet.folder();
    let runtime = Runtime::new().unwrap();
    let hand = in_hand(folder);
    let new = hand.run.replace('-', "");
    runtime.block_on(async {
        let (client, name) = worker(&fleet).await;
        let ghost = Uuid::now_v7().simple().to_string();
        let passing = [
            format!("live.{new}.worker.{name}.1"),
            format!("hb.worker.{name}"),
            format!("bid.worker.{name}.{new}.1"),
            format!("queue.worker.{name}"),
            "watch.who".to_owned(),
            "guard.nobody".to_owned(),
        ];
        let kept = [
            format!("evt.{ghost}.worker.{name}.1.1.step"),
            format!("evt.{new}.worker.{name}.1.1.step"),
            format!("evt.{new}.worker.{name}.1.1.outcome"),
            format!("dlq.{name}.evt.{ghost}"),
        ];
        for at in 0..FLOOD {
            let subject = match (at % KEPT, at % (KEPT * 5)) {
                // Of another run each time.
                (0, 0) => format!("evt.{}.worker.{name}.1.1.outcome", Uuid::now_v7().simple()),
                (0, place) => kept[place / KEPT % kept.len()].clone(),
                (place, _) => passing[place % passing.len()].clone(),
            };
            client.publish(subject, "a flood is no message".into()).await.unwrap();
        }
        client.flush().await.unwrap();
    });
    ends_rightly(&fleet, hand);
    goes_on(&fleet);
}

/// Fills what a subject is kept in until the server refuses it, with less and less. Gives what the server said last.
async fn fill(client: &Client, kind: &str) -> String {
    let mut last = String::new();
    // 500 messages of the largest size fill every store of the fleet.
    for bytes in [512 * 1024, 64 * 1024, 1024, 1] {
        for at in 0..500 {
            let subject = kind.replace('#', &format!("x{bytes}{at}"));
            let answer = client.request(subject, vec![b'x'; bytes].into()).await;
            last = answer.map_or_else(
                |error| error.to_string(),
                |answer| String::from_utf8_lossy(&answer.payload).into_owned(),
            );
            if last.contains("error") {
                break;
            }
        }
    }
    last
}

#[test]
fn a_store_that_somebody_filled_is_told_of_and_what_was_in_hand_ends_when_there_is_room() {
    let model = model();
    let room = |record: &'static str| ["--set", record, "--set", "bus.objects_bytes=4194304"];
    let fleet = up(&model, &room("bus.record_bytes=4194304"));
    let folder = fleet.folder();
    let runtime = Runtime::new().unwrap();
    let mut hand = in_hand(folder);
    let name = runtime.block_on(async {
        let (client, name) = worker(&fleet).await;
        let ghost = Uuid::now_v7().simple().to_string();
        for kind in ["$KV.FILES.#", "$O.MUSTER.C.#", &format!("evt.{ghost}.worker.{name}.#.1.step")] {
            let said = fill(&client, kind).await;
            assert!(said.contains("maximum bytes exceeded"), "{kind}: {said}");
        }
        name
    });
    let asked = folder.run(&["run", "What is 3 + 4?", "--quiet", "--deadline", "20s"]).unwrap();
    let said = both(&asked).split_whitespace().collect::<Vec<_>>().join(" ");
    // Where there is room for a word of it, orchestrators refuse the goal; else it waits.
    let refused_or_waits = ["the record is almost full", "no orchestrator has accepted the goal yet"];
    assert!(!asked.status.success() && refused_or_waits.iter().any(|word| said.contains(word)), "{said}");
    let doctor = both(&folder.run(&["doctor"]).unwrap());
    assert!(doctor.contains("% full: new goals are refused at 80 %"), "{doctor}");

    // The owner puts them out and makes room.
    hand.child.kill().unwrap();
    hand.child.wait().unwrap();
    folder.output(&["keys", "revoke", &name]).unwrap();
    assert!(runtime.block_on(async { tokio::time::timeout(LIMIT, refused(&fleet, &name)).await }).is_ok());
    folder.output(&["down"]).unwrap();
    let more = room("bus.record_bytes=67108864");
    folder
        .output(&[&["up", "--detach", "--set", "agent.model=openai/scripted"], &more[..]].concat())
        .unwrap();
    let ends = || both(&folder.run(&["show", &hand.run]).unwrap()).contains(RIGHT);
    wait_until("the run in hand has ended", LIMIT, ends).unwrap();
    goes_on(&fleet);
}

/// Waits until a worker's credentials let nobody in any more.
async fn refused(fleet: &Fleet, name: &str) {
    let file = fleet.folder().path().join(format!(".muster/nats/keys/{name}.creds"));
    loop {
        let Ok(options) = ConnectOptions::with_credentials_file(&file).await else { return };
        if options.connect(fleet.url()).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
