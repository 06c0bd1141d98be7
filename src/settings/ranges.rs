//! What values settings may have. Each setting that is a number or a span of time stands here once, with the least and
//! the most that can work; what lies outside is refused before anything is started with it.

use std::fmt;
use std::time::Duration;

use muster_shared::span;
use serde_json::Value;

use super::Effective;
use super::error::SettingsError;
use super::keys::matches;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
const PIB: u64 = 1024 * 1024 * GIB;

/// Most of what is counted where nothing speaks for a smaller number.
const MANY: u64 = 1_000_000_000_000;

/// Most processes of one role.
pub(crate) const MOST_PROCESSES: u16 = 256;

/// Which values a setting may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Range {
    /// Whole numbers from the first to the second.
    Whole(u64, u64),
    /// One of these.
    OneOf(&'static [u64]),
    /// Numbers from the first to the second.
    Real(f64, f64),
    /// Spans of time from the first to the second, in milliseconds.
    Span(u64, u64),
}

use Range::{OneOf, Real, Span, Whole};

/// The ranges, by key; `*` stands for any name. In the order of the settings.
const RANGES: &[(&str, Range)] = &[
    ("bus.request_timeout", Span(100, HOUR)),
    ("bus.connect_timeout", Span(100, HOUR)),
    ("bus.clock_ahead", Span(SECOND, 30 * DAY)),
    ("bus.ping_interval", Span(100, HOUR)),
    ("bus.replicas", OneOf(&[1, 3, 5])),
    ("bus.record_bytes", Whole(MIB, PIB)),
    ("bus.tasks_bytes", Whole(MIB, PIB)),
    ("bus.commands_bytes", Whole(MIB, PIB)),
    ("bus.dead_bytes", Whole(MIB, PIB)),
    ("bus.dead_age", Span(MINUTE, 3650 * DAY)),
    ("bus.objects_bytes", Whole(MIB, PIB)),
    ("bus.context_bytes", Whole(MIB, PIB)),
    ("bus.lessons_bytes", Whole(64 * KIB, PIB)),
    ("bus.files_bytes", Whole(MIB, PIB)),
    ("bus.track_record_bytes", Whole(64 * KIB, PIB)),
    ("bus.object_limit", Whole(64 * KIB, 4 * GIB)),
    ("bus.ack_wait", Span(SECOND, DAY)),
    ("bus.lease_ttl", Span(SECOND, HOUR)),
    ("bus.heartbeat", Span(100, HOUR)),
    ("bus.registry_ttl", Span(SECOND, DAY)),
    ("bus.live_buffer", Whole(1, 1_000_000)),
    ("bus.subscription_buffer", Whole(16, 1_000_000)),
    ("server.port", Whole(0, 65_535)),
    ("server.memory_mib", Whole(16, 1_048_576)),
    ("server.disk_gib", Whole(1, 1_048_576)),
    ("server.start_timeout", Span(100, HOUR)),
    ("server.stop_timeout", Span(100, HOUR)),
    ("orchestrator.max_runs", Whole(1, 100_000)),
    ("orchestrator.max_waiting", Whole(0, 1_000_000)),
    ("orchestrator.patience", Span(0, DAY)),
    ("orchestrator.lessons", Whole(0, 100)),
    ("orchestrator.record_percent", Whole(1, 100)),
    ("orchestrator.scan_runs", Whole(1, 100_000)),
    ("orchestrator.max_deferred", Whole(1, 100_000)),
    ("orchestrator.snapshot_every", Whole(0, 1_000_000)),
    ("orchestrator.max_turns_in_vain", Whole(1, 1_000_000)),
    ("orchestrator.pause_in_vain", Span(1, HOUR)),
    ("agent.slots.*", Whole(1, 256)),
    ("agent.temperature", Real(0.0, 2.0)),
    ("agent.max_answer_tokens", Whole(1, 10_000_000)),
    ("agent.prices.*.input", Real(0.0, 1_000_000.0)),
    ("agent.prices.*.output", Real(0.0, 1_000_000.0)),
    ("agent.prices.*.cached", Real(0.0, 1_000_000.0)),
    ("agent.rates.*.requests_per_minute", Whole(1, 4_000_000_000)),
    ("agent.rates.*.tokens_per_minute", Whole(1, MANY)),
    ("agent.rate_patience", Span(0, 30 * DAY)),
    ("agent.limits.max_steps", Whole(1, 10_000)),
    ("agent.limits.max_asks", Whole(1, 100)),
    ("agent.limits.conclude_within", Whole(0, 10_000)),
    ("agent.limits.stale_after", Whole(0, 10_000)),
    ("agent.limits.max_spins", Whole(0, 10_000)),
    ("agent.limits.max_revisions", Whole(0, 100)),
    ("agent.limits.goal_check", Whole(0, 10_000)),
    ("agent.max_steps.*", Whole(1, 10_000)),
    ("agent.calls.call", Span(100, DAY)),
    ("agent.calls.idle", Span(100, DAY)),
    ("agent.calls.first", Span(100, DAY)),
    ("agent.calls.answer_bytes", Whole(KIB, GIB)),
    ("agent.retries.attempts", Whole(1, 1000)),
    ("agent.retries.total", Span(100, DAY)),
    ("agent.retries.base", Span(0, HOUR)),
    ("agent.retries.max_wait", Span(0, DAY)),
    ("agent.retries.max_retry_after", Span(0, DAY)),
    ("agent.breaker.failures", Whole(1, 1000)),
    ("agent.breaker.pause", Span(10, HOUR)),
    ("agent.breaker.max_pause", Span(10, DAY)),
    ("agent.breaker.patience", Span(0, DAY)),
    ("agent.max_calls", Whole(0, 1_000_000)),
    ("agent.pull_wait", Span(100, HOUR)),
    ("agent.progress", Span(100, HOUR)),
    ("agent.patience", Span(0, DAY)),
    ("agent.drain", Span(0, HOUR)),
    ("limits.max_width", Whole(1, 50)),
    ("limits.max_depth", Whole(1, 20)),
    ("limits.max_tasks", Whole(1, 500)),
    ("limits.max_steps", Whole(1, 1000)),
    ("limits.max_generations", Whole(1, 10)),
    ("limits.max_deaths", Whole(0, 10)),
    ("limits.max_refinements", Whole(0, 20)),
    ("limits.max_refine_operations", Whole(1, 20)),
    ("limits.task_deadline", Span(1, 7 * DAY)),
    ("limits.run_deadline", Span(1, 30 * DAY)),
    ("limits.start_within", Span(SECOND, 30 * DAY)),
    ("limits.silence", Span(0, 30 * DAY)),
    ("limits.wait_for_role", Span(0, 30 * DAY)),
    ("limits.planning_deadline", Span(0, 30 * DAY)),
    ("limits.executing_deadline", Span(0, 30 * DAY)),
    ("limits.writing_deadline", Span(0, 30 * DAY)),
    ("limits.writing_reserve", Whole(0, 90)),
    ("limits.budget.model_calls", Whole(1, MANY)),
    ("limits.budget.tokens", Whole(1, MANY)),
    ("limits.budget.cost", Real(0.0, 1e9)),
    ("limits.budget.steps", Whole(1, MANY)),
    ("limits.task_budget.model_calls", Whole(1, MANY)),
    ("limits.task_budget.tokens", Whole(1, MANY)),
    ("limits.task_budget.cost", Real(0.0, 1e9)),
    ("limits.task_budget.steps", Whole(1, MANY)),
    ("limits.max_nesting", Whole(0, 10)),
    ("limits.max_calls", Whole(0, MANY)),
    ("limits.people.answer_within", Span(1, 30 * DAY)),
    ("limits.people.pause_below_confidence", Whole(0, 100)),
    ("limits.people.max_questions", Whole(0, 500)),
    ("limits.people.max_delegations", Whole(0, 20)),
    ("limits.peers.max_requests", Whole(0, 1000)),
    ("limits.peers.max_bytes", Whole(1, 64 * KIB)),
    ("limits.peers.help_within", Span(1, 30 * DAY)),
    ("limits.auction.window", Span(1, MINUTE)),
    ("limits.auction.max_bids", Whole(1, 1000)),
    ("limits.auction.time_weight", Whole(0, 100)),
    ("limits.auction.overrun", Whole(0, 1000)),
    ("limits.context.max_entries", Whole(0, 2000)),
    ("limits.context.max_bytes", Whole(1, 64 * KIB)),
    ("limits.responses.error_budget", Whole(0, 10_000)),
    ("limits.responses.model_failures", Whole(0, 10_000)),
    ("limits.responses.blocked_after", Span(0, 30 * DAY)),
    ("limits.max_replans", Whole(0, 20)),
    ("limits.replan_after_failures", Whole(0, 1000)),
    ("limits.replan_after_tries", Whole(0, 100)),
    ("limits.replan_below_confidence", Whole(0, 100)),
    ("limits.max_milestones", Whole(1, 16)),
    ("limits.committee.quorum", Whole(0, 9)),
    ("limits.committee.wait", Span(0, 30 * DAY)),
    ("limits.conflicts.tolerance", Whole(0, 100)),
    ("limits.conflicts.max_redos", Whole(0, 10)),
    ("limits.conflicts.max_conflicts", Whole(0, 200)),
    ("limits.conflicts.settle_within", Span(1, 30 * DAY)),
    ("limits.draft_rounds", Whole(0, 5)),
    ("fleet.scale.*", Whole(0, MOST_PROCESSES as u64)),
    ("fleet.max_restarts", Whole(0, 1_000_000)),
    ("fleet.restart_window", Span(SECOND, DAY)),
    ("fleet.restart_wait", Span(1, HOUR)),
    ("fleet.max_restart_wait", Span(1, HOUR)),
    ("fleet.stop_limit", Span(100, HOUR)),
    ("fleet.start_limit", Span(SECOND, HOUR)),
    ("fleet.budget.model_calls", Whole(1, MANY)),
    ("fleet.budget.tokens", Whole(1, MANY)),
    ("fleet.budget.cost", Real(0.0, 1e9)),
    ("fleet.budget.steps", Whole(1, MANY)),
    ("fleet.memory_warning_mib", Whole(1, 1_048_576)),
    ("fleet.agents_look", Span(100, DAY)),
    ("ask.accept_limit", Span(100, DAY)),
    ("ask.grace", Span(0, DAY)),
    ("ask.lost_limit", Span(100, DAY)),
    ("log.max_file_mib", Whole(1, 1_048_576)),
];

/// Pairs of settings of which the first must be less than the second.
const LESS: [(&str, &str); 1] = [("bus.heartbeat", "bus.registry_ttl")];

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |millis: u64| span::text(Duration::from_millis(millis));
        match *self {
            Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Real(least, most) => write!(f, "a number from {least} to {most}"),
            Span(least, most) => write!(f, "a span of time from {} to {}", time(least), time(most)),
            OneOf(values) => {
                let words: Vec<String> = values.iter().map(u64::to_string).collect();
                write!(f, "one of {}", words.join(", "))
            }
        }
    }
}

impl Range {
    /// Whether a value lies within. A number that JSON cannot write (nan, inf) has become null.
    fn holds(&self, value: &Value) -> bool {
        let whole = value.as_u64();
        match *self {
            Whole(least, most) => whole.is_some_and(|number| (least..=most).contains(&number)),
            OneOf(values) => whole.is_some_and(|number| values.contains(&number)),
            Real(least, most) => value.as_f64().is_some_and(|number| (least..=most).contains(&number)),
            Span(least, most) => millis(value).is_some_and(|span| (least..=most).contains(&span)),
        }
    }
}

fn millis(value: &Value) -> Option<u64> {
    let span = value.as_str().and_then(span::parse)?;
    u64::try_from(span.as_millis()).ok()
}

/// The range of a key.
pub(super) fn of(key: &str) -> Option<&'static Range> {
    RANGES.iter().find(|(name, _)| matches(name, key)).map(|(_, range)| range)
}

/// Refuses the first setting whose value cannot work.
///
/// # Errors
/// Names it, its value, where that comes from, and what it may be.
pub(super) fn check(effective: &[Effective]) -> Result<(), SettingsError> {
    for setting in effective.iter().filter(|setting| setting.origin != super::DEFAULT) {
        if let Some(range) = of(&setting.key).filter(|range| !range.holds(&setting.value)) {
            return Err(wrong(setting, format!("it must be {range}")));
        }
    }
    for (less, more) in LESS {
        let find = |key: &str| effective.iter().find(|setting| setting.key == key);
        if let (Some(less), Some(more)) = (find(less), find(more))
            && millis(&less.value) >= millis(&more.value)
        {
            // What was set is named, of two that were set the first.
            let is_first = less.origin != super::DEFAULT;
            let (set, other, how) = if is_first { (less, more, "less") } else { (more, less, "more") };
            let from = if other.origin == super::DEFAULT {
                "the default".to_owned()
            } else {
                format!("from {}", other.origin)
            };
            let rule = format!("it must be {how} than {} = {} ({from})", other.key, shown(&other.value));
            return Err(wrong(set, rule));
        }
    }
    Ok(())
}

fn wrong(setting: &Effective, rule: String) -> SettingsError {
    SettingsError::OutOfRange {
        key: setting.key.clone(),
        value: shown(&setting.value),
        origin: setting.origin.clone(),
        rule,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "no number".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::PathBuf;

    use muster_orchestrator::OrchestratorSettings;
    use muster_shared::flow::{Goal, RunLimits};

    use super::super::{Inputs, Settings, load};
    use super::*;
    use crate::settings::keys::Keys;

    fn with(assignments: &[(&str, &str)]) -> Result<super::super::Loaded, SettingsError> {
        let flags = assignments.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned(), "--set".to_owned()));
        load(&Inputs { folder: PathBuf::from("/nowhere"), flags: flags.collect(), ..Inputs::default() })
    }

    /// The values at both ends of a range, as they are written.
    fn ends(range: &Range) -> [String; 2] {
        let time = |millis: u64| span::text(Duration::from_millis(millis));
        match *range {
            Whole(least, most) => [least.to_string(), most.to_string()],
            Real(least, most) => [least.to_string(), most.to_string()],
            Span(least, most) => [time(least), time(most)],
            OneOf(values) => [values[0].to_string(), values[values.len() - 1].to_string()],
        }
    }

    #[test]
    fn every_number_and_span_has_a_range_and_every_range_a_setting() {
        let keys = Keys::of::<Settings>();
        let defaults = with(&[]).unwrap().effective;
        let is_span = |key: &str| defaults.iter().any(|one| one.key == key && millis(&one.value).is_some());
        let numbers: Vec<&str> = keys
            .iter()
            .filter(|key| key.is_number || is_span(&key.name))
            .map(|key| key.name.as_str())
            .collect();
        let without: Vec<&&str> =
            numbers.iter().filter(|key| !RANGES.iter().any(|(name, _)| *name == **key)).collect();
        assert!(without.is_empty(), "add these to RANGES: {without:?}");
        for (name, _) in RANGES {
            assert!(numbers.contains(name), "{name} is no setting that is a number");
        }
        // Defaults lie within.
        for setting in defaults {
            if let Some(range) = of(&setting.key).filter(|_| !setting.value.is_null()) {
                assert!(range.holds(&setting.value), "{} = {} is not {range}", setting.key, setting.value);
            }
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_name_value_origin_and_range() {
        for (key, value, range) in [
            ("orchestrator.max_runs", "0", "a whole number from 1 to 100000"),
            ("bus.record_bytes", "1", "from 1048576 to"),
            ("bus.replicas", "2", "one of 1, 3, 5"),
            ("agent.temperature", "nan", "a number from 0 to 2"),
            ("agent.temperature", "inf", "a number from 0 to 2"),
            ("agent.temperature", "2.5", "a number from 0 to 2"),
            ("agent.slots.worker", "4000000000", "from 1 to 256"),
            ("fleet.scale.worker", "65535", "a whole number from 0 to 256"),
            ("bus.heartbeat", "0s", "a span of time from 100ms to 1h"),
            ("limits.max_width", "51", "from 1 to 50"),
            ("limits.budget.model_calls", "0", "from 1 to"),
        ] {
            let error = with(&[(key, value)]).unwrap_err();
            assert!(matches!(error, SettingsError::OutOfRange { .. }), "{key}: {error:?}");
            let said = error.to_string();
            let value = if value == "nan" || value == "inf" { "no number" } else { value };
            for part in [&format!("{key} = {value} (from --set)"), range] {
                assert!(said.contains(part), "{part:?} is not in {said}");
            }
        }
        let said = with(&[("bus.heartbeat", "20s")]).unwrap_err().to_string();
        assert_eq!(
            said,
            "bus.heartbeat = 20s (from --set) cannot work: it must be less than bus.registry_ttl = 15s (the default)"
        );
        let said = with(&[("bus.registry_ttl", "3s")]).unwrap_err().to_string();
        assert!(said.contains("bus.registry_ttl = 3s") && said.contains("more than bus.heartbeat"), "{said}");
    }

    #[test]
    fn both_ends_of_each_range_are_taken() {
        for (key, range) in RANGES.iter().filter(|(key, _)| !LESS.iter().any(|(a, b)| a == key || b == key)) {
            let key = key
                .replace('*', if key.contains("prices") || key.contains("rates") { "m" } else { "worker" });
            for end in ends(range) {
                // A price is all of its parts.
                let mut all = vec![(key.as_str(), end.as_str())];
                if key.contains("prices") {
                    all.splice(0..0, [("agent.prices.m.input", "1"), ("agent.prices.m.output", "1")]);
                }
                let taken = with(&all).map(|_| ()).map_err(|error| error.to_string());
                assert_eq!(taken, Ok(()), "{key} = {end}");
            }
        }
    }

    /// What is set holds: no limit that is taken here is made another one by whoever begins the run.
    #[test]
    fn a_limit_that_is_taken_is_the_one_that_runs_have() {
        let of_runs = RANGES.iter().filter(|(key, _)| key.starts_with("limits."));
        for (key, range) in of_runs {
            for end in ends(range) {
                let mut limits = RunLimits::from(&with(&[(key, &end)]).unwrap().settings.limits);
                if limits.budget.model_calls.is_some() {
                    // A budget of calls stands in the place of the usual bound.
                    limits.max_calls = 0;
                }
                let settings =
                    OrchestratorSettings { limits: limits.clone(), ..OrchestratorSettings::default() };
                assert_eq!(settings.limits_for(&Goal::new("g")), limits, "{key} = {end}");
            }
        }
    }
}
