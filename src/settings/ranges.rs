//! Refuses values that are out of range.

use muster_agents::model::target::ModelProvider;
use muster_shared::setting::Takes;
use serde_json::Value;

use super::Effective;
use super::error::SettingsError;
use super::keys::Keys;

/// Refuses the first setting whose value cannot work.
///
/// # Errors
/// Names it, its value, where that comes from, and what it may be.
pub(super) fn check(effective: &[Effective], keys: &Keys) -> Result<(), SettingsError> {
    for setting in effective.iter().filter(|setting| setting.origin != super::DEFAULT) {
        let takes = keys.find(&setting.key).map(|key| key.setting.takes).filter(Takes::is_bounded);
        if let Some(takes) = takes.filter(|takes| !takes.allows(&setting.value)) {
            return Err(wrong(setting, format!("it must be {takes}")));
        }
        if let Some(name) = setting.key.strip_prefix("agent.rates.") {
            let name = name.trim_start_matches('"').split(['/', '.', '"']).next().unwrap_or_default();
            if ModelProvider::by_name(name).map(ModelProvider::name) != Some(name) {
                let rule = "NAME in agent.rates.NAME must be openai, anthropic, gemini, ollama, or \"PROVIDER/MODEL\"";
                return Err(wrong(setting, rule.to_owned()));
            }
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
    use std::path::PathBuf;

    use std::time::Duration;

    use muster_orchestrator::OrchestratorSettings;
    use muster_shared::flow::Goal;
    use muster_shared::setting::{Kind, millis};
    use muster_shared::span;

    use super::super::{Inputs, Settings, load};
    use super::*;
    use crate::settings::keys::Key;

    /// The settings that are bounded by numbers.
    fn bounded() -> Vec<Key> {
        let keys = Keys::of(Settings::SETTINGS);
        keys.iter().filter(|key| key.setting.takes.is_bounded()).cloned().collect()
    }

    fn with(assignments: &[(&str, &str)]) -> Result<super::super::Loaded, SettingsError> {
        let flags = assignments.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned(), "--set".to_owned()));
        load(&Inputs { folder: PathBuf::from("/nowhere"), flags: flags.collect(), ..Inputs::default() })
    }

    /// The values at both ends of a range, as they are written.
    fn ends(takes: &Takes) -> [String; 2] {
        let time = |millis: u64| span::text(Duration::from_millis(millis));
        match takes.kind {
            Kind::Whole { least, most } => [least.to_string(), most.to_string()],
            Kind::Real { least, most } => [least.to_string(), most.to_string()],
            Kind::Span { least, most } => [time(least), time(most)],
            Kind::OneOf(values) => [values[0].to_string(), values[values.len() - 1].to_string()],
            kind => unreachable!("{kind:?} is not bounded"),
        }
    }

    #[test]
    fn every_default_is_what_the_setting_may_be_and_every_number_is_bounded() {
        let keys = Keys::of(Settings::SETTINGS);
        for setting in with(&[]).unwrap().effective {
            let takes = keys.find(&setting.key).unwrap().setting.takes;
            let is_number = setting.value.is_number() || millis(&setting.value).is_some();
            assert!(!is_number || takes.is_bounded(), "{} has no bounds", setting.key);
            assert!(
                setting.value.is_null() || takes.allows(&setting.value),
                "{} = {} is not {takes}",
                setting.key,
                setting.value
            );
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
            ("agent.rates.opnai.requests_per_minute", "5", "PROVIDER/MODEL"),
            ("agent.rates.google.requests_per_minute", "5", "gemini"),
        ] {
            let error = with(&[(key, value)]).unwrap_err();
            assert!(matches!(error, SettingsError::OutOfRange { .. }), "{key}: {error:?}");
            let said = error.to_string();
            let value = if value == "nan" || value == "inf" { "no number" } else { value };
            for part in [&format!("{key} = {value} (from --set)"), range] {
                assert!(said.contains(part), "{part:?} is not in {said}");
            }
        }
    }

    #[test]
    fn both_ends_of_each_range_are_taken() {
        for Key { name, setting, .. } in bounded() {
            let key = name.replace(
                '*',
                match name.split('.').next() {
                    // Of guards, one of which nothing else has to be said.
                    Some("guards") => "secrets",
                    _ if name.contains("prices") => "m",
                    _ if name.contains("rates") => "openai/m",
                    _ => "worker",
                },
            );
            for end in ends(&setting.takes) {
                let mut trial: Vec<(String, &str)> = Vec::new();
                // A price is all of its parts.
                let mut all = vec![(key.as_str(), end.as_str())];
                if key.starts_with("trials") {
                    let own = [("role", "worker"), ("mode", "canary"), ("variant_model", "m")];
                    for (part, value) in own {
                        trial.push((format!("trials.worker.{part}"), value));
                    }
                    all.splice(0..0, trial.iter().map(|(key, value)| (key.as_str(), *value)));
                }
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
        for Key { name: key, setting, .. } in bounded().iter().filter(|key| key.name.starts_with("limits.")) {
            for end in ends(&setting.takes) {
                let mut limits = with(&[(key, &end)]).unwrap().settings.limits;
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
