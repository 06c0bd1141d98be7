//! What our side of a call costs: the same call of the same server by a bare rmcp client, by a tool, and by the engine.
//!
//! `cargo bench -p muster-mcp`; needs python3.
#![allow(clippy::expect_used, clippy::print_stdout, clippy::panic, clippy::print_stderr)]

#[path = "../tests/suite/common/mod.rs"]
mod common;

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Scripted, context, tool};
use muster_mcp::{McpServer, Reached};
use muster_tools::{ToolEngine, ToolRegistry};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::json;
use tokio::process::{Child, Command};

/// Calls of each kind. They take turns, so that the machine is the same to all.
const CALLS: usize = 1_000;

struct Bare {
    client: RunningService<RoleClient, ()>,
    _process: Child,
}

async fn bare(scripted: &Scripted) -> Bare {
    let Reached::Child(command) = &scripted.config.reached else { panic!("a child") };
    let mut process = Command::new(&command.command)
        .args(&command.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let (output, input) = (process.stdout.take().expect("output"), process.stdin.take().expect("input"));
    let client = serve_client((), AsyncRwTransport::new_client(output, input)).await.expect("a client");
    Bare { client, _process: process }
}

async fn timed(call: impl Future<Output = ()>) -> Duration {
    let begun = Instant::now();
    call.await;
    begun.elapsed()
}

fn told(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100];
    println!("{what:34} median {:7.1?}   p99 {:7.1?}", at(50), at(99));
    at(50)
}

async fn measure(scripted: &Scripted, server: &McpServer) {
    let bare = bare(scripted).await;
    let echo = tool(server, "echo");
    let registry = ToolRegistry::new();
    for tool in server.tools() {
        registry.register(tool).expect("it is registered");
    }
    let engine = ToolEngine::new(Arc::new(registry));
    let (ctx, args) = (context(), json!({"text": "hello"}));
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..CALLS + 50 {
        let params =
            CallToolRequestParams::new("echo").with_arguments(args.as_object().cloned().expect("an object"));
        let took = [
            timed(async { drop(bare.client.call_tool(params).await.expect("an answer")) }).await,
            timed(async { drop(echo.call(&ctx, args.clone()).await.expect("an answer")) }).await,
            timed(async { assert!(engine.call("scripted.echo", args.clone(), &ctx).await.is_success()) })
                .await,
        ];
        // The first ones warm up what is made on first use.
        if round >= 50 {
            times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
        }
    }
    let [bare, by_tool, by_engine] = times;
    let bare = told("a bare rmcp client", bare);
    let by_tool = told("McpTool", by_tool);
    let by_engine = told("the engine with McpTool", by_engine);
    println!(
        "over the bare call: McpTool {:+.1} µs, engine {:+.1} µs",
        over(by_tool, bare),
        over(by_engine, bare)
    );
}

fn over(this: Duration, bare: Duration) -> f64 {
    (this.as_secs_f64() - bare.as_secs_f64()) * 1e6
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let Some(scripted) = Scripted::new(&[]) else { return };
        let server = scripted.start().await;
        measure(&scripted, &server).await;
        server.stop().await;
    });
}
