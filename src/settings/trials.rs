//! The trials of a fleet: another role, model or prompt beside the usual one.

use std::collections::BTreeMap;

use muster_shared::flow::trial::{MOST_TRIALS, is_trial_name};
use muster_shared::flow::{Budget, Measure, TrialCounts, TrialMode, TrialRule, Variant, WithdrawRule};
use muster_shared::ids::Role;
use muster_shared::settings;

use super::Effective;
use super::error::SettingsError;

/// By how much worse it has to be then: in percentage points of success.
const WITHDRAW_BY: u32 = 20;

/// Number of shadows of a trial that its budget has room for at the same time.
const SHADOWS_AT_ONCE: u64 = 10;
/// Least budget of one shadow, if the trial has as much: model calls, tokens, cost, and steps of a short task.
const LEAST_OF_ONE: [u64; 4] = [12, 50_000, 10_000, 12];

/// The section.
const SECTION: &str = "trials";

/// The trials, by name.
pub(crate) type TrialSettingsByName = BTreeMap<String, TrialSettings>;

settings! {
    /// A trial: tasks of a role are done by another role, or with another model, beside the usual one.
    #[derive(PartialEq, Eq)]
    pub(crate) struct TrialSettings {
        /// The role whose tasks take part. There is one trial for a role at a time.
        pub(crate) role: String = String::new() => text().example("\"worker\""); Fleet Harmless,
        /// How: shadow (the tasks are done once more, as far as that changes nothing, and what comes of it never counts) or
        /// canary (a share of the tasks is done so, and counts).
        pub(crate) mode: TrialMode = TrialMode::Shadow => words::<TrialMode>(); Fleet Harmless,
        /// The role that does the tasks instead: a specialist, with instructions of its own.
        pub(crate) variant_role: Option<String> = None => text().example("\"worker_b\""); Fleet Trust,
        /// The model that does them instead. Runs for which somebody named a model take no part then.
        pub(crate) variant_model: Option<String> = None => text().example("\"anthropic/claude-haiku-4-5\""); Fleet Trust,
        /// Of how many of the tasks, in percent: which, is told by a hash of run and task.
        pub(crate) share: u8 = 10 => whole(1, 100).unit("percent"); Fleet Harmless,
        /// Fewest tasks that both must have done before a canary is withdrawn by rule; 0 for never.
        pub(crate) withdraw_after: u32 = 20 => whole(0, 1_000_000); Fleet Harmless,
        /// The most that all shadows of the trial may use together, apart from the budgets of runs. A shadow needs one.
        pub(crate) budget: Budget = Budget::UNLIMITED => group(Budget::SETTINGS); Fleet Trust,
    }
}

/// The budget of one shadow: it is set aside while the shadow runs, so a part of the whole leaves room for others.
fn budget_of_one(whole: Budget) -> Budget {
    whole.map(|part, limit| (limit / SHADOWS_AT_ONCE).max(LEAST_OF_ONE[part]).min(limit))
}

impl TrialSettings {
    /// What goes into the limits of runs.
    ///
    /// # Errors
    /// What is wrong with it: the part, and what it has to be.
    fn rule(&self, name: &str) -> Result<TrialRule, (&'static str, String)> {
        if !is_trial_name(name) {
            let rule = "the name of a trial is lower-case letters, digits, - and _, 48 at most".to_owned();
            return Err(("role", rule));
        }
        let role = known("role", &self.role, "say whose tasks take part, such as \"worker\"")?;
        let by = self.variant_role.as_deref();
        let by =
            by.map(|by| known("variant_role", by, "say which role does the tasks instead")).transpose()?;
        if by.is_none() && self.variant_model.is_none() {
            return Err((
                "variant_role",
                "say what is tried: variant_role, variant_model, or both".to_owned(),
            ));
        }
        if by.as_ref().is_some_and(|by| !matches!(by, Role::Specialist(_))) || by.as_ref() == Some(&role) {
            return Err((
                "variant_role",
                "it must be a role that you defined, and another than `role`".to_owned(),
            ));
        }
        let does_leaves = matches!(role, Role::Worker | Role::Researcher | Role::Specialist(_));
        if !does_leaves && (by.is_some() || self.mode == TrialMode::Shadow) {
            let rule = "only tasks of workers, researchers and specialists can be done by another role, or as a shadow";
            return Err(("role", rule.to_owned()));
        }
        if self.mode == TrialMode::Shadow && self.budget.is_unlimited() {
            let rule = "say what its shadows may use in all: model_calls, tokens or cost";
            return Err(("budget", rule.to_owned()));
        }
        let is_canary = self.mode == TrialMode::Canary;
        let withdraw =
            WithdrawRule { measure: Measure::Success, after: self.withdraw_after, by: WITHDRAW_BY };
        Ok(TrialRule {
            name: name.to_owned(),
            role,
            mode: self.mode,
            variant: Variant { role: by, model: self.variant_model.clone() },
            share: self.share,
            task_budget: budget_of_one(self.budget),
            budget: self.budget,
            withdraw: (is_canary && self.withdraw_after > 0).then_some(withdraw),
            before: TrialCounts::default(),
        })
    }
}

fn known(part: &'static str, name: &str, rule: &str) -> Result<Role, (&'static str, String)> {
    name.trim().parse().map_err(|_| (part, rule.to_owned()))
}

/// The trials that go on, as they go into the limits of runs.
///
/// # Errors
/// Names the setting that cannot work, and what it has to be.
pub(super) fn rules(
    trials: &TrialSettingsByName,
    effective: &[Effective],
) -> Result<Vec<TrialRule>, SettingsError> {
    let mut rules: Vec<TrialRule> = Vec::new();
    for (name, trial) in trials {
        let fault = |fault| SettingsError::of_part(effective, SECTION, name, fault);
        let rule = trial.rule(name).map_err(fault)?;
        if let Some(other) = rules.iter().find(|other| other.role == rule.role) {
            let both = format!(
                "trial {} is about {} too: one at a time, else nobody knows what made the difference",
                other.name, rule.role
            );
            return Err(fault(("role", both)));
        }
        rules.push(rule);
    }
    if rules.len() > MOST_TRIALS {
        return Err(SettingsError::too_many(SECTION, rules.len(), MOST_TRIALS));
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::super::{Care, Inputs, load};
    use super::*;

    fn with(toml: &str) -> Result<Vec<TrialRule>, SettingsError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("muster.toml"), toml).unwrap();
        let care = Care::Everything;
        let loaded = load(&Inputs { folder: folder.path().to_owned(), care, ..Inputs::default() })?;
        Ok(loaded.settings.limits.trials)
    }

    #[test]
    fn a_trial_is_read() {
        let canary = "[trials.cheap]\nrole = \"worker\"\nmode = \"canary\"\nvariant_model = \"openai/small\"\n\
                      share = 25\nwithdraw_after = 5\n";
        let [rule] = &with(canary).unwrap()[..] else { unreachable!() };
        assert_eq!((&rule.role, rule.mode, rule.share), (&Role::Worker, TrialMode::Canary, 25));
        assert_eq!(
            rule.withdraw,
            Some(WithdrawRule { measure: Measure::Success, after: 5, by: WITHDRAW_BY })
        );
        let shadow = "[trials.new-prompt]\nrole = \"worker\"\nvariant_role = \"worker_b\"\nshare = 100\n\
                      [trials.new-prompt.budget]\nmodel_calls = 50\n";
        let [rule] = &with(shadow).unwrap()[..] else { unreachable!() };
        assert_eq!((rule.mode, rule.budget.model_calls, rule.withdraw), (TrialMode::Shadow, Some(50), None));
        for (whole, of_one) in [(500, 50), (50, 12), (5, 5)] {
            let whole = Budget { model_calls: Some(whole), ..Budget::UNLIMITED };
            assert_eq!(budget_of_one(whole), Budget { model_calls: Some(of_one), ..Budget::UNLIMITED });
        }
        assert_eq!(rule.variant.to_string(), "role worker_b");
        assert!(with("").unwrap().is_empty());
    }

    #[test]
    fn a_trial_that_cannot_work_is_refused_with_what_it_lacks() {
        let canary = "mode = \"canary\"\n";
        for (toml, words) in [
            (format!("[trials.t]\n{canary}"), "trials.t.role"),
            (format!("[trials.t]\n{canary}role = \"worker\"\n"), "what is tried"),
            ("[trials.t]\nrole = \"worker\"\nvariant_model = \"m\"\n".to_owned(), "trials.t.budget"),
            (
                format!("[trials.t]\n{canary}role = \"worker\"\nvariant_role = \"writer\"\n"),
                "that you defined",
            ),
            (
                format!("[trials.t]\n{canary}role = \"planner\"\nvariant_role = \"p_b\"\n"),
                "only tasks of workers",
            ),
            (format!("[trials.\"T T\"]\n{canary}role = \"worker\"\nvariant_model = \"m\"\n"), "lower-case"),
            (
                format!(
                    "[trials.a]\n{canary}role = \"worker\"\nvariant_model = \"m\"\n\
                     [trials.b]\n{canary}role = \"worker\"\nvariant_model = \"n\"\n"
                ),
                "one at a time",
            ),
        ] {
            let error = with(&toml).unwrap_err();
            assert!(error.to_string().contains(words), "{toml}: {error}");
        }
    }
}
