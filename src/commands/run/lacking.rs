//! What a run that is watched lacks: told when it has lacked it for some seconds, and when it is there.

use std::time::{Duration, Instant};

use muster_bus::RegistryChange;
use muster_orchestrator::decide::{AgentsByRole, WaitsFor, waits_for_within};
use muster_shared::ids::RunId;
use muster_shared::run::RunState;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(500);

/// What is lacking for less is not worth a word: processes that come up, or are started again, are there by then.
const WORTH_A_WORD: Duration = Duration::from_secs(3);

/// What a run lacks.
pub(super) struct Lacking {
    agents: AgentsByRole,
    since: Option<Instant>,
    told: Vec<String>,
    look: Interval,
}

impl Default for Lacking {
    fn default() -> Self {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { agents: AgentsByRole::default(), since: None, told: Vec::new(), look }
    }
}

impl Lacking {
    /// Somebody came or left.
    pub(super) fn take(&mut self, change: RegistryChange) {
        match change {
            RegistryChange::Joined(profile) | RegistryChange::Changed(profile) => {
                self.agents.joined(&profile)
            }
            RegistryChange::Left(agent) => self.agents.left(&agent),
        }
    }

    /// Waits until it is time to look.
    pub(super) async fn look(&mut self) {
        self.look.tick().await;
    }

    /// What was told last and still lacks.
    pub(super) fn lines(&self) -> &[String] {
        &self.told
    }

    /// What a person is told now.
    pub(super) fn news<'a>(
        &mut self,
        run: Option<&RunState>,
        child: &dyn Fn(RunId) -> Option<&'a RunState>,
        now: Instant,
    ) -> Vec<String> {
        let waits = match run {
            Some(run) => waits_for_within(run, &self.agents, child),
            None if self.agents.has("orchestrator") => Vec::new(),
            None => vec![WaitsFor::Orchestrator],
        };
        let lacking: Vec<String> =
            waits.iter().filter(|waits| waits.is_lacking()).map(WaitsFor::to_string).collect();
        if lacking.is_empty() {
            self.since = None;
            let was_told = !std::mem::take(&mut self.told).is_empty();
            return if was_told {
                vec!["what was waited for is there; going on".to_owned()]
            } else {
                Vec::new()
            };
        }
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) < WORTH_A_WORD {
            return Vec::new();
        }
        let news =
            lacking.iter().filter(|line| !self.told.contains(line)).map(|line| format!("waiting for {line}"));
        let news = news.collect();
        self.told = lacking;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_lacking_is_told_after_some_seconds_once_and_its_coming_too() {
        let mut lacking = Lacking::default();
        let start = Instant::now();
        assert_eq!(lacking.news(None, &|_| None, start), Vec::<String>::new(), "it may be coming up");
        let news = lacking.news(None, &|_| None, start + WORTH_A_WORD);
        assert!(matches!(&news[..], [line] if line.contains("muster orchestrator")), "{news:?}");
        assert_eq!(
            lacking.news(None, &|_| None, start + WORTH_A_WORD * 2),
            Vec::<String>::new(),
            "it is told once"
        );
        assert_eq!(lacking.lines().len(), 1);
        let profile = serde_json::json!({ "agent": "orchestrator-1", "role": "orchestrator" });
        lacking.take(RegistryChange::Joined(serde_json::from_value(profile).unwrap()));
        let news = lacking.news(None, &|_| None, start + WORTH_A_WORD * 3);
        assert!(matches!(&news[..], [line] if line.contains("going on")), "{news:?}");
        assert!(lacking.lines().is_empty());
    }
}
