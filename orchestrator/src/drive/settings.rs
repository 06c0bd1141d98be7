//! Settings of an orchestrator.

use std::time::Duration;

use muster_shared::flow::guard::joined;
use muster_shared::flow::limits::LONGEST_RUN_MS;
use muster_shared::flow::{Goal, RunLimits};
use muster_shared::ids::Role;
use muster_shared::settings;

settings! {
    /// How an orchestrator works, and its limits.
    #[derive(PartialEq, Eq)]
    pub struct OrchestratorSettings {
        /// Its name on its host, by which it is known again when it is started again. Not a setting of its own: `agent.name`
        /// is copied here.
        #[serde(skip)]
        pub name: String = String::new() => internal(),
        /// Most runs at once; goals above it wait in the queue of commands.
        pub max_runs: usize = 64 => whole(1, 100_000); Fleet Harmless,
        /// Most goals that wait while too many runs are going on; more are refused at once.
        pub max_waiting: usize = 256 => whole(0, 1_000_000); Fleet Harmless,
        /// How long a goal is put back in the queue, a second at a time, before it is refused because too many runs
        /// are going on.
        #[serde(with = "muster_shared::span")]
        pub patience: Duration = Duration::from_secs(60) => internal(),
        /// Limits of a run whose goal names none. Not a setting of its own: the section `limits` is copied here.
        #[serde(skip)]
        pub limits: RunLimits = RunLimits::default() => internal(),
        /// Most inputs that are put off to be decided together. Not a setting: it only bounds how much one decision reads,
        /// and no fleet sends as much in the moment that it is put off for.
        #[serde(skip)]
        pub max_deferred: usize = 256 => internal(),
        /// After how many entries of its record the state of a run is kept aside, so that whoever takes it over need not
        /// fold all of them; 0 for never.
        pub snapshot_every: u32 = 200 => internal(),
        /// The roles whose agents start with the fleet: plans may name them before they join. Not a setting.
        #[serde(skip)]
        pub expected_roles: Vec<Role> = vec![Role::Researcher, Role::Worker] => internal(),
        /// The domains whose runs this orchestrator sees to (`muster run --domain NAME`, the action `plan`); it leaves others
        /// to orchestrators of no domain, as long as there are some.
        pub domains: Vec<String> = Vec::new() => list(); Fleet Harmless,
    }
}

impl OrchestratorSettings {
    /// The limits of a run: those its goal names, else these, none above what any run may have.
    #[must_use]
    pub fn limits_for(&self, goal: &Goal) -> RunLimits {
        let usual = goal.limits.as_ref().unwrap_or(&self.limits);
        let mut limits = self.wished(goal);
        limits.people.review = goal.review.unwrap_or(limits.people.review);
        // Who has to approve in this fleet, has to whatever the goal says.
        limits.people = limits.people.within(&self.limits.people);
        limits.planning = goal.planning.unwrap_or(limits.planning);
        limits.draft_review = goal.draft_review.unwrap_or(limits.draft_review);
        limits.wait_for_role_ms = goal.wait_for_role_ms.unwrap_or(limits.wait_for_role_ms);
        limits.budget = goal.budget.or(&limits.budget);
        if limits.budget.model_calls.is_some() {
            // A budget that names a number of calls holds instead.
            limits.max_calls = 0;
        }
        // What a goal says adds guards and takes none away; a part of a run has those of the whole.
        limits.guards = joined(&self.limits.guards, &joined(&usual.guards, &limits.guards));
        // Nor does it give itself more rights than the fleet gives.
        let rights = self.limits.rights.narrowed_by(&usual.rights).narrowed_by(&limits.rights);
        limits.rights = Box::new(rights);
        // What is tried in this fleet, it says itself; and nothing is tried with what is a trial.
        limits.trials = if goal.shadow.is_some() { Vec::new() } else { self.limits.trials.clone() };
        limits.within_bounds()
    }

    /// The limits that a goal names, or the usual ones.
    fn wished(&self, goal: &Goal) -> RunLimits {
        let usual = goal.limits.as_ref().unwrap_or(&self.limits);
        // A goal whose limits cannot be read is refused: those of its refusal do not matter.
        usual.with(&goal.set_limits).unwrap_or_else(|_| usual.clone())
    }

    /// Whether anything could be approved in a run of this goal.
    ///
    /// # Errors
    /// Says why not, and what to do.
    pub fn check_policy(&self, goal: &Goal) -> Result<(), String> {
        self.wished(goal).people.check_within(&self.limits.people)
    }

    /// The longest deadline that a goal may name, in milliseconds.
    #[must_use]
    pub const fn longest_deadline_ms() -> u64 {
        LONGEST_RUN_MS
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{People, ReviewPolicy};
    use serde_json::{Value, json};

    use super::*;

    fn goal(people: &Value) -> Goal {
        let Value::Object(set_limits) = json!({ "people": people }) else { panic!("no object") };
        Goal { set_limits, ..Goal::new("Why?") }
    }

    #[test]
    fn whoever_asks_takes_nothing_of_the_fleets_policy_away() {
        let policy = People {
            review: ReviewPolicy::Ask,
            approve_by: vec!["ann".to_owned(), "ben".to_owned()],
            approvals: 2,
            ..People::default()
        };
        let limits = RunLimits { people: policy.clone(), ..RunLimits::default() };
        let fleet = OrchestratorSettings { limits, ..OrchestratorSettings::default() };
        let without = RunLimits { people: People::default(), ..RunLimits::default() };
        for goal in [
            Goal::new("Why?"),
            Goal { review: Some(ReviewPolicy::Auto), ..goal(&json!({ "approve_by": [], "approvals": 1 })) },
            goal(&json!({ "review": "auto", "approve_by": ["ben", "ann", "cy"] })),
            Goal { limits: Some(without), ..Goal::new("Why?") },
        ] {
            assert_eq!(fleet.check_policy(&goal), Ok(()), "{goal:?}");
            let held = fleet.limits_for(&goal).people;
            let (review, approve_by, approvals) = (held.review, held.approve_by, held.approvals);
            assert_eq!(
                (review, approve_by, approvals),
                (ReviewPolicy::Ask, policy.approve_by.clone(), 2),
                "{goal:?}"
            );
        }
        for names in [json!(["cy"]), json!(["ann"])] {
            let goal = goal(&json!({ "approve_by": names }));
            let why = fleet.check_policy(&goal).unwrap_err();
            assert!(why.contains("ann, ben may approve, and 2 of them must"), "{why}");
        }
    }
}
