//! `muster trials`.

use muster_shared::flow::{ArmCount, TrialMode, TrialRule};
use muster_shared::trial_state::TrialState;
use serde_json::{Value, json};

use super::{figures, table};

/// Longest reason that is shown, in columns.
const REASON: usize = 120;

/// A trial, as it is set and as it stands.
pub(crate) struct Standing<'a> {
    pub(crate) rule: Option<&'a TrialRule>,
    pub(crate) state: Option<&'a TrialState>,
}

impl Standing<'_> {
    fn name(&self) -> String {
        let name = self.rule.map(|rule| rule.name.as_str()).or(self.state.map(|state| state.name.as_str()));
        figures::one_line(name.unwrap_or_default(), 48)
    }

    fn about(&self) -> String {
        let about = self.rule.map(TrialRule::about).or_else(|| self.state.map(|state| state.about.clone()));
        figures::one_line(&about.unwrap_or_default(), 80)
    }

    /// How it stands, in a word or two.
    fn word(&self) -> &'static str {
        match (self.rule, self.state) {
            (_, Some(state)) if state.withdrawn.is_some() => "withdrawn",
            (None, _) => "ended",
            (Some(rule), Some(state)) if state.standing(rule).is_none() => "budget used up",
            (Some(_), _) => "goes on",
        }
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        let state = self.state;
        json!({
            "trial": self.name(), "about": self.about(), "stands": self.word(), "rule": self.rule,
            "since": state.map(|state| state.since), "counts": state.map(|state| state.counts),
            "shadows_used": state.map(|state| state.used), "shadows_open": state.map(|state| state.open.len()),
            "withdrawn": state.and_then(|state| state.withdrawn.as_ref()),
        })
    }
}

/// All trials, with why those are withdrawn that are.
pub(crate) fn table(all: &[Standing<'_>]) -> String {
    if all.is_empty() {
        return "there are no trials: see docs/trials.md".to_owned();
    }
    let heading = ["TRIAL", "STANDS", "WHAT", "USUAL", "TRIED", "SHADOWS USED"];
    let arm = |count: ArmCount| format!("{} of {} well", count.done, count.tasks);
    let rows = all.iter().map(|one| {
        let counts = one.state.map(|state| state.counts).unwrap_or_default();
        let is_shadow = one.rule.is_some_and(|rule| rule.mode == TrialMode::Shadow);
        let used = one.state.map(|state| figures::usage(&state.used));
        let tried = if is_shadow { "see compare".to_owned() } else { arm(counts.variant) };
        let used = used.filter(|_| is_shadow).unwrap_or_default();
        vec![one.name(), one.word().to_owned(), one.about(), arm(counts.control), tried, used]
    });
    let mut text = table::plain(&heading, rows.collect(), &[]);
    for one in all {
        let Some(withdrawn) = one.state.and_then(|state| state.withdrawn.as_ref()) else { continue };
        text += &format!(
            "\n\n{} was withdrawn on {} UTC by {}: {}",
            one.name(),
            figures::date(withdrawn.at),
            figures::one_line(&withdrawn.by, 60),
            figures::one_line(&withdrawn.reason, REASON)
        );
    }
    text
}
