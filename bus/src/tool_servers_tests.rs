use muster_shared::wire::tool_question::CallAnswer;
use muster_shared::wire::tool_server::{ServedResult, ServedStatus};
use serde_json::json;

use super::*;
use crate::bus::Bus;

const SOON: Duration = Duration::from_millis(200);

fn bus(name: &str) -> Bus {
    Bus::in_memory(&name.parse().unwrap())
}

fn specs() -> ToolSpecs {
    let add = json!({ "name": "add", "description": "Adds.", "parameters": { "type": "object" }, "pure": true, "uncertain": "repeat", "timeout_ms": 1_000 });
    ToolSpecs { tools: vec![serde_json::from_value(add).unwrap()] }
}

fn here(specs: &ToolSpecs) -> ToolServerNotice {
    let process = "tools-sums-1".parse().unwrap();
    ToolServerNotice { server: "sums".to_owned(), process, digest: Some(specs.digest()) }
}

fn call() -> ToolCall {
    let call = json!({ "run": "r", "task": "1", "tool": "add", "spec": specs().tools[0].digest(), "arguments": { "a": 1 },
        "key": "r/1/1/1", "patience_ms": 1_000 });
    serde_json::from_value(call).unwrap()
}

#[tokio::test]
async fn a_server_is_found_asked_what_it_has_and_called_and_knows_who_calls() {
    let agent = bus("worker-1");
    let server = agent.as_agent(&"tools-sums-1".parse().unwrap());
    let mut requests = server.tool_servers().serve("sums").await.unwrap();
    let mut notices = agent.tool_servers().notices().await.unwrap();
    let door = server.tool_servers();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            match request {
                ToolRequest::Who => door.announce(&here(&specs())).await.unwrap(),
                ToolRequest::Specs(asker) => asker.describe(&specs()).await.unwrap(),
                ToolRequest::Call { from, call, reply } => {
                    let (status, content) = (ServedStatus::Success, from.agent.to_string());
                    let result = ServedResult { status, content, data: None };
                    reply.answer(&ToolReply::Done { key: call.unwrap().key, result }).await.unwrap();
                }
                ToolRequest::Wait { reply, .. } => reply.answer(&ToolReply::Unknown).await.unwrap(),
                ToolRequest::Answer { from, answered, reply, .. } => {
                    let key = format!("{} {}", from.agent, answered.id);
                    let (status, content) = (ServedStatus::Success, String::new());
                    let result = ServedResult { status, content, data: None };
                    reply.answer(&ToolReply::Done { key, result }).await.unwrap();
                }
                ToolRequest::Cancel { .. } | ToolRequest::Lending(_) => return,
            }
        }
    });
    let door = agent.tool_servers();
    door.who().await.unwrap();
    let notice = notices.next().await.unwrap();
    assert_eq!(notice, here(&specs()));
    assert_eq!(door.specs(&notice).await.unwrap(), specs());
    let reply = door.call("sums", &Role::Worker, &call(), SOON).await.unwrap();
    let ToolReply::Done { key, result } = reply else { unreachable!("{reply:?}") };
    assert_eq!((key, result.content.as_str()), (call().key, "worker-1"));
    let ticket = ToolTicket { ticket: "t".to_owned() };
    let waited = door.wait("sums", &notice.process, &Role::Worker, &ticket, SOON).await;
    assert_eq!(waited, Ok(ToolReply::Unknown));
    let answered = QuestionAnswer { id: "q".to_owned(), answer: CallAnswer::declined("no") };
    let answer = ToolAnswer { ticket: "t".to_owned(), answered };
    let reply = door.answer("sums", &notice.process, &Role::Worker, &answer, SOON).await;
    assert!(matches!(&reply, Ok(ToolReply::Done { key, .. }) if key == "worker-1 q"), "{reply:?}");
    let gone = door.wait("sums", &"tools-sums-2".parse().unwrap(), &Role::Worker, &ticket, SOON).await;
    assert_eq!(gone, Err(ToolServerFailure::Nobody("sums".to_owned())));
    door.cancel("sums", &Role::Worker, &ticket).await.unwrap();
    let nobody = door.call("others", &Role::Worker, &call(), SOON).await;
    assert_eq!(nobody, Err(ToolServerFailure::Nobody("others".to_owned())));
}

#[tokio::test]
async fn what_is_no_answer_or_too_long_or_never_comes_is_told_and_no_name_of_ours_is_served() {
    let agent = bus("worker-1");
    let backend = Arc::clone(&agent.core.backend);
    let mut asked = backend.serve("tool.odd.call.*.*", "odd").await.unwrap();
    tokio::spawn(async move {
        let mut answers =
            [b"\xff {".to_vec(), b"{\"state\":\"odd\"}".to_vec(), vec![b' '; MOST_REPLY + 1]].into_iter();
        while let Some(Incoming { reply, .. }) = asked.next().await {
            let (Some(payload), Some(subject)) = (answers.next(), reply) else { continue };
            let message = Message { subject, headers: Headers::default(), payload: payload.into() };
            let _ = backend.publish(message).await;
        }
    });
    let door = agent.tool_servers();
    for _ in 0..3 {
        let answer = door.call("odd", &Role::Worker, &call(), SOON).await;
        let odd = matches!(answer, Err(ToolServerFailure::Garbage { .. } | ToolServerFailure::Silent { .. }));
        assert!(odd, "{answer:?}");
    }
    let silent = door.call("odd", &Role::Worker, &call(), SOON).await;
    assert!(matches!(silent, Err(ToolServerFailure::Silent { .. })), "{silent:?}");
    for name in ["corpus", "a.b", ">"] {
        assert!(door.serve(name).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_notice_in_anothers_name_or_of_any_length_is_not_heard() {
    let agent = bus("worker-1");
    let (door, backend) = (agent.tool_servers(), Arc::clone(&agent.core.backend));
    let mut notices = door.notices().await.unwrap();
    let honest = here(&specs());
    let told = |subject: &str, notice: &ToolServerNotice| message(subject.to_owned(), notice).unwrap();
    let long = ToolServerNotice { digest: Some("x".repeat(MOST_NOTICE)), ..honest.clone() };
    let ours = ToolServerNotice { server: "corpus".to_owned(), ..honest.clone() };
    for lie in
        [told("tool.other.here", &honest), told("tool.sums.here", &long), told("tool.corpus.here", &ours)]
    {
        backend.publish(lie).await.unwrap();
    }
    backend.publish(told("tool.sums.here", &honest)).await.unwrap();
    assert_eq!(notices.next().await.unwrap(), honest);
}
