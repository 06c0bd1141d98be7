use futures::StreamExt;
use muster_bus::Bus;
use muster_bus::tool_servers::{LendingRequest, ToolRequest};
use muster_shared::wire::tool_server::{ServedTool, ToolServerNotice, ToolSpecs};
use serde_json::json;
use tokio::sync::mpsc;

use super::*;

const SOON: Duration = Duration::from_secs(10);

fn tool() -> ServedTool {
    let tool = json!({ "name": "sql", "description": "Asks.", "parameters": { "type": "object" }, "pure": true, "uncertain": "repeat", "timeout_ms": 1_000 });
    serde_json::from_value(tool).unwrap()
}

/// What a lender that a test plays says to requests for leases, the first of them first; then it grants.
type Says = Vec<LeaseReply>;

/// What a borrower asked of whom: `lease`, `use`, `return`.
type Heard = mpsc::UnboundedReceiver<(String, &'static str)>;

struct Ground {
    borrowing: Arc<Borrowing>,
    heard: Heard,
}

/// Lenders of these names. A lease holds for one call, and is called by its number.
async fn ground(lenders: Vec<(&'static str, Says)>) -> Ground {
    let bus = Bus::in_memory(&"worker-1".parse().unwrap());
    let (tell, heard) = mpsc::unbounded_channel();
    let mut known = Lenders::new(bus.who().clone(), vec!["*".to_owned()]);
    for (name, mut says) in lenders {
        let process: AgentId = name.parse().unwrap();
        let specs = ToolSpecs { tools: vec![tool()] };
        let (server, digest) = ("lent-researcher".to_owned(), Some(specs.digest()));
        let notice = ToolServerNotice { server, process: process.clone(), digest };
        assert!(known.hear(&notice, Instant::now()) && known.learn(&notice, specs).is_empty());
        if name.ends_with("-gone") {
            continue;
        }
        let door = bus.as_agent(&process).tool_servers();
        let mut requests = door.serve_lent(&Role::Researcher).await.unwrap();
        let tell = tell.clone();
        tokio::spawn(async move {
            let (mut given, mut holds) = (0, None);
            while let Some(ToolRequest::Lending(request)) = requests.next().await {
                let say = |what| tell.send((name.to_owned(), what)).unwrap();
                match request {
                    LendingRequest::Lease { reply, .. } => {
                        say("lease");
                        let said = if says.is_empty() { None } else { Some(says.remove(0)) };
                        let said = said.unwrap_or_else(|| {
                            given += 1;
                            let lease = format!("{name}.{given}");
                            holds = Some(lease.clone());
                            LeaseReply::Granted { lease, lasts_ms: 1 }
                        });
                        reply.tell(&said).await.unwrap();
                    }
                    LendingRequest::Use { call, reply, .. } => {
                        say("use");
                        let LentCall { lease, call } = *call.unwrap();
                        let said = match holds.take() == Some(lease) {
                            true => {
                                let (status, content) = (ServedStatus::Success, name.to_owned());
                                let result = ServedResult { status, content, data: None };
                                LentReply::Reply(ToolReply::Done { key: call.key, result })
                            }
                            false => LentReply::NoLease("it has run out".to_owned()),
                        };
                        reply.tell(&said).await.unwrap();
                    }
                    LendingRequest::Return { .. } => say("return"),
                    LendingRequest::Leases(_) | LendingRequest::Revoke { .. } => {}
                }
            }
        });
    }
    let borrowing = Arc::new(Borrowing::new(bus.tool_servers(), Role::Worker, known));
    Ground { borrowing, heard }
}

fn call(task: &str) -> ToolCall {
    let call = json!({ "run": "r", "task": task, "tool": "sql", "spec": tool().digest(), "arguments": {}, "key": "k",
                       "patience_ms": 1_000 });
    serde_json::from_value(call).unwrap()
}

impl Ground {
    async fn called(&self) -> Result<ToolReply, ToolServerFailure> {
        self.borrowing.call("lent-researcher", &call("1"), SOON).await
    }

    fn heard(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).map(|(_, what)| what).collect()
    }
}

fn told(reply: Result<ToolReply, ToolServerFailure>) -> (ServedStatus, String) {
    match reply {
        Ok(ToolReply::Done { result, .. }) => (result.status, result.content),
        other => unreachable!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lease_is_asked_for_once_again_when_it_has_run_out_and_given_back_at_the_end() {
    let mut f = ground(vec![("researcher-1", Vec::new())]).await;
    assert_eq!(told(f.called().await).0, ServedStatus::Success);
    assert_eq!(f.borrowing.owner(&call("1"), "lent-researcher.sql"), Some("researcher-1".parse().unwrap()));
    assert_eq!(f.heard(), ["lease", "use"]);
    assert_eq!(told(f.called().await).0, ServedStatus::Success);
    assert_eq!(f.heard(), ["use", "lease", "use"], "the lease had run out");
    f.borrowing.task_ended("r", "2");
    f.borrowing.task_ended("r", "1");
    let said = tokio::time::timeout(SOON, f.heard.recv()).await.unwrap();
    assert_eq!(said, Some(("researcher-1".to_owned(), "return")));
    assert_eq!(f.borrowing.owner(&call("1"), "lent-researcher.sql"), None);
}

#[tokio::test]
async fn who_has_none_left_or_is_gone_is_passed_over_and_what_one_refuses_is_not_had_from_another() {
    let f = ground(vec![("researcher-gone", Vec::new()), ("researcher-2", Vec::new())]).await;
    assert_eq!(told(f.called().await), (ServedStatus::Success, "researcher-2".to_owned()));
    let full = || vec![LeaseReply::Full];
    let f = ground(vec![("researcher-1", full()), ("researcher-2", full())]).await;
    assert_eq!(f.called().await, Ok(ToolReply::Busy), "nobody has one left");
    assert_eq!(told(f.called().await).0, ServedStatus::Success, "later there is one");
    let refuses = || vec![LeaseReply::Refused { why: "it was revoked".to_owned() }];
    let mut f = ground(vec![("researcher-1", refuses()), ("researcher-2", refuses())]).await;
    let (status, words) = told(f.called().await);
    assert!(status == ServedStatus::Refused && words.contains("it was revoked"), "{words}");
    assert_eq!(f.heard(), ["lease"], "the other one is not asked");
}

#[tokio::test]
async fn where_nobody_lends_nothing_is_begun() {
    let f = ground(vec![("researcher-gone", Vec::new())]).await;
    assert_eq!(f.called().await, Err(ToolServerFailure::Nobody("lent-researcher".to_owned())));
    let f = ground(Vec::new()).await;
    assert_eq!(f.called().await, Err(ToolServerFailure::Nobody("lent-researcher".to_owned())));
}

#[tokio::test]
async fn a_lender_that_gives_leases_which_never_hold_costs_a_few_words() {
    let never = |number: usize| LeaseReply::Granted { lease: format!("lie.{number}"), lasts_ms: u64::MAX };
    let mut f = ground(vec![("researcher-1", (0..100).map(never).collect())]).await;
    let (status, words) = told(f.called().await);
    assert!(status == ServedStatus::Refused && words.contains("it has run out"), "{words}");
    assert_eq!(f.heard().len(), 6);
}
