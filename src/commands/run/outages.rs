//! What a person who waits is told of providers that do not answer.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_bus::Bus;
use muster_bus::allowance::breaker::BreakerState;
use muster_shared::wire::{Live, LiveKind, UNANSWERED};
use tokio::time::Instant;

use crate::app::now;
use crate::render::figures;

/// How long it is waited for to know of those that do not answer already.
const LOOK: Duration = Duration::from_secs(2);
/// That a model is silent is said again after this time.
const AGAIN: Duration = Duration::from_secs(30);
/// Longest line.
const LINE: usize = 300;

/// What is known of providers that do not answer.
pub(super) struct Outages {
    changes: BoxStream<'static, BreakerState>,
    /// Those that were told of and have not answered since.
    told: Vec<BreakerState>,
    /// When it was last said that a model is silent.
    silent: Option<Instant>,
}

impl Outages {
    /// Follows what the fleet knows, from now on and with what there is. A bus that cannot tell says nothing.
    pub(super) async fn follow(bus: &Bus) -> Self {
        let allowances = bus.allowances();
        let looked = async {
            let changes = allowances.watch_breaker("*").await.ok()?;
            let mut known = allowances.breakers().await.unwrap_or_default();
            known.retain(|breaker| breaker.is_open_at(now()));
            Some(futures::stream::iter(known).chain(changes).boxed())
        };
        let changes = tokio::time::timeout(LOOK, looked).await.ok().flatten();
        let changes = changes.unwrap_or_else(|| futures::stream::pending().boxed());
        Self { changes, told: Vec::new(), silent: None }
    }

    /// The next line worth saying; waits for ever where there is none.
    pub(super) async fn next(&mut self) -> String {
        loop {
            let Some(state) = self.changes.next().await else { return std::future::pending().await };
            if let Some(line) = self.news(state) {
                return figures::one_line(&line, LINE);
            }
        }
    }

    fn news(&mut self, state: BreakerState) -> Option<String> {
        let before = self.told.iter().position(|told| told.provider == state.provider);
        let until = before.map(|at| self.told[at].open_until);
        if state.is_open() {
            let known = until == Some(state.open_until);
            if let Some(at) = before {
                self.told.swap_remove(at);
            }
            let line = state.in_words(now());
            self.told.push(state);
            (!known).then_some(line)
        } else {
            let answered = self.told.swap_remove(before?);
            Some(format!("{} answers again", answered.provider))
        }
    }

    /// What is to be said of a task whose model is silent, once in a while.
    pub(super) fn silence(&mut self, live: &Live) -> Option<String> {
        let LiveKind::Status { text, .. } = &live.kind else { return None };
        let due = self.silent.is_none_or(|said| said.elapsed() >= AGAIN);
        if !due || !text.starts_with(UNANSWERED) {
            return None;
        }
        self.silent = Some(Instant::now());
        Some(figures::one_line(&format!("task {}: {text}", live.task), LINE))
    }
}

#[cfg(test)]
mod tests {
    use muster_bus::allowance::breaker::{BreakerRules, Outage, OutageKind};
    use muster_shared::time::Millis;

    use super::*;

    #[test]
    fn each_pause_is_told_once_and_the_end_of_it() {
        let mut outages =
            Outages { changes: futures::stream::pending().boxed(), told: Vec::new(), silent: None };
        let mut state = BreakerState::default();
        let outage = Outage { why: "429".into(), kind: OutageKind::Down(None) };
        let rules = BreakerRules { failures: 2, ..BreakerRules::default() };
        state.fail("openai", &outage, Millis(1_000), &rules);
        assert_eq!(outages.news(state.clone()), None, "it is asked on");
        state.fail("openai", &outage, Millis(1_000), &rules);
        assert!(
            outages
                .news(state.clone())
                .is_some_and(|line| line.contains("openai does not answer (429, 2 times"))
        );
        assert_eq!(outages.news(state.clone()), None, "told already");
        state.fail("openai", &outage, Millis(9_000), &rules);
        assert!(outages.news(state.clone()).is_some());
        state.succeed();
        assert_eq!(outages.news(state.clone()).as_deref(), Some("openai answers again"));
        assert_eq!(outages.news(state), None);
    }
}
