use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use muster_bus::tool_servers::Lender;
use muster_shared::ids::AgentId;
use muster_shared::wire::lending::LeaseName;
use muster_shared::wire::tool_server::{ToolCall, ToolReply, ToolTicket};
use muster_tools::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::*;
use muster_tools::LeaseSettings;

const SOON: Duration = Duration::from_secs(10);

/// Counts its calls, and waits as long as it is told.
struct Counts(Arc<AtomicUsize>);

#[async_trait]
impl Tool for Counts {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("count", "Counts.", json!({ "type": "object" })).with_side_effects()
    }

    async fn call(&self, _: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_millis(args["wait_ms"].as_u64().unwrap_or_default())).await;
        Ok(ToolOutput::text("counted"))
    }
}

struct Lent {
    worker: Bus,
    process: AgentId,
    spec: String,
    calls: Arc<AtomicUsize>,
}

async fn lent(leases: LeaseSettings) -> Lent {
    let worker = Bus::in_memory(&"worker-1".parse().unwrap());
    let process: AgentId = "researcher-1".parse().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Counts(Arc::clone(&calls)))];
    let mut notices = worker.tool_servers().notices().await.unwrap();
    let rules = LeaseRules { to: vec!["worker".to_owned()], leases };
    let bus = worker.as_agent(&process);
    let lender =
        ToolServer::lending(bus, Role::Researcher, rules, ToolServerSettings::default(), Arc::default());
    let (offer, offered) = watch::channel(tools);
    let serving = lender.begin(offered, CancellationToken::new()).await.unwrap();
    tokio::spawn(async move {
        serving.await;
        drop(offer);
    });
    let notice = timeout(SOON, notices.next()).await.unwrap().unwrap();
    assert_eq!(notice.server, "lent-researcher");
    let tools = worker.tool_servers().specs(&notice).await.unwrap().tools;
    Lent { worker, process, spec: tools[0].digest(), calls }
}

impl Lent {
    fn of(&self) -> Lender<'_> {
        Lender { server: "lent-researcher", process: &self.process }
    }

    async fn lease(&self, of: &Bus, task: &str) -> LeaseReply {
        let (run, tool) = ("r".to_owned(), "count".to_owned());
        let request = LeaseRequest { run, task: task.to_owned(), tool, spec: self.spec.clone() };
        of.tool_servers().lease(self.of(), &Role::Worker, &request).await.unwrap()
    }

    async fn granted(&self, of: &Bus, task: &str) -> String {
        match self.lease(of, task).await {
            LeaseReply::Granted { lease, .. } => lease,
            other => unreachable!("{other:?}"),
        }
    }

    fn call(&self, task: &str, key: &str, wait_ms: u64) -> ToolCall {
        let call = json!({ "run": "r", "task": task, "tool": "count", "spec": self.spec, "key": key,
                           "arguments": { "wait_ms": wait_ms }, "patience_ms": 60_000 });
        serde_json::from_value(call).unwrap()
    }

    async fn used(&self, by: &Bus, lease: &str, call: ToolCall) -> LentReply {
        let call = LentCall { lease: lease.to_owned(), call };
        by.tool_servers().use_lent(self.of(), &Role::Worker, &call, SOON).await.unwrap()
    }

    fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn content(reply: LentReply) -> (ServedStatus, String) {
    match reply {
        LentReply::Reply(ToolReply::Done { result, .. }) => (result.status, result.content),
        other => unreachable!("{other:?}"),
    }
}

#[tokio::test]
async fn nothing_is_done_without_a_lease_that_is_the_callers_own() {
    let f = lent(LeaseSettings::default()).await;
    let other = f.worker.as_agent(&"worker-2".parse().unwrap());
    let lease = f.granted(&f.worker, "1").await;
    for (by, lease, task) in
        [(&f.worker, "researcher-1.9", "1"), (&other, &*lease, "1"), (&f.worker, &*lease, "2")]
    {
        let refused = f.used(by, lease, f.call(task, "k", 0)).await;
        assert!(matches!(refused, LentReply::NoLease(_)), "{refused:?}");
    }
    let plain =
        f.worker.tool_servers().call("lent-researcher", &Role::Worker, &f.call("1", "k", 0), SOON).await;
    assert!(plain.is_err(), "no call without a lease is heard: {plain:?}");
    assert_eq!(f.count(), 0);
    assert_eq!(content(f.used(&f.worker, &lease, f.call("1", "k", 0)).await).0, ServedStatus::Success);
    f.worker
        .tool_servers()
        .give_back(f.of(), &Role::Worker, &LeaseName { lease: lease.clone() })
        .await
        .unwrap();
    let door = f.worker.tool_servers();
    let is_back = async {
        while !door.leases(f.of()).await.unwrap().leases.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, is_back).await.unwrap();
    let late = f.used(&f.worker, &lease, f.call("1", "k2", 0)).await;
    assert!(matches!(late, LentReply::NoLease(_)), "{late:?}");
    assert_eq!(f.count(), 1);
}

#[tokio::test]
async fn who_takes_a_task_over_has_the_same_answer_under_a_lease_of_his_own() {
    let f = lent(LeaseSettings::default()).await;
    let next = f.worker.as_agent(&"worker-2".parse().unwrap());
    let first = f.granted(&f.worker, "1").await;
    assert_eq!(content(f.used(&f.worker, &first, f.call("1", "r/1/1/2", 0)).await).1, "counted");
    let second = f.granted(&next, "1").await;
    assert_ne!(first, second);
    assert_eq!(content(f.used(&next, &second, f.call("1", "r/1/1/2", 0)).await).1, "counted");
    assert_eq!(f.count(), 1, "it was done once");
    let leases = f.worker.tool_servers().leases(f.of()).await.unwrap().leases;
    let told: Vec<_> =
        leases.iter().map(|lease| (lease.lease.clone(), lease.borrower.to_string(), lease.calls)).collect();
    assert_eq!(told, [(first, "worker-1".to_owned(), 1), (second, "worker-2".to_owned(), 1)]);
}

#[tokio::test]
async fn a_revocation_ends_the_call_that_runs_says_so_and_keeps_the_tool_back() {
    let f = lent(LeaseSettings::default()).await;
    let lease = f.granted(&f.worker, "1").await;
    let LentReply::Reply(ToolReply::Running { ticket, process, .. }) =
        f.used(&f.worker, &lease, f.call("1", "k", 600_000)).await
    else {
        unreachable!("it takes its time")
    };
    let door = f.worker.tool_servers();
    let asked = ToolTicket { ticket };
    let waiting = door.wait("lent-researcher", &process, &Role::Worker, &asked, SOON);
    let revoking = async {
        let which = Revocation { lease: Some(lease.clone()), ..Revocation::default() };
        door.revoke(f.of(), &which).await.unwrap()
    };
    let (ended, revoked) = tokio::join!(waiting, revoking);
    assert_eq!(revoked.leases.len(), 1);
    let ToolReply::Done { result, .. } = ended.unwrap() else { unreachable!("it has ended") };
    assert!(result.status == ServedStatus::Refused && result.content.contains("revoked"), "{result:?}");
    assert!(matches!(f.lease(&f.worker, "1").await, LeaseReply::Refused { why } if why.contains("revoked")));
    assert!(matches!(f.lease(&f.worker, "2").await, LeaseReply::Granted { .. }), "another task has it");
    assert_eq!(f.count(), 1);
}

#[tokio::test]
async fn a_lease_of_what_it_is_not_any_more_and_one_too_many_are_told() {
    let f = lent(LeaseSettings { most: 1, ..LeaseSettings::default() }).await;
    let request = LeaseRequest {
        run: "r".to_owned(),
        task: "1".to_owned(),
        tool: "count".to_owned(),
        spec: "another".to_owned(),
    };
    let door = f.worker.tool_servers();
    assert_eq!(door.lease(f.of(), &Role::Worker, &request).await, Ok(LeaseReply::Changed));
    f.granted(&f.worker, "1").await;
    assert_eq!(f.lease(&f.worker, "2").await, LeaseReply::Full);
    let request = LeaseRequest { spec: f.spec.clone(), ..request };
    let planner = door.lease(f.of(), &Role::Planner, &request).await.unwrap();
    assert!(matches!(planner, LeaseReply::Refused { .. }), "{planner:?}");
}
