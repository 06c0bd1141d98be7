//! What holds for the tools of one engine. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::backoff::Backoff;
use muster_shared::flow::RolePermission;
use muster_shared::settings;

use crate::patterns::{ToolPatterns, means};
use crate::sharing::{self, ToolCacheSettings};
use crate::spec::{Repetition, ToolSpec, Uncertain};

/// Limits that hold for every tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineLimits {
    /// Longest observation, in bytes; the rest is cut and the cut is marked.
    pub max_content: usize,
    /// Largest structured form, in bytes of JSON; a larger one is dropped.
    pub max_data: usize,
    /// Largest arguments, in bytes of JSON.
    pub max_arguments: usize,
    /// Upper bound on the time of a call, with all its tries.
    pub max_timeout: Duration,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            max_content: 32 * 1024,
            max_data: 64 * 1024,
            max_arguments: 1024 * 1024 + 64 * 1024,
            max_timeout: Duration::from_secs(600),
        }
    }
}

settings! {
    /// How often calls are tried again that failed for something that passes, where doing them twice is as good as once.
    #[derive(Copy, PartialEq, Eq)]
    pub struct ToolRetries {
        /// Further tries of one call; 0 for none.
        pub tries: u32 = 2 => internal(),
        /// Wait before the first of them. It doubles with each one, and is spread over its upper half.
        #[serde(with = "muster_shared::span")]
        pub pause: Duration = Duration::from_millis(250) => internal(),
        /// Longest wait.
        #[serde(with = "muster_shared::span")]
        pub max_pause: Duration = Duration::from_secs(5) => internal(),
        /// After this time no further try is begun. Each try has twice the time limit of the one before.
        #[serde(with = "muster_shared::span")]
        pub total: Duration = Duration::from_secs(60) => internal(),
    }
}

settings! {
    /// When a tool that cannot be reached, answers too late or breaks is left alone, by each process for itself.
    #[derive(Copy, PartialEq, Eq)]
    pub struct ToolBreakerRules {
        /// Failed tries in a row after which a tool is left alone; 0 for never.
        pub failures: u32 = 5 => internal(),
        /// The first pause; it doubles with each try after it that fails.
        #[serde(with = "muster_shared::span")]
        pub pause: Duration = Duration::from_secs(2) => internal(),
        /// The longest pause.
        #[serde(with = "muster_shared::span")]
        pub max_pause: Duration = Duration::from_secs(60) => internal(),
    }
}

settings! {
    /// Most calls of some tools together. Those of a run, of a minute and of a day are counted over the whole fleet.
    #[derive(Copy, PartialEq, Eq)]
    pub struct ToolQuota {
        /// Most calls of one task; not limited when absent.
        pub per_task: Option<u64> = None => whole(1, MANY).example("20"); Fleet Lower,
        /// Most calls of one run; not limited when absent.
        pub per_run: Option<u64> = None => whole(1, MANY).example("200"); Fleet Lower,
        /// Most calls in a minute by the clock, of all runs together; not limited when absent.
        pub per_minute: Option<u64> = None => whole(1, MANY).example("60"); Fleet Lower,
        /// Most calls in a day by UTC, of all runs together; not limited when absent.
        pub per_day: Option<u64> = None => whole(1, MANY).example("1000"); Fleet Lower,
    }
}

/// What holds for the tools of one engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineRules {
    /// Limits of every tool.
    pub limits: EngineLimits,
    /// Of the tools that are off until allowed, those that are allowed.
    pub allow: ToolPatterns,
    /// Tools of which a person approves each call before it is made.
    pub approve: ToolPatterns,
    /// How calls are tried again.
    pub retries: ToolRetries,
    /// When a tool is left alone.
    pub breaker: ToolBreakerRules,
    /// Most calls, by pattern. All that mean a tool hold for it.
    pub quotas: BTreeMap<String, ToolQuota>,
    /// Time limits by pattern, in place of a tool's own. The longest pattern that means it counts.
    pub timeouts: BTreeMap<String, Duration>,
    /// Which tool is called with the same arguments where another fails for good.
    pub alternatives: BTreeMap<String, String>,
    /// Which answers serve others, where they are shared.
    pub cache: ToolCacheSettings,
}

impl EngineRules {
    /// The time limit of a tool's call after so many failed tries. Whoever was too slow gets twice the time.
    #[must_use]
    pub fn time_limit(&self, spec: &ToolSpec, failed: u32) -> Duration {
        let meant = self.timeouts.iter().filter(|(pattern, _)| means(pattern, &spec.name));
        let own = meant.max_by_key(|(pattern, _)| pattern.len()).map_or(spec.timeout, |(_, limit)| *limit);
        own.saturating_mul(2_u32.saturating_pow(failed)).min(self.limits.max_timeout)
    }

    /// Why a person has to approve a call of a tool before it is made; nothing when nobody has to. `by_run` are the patterns of
    /// the run.
    #[must_use]
    pub fn approval(&self, spec: &ToolSpec, by_run: &[String]) -> Option<&'static str> {
        // It asks a person anyway.
        if spec.permission == RolePermission::People {
            None
        } else if spec.approve {
            Some("the tool says that a person approves each call")
        } else if self.approve.mean(&spec.name) {
            Some("settings say that a person approves each call (tool.approve)")
        } else if by_run.iter().any(|pattern| means(pattern, &spec.name)) {
            Some("a person approves each call in this run (limits.people.approve_tools)")
        } else {
            None
        }
    }

    /// The quotas that hold for a tool, by their patterns.
    pub fn quotas_of(&self, tool: &str) -> impl Iterator<Item = (&str, &ToolQuota)> {
        let meant = self.quotas.iter().filter(move |(pattern, _)| means(pattern, tool));
        meant.map(|(pattern, quota)| (pattern.as_str(), quota))
    }

    /// How long answers of a tool serve others, where they are shared; nothing where they serve nobody.
    #[must_use]
    pub fn serves(&self, spec: &ToolSpec) -> Option<Duration> {
        let serves = sharing::serves(spec)?.min(self.cache.oldest);
        (!serves.is_zero()).then_some(serves)
    }

    /// How long is waited before a call is tried again whose last try failed for something that passes; nothing where it is
    /// not. `failed` counts the tries so far, `spent` is the time since the first began, `jitter` from 0 to 1 spreads those
    /// who failed together.
    #[must_use]
    pub fn again(&self, spec: &ToolSpec, failed: u32, spent: Duration, jitter: f64) -> Option<Duration> {
        let ToolRetries { tries, pause, max_pause, total } = self.retries;
        if !may_repeat(spec) || spec.repetition == Repetition::Never || failed > tries {
            return None;
        }
        let wait = Backoff::new(pause, max_pause).spread(failed, jitter);
        (spent.saturating_add(wait) < total.min(self.limits.max_timeout)).then_some(wait)
    }
}

/// Whether doing a call twice is as good as once.
pub(super) fn may_repeat(spec: &ToolSpec) -> bool {
    spec.pure || spec.uncertain == Uncertain::Repeat
}

/// Whether a tool may stand in for another: whatever was announced of the call holds for it as well, also for whoever goes on
/// with it after a death.
pub(super) fn may_stand_in(other: &ToolSpec, failed: &ToolSpec) -> bool {
    other.name != failed.name && may_repeat(other) && (other.pure || !failed.pure)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(name: &str) -> ToolSpec {
        ToolSpec::new(name, "For tests.", json!({"type": "object"})).with_timeout(Duration::from_secs(10))
    }

    #[test]
    fn only_what_may_be_done_twice_is_tried_again_and_only_for_so_long() {
        let rules = EngineRules::default();
        let effects = spec("a").with_side_effects();
        let second = Duration::from_secs(1);
        for (spec, failed, spent, wanted) in [
            (spec("a"), 1, second, Some(250)),
            (spec("a"), 2, second, Some(500)),
            (spec("a"), 3, second, None),
            (spec("a"), 1, Duration::from_secs(60), None),
            (spec("a").never_repeated(), 1, second, None),
            (effects.clone(), 1, second, None),
            (effects.clone().when_uncertain(Uncertain::Fail), 1, second, None),
            (effects.when_uncertain(Uncertain::Repeat), 1, second, Some(250)),
        ] {
            let wait = rules.again(&spec, failed, spent, 1.0).map(|wait| wait.as_millis());
            assert_eq!(wait, wanted, "{spec:?} {failed} {spent:?}");
        }
        assert_eq!(rules.again(&spec("a"), 1, second, 0.0), Some(Duration::from_millis(125)));
    }

    #[test]
    fn the_time_limit_is_the_nearest_setting_and_doubles_up_to_the_limit_of_all() {
        let seconds = Duration::from_secs;
        let timeouts = [("*", 5), ("web.*", 20), ("web.slow", 400)];
        let timeouts = timeouts.map(|(name, limit)| (name.to_owned(), seconds(limit))).into();
        let rules = EngineRules { timeouts, ..EngineRules::default() };
        for (name, failed, limit) in [("a", 0, 5), ("web.a", 0, 20), ("web.a", 2, 80), ("web.slow", 1, 600)] {
            assert_eq!(rules.time_limit(&spec(name), failed), seconds(limit), "{name} {failed}");
        }
        assert_eq!(EngineRules::default().time_limit(&spec("a"), 0), seconds(10), "its own");
    }

    #[test]
    fn nothing_stands_in_that_could_do_more_than_was_announced() {
        let pure = spec("pure");
        let twice = spec("twice").with_side_effects().when_uncertain(Uncertain::Repeat);
        let once = spec("once").with_side_effects();
        for (other, failed, may) in [
            (&pure, &twice, true),
            (&pure, &once, true),
            (&twice, &once, true),
            (&twice, &pure, false),
            (&once, &twice, false),
            (&pure, &pure, false),
        ] {
            assert_eq!(may_stand_in(other, failed), may, "{} for {}", other.name, failed.name);
        }
    }
}
