//! What one question to a model costs its asker: by our own means, and by the client library, in one run.
//!
//! `cargo bench -p muster-agents --bench request`. The library is reached by a name that ends in how much the model is
//! to think; protocol and request are the same otherwise. The server is on a thread of its own and not counted.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use muster_agents::model::chat::{
    ChatMessage, ChatModel as _, ChatRequest, ToolCall, ToolDecl, ignore_deltas,
};
use muster_agents::model::provider::{CallLimits, Provider, ProviderClient};
use muster_agents::model::target::{ModelProvider, ModelTarget};
use muster_support::model_server::{ModelServer, Reply, Script};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;

const ROUNDS: u32 = 5;
const CALLS: u32 = 100;

/// A worker's request after ten steps: 25 tools, 20 KB of schemas.
fn request() -> ChatRequest {
    let properties: serde_json::Map<_, _> = (0..6)
        .map(|at| {
            (
                format!("field_{at}"),
                json!({"type": "string", "minLength": 1, "description": "what it is for"}),
            )
        })
        .collect();
    let parameters = json!({"type": "object", "properties": properties, "required": ["field_0"]});
    let tools: Vec<ToolDecl> = (0..25)
        .map(|at| ToolDecl {
            name: format!("tool_{at}"),
            description: "Does what it does, and when to use it. ".repeat(5),
            parameters: parameters.clone(),
        })
        .collect();
    let mut messages =
        vec![ChatMessage::user("What is to be done, and all that is known for it. ".repeat(60)).into()];
    for at in 1..=10 {
        let id = format!("step-{at}");
        let call = ToolCall::new(&id, "tool_1", json!({"field_0": "a question", "field_1": at}));
        messages.push(ChatMessage::calls("Why this is the next step.", vec![call]).into());
        messages.push(ChatMessage::tool_result(id, "What was \"found\".\n".repeat(40)).into());
    }
    let system = "Who the agent is and how it works. ".repeat(80);
    ChatRequest { system: system.as_str().into(), messages, tools: tools.into(), ..ChatRequest::default() }
}

/// CPU time of this thread.
fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
    let micros =
        |time: nix::sys::time::TimeVal| u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap();
    Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time()))
}

async fn cost(model: &Provider, request: &ChatRequest) -> Duration {
    let begun = used();
    for _ in 0..CALLS {
        model.ask(request, &mut ignore_deltas).await.unwrap();
    }
    (used() - begun) / CALLS
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let reply = Reply::text("An answer of some sentences. ".repeat(10)).with_pieces(20);
    let server = ModelServer::start(Script::new().otherwise(reply).keeping(0)).unwrap();
    let client = ProviderClient::default();
    let model = |name: &str| {
        let target = ModelTarget {
            provider: ModelProvider::Anthropic,
            model: name.to_owned(),
            endpoint: Some(format!("{}/v1/", server.url()).parse().unwrap()),
            key: None,
        };
        Provider::new(target, CallLimits::default(), client.clone()).unwrap()
    };
    let (own, library) = (model("house"), model("house-low"));
    let request = request();
    for round in 0..=ROUNDS {
        let (own, library) = (cost(&own, &request).await, cost(&library, &request).await);
        // The first round warms up.
        if round > 0 {
            println!(
                "own {own:>9.1?}  library {library:>9.1?}  ratio {:.2}",
                own.as_secs_f64() / library.as_secs_f64()
            );
        }
    }
}
