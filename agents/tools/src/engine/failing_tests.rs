#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
//! What tools do that fail, hang or block, and what that costs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::patterns::ToolPatterns;
use crate::spec::{Permission, Tool, ToolFailure, ToolOutput, Uncertain};

type Act = dyn Fn(usize) -> Result<ToolOutput, ToolFailure> + Send + Sync;

/// A tool that does what it is told at each call, which are counted.
struct Scripted {
    spec: ToolSpec,
    calls: AtomicUsize,
    takes: Duration,
    act: Box<Act>,
}

impl Scripted {
    fn new(
        name: &str,
        act: impl Fn(usize) -> Result<ToolOutput, ToolFailure> + Send + Sync + 'static,
    ) -> Self {
        let spec = ToolSpec::new(name, "For tests.", json!({"type": "object"}));
        Self { spec, calls: AtomicUsize::new(0), takes: Duration::ZERO, act: Box::new(act) }
    }

    fn spec(self, change: impl Fn(ToolSpec) -> ToolSpec) -> Self {
        Self { spec: change(self.spec), ..self }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Tool for Scripted {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        (self.act)(call)
    }
}

fn away(_: usize) -> Result<ToolOutput, ToolFailure> {
    Err(ToolFailure::Unavailable("The line is dead.".to_owned()))
}

fn fine(_: usize) -> Result<ToolOutput, ToolFailure> {
    Ok(ToolOutput::text("fine"))
}

fn engine(rules: EngineRules, tools: &[&Arc<Scripted>]) -> ToolEngine {
    let registry = ToolRegistry::new();
    for tool in tools {
        registry.register(Arc::<Scripted>::clone(tool)).unwrap();
    }
    ToolEngine::with_rules(Arc::new(registry), rules)
}

fn quick() -> EngineRules {
    let retries = ToolRetries { pause: Duration::from_millis(1), ..ToolRetries::default() };
    EngineRules { retries, ..EngineRules::default() }
}

fn standing_in(of: &str, other: &str) -> EngineRules {
    EngineRules { alternatives: [(of.to_owned(), other.to_owned())].into(), ..quick() }
}

async fn call(engine: &ToolEngine, name: &str) -> ToolResult {
    engine.call(name, json!({}), &ToolContext::new("run", "1").granting([Permission::Network])).await
}

#[tokio::test]
async fn what_passes_is_tried_again_where_twice_is_as_good_as_once_and_nowhere_else() {
    let recovering = |call: usize| if call < 2 { away(call) } else { fine(call) };
    let effects = |spec: ToolSpec| spec.with_side_effects();
    let twice = |spec: ToolSpec| spec.with_side_effects().when_uncertain(Uncertain::Repeat);
    let (pure, once, repeated, stubborn) = (
        Arc::new(Scripted::new("pure", recovering)),
        Arc::new(Scripted::new("once", recovering).spec(effects)),
        Arc::new(Scripted::new("repeated", recovering).spec(twice)),
        Arc::new(Scripted::new("stubborn", |_| Err(ToolFailure::Failed("no".to_owned())))),
    );
    let engine = engine(quick(), &[&pure, &once, &repeated, &stubborn]);
    for (tool, status, calls) in [
        (&pure, ToolStatus::Success, 3),
        (&once, ToolStatus::Error, 1),
        (&repeated, ToolStatus::Success, 3),
        (&stubborn, ToolStatus::Error, 1),
    ] {
        let name = &tool.spec.name;
        let result = call(&engine, name).await;
        assert_eq!((result.status, tool.calls()), (status, calls), "{name}: {result:?}");
        assert_eq!(usize::try_from(result.tries), Ok(calls), "{name}");
    }
}

#[tokio::test]
async fn a_call_that_fails_every_time_says_how_often_it_was_tried_and_may_be_tried_later() {
    let tool = Arc::new(Scripted::new("a", away));
    let result = call(&engine(quick(), &[&tool]), "a").await;
    assert!(result.transient && result.content.ends_with("It was tried 3 times."), "{result:?}");
}

#[tokio::test]
async fn who_was_too_slow_has_twice_the_time_when_tried_again() {
    let slow = Scripted { takes: Duration::from_millis(300), ..Scripted::new("slow", fine) };
    let tool = Arc::new(slow.spec(|spec| spec.with_timeout(Duration::from_millis(100))));
    let result = call(&engine(quick(), &[&tool]), "slow").await;
    assert_eq!((result.status, result.tries), (ToolStatus::Success, 3), "{result:?}");
}

#[tokio::test]
async fn another_tool_answers_where_one_fails_for_good_and_says_so() {
    let (broken, other) = (
        Arc::new(Scripted::new("broken", |_| Err(ToolFailure::Failed("No luck.".to_owned())))),
        Arc::new(Scripted::new("other", fine)),
    );
    let engine = engine(standing_in("broken", "other"), &[&broken, &other]);
    let result = call(&engine, "broken").await;
    assert_eq!(result.answered_by.as_deref(), Some("other"));
    assert_eq!(result.content, "[`other` answered in place of `broken`: No luck.]\nfine");
}

#[tokio::test]
async fn nothing_stands_in_for_what_may_have_taken_effect_nor_what_is_off() {
    let other = Arc::new(Scripted::new("other", fine));
    let once = Arc::new(Scripted::new("once", away).spec(ToolSpec::with_side_effects));
    let result = call(&engine(standing_in("once", "other"), &[&once, &other]), "once").await;
    assert_eq!((result.status, other.calls()), (ToolStatus::Error, 0), "{result:?}");

    let off = Arc::new(Scripted::new("off", fine).spec(ToolSpec::until_allowed));
    let pure = Arc::new(Scripted::new("pure", away));
    for allow in [ToolPatterns::default(), ToolPatterns::new(vec!["off".to_owned()])] {
        let rules = EngineRules { allow, ..standing_in("pure", "off") };
        let is_on = rules.allow.mean("off");
        let result = call(&engine(rules, &[&pure, &off]), "pure").await;
        assert_eq!(result.is_success(), is_on, "{result:?}");
    }
}

#[tokio::test]
async fn a_tool_that_keeps_failing_is_left_alone_until_one_call_finds_it_back() {
    let back = |call: usize| if call < 3 { away(call) } else { fine(call) };
    let tool = Arc::new(Scripted::new("a", back).spec(ToolSpec::with_side_effects));
    let breaker =
        ToolBreakerRules { failures: 3, pause: Duration::from_millis(200), ..ToolBreakerRules::default() };
    let engine = engine(EngineRules { breaker, ..quick() }, &[&tool]);
    for _ in 0..3 {
        assert_eq!(call(&engine, "a").await.status, ToolStatus::Error);
    }
    let alone = call(&engine, "a").await;
    assert!(alone.content.contains("left alone") && alone.transient && alone.tries == 0, "{alone:?}");
    assert_eq!(tool.calls(), 3);
    let begun = Instant::now();
    while !call(&engine, "a").await.is_success() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not come back");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(begun.elapsed() >= Duration::from_millis(100), "nobody waited");
    assert_eq!(tool.calls(), 4, "one call found out");
}

#[tokio::test]
async fn another_tool_answers_at_once_while_one_is_left_alone_whatever_it_does() {
    let breaker = ToolBreakerRules { failures: 1, ..ToolBreakerRules::default() };
    let rules = EngineRules { breaker, ..standing_in("once", "other") };
    let once = Arc::new(Scripted::new("once", away).spec(ToolSpec::with_side_effects));
    let other = Arc::new(Scripted::new("other", fine));
    let engine = engine(rules, &[&once, &other]);
    assert_eq!(call(&engine, "once").await.status, ToolStatus::Error, "it may have taken effect");
    let result = call(&engine, "once").await;
    assert_eq!((result.answered_by.as_deref(), once.calls()), (Some("other"), 1), "{result:?}");
}

#[tokio::test]
async fn the_last_good_answer_is_given_with_its_age_where_the_tool_cannot_be_reached() {
    let once = |call: usize| if call == 0 { fine(call) } else { away(call) };
    let (far, near) = (
        Arc::new(Scripted::new("far", once).spec(|spec| spec.needing(Permission::Network))),
        Arc::new(Scripted::new("near", once)),
    );
    let engine = engine(quick(), &[&far, &near]);
    for name in ["far", "near"] {
        assert_eq!(call(&engine, name).await.content, "fine");
    }
    let kept = call(&engine, "far").await;
    assert!(kept.is_success() && kept.age_ms.is_some(), "{kept:?}");
    assert!(kept.content.starts_with("[This is the answer of 0 s ago to the same call"), "{kept:?}");
    assert!(kept.content.contains("The line is dead.") && kept.content.ends_with("\nfine"), "{kept:?}");
    let ctx = ToolContext::new("run", "1").granting([Permission::Network]);
    assert!(!engine.call("far", json!({"x": 1}), &ctx).await.is_success(), "another call");
    assert!(!call(&engine, "near").await.is_success(), "what is near has no line that could be dead");
}

#[tokio::test]
async fn quotas_hold_for_each_task_and_for_the_run() {
    let tool = Arc::new(Scripted::new("web.a", fine));
    let quota = ToolQuota { per_task: Some(2), per_run: Some(3), ..ToolQuota::default() };
    let quotas = [("web.*".to_owned(), quota)].into();
    let engine = engine(EngineRules { quotas, ..quick() }, &[&tool]);
    let mut told = Vec::new();
    for task in ["1", "1", "1", "2", "2"] {
        let result = engine.call("web.a", json!({}), &ToolContext::new("run", task)).await;
        told.push(if result.is_success() { "fine".to_owned() } else { result.content });
    }
    assert_eq!(told[..2], ["fine", "fine"]);
    assert!(told[2].contains("2 calls of web.* in a task"), "{told:?}");
    assert_eq!(told[3], "fine");
    assert!(told[4].contains("3 calls of web.* in a run"), "{told:?}");
    assert_eq!(tool.calls(), 3);
}

/// A tool that blocks its thread until it is let go.
struct Blocking(Mutex<mpsc::Receiver<()>>);

#[async_trait]
impl Tool for Blocking {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("blocking", "For tests.", json!({"type": "object"}))
            .with_side_effects()
            .with_timeout(Duration::from_millis(100))
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        let _ended = lock(&self.0).recv();
        Ok(ToolOutput::text("too late"))
    }
}

/// On one thread for everything, as in an agent.
#[tokio::test]
async fn tools_that_block_their_thread_cost_their_step_and_hold_up_nothing_and_are_bounded() {
    let (let_go, held_up) = mpsc::channel();
    let registry = ToolRegistry::new();
    registry.register(Arc::new(Blocking(Mutex::new(held_up)))).unwrap();
    let breaker = ToolBreakerRules { failures: 0, ..ToolBreakerRules::default() };
    let engine = ToolEngine::with_rules(Arc::new(registry), EngineRules { breaker, ..quick() });
    let beats = Arc::new(AtomicUsize::new(0));
    let beating = tokio::spawn({
        let beats = Arc::clone(&beats);
        async move {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                beats.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let all = futures::future::join_all((0..65).map(|_| call(&engine, "blocking"))).await;
    beating.abort();
    let timed_out = all.iter().filter(|result| result.status == ToolStatus::Timeout).count();
    assert_eq!(timed_out, 64);
    let refused = all.iter().find(|result| result.status == ToolStatus::Error).unwrap();
    assert!(refused.content.contains("run or hang already"), "{refused:?}");
    assert!(beats.load(Ordering::SeqCst) > 3, "everything else stood still");
    drop(let_go);
    for _ in 0..500 {
        if call(&engine, "blocking").await.is_success() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the threads are not given back");
}
