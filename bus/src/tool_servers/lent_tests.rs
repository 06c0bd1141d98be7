use muster_shared::flow::TaskRights;
use muster_shared::wire::lending::ToolLease;
use muster_shared::wire::tool_server::{ToolCall, ToolReply};
use serde_json::json;

use super::*;
use crate::bus::Bus;

const SOON: Duration = Duration::from_secs(5);

fn bus(name: &str) -> Bus {
    Bus::in_memory(&name.parse().unwrap())
}

fn request() -> LeaseRequest {
    let text = str::to_owned;
    LeaseRequest { run: text("r"), task: text("1"), tool: text("sql"), spec: text("s") }
}

fn call(lease: &str) -> LentCall {
    let call = json!({ "run": "r", "task": "1", "tool": "sql", "spec": "s", "arguments": {}, "key": "k", "patience_ms": 1 });
    let call: ToolCall = serde_json::from_value(call).unwrap();
    assert_eq!(call.rights, TaskRights::default());
    LentCall { lease: lease.to_owned(), call }
}

fn lease(borrower: &ToolCaller) -> ToolLease {
    let request = request();
    ToolLease {
        lease: "researcher-1.1".to_owned(),
        tool: request.tool,
        lender: "researcher-1".parse().unwrap(),
        borrower: borrower.agent.clone(),
        role: borrower.role.clone(),
        run: request.run,
        task: request.task,
        left_ms: 1,
        calls: 0,
        running: 0,
    }
}

#[tokio::test]
async fn a_lender_is_asked_by_its_process_and_knows_who_asks() {
    let borrower = bus("worker-1");
    let lender = borrower.as_agent(&"researcher-1".parse().unwrap());
    let mut requests = lender.tool_servers().serve_lent(&Role::Researcher).await.unwrap();
    tokio::spawn(async move {
        let mut from_whom = None;
        while let Some(ToolRequest::Lending(request)) = requests.next().await {
            match request {
                LendingRequest::Lease { from, request, reply } => {
                    let lease = request.map_or_else(|why| why, |wanted| format!("{}.1", wanted.tool));
                    from_whom = Some(from);
                    reply.tell(&LeaseReply::Granted { lease, lasts_ms: 1 }).await.unwrap();
                }
                LendingRequest::Use { call, reply, .. } => {
                    let said = match call.map(|call| call.lease).as_deref() {
                        Ok("sql.1") => LentReply::Reply(ToolReply::Busy),
                        other => LentReply::NoLease(format!("{other:?}")),
                    };
                    reply.tell(&said).await.unwrap();
                }
                LendingRequest::Leases(reply) => {
                    let leases = from_whom.iter().map(lease).collect();
                    reply.tell(&ToolLeases { leases }).await.unwrap();
                }
                LendingRequest::Return { from, .. } => assert_eq!(Some(from), from_whom.take()),
                LendingRequest::Revoke { reply, .. } => reply.tell(&ToolLeases::default()).await.unwrap(),
            }
        }
    });
    let (door, process) = (borrower.tool_servers(), "researcher-1".parse().unwrap());
    let of = Lender { server: "lent-researcher", process: &process };
    let granted = door.lease(of, &Role::Worker, &request()).await.unwrap();
    assert_eq!(granted, LeaseReply::Granted { lease: "sql.1".to_owned(), lasts_ms: 1 });
    let used = door.use_lent(of, &Role::Worker, &call("sql.1"), SOON).await;
    assert_eq!(used, Ok(LentReply::Reply(ToolReply::Busy)));
    let other = door.use_lent(of, &Role::Worker, &call("other"), SOON).await.unwrap();
    assert!(matches!(other, LentReply::NoLease(_)), "{other:?}");
    let known = door.leases(of).await.unwrap().leases;
    assert_eq!((known[0].borrower.as_str(), &known[0].role), ("worker-1", &Role::Worker));
    door.give_back(of, &Role::Worker, &LeaseName { lease: "sql.1".to_owned() }).await.unwrap();
    assert_eq!(door.revoke(of, &Revocation::default()).await, Ok(ToolLeases::default()));
    assert_eq!(door.leases(of).await, Ok(ToolLeases::default()), "it was given back");
    let gone = "researcher-2".parse().unwrap();
    let nobody = door.lease(Lender { process: &gone, ..of }, &Role::Worker, &request()).await;
    assert_eq!(nobody, Err(ToolServerFailure::Nobody("lent-researcher".to_owned())));
}

#[tokio::test]
async fn a_lease_of_any_length_is_not_kept() {
    let borrower = bus("worker-1");
    let backend = std::sync::Arc::clone(&borrower.core.backend);
    let mut asked = backend.serve("tool.lent-liar.lease.liar-1.*.*", "liar-1").await.unwrap();
    tokio::spawn(async move {
        while let Some(Incoming { reply, .. }) = asked.next().await {
            let lease = "x".repeat(MOST_LEASE_NAME + 1);
            let said = message(reply.unwrap(), &LeaseReply::Granted { lease, lasts_ms: 1 }).unwrap();
            backend.publish(said).await.unwrap();
        }
    });
    let process = "liar-1".parse().unwrap();
    let of = Lender { server: "lent-liar", process: &process };
    let answer = borrower.tool_servers().lease(of, &Role::Worker, &request()).await;
    assert!(matches!(answer, Err(ToolServerFailure::Garbage { .. })), "{answer:?}");
}
