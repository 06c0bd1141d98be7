//! What tasks may use is vouched for by whoever decides: an offer that nobody of these signed, or that says something else
//! than was signed, is not given to anybody.

use std::sync::Arc;

use async_nats::HeaderMap;
use muster_bus::credentials::Holder;
use muster_bus::signatures::Purpose;
use muster_bus::{Bus, BusSettings, RIGHTS};
use muster_shared::flow::rights::statement;
use muster_shared::flow::{Grantor, Rights, TaskOffered, TaskRights, Voucher};
use muster_shared::ids::Seq;
use muster_shared::run::Decided;
use muster_shared::secret::Redactor;
use muster_shared::wire::Encoding;
use muster_shared::wire::tool_server::ToolCall;
use serde_json::json;

use crate::fixture::{Fixture, SOON, agent, decided, offer, on_nats, run, settings_of, until, worker};

/// A process of the fleet with credentials of its own.
async fn member(f: &Fixture, name: &str, holder: Holder) -> Bus {
    let server = f.server.as_ref().unwrap();
    let file = f.folder.as_ref().unwrap().path().join(format!("{name}.creds"));
    server.keys().issue_to(&file, &holder, None).unwrap();
    let settings = BusSettings { credentials: Some(file), ..settings_of(server) };
    Bus::connect(&settings, &agent(name), Arc::new(Redactor::default())).await.unwrap()
}

fn narrow() -> TaskRights {
    let to: Rights = serde_json::from_value(json!({ "tools": ["calculator"] })).unwrap();
    TaskRights::default().narrowed_by(Grantor::Goal, &to)
}

async fn append(bus: &Bus, after: Seq, offers: Vec<TaskOffered>, within: bool) -> Seq {
    let (run, one) = (offers[0].run, offers.len() == 1 && within);
    let (decision, offers) = if one {
        let offer = offers.into_iter().next().map(Box::new);
        (Decided { offer, ..decided(0) }, Vec::new())
    } else {
        (decided(u32::try_from(offers.len()).unwrap()), offers)
    };
    let record = bus.record();
    record.append_decision(run, after, &decision, &offers, Encoding::MessagePack).await.unwrap().last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_orchestrator_offers_is_vouched_for_and_nothing_else_is_taken() {
    let f = on_nats().await;
    let decides = member(&f, "orchestrator-1", Holder::Orchestrator { id: agent("orchestrator-1") }).await;
    let role = "worker".parse().unwrap();
    let works = member(&f, "worker-1", Holder::Agent { role, id: agent("worker-1") }).await;
    assert!(works.signatures().demanded());
    let makes = decides.clone();
    let makes = tokio::spawn(async move { makes.tasks().make_for_agents().await });
    let queue = works.tasks().join(&worker()).await.unwrap();
    let run = run();
    // Each way in which offers are written: with their decision in one message, and after it.
    let narrowed = |task: &str| TaskOffered { rights: narrow(), ..offer(run, task, worker()) };
    let last = append(&decides, Seq(0), vec![narrowed("1")], true).await;
    append(&decides, last, vec![narrowed("2"), offer(run, "3", worker())], false).await;
    for task in ["1", "2", "3"] {
        let taken = queue.take(SOON).await.unwrap().unwrap();
        assert_eq!((taken.offer.task.to_string().as_str(), taken.vouched.is_some()), (task, true));
        assert_eq!(taken.offer.rights.is_open(), task == "3");
        taken.done().await.unwrap();
    }
    assert!(works.record().offer_of(run, &"1".parse().unwrap()).await.unwrap().is_some());

    // Whoever can write to the record and may not decide: without a word, with his own, and with another's for something else.
    let forged = TaskOffered { ..offer(run, "4", worker()) };
    let own = works.signatures().sign(Purpose::Rights, &statement(&forged));
    let of_another = decides.signatures().sign(Purpose::Rights, &statement(&narrowed("4")));
    let for_another_purpose = decides.signatures().sign(Purpose::Order, &statement(&forged));
    let cases = [
        (None, "not signed"),
        (own, "who decides nothing"),
        (of_another, "not that of"),
        (for_another_purpose, "not that of"),
    ];
    let client = f.foreigner().await.unwrap();
    let context = async_nats::jetstream::new(client);
    for (signature, _) in &cases {
        let mut headers = HeaderMap::new();
        headers.insert("Content-Type", "application/json");
        if let Some(signature) = signature {
            headers.insert(RIGHTS, signature.to_string().as_str());
        }
        let body = json!({ "body": { "type": "offered", "content": forged } });
        let subject = format!("run.{run}.task.worker.4");
        let sent = context.publish_with_headers(subject, headers, body.to_string().into()).await.unwrap();
        sent.await.unwrap();
        assert!(works.record().offer_of(run, &"4".parse().unwrap()).await.is_err(), "nor by whoever goes on");
    }
    let last = offer(run, "5", worker());
    let after = f.bus.record().read(&muster_bus::RecordFilter::Decisions(run), Seq(0)).await.unwrap();
    append(&decides, after.last().unwrap().seq, vec![last], true).await;
    let taken = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(taken.offer.task.to_string(), "5", "the queue goes on");
    makes.abort();
    until("dead letters", || async { f.bus.dead().list(10).await.unwrap().len() == cases.len() }).await;
    for (letter, (_, said)) in f.bus.dead().list(10).await.unwrap().iter().zip(&cases) {
        assert!(letter.reason.contains("nobody vouches for what the task may use"), "{}", letter.reason);
        assert!(letter.reason.contains(said), "{}", letter.reason);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keys_of_a_fleet_nothing_is_demanded() {
    let f = crate::fixture::in_memory();
    f.bus.provision().await.unwrap();
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    f.offer(run(), Seq(0), &["1"]).await;
    let taken = queue.take(SOON).await.unwrap().unwrap();
    assert!(taken.vouched.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_server_tells_which_rights_of_a_call_somebody_vouches_for() {
    let f = on_nats().await;
    let decides = member(&f, "orchestrator-1", Holder::Orchestrator { id: agent("orchestrator-1") }).await;
    let role = "worker".parse().unwrap();
    let works = member(&f, "worker-1", Holder::Agent { role, id: agent("worker-1") }).await;
    let serves =
        member(&f, "tools-sums", Holder::ToolServer { server: "sums".to_owned(), id: agent("tools-sums") })
            .await;
    let makes = decides.clone();
    let makes = tokio::spawn(async move { makes.tasks().make_for_agents().await });
    let (queue, run) = (works.tasks().join(&worker()).await.unwrap(), run());
    append(&decides, Seq(0), vec![TaskOffered { rights: narrow(), ..offer(run, "1", worker()) }], true).await;
    let taken = queue.take(SOON).await.unwrap().unwrap();
    makes.abort();
    let call = json!({ "run": run, "task": "1", "tool": "add", "spec": "", "arguments": {}, "key": "k", "patience_ms": 1_000,
        "rights": taken.offer.rights, "voucher": taken.voucher() });
    let call: ToolCall = serde_json::from_value(call).unwrap();
    let (door, voucher) = (serves.tool_servers(), call.voucher.clone().unwrap());
    assert_eq!(door.vouched(&call), Ok(()));
    let open = TaskOffered { rights: TaskRights::default(), ..taken.offer.clone() };
    let own = works.signatures().sign(Purpose::Rights, &statement(&open)).unwrap().to_string();
    let of_later = voucher.generation.next();
    let forged = [
        (ToolCall { voucher: None, ..call.clone() }, "not signed"),
        (ToolCall { rights: TaskRights::default(), ..call.clone() }, "not that of"),
        (ToolCall { task: "2".to_owned(), ..call.clone() }, "not that of"),
        (ToolCall { task: "no task".to_owned(), ..call.clone() }, "a task"),
        (ToolCall { run: "r".to_owned(), ..call.clone() }, "a run id"),
        (
            ToolCall { voucher: Some(Voucher { generation: of_later, ..voucher.clone() }), ..call.clone() },
            "not that of",
        ),
        (
            ToolCall {
                rights: TaskRights::default(),
                voucher: Some(Voucher { signature: own, ..voucher.clone() }),
                ..call.clone()
            },
            "who decides nothing",
        ),
        (
            ToolCall { voucher: Some(Voucher { signature: "x".to_owned(), ..voucher }), ..call.clone() },
            "no signature",
        ),
    ];
    for (call, said) in forged {
        let why = door.vouched(&call).unwrap_err();
        assert!(why.contains("nobody vouches") && why.contains(said), "{why}");
    }
    let memory = crate::fixture::in_memory();
    let nobody = ToolCall { voucher: None, ..call };
    assert_eq!(memory.bus.tool_servers().vouched(&nobody), Ok(()), "without keys nothing is demanded");
}
