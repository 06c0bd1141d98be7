//! Answers that serve again, in place of calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use muster_shared::flow::ToolCache;
use serde_json::json;

use super::*;
use crate::patterns::ToolPatterns;
use crate::sharing::{AnswerToShare, SharedAnswer, SharedAnswers, SharedKey, ToolCacheSettings};
use crate::spec::{Permission, Tool, ToolFailure, ToolOutput};

/// How the store behaves.
#[derive(Clone, Copy, PartialEq)]
enum Store {
    Works,
    Fails,
    /// It never answers.
    Hangs,
}

/// A store of a fleet, in which answers are as old as a test says.
struct Held {
    store: Store,
    age: Mutex<Duration>,
    answers: Mutex<BTreeMap<SharedKey, AnswerToShare>>,
    kept: AtomicUsize,
    looked: AtomicUsize,
}

impl Held {
    fn new(store: Store) -> Arc<Self> {
        Arc::new(Self {
            store,
            age: Mutex::default(),
            answers: Mutex::default(),
            kept: AtomicUsize::new(0),
            looked: AtomicUsize::new(0),
        })
    }

    /// Waits until so many answers were to be kept: calls do not wait for it.
    async fn until_kept(&self, wanted: usize) {
        let kept = async {
            while self.kept.load(Ordering::SeqCst) < wanted {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), kept).await.unwrap();
    }

    /// What was begun beside calls has ended.
    async fn settled(&self) -> usize {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.kept.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl SharedAnswers for Held {
    async fn find(&self, key: &SharedKey) -> Result<Option<SharedAnswer>, String> {
        self.looked.fetch_add(1, Ordering::SeqCst);
        match self.store {
            Store::Works => {}
            Store::Fails => return Err("the line is dead".to_owned()),
            Store::Hangs => std::future::pending().await,
        }
        let age = *lock(&self.age);
        Ok(lock(&self.answers).get(key).cloned().map(|answer| SharedAnswer { answer, age }))
    }

    async fn keep(&self, key: &SharedKey, answer: AnswerToShare) -> Result<(), String> {
        self.kept.fetch_add(1, Ordering::SeqCst);
        match self.store {
            Store::Works => {}
            Store::Fails => return Err("the line is dead".to_owned()),
            Store::Hangs => std::future::pending().await,
        }
        lock(&self.answers).insert(key.clone(), answer);
        Ok(())
    }
}

/// A tool that counts its calls, and says what it is told.
struct Counting {
    spec: ToolSpec,
    calls: AtomicUsize,
    says: fn(usize) -> Result<ToolOutput, ToolFailure>,
}

#[async_trait]
impl Tool for Counting {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        (self.says)(self.calls.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

fn numbered(call: usize) -> Result<ToolOutput, ToolFailure> {
    Ok(ToolOutput::text(format!("answer {call}")).with_data(json!({ "call": call })))
}

fn spec() -> ToolSpec {
    ToolSpec::new("web_search", "For tests.", json!({"type": "object"}))
        .needing(Permission::Network)
        .cached(ToolCache::serving(Duration::from_secs(60), String::new()))
}

/// An agent's engine, with its own instance of the tool.
struct Process {
    engine: ToolEngine,
    tool: Arc<Counting>,
}

impl Process {
    fn new(spec: ToolSpec, store: &Arc<Held>) -> Self {
        Self::with(spec, numbered, EngineRules::default(), store)
    }

    fn with(
        spec: ToolSpec,
        says: fn(usize) -> Result<ToolOutput, ToolFailure>,
        rules: EngineRules,
        store: &Arc<Held>,
    ) -> Self {
        let tool = Arc::new(Counting { spec, calls: AtomicUsize::new(0), says });
        let registry = ToolRegistry::new();
        registry.register_own(Arc::clone(&tool) as Arc<dyn Tool>).unwrap();
        let shared = Arc::clone(store) as Arc<dyn SharedAnswers>;
        Self { engine: ToolEngine::with_rules(Arc::new(registry), rules).sharing(shared), tool }
    }

    async fn call(&self, args: Value) -> ToolResult {
        let ctx = ToolContext::new("r", "1").granting([Permission::Network]);
        self.engine.call("web_search", args, &ctx).await
    }

    fn calls(&self) -> usize {
        self.tool.calls.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn the_same_call_of_another_process_is_answered_without_calling_the_tool_and_counts_for_no_quota() {
    let store = Held::new(Store::Works);
    let quota = ToolQuota { per_task: Some(1), ..ToolQuota::default() };
    let rules = EngineRules { quotas: [("*".to_owned(), quota)].into(), ..EngineRules::default() };
    let (one, other) = (Process::new(spec(), &store), Process::with(spec(), numbered, rules, &store));
    let first = one.call(json!({"q": "a", "n": 1})).await;
    assert_eq!((first.content.as_str(), first.cached), ("answer 1", None));
    store.until_kept(1).await;
    *lock(&store.age) = Duration::from_secs(30);
    for _ in 0..3 {
        let again = other.call(json!({"n": 1, "q": "a"})).await;
        assert!(again.is_success() && again.content.ends_with("\nanswer 1"), "{again:?}");
        assert!(again.content.contains("30 s ago") && again.age_ms.is_none(), "{again:?}");
        assert_eq!((again.data, again.tries), (Some(json!({"call": 1})), 0));
        assert_eq!(again.cached.unwrap().age_ms, 30_000);
    }
    assert_eq!((one.calls(), other.calls()), (1, 0));
    assert!(other.call(json!({"q": "b"})).await.is_success(), "the quota is untouched");
    assert_eq!(other.call(json!({"q": "c"})).await.status, ToolStatus::Refused, "and holds");
}

#[tokio::test]
async fn what_is_too_old_serves_nobody_and_settings_may_say_less_than_the_tool() {
    for (oldest, age, serves) in
        [(3600, 60, true), (3600, 61, false), (20, 20, true), (20, 21, false), (0, 0, false)]
    {
        let store = Held::new(Store::Works);
        let cache = ToolCacheSettings { oldest: Duration::from_secs(oldest), ..ToolCacheSettings::default() };
        let process =
            Process::with(spec(), numbered, EngineRules { cache, ..EngineRules::default() }, &store);
        process.call(json!({})).await;
        store.until_kept(usize::from(oldest > 0)).await;
        *lock(&store.age) = Duration::from_secs(age);
        let again = process.call(json!({})).await;
        assert_eq!(again.cached.is_some(), serves, "{oldest} {age}");
        assert_eq!(process.calls(), if serves { 1 } else { 2 }, "{oldest} {age}");
        if oldest == 0 {
            assert_eq!(store.looked.load(Ordering::SeqCst), 0, "switched off it costs nothing");
        }
    }
}

#[tokio::test]
async fn what_changes_something_or_is_approved_or_does_not_say_so_is_called_each_time() {
    let approve = || EngineRules {
        approve: ToolPatterns::new(vec!["web_search".to_owned()]),
        ..EngineRules::default()
    };
    for (spec, rules) in [
        (spec().with_side_effects(), EngineRules::default()),
        (spec().cached(None), EngineRules::default()),
        (spec(), approve()),
    ] {
        let store = Held::new(Store::Works);
        let process = Process::with(spec, numbered, rules, &store);
        let ctx = ToolContext::new("r", "1").granting([Permission::Network]).approved();
        for _ in 0..2 {
            let result = process.engine.call("web_search", json!({}), &ctx).await;
            assert!(result.is_success() && result.cached.is_none(), "{result:?}");
        }
        assert_eq!((process.calls(), store.settled().await), (2, 0));
        assert_eq!(store.looked.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn who_may_not_make_the_call_is_not_given_the_answer() {
    let store = Held::new(Store::Works);
    let process = Process::new(spec(), &store);
    process.call(json!({})).await;
    store.until_kept(1).await;
    let without = process.engine.call("web_search", json!({}), &ToolContext::new("r", "2")).await;
    assert_eq!((without.status, without.cached), (ToolStatus::Refused, None));
    assert!(process.call(json!({})).await.cached.is_some());
}

#[tokio::test]
async fn a_store_that_fails_or_hangs_harms_no_call() {
    for store in [Store::Fails, Store::Hangs] {
        let store = Held::new(store);
        let process = Process::new(spec(), &store);
        let begun = Instant::now();
        for call in 1..=2 {
            let result = process.call(json!({})).await;
            assert_eq!(result.content, format!("answer {call}"));
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn only_good_answers_are_kept_and_only_whole() {
    let long: fn(usize) -> Result<ToolOutput, ToolFailure> = |_| Ok(ToolOutput::text("x".repeat(33 * 1024)));
    let broad: fn(usize) -> Result<ToolOutput, ToolFailure> =
        |_| Ok(ToolOutput::text("fine").with_data(json!("x".repeat(70 * 1024))));
    let wrong: fn(usize) -> Result<ToolOutput, ToolFailure> = |_| Err(ToolFailure::NotFound("no".to_owned()));
    let broken: fn(usize) -> Result<ToolOutput, ToolFailure> = |_| Err(ToolFailure::Failed("no".to_owned()));
    for says in [long, broad, wrong, broken] {
        let store = Held::new(Store::Works);
        let process = Process::with(spec(), says, EngineRules::default(), &store);
        let first = process.call(json!({})).await;
        assert_eq!((process.call(json!({})).await.cached, store.settled().await), (None, 0), "{first:?}");
        assert_eq!(process.calls(), 2);
    }
    // Just as long as it may be: what is said of it does not cut it.
    let most: fn(usize) -> Result<ToolOutput, ToolFailure> =
        |_| Ok(ToolOutput::text("x".repeat(32 * 1024 - 160)));
    let store = Held::new(Store::Works);
    let process = Process::with(spec(), most, EngineRules::default(), &store);
    process.call(json!({})).await;
    store.until_kept(1).await;
    *lock(&store.age) = Duration::from_secs(60);
    let again = process.call(json!({})).await;
    assert!(again.cached.is_some() && !again.truncated, "{} bytes", again.content.len());
    // Smaller by settings.
    let cache = ToolCacheSettings { max_bytes: 4, ..ToolCacheSettings::default() };
    let process = Process::with(
        spec(),
        numbered,
        EngineRules { cache, ..EngineRules::default() },
        &Held::new(Store::Works),
    );
    process.call(json!({})).await;
    assert!(process.call(json!({})).await.cached.is_none());
}

#[tokio::test]
async fn the_answer_of_a_tool_that_stood_in_is_not_kept() {
    let store = Held::new(Store::Works);
    let away: fn(usize) -> Result<ToolOutput, ToolFailure> = |_| Err(ToolFailure::Failed("away".to_owned()));
    let alternatives = [("web_search".to_owned(), "other".to_owned())].into();
    let rules = EngineRules { alternatives, ..EngineRules::default() };
    let process = Process::with(spec(), away, rules, &store);
    let other = ToolSpec { name: "other".to_owned(), ..spec().cached(None) };
    let other = Counting { spec: other, calls: AtomicUsize::new(0), says: numbered };
    process.engine.registry().register_own(Arc::new(other)).unwrap();
    let result = process.call(json!({})).await;
    assert_eq!(result.answered_by.as_deref(), Some("other"), "{result:?}");
    assert_eq!(store.settled().await, 0);
}
