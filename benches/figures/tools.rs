//! What a call of a tool costs over the bus, beside the same call made directly; and what those cost that are carried out
//! at hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use muster_agents::tools::remote::RemoteTool;
use muster_agents::tools::{Tool, ToolContext, ToolEngine, ToolFailure, ToolOutput, ToolRegistry, ToolSpec};
use muster_bus::Bus;
use muster_bus::signatures::{Purpose, Signature};
use muster_shared::flow::rights::Statement;
use muster_shared::flow::{Budget, TaskRights, Voucher};
use muster_shared::ids::{Generation, Role, RunId, TaskId};
use muster_support::figures::{Aim, Figure, Measured};
use muster_support::model_server::{ModelServer, Reply, Script};
use muster_tool_server::{ToolServer, ToolServerSettings};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::at_hand;
use crate::print::median;
use crate::runs::{connect, fleet};

/// Calls that are made each way.
const CALLS: usize = 500;
/// Calls before that which are not counted.
const WARM_UP: usize = 50;

/// Gives back what it is given.
struct Echo;

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> ToolSpec {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        ToolSpec::new("echo", "Gives the text back.", schema)
    }

    async fn call(&self, _: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::text(args["text"].as_str().unwrap_or_default()))
    }
}

pub(crate) fn measure() -> Vec<Figure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = ModelServer::start(Script::answering(|_| Reply::text("")).keeping(0)).unwrap();
    let fleet = fleet(&server, &[]);
    let (direct, over) = runtime.block_on(async {
        let (agent, serving) = (connect(&fleet.url()).await, connect(&fleet.url()).await);
        let stop = CancellationToken::new();
        let remote = served(&agent, serving, &stop).await;
        let context = context(&agent);
        let direct = calls(Arc::new(Echo), "echo", &context).await;
        let over = calls(remote, "bench.echo", &context).await;
        stop.cancel();
        (direct, over)
    });
    let more = over.saturating_sub(direct);
    let mut figures = vec![
        Figure::new("a call of a tool over the bus", Measured::time(over))
            .against("made directly", Measured::time(direct)),
        Figure::new("a call of a tool over the bus, over the same made directly", Measured::time(more))
            .aiming(Aim::AtMost(3.0)),
    ];
    figures.extend(at_hand::measure());
    figures
}

/// The tool as an agent has it from a server in this process, on a connection of its own.
async fn served(agent: &Bus, serving: Bus, stop: &CancellationToken) -> Arc<dyn Tool> {
    let door = agent.tool_servers();
    let mut notices = door.notices().await.unwrap();
    let (_, offered) = watch::channel(vec![Arc::new(Echo) as Arc<dyn Tool>]);
    let server = ToolServer::new(serving, "bench", ToolServerSettings::default(), Arc::default());
    tokio::spawn(server.begin(offered, stop.clone()).await.unwrap());
    let notice = notices.next().await.unwrap();
    let tool = door.specs(&notice).await.unwrap().tools.remove(0);
    Arc::new(RemoteTool::new("bench".to_owned(), tool, Role::Worker, door))
}

/// What a task has that may use everything, with the word of the fleet's owner for it.
fn context(bus: &Bus) -> ToolContext {
    let (run, task) = (RunId::from_uuid(Uuid::now_v7()), TaskId::Leaf("1".parse().unwrap()));
    let (generation, rights, budget) = (Generation(1), TaskRights::default(), Budget::UNLIMITED);
    let said = Statement { run, task: &task, generation, rights: &rights, budget: &budget };
    let signature = bus.signatures().sign(Purpose::Rights, &said.bytes());
    let mut context = ToolContext::new(run.to_string(), task.to_string());
    let voucher = |signature: Signature| Voucher { generation, budget, signature: signature.to_string() };
    context.voucher = signature.map(voucher).map(Arc::new);
    context
}

/// The median of calls of a tool by the engine.
async fn calls(tool: Arc<dyn Tool>, name: &str, context: &ToolContext) -> Duration {
    let registry = ToolRegistry::new();
    registry.register(tool).unwrap();
    let engine = ToolEngine::new(Arc::new(registry));
    let mut times = Vec::with_capacity(CALLS);
    for n in 0..WARM_UP + CALLS {
        let context = context.clone().under_key(format!("{name}/{n}"));
        let begun = Instant::now();
        let result = engine.call(name, json!({ "text": "word" }), &context).await;
        assert!(result.is_success(), "{result:?}");
        if n >= WARM_UP {
            times.push(begun.elapsed());
        }
    }
    median(&mut times)
}
