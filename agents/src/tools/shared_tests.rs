use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use muster_bus::Bus;
use muster_shared::flow::ToolCache;
use muster_tools::{
    EngineRules, Permission, Tool, ToolContext, ToolEngine, ToolFailure, ToolOutput, ToolRegistry, ToolSpec,
};
use serde_json::{Value, json};

use super::*;

/// What the clock is ahead of that of this machine, in milliseconds.
static AHEAD: AtomicU64 = AtomicU64::new(0);

fn now() -> Millis {
    Millis(muster_bus::now().0 + AHEAD.load(Ordering::SeqCst))
}

/// Looks something up elsewhere, and counts how often.
struct Lookup(Arc<AtomicUsize>);

#[async_trait]
impl Tool for Lookup {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("lookup", "Looks it up.", json!({ "type": "object" }))
            .needing(Permission::Network)
            .cached(ToolCache::serving(Duration::from_secs(60), String::new()))
    }

    async fn call(&self, _: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let call = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let said = format!("{} was looked up in call {call}, with the password hunter2-hunter2", args["of"]);
        Ok(ToolOutput::text(said.clone()).with_data(json!({ "said": said })))
    }
}

/// Counts what was kept: nobody waits for it.
struct Noting {
    answers: FleetAnswers,
    kept: Arc<AtomicUsize>,
}

#[async_trait]
impl SharedAnswers for Noting {
    async fn find(&self, key: &SharedKey) -> Result<Option<SharedAnswer>, String> {
        self.answers.find(key).await
    }

    async fn keep(&self, key: &SharedKey, answer: AnswerToShare) -> Result<(), String> {
        let kept = self.answers.keep(key, answer).await;
        self.kept.fetch_add(1, Ordering::SeqCst);
        kept
    }
}

struct Fleet {
    bus: Bus,
    calls: Arc<AtomicUsize>,
    kept: Arc<AtomicUsize>,
}

impl Fleet {
    async fn start() -> Self {
        let bus = Bus::in_memory(&"tester-1".parse().unwrap());
        bus.provision().await.unwrap();
        Self { bus, calls: Arc::default(), kept: Arc::default() }
    }

    /// The engine of another process.
    fn engine(&self, role: &str) -> ToolEngine {
        let registry = ToolRegistry::new();
        registry.register_own(Arc::new(Lookup(Arc::clone(&self.calls)))).unwrap();
        let redactor = Redactor::new(["hunter2-hunter2".to_owned().into()]);
        let answers = FleetAnswers::new(self.bus.answers(role.parse().unwrap()), Arc::new(redactor), now);
        let noting = Noting { answers, kept: Arc::clone(&self.kept) };
        ToolEngine::with_rules(Arc::new(registry), EngineRules::default()).sharing(Arc::new(noting))
    }

    async fn until_kept(&self, wanted: usize) {
        let all_kept = async {
            while self.kept.load(Ordering::SeqCst) < wanted {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), all_kept).await.unwrap();
    }
}

async fn ask(engine: &ToolEngine, of: &str, task: &str) -> muster_tools::ToolResult {
    let ctx = ToolContext::new("run", task).granting([Permission::Network]);
    let result = engine.call("lookup", json!({ "of": of }), &ctx).await;
    assert!(result.is_success(), "{result:?}");
    result
}

#[tokio::test]
async fn what_one_agent_was_answered_serves_all_of_its_role_without_secrets_and_for_so_long() {
    let fleet = Fleet::start().await;
    let (one, other) = (fleet.engine("worker"), fleet.engine("worker"));
    let first = ask(&one, "a", "1").await;
    assert!(first.cached.is_none() && first.content.contains("call 1"), "{first:?}");
    fleet.until_kept(1).await;

    let again = ask(&other, "a", "2").await;
    let cached = again.cached.unwrap();
    assert!(again.content.contains("From the cache") && again.content.contains("call 1"), "{again:?}");
    assert!(cached.age_ms < 60_000, "{again:?}");
    let data = again.data.unwrap().to_string();
    assert!(!again.content.contains("hunter2") && !data.contains("hunter2"), "{} {data}", again.content);
    assert_eq!(fleet.calls.load(Ordering::SeqCst), 1, "it was called once");

    ask(&other, "b", "2").await;
    fleet.until_kept(2).await;
    assert_eq!(fleet.calls.load(Ordering::SeqCst), 2, "another question");
    let elsewhere = ask(&fleet.engine("researcher"), "a", "2").await;
    assert!(elsewhere.cached.is_none() && elsewhere.content.contains("call 3"), "{elsewhere:?}");

    AHEAD.store(61_000, Ordering::SeqCst);
    let old = ask(&other, "a", "2").await;
    assert!(old.cached.is_none() && old.content.contains("call 4"), "it is too old: {old:?}");
}
