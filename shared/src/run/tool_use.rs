//! How often tools were called and how that went, counted from the steps in the record.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Entry;
use crate::flow::{Action, CachedAnswer, Observation, ObservationStatus, Step};

/// How calls of one tool went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ToolUse {
    /// Calls that something came of.
    pub calls: u64,
    /// Of these, those that ended with an error.
    pub failures: u64,
    /// Those whose time was up, or of which nobody knows the end.
    pub timeouts: u64,
    /// Those that were not let, or not made: no such tool, wrong arguments, no right, a repetition.
    pub refused: u64,
    /// Observations that were cut.
    pub cut: u64,
    /// Calls that were answered by what others were answered before: the tool was not called.
    pub cached: u64,
    /// How long those would have taken, in milliseconds.
    pub saved_ms: u64,
    /// Bytes of all observations.
    pub bytes: u64,
    /// The time of each call that was made, in milliseconds.
    #[serde(skip)]
    times: Vec<u64>,
}

impl ToolUse {
    fn count(&mut self, observation: &Observation) {
        self.calls += 1;
        self.bytes += observation.content.len() as u64;
        self.cut += u64::from(observation.truncated);
        match observation.status {
            ObservationStatus::Success => {}
            ObservationStatus::Error => self.failures += 1,
            ObservationStatus::Timeout => self.timeouts += 1,
            ObservationStatus::Refused => self.refused += 1,
        }
        match observation.cached {
            Some(CachedAnswer { saved_ms, .. }) => {
                self.cached += 1;
                self.saved_ms = self.saved_ms.saturating_add(saved_ms);
            }
            None if observation.status != ObservationStatus::Refused => self.times.push(observation.millis),
            None => {}
        }
    }

    /// Mean time of the calls that were made, in milliseconds; nothing where none was.
    #[must_use]
    pub fn mean_ms(&self) -> Option<u64> {
        let all: u64 = self.times.iter().sum();
        all.checked_div(self.times.len() as u64)
    }

    /// The time within which so many percent of the calls that were made ended, in milliseconds; nothing where none was.
    #[must_use]
    pub fn within_ms(&self, percent: usize) -> Option<u64> {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = (times.len() * percent.min(100)).div_ceil(100).max(1) - 1;
        times.get(at).copied()
    }
}

/// How calls of each tool went, by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolUses(BTreeMap<String, ToolUse>);

impl ToolUses {
    /// Counts what an entry says.
    pub fn count(&mut self, entry: &Entry) {
        // What was begun stands there once more with its end.
        let acts = entry.event.step().into_iter().flat_map(Step::acts);
        let seen = acts.filter_map(|(action, observation)| Some((action, observation?)));
        for (action, observation) in seen.filter(|(action, _)| action.name != Action::SUBMIT) {
            self.0.entry(action.name.clone()).or_default().count(observation);
        }
    }

    /// What was counted.
    #[must_use]
    pub const fn by_tool(&self) -> &BTreeMap<String, ToolUse> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::{RunId, Seq};
    use crate::run::{AgentEvent, RecordEvent};
    use crate::time::Millis;

    fn entry(step: serde_json::Value) -> Entry {
        let step: Step = serde_json::from_value(step).unwrap();
        let key = json!({"role": "worker", "agent": "worker-1", "task": "1", "generation": 1});
        let event = RecordEvent::Agent(serde_json::from_value(key).unwrap(), AgentEvent::Step(step));
        let run: RunId = "00000000-0000-7000-8000-000000000001".parse().unwrap();
        Entry { seq: Seq(1), at: Millis(1), run, event }
    }

    fn step(tool: &str, status: &str, millis: u64) -> serde_json::Value {
        json!({
            "number": 1, "thought": {}, "action": {"name": tool, "arguments": {}},
            "observation": {"status": status, "content": "12345", "millis": millis}
        })
    }

    #[test]
    fn calls_are_counted_by_tool_and_by_how_they_went() {
        let mut several = step("web.fetch", "success", 100);
        several["more"] = json!([
            {"action": {"name": "calculator", "arguments": {}},
             "observation": {"status": "error", "content": "no", "truncated": true}},
            {"action": {"name": "calculator", "arguments": {}}, "observation": null}
        ]);
        let submitted = json!({"number": 2, "thought": {}, "action": {"name": "submit", "arguments": {}},
            "observation": {"status": "refused", "content": "not yet"}});
        let mut steps = vec![several, submitted];
        steps.extend((1..=19).map(|n| step("web.fetch", "success", n)));
        steps.extend([step("web.fetch", "timeout", 500), step("web.fetch", "refused", 0)]);
        for saved in [300, 400] {
            let mut cached = step("web_search", "success", 2);
            cached["observation"]["cached"] = json!({"age_ms": 5_000, "saved_ms": saved});
            steps.push(cached);
        }
        steps.push(step("web_search", "success", 350));
        let entries: Vec<Entry> = steps.into_iter().map(entry).collect();
        let mut uses = ToolUses::default();
        entries.iter().for_each(|entry| uses.count(entry));
        let all = uses.by_tool();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["calculator", "web.fetch", "web_search"]);
        let (sums, web) = (&all["calculator"], &all["web.fetch"]);
        assert_eq!((sums.calls, sums.failures, sums.cut, sums.bytes), (1, 1, 1, 2));
        assert_eq!((web.calls, web.failures, web.timeouts, web.refused), (22, 0, 1, 1));
        assert_eq!((web.mean_ms(), web.within_ms(50), web.within_ms(95)), (Some(37), Some(11), Some(100)));
        let search = &all["web_search"];
        assert_eq!((search.calls, search.cached, search.saved_ms), (3, 2, 700));
        assert_eq!(search.mean_ms(), Some(350), "of those that were made");
        assert_eq!(ToolUse::default().within_ms(95), None);
    }
}
