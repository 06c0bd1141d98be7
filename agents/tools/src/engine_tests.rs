use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::patterns::ToolPatterns;
use crate::spec::{Permission, Tool, ToolFailure, ToolOutput};

/// A tool that does as it is told: answer, fail, panic, sleep, or talk too much.
struct Puppet {
    begun: Arc<AtomicBool>,
    dropped: Arc<AtomicBool>,
}

struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl Tool for Puppet {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "test.puppet",
            "Does as it is told.",
            json!({
                "type": "object",
                "properties": {"act": {"type": "string"}, "times": {"type": "integer", "maximum": 100_000}},
                "required": ["act"],
                "additionalProperties": false
            }),
        )
        .needing(Permission::Execute)
        .with_timeout(Duration::from_secs(1))
    }

    async fn call(&self, _: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let _flag = Flag(Arc::clone(&self.dropped));
        self.begun.store(true, Ordering::SeqCst);
        match args["act"].as_str().unwrap() {
            "answer" => Ok(ToolOutput::text("done").with_data(json!({"n": 1}))),
            "fail" => Err(ToolFailure::Failed("no luck".to_owned())),
            "away" => Err(ToolFailure::Unavailable("not now".to_owned())),
            "panic" => panic!("boom {}", 7),
            "sleep" => std::future::pending().await,
            "talk" => Ok(ToolOutput::text("ü".repeat(40_000)).with_data(json!("x".repeat(100_000)))),
            other => Err(ToolFailure::InvalidArguments(format!("no act {other}"))),
        }
    }
}

fn engine() -> (ToolEngine, Arc<AtomicBool>) {
    let (engine, _, dropped) = watched_engine();
    (engine, dropped)
}

/// An engine, whether its tool has begun, and whether it was dropped.
fn watched_engine() -> (ToolEngine, Arc<AtomicBool>, Arc<AtomicBool>) {
    let (begun, dropped) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let registry = ToolRegistry::new();
    registry.register(Arc::new(Puppet { begun: Arc::clone(&begun), dropped: Arc::clone(&dropped) })).unwrap();
    // Each call for itself.
    let retries = ToolRetries { tries: 0, ..ToolRetries::default() };
    let breaker = ToolBreakerRules { failures: 0, ..ToolBreakerRules::default() };
    let rules = EngineRules { retries, breaker, ..EngineRules::default() };
    (ToolEngine::with_rules(Arc::new(registry), rules), begun, dropped)
}

fn allowed() -> ToolContext {
    ToolContext::new("run", "1-2").granting([Permission::Execute])
}

#[tokio::test]
async fn every_ending_becomes_a_result() {
    let (engine, _) = engine();
    for (act, status, said, transient) in [
        ("answer", ToolStatus::Success, "done", false),
        ("fail", ToolStatus::Error, "no luck", false),
        ("away", ToolStatus::Error, "not now", true),
        ("panic", ToolStatus::Error, "boom 7", false),
        ("sleep", ToolStatus::Timeout, "1000 ms", true),
        ("nothing", ToolStatus::Refused, "no act nothing", false),
    ] {
        let result = engine.call("test.puppet", json!({"act": act}), &allowed()).await;
        assert_eq!((result.status, result.transient), (status, transient), "{act}: {result:?}");
        assert!(result.content.contains(said), "{act}: {result:?}");
    }
    let answer = engine.call("test_puppet", json!({"act": "answer"}), &allowed()).await;
    assert_eq!(answer.data, Some(json!({"n": 1})));
}

#[tokio::test]
async fn an_unknown_tool_names_what_there_is() {
    let (engine, _) = engine();
    let result = engine.call("test.pupet", json!({}), &allowed()).await;
    assert_eq!(result.status, ToolStatus::Refused);
    assert!(result.content.contains("Did you mean `test.puppet`?"), "{result:?}");
    assert!(result.content.contains("Available: test.puppet."), "{result:?}");
}

#[tokio::test]
async fn bad_arguments_name_the_path_and_show_the_schema() {
    let (engine, _) = engine();
    for (args, said) in [
        (json!(null), "\"act\" is a required property"),
        (json!({"act": 7}), "/act: 7 is not of type"),
        (json!({"act": "answer", "times": 100_001}), "/times: 100001"),
        (json!({"act": "answer", "extra": 1}), "extra"),
        (json!([1]), "(the arguments):"),
        (json!("text"), "(the arguments):"),
    ] {
        let result = engine.call("test.puppet", args.clone(), &allowed()).await;
        assert_eq!(result.status, ToolStatus::Refused, "{args}");
        assert!(result.content.contains(said), "{args}: {}", result.content);
        assert!(result.content.contains("\"required\":[\"act\"]"), "{args}: {}", result.content);
    }
}

#[tokio::test]
async fn a_missing_permission_refuses_the_call_before_it_runs() {
    let (engine, dropped) = engine();
    let result = engine.call("test.puppet", json!({"act": "answer"}), &ToolContext::new("run", "1")).await;
    assert_eq!(result.status, ToolStatus::Refused);
    assert!(result.content.contains("execute"), "{result:?}");
    assert!(!dropped.load(Ordering::SeqCst), "the tool ran");
}

/// A tool that nobody may call until settings allow it.
struct Dangerous;

#[async_trait]
impl Tool for Dangerous {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("test.dangerous", "Is off.", json!({"type": "object"})).until_allowed()
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::text("done"))
    }
}

#[tokio::test]
async fn what_is_off_is_called_only_where_settings_allow_it_and_is_not_told_of() {
    let registry = Arc::new(ToolRegistry::new());
    registry.register(Arc::new(Dangerous)).unwrap();
    for (allow, is_on) in [("", false), ("other.*", false), ("test.*", true), ("test.dangerous", true)] {
        let allow = ToolPatterns::new(vec![allow.to_owned()]);
        let rules = EngineRules { allow, ..EngineRules::default() };
        let engine = ToolEngine::with_rules(Arc::clone(&registry), rules);
        let result = engine.call("test_dangerous", json!({}), &ToolContext::new("run", "1")).await;
        assert_eq!(result.is_success(), is_on, "{result:?}");
        assert_eq!(result.content.contains("tool.allow"), !is_on, "{result:?}");
        let told = engine.call("nothing.like.it", json!({}), &ToolContext::new("run", "1")).await;
        assert_eq!(told.content.contains("test.dangerous"), is_on, "{told:?}");
    }
}

#[tokio::test]
async fn long_output_is_cut_at_a_character_and_marked() {
    let (engine, _) = engine();
    let result = engine.call("test.puppet", json!({"act": "talk"}), &allowed()).await;
    assert_eq!(result.status, ToolStatus::Success);
    assert!(result.truncated && result.data.is_none());
    assert!(result.content.len() < 33 * 1024);
    assert!(result.content.contains("[cut: 32768 of 80000 bytes shown"), "{}", &result.content[32_760..]);
}

#[tokio::test]
async fn huge_arguments_are_refused_before_validation() {
    let (engine, _) = engine();
    let result = engine.call("test.puppet", json!({"act": "x".repeat(2_000_000)}), &allowed()).await;
    assert_eq!(result.status, ToolStatus::Refused);
    assert!(result.content.len() < 300, "{}", result.content.len());
}

#[tokio::test]
async fn stopping_the_task_gives_up_the_call_at_once() {
    let (engine, begun, dropped) = watched_engine();
    let ctx = allowed();
    let cancel = ctx.cancel.clone();
    let call = tokio::spawn(async move { engine.call("test.puppet", json!({"act": "sleep"}), &ctx).await });
    until(|| begun.load(Ordering::SeqCst)).await;
    cancel.cancel();
    let result = tokio::time::timeout(Duration::from_secs(5), call).await.unwrap().unwrap();
    assert_eq!(result.status, ToolStatus::Refused);
    until(|| dropped.load(Ordering::SeqCst)).await;
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_stopped() {
    let (engine, begun, dropped) = watched_engine();
    let ctx = allowed();
    tokio::select! {
        ended = engine.call("test.puppet", json!({"act": "sleep"}), &ctx) => panic!("{ended:?}"),
        () = until(|| begun.load(Ordering::SeqCst)) => {}
    }
    until(|| dropped.load(Ordering::SeqCst)).await;
}

async fn until(condition: impl Fn() -> bool) {
    for _ in 0..500 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the condition did not come true within five seconds");
}
