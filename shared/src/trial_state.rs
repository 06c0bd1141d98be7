//! How a trial stands in the whole fleet: what was counted, what its shadows used, and whether it was withdrawn. Pure;
//! whoever changes it writes it by compare-and-set.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::flow::{Budget, TrialCounts, TrialRule, Usage};
use crate::ids::RunId;
use crate::text::beginning;
use crate::time::Millis;

/// Most runs that are remembered as counted: what is told once more later would count twice.
const MOST_COUNTED: usize = 512;

/// Most shadows that go on at once.
pub const MOST_OPEN: usize = 256;

/// Longest reason that is kept, in characters.
const MAX_REASON: usize = 500;

/// How a trial stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialState {
    /// Its name.
    pub name: String,
    /// What was compared with what: of another variant it says nothing.
    pub about: String,
    /// Since when it is counted.
    pub since: Millis,
    /// What both sides came to.
    pub counts: TrialCounts,
    /// What its shadows used that have ended.
    pub used: Usage,
    /// What is set aside for shadows that go on, by run.
    pub open: BTreeMap<RunId, Budget>,
    /// Whether it was withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawal>,
    /// Runs that were counted, the latest last.
    pub counted: VecDeque<RunId>,
}

/// That a trial was withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// When.
    pub at: Millis,
    /// By whom: a run by rule, or a person.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl TrialState {
    /// How a trial stands of which nothing is known.
    #[must_use]
    pub fn new(rule: &TrialRule, now: Millis) -> Self {
        Self { name: rule.name.clone(), about: rule.about(), since: now, ..Self::default() }
    }

    /// How a trial stands that these settings describe: what was known of another variant is forgotten.
    #[must_use]
    pub fn of(known: Option<Self>, rule: &TrialRule, now: Millis) -> Self {
        known.filter(|state| state.about == rule.about()).unwrap_or_else(|| Self::new(rule, now))
    }

    /// The rule as a run is to have it that begins now; nothing where it takes no part.
    #[must_use]
    pub fn standing(&self, rule: &TrialRule) -> Option<TrialRule> {
        let is_same = self.about == rule.about();
        let is_spent = || rule.budget.left(&self.used).parts().into_iter().any(|left| left == Some(0));
        if is_same && (self.withdrawn.is_some() || is_spent()) {
            return None;
        }
        let before = if is_same { self.counts } else { TrialCounts::default() };
        Some(TrialRule { before, ..rule.clone() })
    }

    /// Counts what the trial came to in a run. Told twice it counts once.
    pub fn count(&mut self, run: RunId, counts: TrialCounts) {
        if self.note(run) {
            self.counts = self.counts.and(counts);
        }
    }

    /// Sets aside what a shadow may use. Says whether there is enough.
    pub fn reserve(&mut self, run: RunId, rule: &TrialRule) -> bool {
        if self.withdrawn.is_some() || self.counted.contains(&run) {
            return false;
        }
        if self.open.contains_key(&run) {
            return true;
        }
        let wanted = rule.of_one_shadow();
        let left = rule.budget.left(&self.used);
        let left = self.open.values().fold(left, |left, open| left.without(open));
        let enough = self.open.len() < MOST_OPEN && left.covers(&wanted);
        if enough {
            self.open.insert(run, wanted);
        }
        enough
    }

    /// A shadow has ended, and used this much.
    pub fn settle(&mut self, run: RunId, used: Usage) {
        if self.open.remove(&run).is_some() && self.note(run) {
            self.used += used;
        }
    }

    /// Withdraws it. One that was withdrawn before stays as it was.
    pub fn withdraw(&mut self, at: Millis, by: &str, reason: &str) {
        let cut = |text: &str| beginning(text, MAX_REASON);
        self.withdrawn.get_or_insert_with(|| Withdrawal { at, by: cut(by), reason: cut(reason) });
    }

    /// Has it go on, and counts anew: what spoke against it must not end it again at once.
    pub fn resume(&mut self, now: Millis) {
        self.withdrawn = None;
        self.counts = TrialCounts::default();
        self.since = now;
    }

    /// Whether the run was not noted before.
    fn note(&mut self, run: RunId) -> bool {
        if self.counted.contains(&run) {
            return false;
        }
        if self.counted.len() >= MOST_COUNTED {
            self.counted.pop_front();
        }
        self.counted.push_back(run);
        true
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::flow::{ArmCount, TrialMode, Variant};
    use crate::ids::Role;

    fn run(number: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(number))
    }

    fn rule(calls: u64, each: u64) -> TrialRule {
        TrialRule {
            name: "t".to_owned(),
            role: Role::Worker,
            mode: TrialMode::Shadow,
            variant: Variant { model: Some("m".to_owned()), role: None },
            share: 100,
            task_budget: Budget { model_calls: Some(each), ..Budget::UNLIMITED },
            budget: Budget { model_calls: Some(calls), ..Budget::UNLIMITED },
            withdraw: None,
            before: TrialCounts::default(),
        }
    }

    fn used(calls: u64) -> Usage {
        Usage { model_calls: calls, ..Usage::default() }
    }

    #[test]
    fn shadows_never_use_more_than_their_budget() {
        let rule = rule(10, 4);
        let mut state = TrialState::new(&rule, Millis(1));
        assert!(state.reserve(run(1), &rule) && state.reserve(run(2), &rule));
        assert!(state.reserve(run(1), &rule), "asked again it is set aside once");
        assert!(!state.reserve(run(3), &rule), "8 of 10 are set aside");
        state.settle(run(1), used(1));
        state.settle(run(1), used(1));
        assert_eq!(state.used.model_calls, 1);
        assert!(state.reserve(run(3), &rule));
        assert!(!state.reserve(run(1), &rule), "it has ended");
        for number in [2, 3] {
            state.settle(run(number), used(4));
        }
        assert!(!state.reserve(run(4), &rule), "1 of 10 is left");
        assert!(state.standing(&rule).is_some());
        state.used = used(10);
        assert_eq!(state.standing(&rule), None);
    }

    #[test]
    fn what_is_told_twice_counts_once_and_another_variant_begins_anew() {
        let rule = rule(10, 4);
        let mut state = TrialState::new(&rule, Millis(1));
        let counts =
            TrialCounts { variant: ArmCount { tasks: 1, ..ArmCount::default() }, ..TrialCounts::default() };
        state.count(run(1), counts);
        state.count(run(1), counts);
        assert_eq!(state.standing(&rule).unwrap().before, counts);
        let other =
            TrialRule { variant: Variant { model: Some("n".to_owned()), role: None }, ..rule.clone() };
        assert_eq!(state.standing(&other).unwrap().before, TrialCounts::default());
        state.withdraw(Millis(2), "ann", "enough");
        state.withdraw(Millis(3), "ben", "more");
        assert_eq!(state.withdrawn.as_ref().unwrap().by, "ann");
        assert!(state.standing(&rule).is_none() && state.standing(&other).is_some());
        assert_eq!(TrialState::of(Some(state.clone()), &other, Millis(4)).withdrawn, None);
        state.resume(Millis(5));
        assert_eq!(state.standing(&rule).unwrap().before, TrialCounts::default());
    }

    #[test]
    fn only_so_many_runs_are_remembered() {
        let mut state = TrialState::new(&rule(1, 1), Millis(1));
        for number in 0..2 * MOST_COUNTED {
            state.count(run(number as u128), TrialCounts::default());
        }
        assert_eq!(state.counted.len(), MOST_COUNTED);
    }
}
