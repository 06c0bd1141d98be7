//! Results that were cut: kept whole for their task, and read on by `read_result`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use muster_bus::Store;
use muster_shared::ids::{RunId, TaskId};
use muster_shared::secret::Redactor;
use muster_tools::{KeptResult, ResultKeeper};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

/// The name of the tool.
pub const READ_RESULT: &str = "read_result";

/// Most that is shown at once, in bytes: less than what an observation may have.
const MOST_SHOWN: usize = 24 * 1024;
/// Most results that one process keeps of one task.
const MOST_RESULTS: u32 = 50;
/// Letters of an id.
const ID: usize = 16;

/// Keeps the results of a task in the object store, where whoever goes on with it finds them.
pub struct StoredResults {
    store: Store,
    redactor: Arc<Redactor>,
    /// What their names begin with.
    place: String,
    kept: AtomicU32,
}

impl StoredResults {
    /// Those of this task.
    #[must_use]
    pub fn new(store: Store, redactor: Arc<Redactor>, run: RunId, task: &TaskId) -> Self {
        Self { store, redactor, place: format!("result/{run}/{task}/"), kept: AtomicU32::new(0) }
    }
}

#[async_trait]
impl ResultKeeper for StoredResults {
    async fn keep(&self, text: String) -> Result<KeptResult, String> {
        if self.kept.fetch_add(1, Ordering::Relaxed) >= MOST_RESULTS {
            return Err(format!("{MOST_RESULTS} results of this task are kept already"));
        }
        let text = self.redactor.redact(&text).into_owned();
        let mut id = hex::encode(Sha256::digest(&text));
        id.truncate(ID);
        let name = format!("{}{id}", self.place);
        self.store.put_named(&name, text.clone().into()).await.map_err(|error| error.to_string())?;
        Ok(KeptResult { id, text })
    }

    async fn read(&self, id: &str) -> Result<Option<String>, String> {
        if id.len() != ID || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let found =
            self.store.get(&format!("{}{id}", self.place)).await.map_err(|error| error.to_string())?;
        Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// Reads on in a result that was cut.
pub(super) struct ReadResult;

#[async_trait]
impl Tool for ReadResult {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            READ_RESULT,
            "Reads on in a result of yours that was cut: its mark says by which id and from where.",
            json!({
                "id": {"type": "string", "minLength": 1, "maxLength": 64},
                "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "in bytes"}
            }),
            &["id"],
        )
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let id = args["id"].as_str().unwrap_or_default();
        let missing = || ToolFailure::NotFound(format!("No result of this task is kept as `{id}`."));
        let keeper = ctx.keeper.as_ref().ok_or_else(missing)?;
        let text = keeper.read(id).await.map_err(ToolFailure::Unavailable)?.ok_or_else(missing)?;
        let offset = args["offset"].as_u64().and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0);
        let from = text.floor_char_boundary(offset);
        let to = text.floor_char_boundary(from.saturating_add(MOST_SHOWN));
        if from >= text.len() {
            return Err(ToolFailure::InvalidArguments(format!("It ends at byte {}.", text.len())));
        }
        let more =
            if to < text.len() { format!("read on from offset {to}") } else { "that is the end".to_owned() };
        Ok(ToolOutput::text(format!("{}\n[bytes {from} to {to} of {}; {more}]", &text[from..to], text.len())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muster_bus::Bus;
    use muster_shared::ids::TaskIndex;

    use super::*;
    use crate::tools::{ToolEngine, ToolRegistry, ToolResult};

    /// A tool that says a lot.
    struct Flood(String);

    #[async_trait]
    impl Tool for Flood {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("flood", "For tests.", json!({"type": "object"}))
        }

        async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
            Ok(ToolOutput::text(self.0.clone()))
        }
    }

    fn context(bus: &Bus, task: u16) -> ToolContext {
        let run: RunId = "00000000-0000-7000-8000-000000000001".parse().unwrap();
        let task = TaskId::Leaf(TaskIndex::top(task));
        let redactor = Arc::new(Redactor::default());
        let keeper = StoredResults::new(bus.store(), redactor, run, &task);
        ToolContext { keeper: Some(Arc::new(keeper)), ..ToolContext::new(run.to_string(), task.to_string()) }
    }

    fn said(result: &ToolResult) -> (&str, &str) {
        result.content.rsplit_once("\n[").unwrap()
    }

    #[tokio::test]
    async fn a_result_that_was_cut_is_read_on_to_its_end_by_whoever_goes_on_and_by_no_other_task() {
        let bus = Bus::in_memory(&"tester-1".parse().unwrap());
        let whole: String = (0..20_000).map(|n| format!("ä{n} ")).collect();
        let registry = ToolRegistry::new();
        registry.register_own(Arc::new(Flood(whole.clone()))).unwrap();
        registry.register_own(Arc::new(ReadResult)).unwrap();
        let engine = ToolEngine::new(Arc::new(registry));
        let cut = engine.call("flood", json!({}), &context(&bus, 1)).await;
        let (mut seen, mark) = (said(&cut).0.to_owned(), said(&cut).1);
        assert!(cut.truncated && mark.contains("`read_result`"), "{mark}");
        let id = mark.split("\"id\": \"").nth(1).unwrap().split('"').next().unwrap().to_owned();

        // Another process goes on with the task.
        let successor = context(&bus, 1);
        for _ in 0..100 {
            let next = json!({"id": id, "offset": seen.len()});
            let result = engine.call(READ_RESULT, next, &successor).await;
            assert!(result.is_success() && !result.truncated, "{result:?}");
            seen.push_str(said(&result).0);
            if said(&result).1.contains("that is the end") {
                break;
            }
        }
        assert_eq!(seen, whole);

        let past = engine.call(READ_RESULT, json!({"id": id, "offset": whole.len()}), &successor).await;
        assert!(past.content.contains("It ends at byte"), "{past:?}");
        for (task, id) in [(2, id.as_str()), (1, "0000000000000000"), (1, "../1/x")] {
            let result = engine.call(READ_RESULT, json!({"id": id}), &context(&bus, task)).await;
            assert!(!result.is_success(), "{task} {id}: {result:?}");
        }
    }
}
