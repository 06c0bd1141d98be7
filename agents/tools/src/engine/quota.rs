//! How many calls of some tools are left.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

use super::ToolEngine;
use super::ending::Ending;
use super::rules::EngineRules;
use crate::context::ToolContext;
use crate::spec::ToolSpec;
use muster_shared::sync::lock;

/// How long the calls of a task and of a run are counted: longer than any run takes.
const RUN: Duration = Duration::from_secs(7 * 24 * 3600);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Most counts that one process keeps.
const MOST_COUNTS: usize = 10_000;

/// One count of calls that has a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCount {
    /// What is counted; the same wherever it is. Letters, digits, `-`, `_` and dots.
    pub key: String,
    /// How many there may be.
    pub most: u64,
    /// How long the count stands.
    pub kept: Duration,
    /// What is limited, in words: `20 calls of web.* in a task`.
    pub in_words: String,
}

/// Where calls are counted: for one process, or for a whole fleet.
#[async_trait]
pub trait CallCounter: Send + Sync + 'static {
    /// Counts one call more; gives whether there was room for it.
    ///
    /// # Errors
    /// Why it cannot be counted.
    async fn count(&self, count: &CallCount) -> Result<bool, String>;
}

impl ToolEngine {
    /// Why no more calls of the tool are made, if its quotas are used up. Those that were counted before the one that is
    /// used up stay so.
    pub(super) async fn over_quota(&self, spec: &ToolSpec, ctx: &ToolContext) -> Option<Ending> {
        if self.rules.quotas.is_empty() {
            return None;
        }
        for count in counts(&self.rules, &spec.name, ctx, SystemTime::now()) {
            let name = &spec.name;
            match self.counter.count(&count).await {
                Ok(true) => {}
                Ok(false) => {
                    return Some(Ending::refused(format!(
                        "`{name}` was not called: there may be {}, and there were. Go on without it.",
                        count.in_words
                    )));
                }
                Err(error) => {
                    return Some(Ending::unavailable(format!(
                        "`{name}` was not called: how many calls are left cannot be found out ({error})."
                    )));
                }
            }
        }
        None
    }
}

/// The counts that a call of a tool needs room in, the narrowest first.
pub(super) fn counts(rules: &EngineRules, tool: &str, ctx: &ToolContext, now: SystemTime) -> Vec<CallCount> {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let all = rules.quotas_of(tool).flat_map(|(pattern, quota)| {
        let name = plain(pattern);
        let count = |most: Option<u64>, scope: String, kept: Duration, per: &str| {
            let in_words = |most: u64| format!("{most} calls of {pattern} in a {per}");
            most.map(|most| CallCount {
                key: format!("{name}.{scope}"),
                most,
                kept,
                in_words: in_words(most),
            })
        };
        let (run, task) = (plain(&ctx.run), plain(&ctx.task));
        [
            count(quota.per_task, format!("task.{run}.{task}"), RUN, "task"),
            count(quota.per_run, format!("run.{run}"), RUN, "run"),
            count(quota.per_minute, format!("minute.{}", since / MINUTE.as_secs()), 2 * MINUTE, "minute"),
            count(quota.per_day, format!("day.{}", since / DAY.as_secs()), 2 * DAY, "day"),
        ]
    });
    all.flatten().collect()
}

/// What no key may hold becomes a line.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().take(100).map(plain).collect()
}

/// Counts the calls of this process.
#[derive(Debug, Default)]
pub struct LocalCounts {
    counts: Mutex<BTreeMap<String, Counted>>,
}

#[derive(Debug)]
struct Counted {
    calls: u64,
    until: Instant,
}

#[async_trait]
impl CallCounter for LocalCounts {
    async fn count(&self, count: &CallCount) -> Result<bool, String> {
        let (mut counts, now) = (lock(&self.counts), Instant::now());
        if counts.len() >= MOST_COUNTS && !counts.contains_key(&count.key) {
            counts.retain(|_, counted| counted.until > now);
            if counts.len() >= MOST_COUNTS {
                return Err(format!("more than {MOST_COUNTS} quotas are in use at once"));
            }
        }
        let counted =
            counts.entry(count.key.clone()).or_insert(Counted { calls: 0, until: now + count.kept });
        if counted.until <= now {
            *counted = Counted { calls: 0, until: now + count.kept };
        }
        let has_room = counted.calls < count.most;
        counted.calls += u64::from(has_room);
        Ok(has_room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rules::ToolQuota;

    #[test]
    fn every_quota_that_means_a_tool_counts_and_names_its_scope() {
        let quota = |per_task, per_minute| ToolQuota { per_task, per_minute, ..ToolQuota::default() };
        let quotas = [
            ("web.*", quota(Some(3), None)),
            ("web.fetch", quota(None, Some(60))),
            ("sql", quota(Some(1), None)),
        ];
        let quotas = quotas.map(|(name, quota)| (name.to_owned(), quota)).into();
        let ctx = ToolContext::new("r1", "1-2");
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(125);
        let rules = EngineRules { quotas, ..EngineRules::default() };
        let found = counts(&rules, "web.fetch", &ctx, at);
        let told: Vec<(&str, u64, &str)> =
            found.iter().map(|one| (one.key.as_str(), one.most, one.in_words.as_str())).collect();
        assert_eq!(
            told,
            [
                ("web__.task.r1.1-2", 3, "3 calls of web.* in a task"),
                ("web_fetch.minute.2", 60, "60 calls of web.fetch in a minute")
            ]
        );
        assert!(counts(&rules, "calculator", &ctx, at).is_empty());
    }

    #[tokio::test]
    async fn so_many_calls_have_room_and_no_more_until_the_count_is_over() {
        let counts = LocalCounts::default();
        let count =
            |key: &str, kept| CallCount { key: key.to_owned(), most: 2, kept, in_words: String::new() };
        let long = count("a", RUN);
        let mut had = Vec::new();
        for _ in 0..3 {
            had.push(counts.count(&long).await.unwrap());
        }
        assert_eq!(had, [true, true, false]);
        assert!(counts.count(&count("b", RUN)).await.unwrap(), "another count");
        for _ in 0..5 {
            assert!(counts.count(&count("c", Duration::ZERO)).await.unwrap(), "over at once");
        }
    }
}
