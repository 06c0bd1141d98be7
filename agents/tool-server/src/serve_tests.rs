use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use muster_bus::{DecisionSeen, Observer, RunProgress};
use muster_shared::flow::{Form, Hook, Ruling, TaskRights};
use muster_shared::ids::{Role, RunId, Seq};
use muster_shared::run::{AgentEvent, AgentKey};
use muster_shared::wire::TraceContext;
use muster_shared::wire::tool_question::{CallAnswer, PersonQuestion, ToolAnswer};
use muster_shared::wire::tool_server::{ServedTool, ToolTicket};
use muster_tools::{ToolFailure, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::*;

/// How long anything may take that is waited for.
const SOON: Duration = Duration::from_secs(10);

/// Counts its calls, waits as long as it is told, and says what it was given.
struct Counts(Arc<AtomicUsize>);

#[async_trait]
impl Tool for Counts {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("count", "Counts.", json!({ "type": "object" })).with_side_effects()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let millis = args["wait_ms"].as_u64().unwrap_or_default();
        sleep(Duration::from_millis(millis)).await;
        if let (Some(text), Some(asker)) = (args["asks"].as_str(), &ctx.asker) {
            let said = asker.ask(question(text)).await;
            return Ok(ToolOutput::text(format!("{said:?}")));
        }
        if args["fails"] == true {
            return Err(ToolFailure::Unavailable("not now".to_owned()));
        }
        Ok(ToolOutput::text(format!("called under {}", ctx.idempotency_key.clone().unwrap_or_default())))
    }
}

/// Notes the calls that it is told of.
#[derive(Default)]
struct Notes(Mutex<Vec<(String, ServedStatus)>>);

impl Observer for Notes {
    fn decided(&self, _: RunId, _: Seq, _: &DecisionSeen) {}
    fn progressed(&self, _: RunId, _: RunProgress) {}
    fn left(&self, _: RunId) {}
    fn address(&self) -> String {
        String::new()
    }
    fn reported(&self, _: RunId, _: &AgentKey, _: &AgentEvent, _: Option<&TraceContext>) {}
    fn judged(&self, _: Hook, _: Ruling, _: Duration) {}
    fn served(&self, tool: &str, status: ServedStatus, _: Duration) {
        self.0.lock().unwrap().push((tool.to_owned(), status));
    }
}

fn question(text: &str) -> PersonQuestion {
    PersonQuestion { text: text.to_owned(), form: Form::Values(json!({ "type": "object" })) }
}

struct Served {
    agent: Bus,
    tool: ServedTool,
    calls: Arc<AtomicUsize>,
    stop: CancellationToken,
    offer: watch::Sender<Vec<Arc<dyn Tool>>>,
}

async fn served(settings: ToolServerSettings) -> Served {
    observed(settings, None).await
}

async fn observed(settings: ToolServerSettings, observer: Option<Arc<dyn Observer>>) -> Served {
    let agent = Bus::in_memory(&"worker-1".parse().unwrap());
    let bus = agent.as_agent(&"tools-sums-1".parse().unwrap()).observed_by(observer);
    let calls = Arc::new(AtomicUsize::new(0));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Counts(Arc::clone(&calls)))];
    let (offer, offered) = watch::channel(tools);
    let mut notices = agent.tool_servers().notices().await.unwrap();
    let (server, stop) = (ToolServer::new(bus, "sums", settings, Arc::default()), CancellationToken::new());
    tokio::spawn(server.begin(offered, stop.clone()).await.unwrap());
    let notice = timeout(SOON, notices.next()).await.unwrap().unwrap();
    let tool = agent.tool_servers().specs(&notice).await.unwrap().tools.remove(0);
    Served { agent, tool, calls, stop, offer }
}

impl Served {
    fn made(&self, key: &str, arguments: Value) -> ToolCall {
        let call = json!({ "run": "r", "task": "1", "tool": "count", "spec": self.tool.digest(), "arguments": {}, "key": key,
            "patience_ms": 60_000 });
        ToolCall { arguments, ..serde_json::from_value(call).unwrap() }
    }

    async fn call(&self, call: &ToolCall) -> ToolReply {
        self.agent.tool_servers().call("sums", &Role::Worker, call, SOON).await.unwrap()
    }

    fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn content(reply: ToolReply) -> (ServedStatus, String) {
    let ToolReply::Done { result, .. } = reply else { unreachable!("{reply:?}") };
    (result.status, result.content)
}

#[tokio::test]
async fn the_same_key_is_carried_out_once_and_answered_the_same_to_whoever_asks() {
    let f = served(ToolServerSettings::default()).await;
    let call = f.made("r/1/1/2", json!({ "n": 1 }));
    let first = content(f.call(&call).await);
    assert_eq!(first, (ServedStatus::Success, "called under r/1/1/2".to_owned()));
    let other = f.agent.as_agent(&"worker-2".parse().unwrap());
    let again = other.tool_servers().call("sums", &Role::Worker, &call, SOON).await.unwrap();
    assert_eq!((content(again), f.count()), (first, 1), "who goes on after a death");
    f.call(&f.made("r/1/1/2", json!({ "n": 2 }))).await;
    assert_eq!(f.count(), 2, "another call under the same key is another call");
    let failing = f.made("r/1/1/3", json!({ "fails": true }));
    for _ in 0..2 {
        assert_eq!(content(f.call(&failing).await).0, ServedStatus::Unavailable);
    }
    assert_eq!(f.count(), 4, "what was not done may be asked for anew");
}

#[tokio::test]
async fn whoever_looks_on_is_told_of_each_call_that_was_carried_out() {
    let notes = Arc::new(Notes::default());
    let f = observed(ToolServerSettings::default(), Some(notes.clone())).await;
    let call = f.made("k", json!({}));
    for _ in 0..2 {
        assert_eq!(content(f.call(&call).await).0, ServedStatus::Success);
    }
    f.call(&f.made("l", json!({ "fails": true }))).await;
    let wanted = [ServedStatus::Success, ServedStatus::Unavailable];
    assert_eq!(*notes.0.lock().unwrap(), wanted.map(|status| ("sums.count".to_owned(), status)));
}

#[tokio::test]
async fn a_long_call_is_waited_for_and_done_once_however_many_wait() {
    let f = served(ToolServerSettings::default()).await;
    let call = f.made("k", json!({ "wait_ms": 2_500 }));
    let (one, two) = tokio::join!(f.call(&call), f.call(&call));
    let ToolReply::Running { ticket, process, .. } = one else { unreachable!("{one:?}") };
    assert!(matches!(two, ToolReply::Running { .. }));
    let asked = ToolTicket { ticket };
    let door = f.agent.tool_servers();
    let ended = loop {
        match door.wait("sums", &process, &Role::Worker, &asked, SOON).await.unwrap() {
            ToolReply::Running { .. } => {}
            ended => break ended,
        }
    };
    assert_eq!((content(ended).0, f.count()), (ServedStatus::Success, 1));
    let strange = ToolTicket { ticket: "strange".to_owned() };
    let unknown = door.wait("sums", &process, &Role::Worker, &strange, SOON).await;
    assert_eq!(unknown, Ok(ToolReply::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_server_with_its_hands_full_says_so_and_one_whose_call_nobody_waits_for_is_free_again() {
    let f = served(ToolServerSettings { at_once: 1, ..ToolServerSettings::default() }).await;
    let long = f.made("long", json!({ "wait_ms": 600_000 }));
    assert!(matches!(f.call(&long).await, ToolReply::Running { .. }));
    assert_eq!(f.call(&f.made("next", json!({}))).await, ToolReply::Busy);
    let (door, ticket) = (f.agent.tool_servers(), ToolTicket { ticket: long.ticket() });
    let thief = f.agent.as_agent(&"thief-1".parse().unwrap());
    thief.tool_servers().cancel("sums", &Role::Worker, &ticket).await.unwrap();
    assert_eq!(f.call(&f.made("next", json!({}))).await, ToolReply::Busy, "no stranger gives it up");
    door.cancel("sums", &Role::Worker, &ticket).await.unwrap();
    let free = timeout(SOON, async {
        while f.call(&f.made("next", json!({}))).await == ToolReply::Busy {
            sleep(LOOK).await;
        }
    });
    free.await.unwrap();
}

#[tokio::test]
async fn a_tool_that_is_not_the_one_that_the_agent_knows_is_not_called() {
    let f = served(ToolServerSettings::default()).await;
    let known = f.made("k", json!({}));
    assert_eq!(f.call(&ToolCall { spec: "another".to_owned(), ..known.clone() }).await, ToolReply::Changed);
    assert_eq!(f.call(&ToolCall { tool: "none".to_owned(), ..known.clone() }).await, ToolReply::Changed);
    let mut notices = f.agent.tool_servers().notices().await.unwrap();
    f.offer.send_replace(Vec::new());
    timeout(SOON, notices.next()).await.unwrap().unwrap();
    assert_eq!(f.call(&known).await, ToolReply::Changed, "it has it no more");
    assert_eq!(f.count(), 0);
    f.stop.cancel();
    let left = timeout(SOON, notices.next()).await.unwrap().unwrap();
    assert_eq!(left.digest, None, "it says that it leaves");
}

#[tokio::test]
async fn a_call_is_held_against_the_rights_of_its_task() {
    let f = served(ToolServerSettings::default()).await;
    let rights: TaskRights = serde_json::from_value(json!([
        { "by": "goal", "to": { "tools": ["calculator"] } }
    ]))
    .unwrap_or_default();
    assert!(!rights.is_open(), "the rights are read");
    let (status, words) = content(f.call(&ToolCall { rights, ..f.made("k", json!({})) }).await);
    assert_eq!((status, f.count()), (ServedStatus::Refused, 0), "{words}");
}

#[tokio::test]
async fn a_call_asks_whoever_waits_for_it_and_goes_on_with_the_answer_whoever_gives_it() {
    let f = served(ToolServerSettings::default()).await;
    let call = ToolCall { may_ask: true, ..f.made("k", json!({ "asks": "How much?" })) };
    let ToolReply::Asks { ticket, process, asked, .. } = f.call(&call).await else { unreachable!() };
    assert_eq!(asked.question, question("How much?"));
    // Another agent takes the task over: it makes the same call, and is asked the same.
    let other = f.agent.as_agent(&"worker-2".parse().unwrap()).tool_servers();
    let again = other.call("sums", &Role::Worker, &call, SOON).await.unwrap();
    let is_same = matches!(&again, ToolReply::Asks { asked: again, .. } if *again == asked);
    assert!(is_same && f.count() == 1, "{again:?}");
    let answer = |text: &str| {
        let answer = CallAnswer::Given { values: json!({ "said": text }) };
        let answered = QuestionAnswer { id: asked.id.clone(), answer };
        ToolAnswer { ticket: ticket.clone(), answered }
    };
    let thief = f.agent.as_agent(&"thief-1".parse().unwrap()).tool_servers();
    let stolen = thief.answer("sums", &process, &Role::Worker, &answer("nothing"), SOON).await.unwrap();
    assert!(matches!(stolen, ToolReply::Asks { .. }), "no stranger answers: {stolen:?}");
    let ended = other.answer("sums", &process, &Role::Worker, &answer("42"), SOON).await.unwrap();
    let (status, words) = content(ended);
    assert!(status == ServedStatus::Success && words.contains("42"), "{words}");
    assert_eq!(content(f.call(&call).await).1, words, "whoever asks again is told the same");
}

#[tokio::test]
async fn a_caller_that_answers_nothing_is_asked_nothing() {
    let f = served(ToolServerSettings::default()).await;
    let (_, words) = content(f.call(&f.made("k", json!({ "asks": "How much?" }))).await);
    assert!(words.contains("Decline"), "{words}");
}
