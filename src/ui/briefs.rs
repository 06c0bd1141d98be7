//! What lists say of runs that ended: they say it for ever, so that long lists are quick.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use muster_bus::Bus;
use muster_shared::ids::RunId;
use muster_shared::run::RunState;
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use serde_json::{Value, json};

use crate::commands::keep::Gone;
use crate::commands::runs::{self, Newest};
use crate::exit::Failure;

/// Most runs that are remembered.
const MOST: usize = 10_000;

/// What is remembered.
#[derive(Default)]
pub(crate) struct Briefs {
    ended: Mutex<BTreeMap<RunId, Arc<Value>>>,
}

impl Briefs {
    /// The newest runs as `muster runs --json` lists them, each with its models.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn newest(&self, bus: &Bus, limit: usize) -> Result<Vec<Arc<Value>>, Failure> {
        let created_at = |run: &RunId| self.of(*run)?["created_at"].as_u64().map(Millis);
        let (Newest { runs, left_out, order }, gone) = runs::all_but(bus, limit, &created_at).await?;
        let mut listed = BTreeMap::new();
        for state in &runs {
            let brief = Arc::new(brief(state));
            if state.status.is_ended() {
                self.keep(state.id, Arc::clone(&brief));
            }
            listed.insert(state.id, brief);
        }
        let gone = gone.iter().map(Gone::to_json);
        let damaged = left_out.iter().map(|(run, why)| runs::damaged(*run, why));
        let in_order = order.into_iter().filter_map(|(run, _)| listed.remove(&run).or_else(|| self.of(run)));
        Ok(in_order.chain(gone.chain(damaged).map(Arc::new)).collect())
    }

    fn of(&self, run: RunId) -> Option<Arc<Value>> {
        lock(&self.ended).get(&run).cloned()
    }

    fn keep(&self, run: RunId, brief: Arc<Value>) {
        let mut ended = lock(&self.ended);
        ended.insert(run, brief);
        while ended.len() > MOST {
            ended.pop_first();
        }
    }
}

/// A run in a list, with the model that was asked for.
fn brief(state: &RunState) -> Value {
    let mut brief = runs::brief(state);
    brief["models"] = json!(state.goal.model.iter().collect::<Vec<_>>());
    brief
}

/// What a list is narrowed to.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// In the goal, the id or the reason, whatever its case.
    pub(crate) text: String,
    /// How it stands.
    pub(crate) status: String,
    /// Part of a model's name.
    pub(crate) model: String,
}

impl Search {
    /// Whether all that there is is shown, in its order.
    pub(crate) fn is_all(&self) -> bool {
        self.text.is_empty() && self.status.is_empty() && self.model.is_empty()
    }

    /// Whether a run is shown. Pure.
    pub(crate) fn shows(&self, brief: &Value) -> bool {
        let text = |name: &str| brief[name].as_str().unwrap_or_default().to_lowercase();
        let status = match &brief["status"] {
            Value::String(word) => word.clone(),
            // One that was stopped says why beside it.
            Value::Object(fields) => fields.keys().next().cloned().unwrap_or_default(),
            _ => String::new(),
        };
        let wanted = self.text.to_lowercase();
        let models = || brief["models"].as_array().into_iter().flatten().filter_map(Value::as_str);
        (wanted.is_empty() || ["goal", "run", "reason"].iter().any(|name| text(name).contains(&wanted)))
            && (self.status.is_empty() || status.eq_ignore_ascii_case(&self.status))
            && (self.model.is_empty()
                || models().any(|model| model.to_lowercase().contains(&self.model.to_lowercase())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_narrowed_by_all_that_is_asked() {
        let run = RunId::from_uuid(uuid::Uuid::from_u128(5));
        let brief = json!({ "run": run, "goal": "Compare the Tides", "status": "completed", "models": ["openai/gpt-x"] });
        let shows = |search: Search| search.shows(&brief);
        assert!(shows(Search::default()) && Search::default().is_all());
        assert!(shows(Search { text: "tides".into(), status: "Completed".into(), model: "GPT".into() }));
        assert!(!shows(Search { text: "moons".into(), ..Search::default() }));
        assert!(!shows(Search { status: "failed".into(), ..Search::default() }));
        assert!(!shows(Search { model: "llama".into(), ..Search::default() }));
        let stopped = json!({ "run": run, "status": { "aborted": "cancelled" } });
        assert!(Search { status: "aborted".into(), ..Search::default() }.shows(&stopped));
    }
}
