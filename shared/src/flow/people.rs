//! What people have a say in while a run goes on.

use std::collections::BTreeSet;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::LONGEST_RUN_MS;
use super::question::OnTimeout;
use crate::settings;

settings! {
    /// When people are asked, for how long an answer is waited for, and what follows when none comes. Part of a run's
    /// limits.
    #[derive(PartialEq, Eq)]
    #[cfg_attr(test, derive(JsonSchema))]
    pub const struct People {
        /// Whether a person looks at the plan before it is carried out: auto (nobody does), ask, or ask-if-risky.
        pub review: ReviewPolicy = ReviewPolicy::Auto => words::<ReviewPolicy>(); Project Trust,
        /// Whether a person is asked what an ambiguous goal means; else the planner goes on with what it assumes.
        pub ask_about_goal: bool = false => flag(); Project Higher,
        /// Time for an answer.
        pub answer_within_ms: u64 = 30 * 60 * 1000 => span(1, LONGEST_RUN_MS); Project Higher,
        /// What follows when nobody answers in time: proceed with the default, abort, or ask-another person.
        pub on_timeout: OnTimeout = OnTimeout::Proceed => words::<OnTimeout>(); Project Trust,
        /// Whom to ask, one after the other; whoever looks after the run when empty. Where somebody is named or reviews
        /// plans, a task that its agent cannot go on with (it went in circles, every model declined) waits for a
        /// person's word instead of ending.
        pub ask: Vec<String> = Vec::new() => list().example("[\"ann\", \"ben\"]"); Project Trust,
        /// Milestones after which a person says whether to go on: indices or names of tasks.
        pub pause_at: Vec<String> = Vec::new() => list().example("[\"1-2\"]"); Project More,
        /// Who may approve, reject, answer, edit, skip and redo; everybody when empty. Names as in their credentials (`muster
        /// keys issue person:NAME`); `operator` is whoever runs the fleet.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub approve_by: Vec<String> = Vec::new() => list().example("[\"ann\", \"ben\"]"); Project Trust,
        /// How many different people must approve before something goes on. One who approves twice counts once.
        #[serde(skip_serializing_if = "crate::is_usual::<_, 1>")]
        pub approvals: u8 = 1 => whole(1, 5); Project Higher,
        /// Tools of which a person approves each call before it is made: names, `prefix.*`, or `*`. Silence approves nothing.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub approve_tools: Vec<String> = Vec::new() => list().example("[\"mail.*\", \"shell\"]"); Project More,
        // Each is part of the run's state.
        /// Most questions of one run; further ones are answered at once with their default.
        pub max_questions: u32 = 50 => bounded(0, 500),
    }
}

impl People {
    /// Whether somebody can be asked besides whoever an agent asks by itself: a person reviews plans, or is named.
    #[must_use]
    pub fn are_there(&self) -> bool {
        self.review != ReviewPolicy::Auto || !self.ask.is_empty()
    }

    /// Whether not everybody may approve, or one is not enough: then nothing is approved because nobody answered.
    #[must_use]
    pub fn has_policy(&self) -> bool {
        self.approvals > 1 || !self.approve_by.is_empty()
    }

    /// Whether somebody may approve, reject, answer and change what is done.
    #[must_use]
    pub fn may_approve(&self, name: &str) -> bool {
        self.approve_by.is_empty() || self.approve_by.iter().any(|one| one == name)
    }

    /// What people have a say in where a fleet has a policy of its own: a goal adds to it, and takes nothing of it away. Where
    /// nobody would be left to approve, it is those of the fleet: see [`Self::check_within`].
    #[must_use]
    pub fn within(&self, fleet: &Self) -> Self {
        let more = self.approve_tools.iter().filter(|tool| !fleet.approve_tools.contains(tool));
        let approve_tools = fleet.approve_tools.iter().chain(more).cloned().collect();
        if !fleet.has_policy() {
            return Self { approve_tools, ..self.clone() };
        }
        let approve_by = self.approvers_within(fleet);
        let further = self.pause_at.iter().filter(|milestone| !fleet.pause_at.contains(milestone));
        Self {
            review: self.review.stricter(fleet.review),
            pause_at: fleet.pause_at.iter().chain(further).cloned().collect(),
            approve_by: if approve_by.is_empty() { fleet.approve_by.clone() } else { approve_by },
            approvals: self.approvals.max(fleet.approvals),
            approve_tools,
            ..self.clone()
        }
    }

    /// Whether anything could be approved in a run for which this is asked, in a fleet with a policy of its own.
    ///
    /// # Errors
    /// Says who may approve there, and what to do.
    pub fn check_within(&self, fleet: &Self) -> Result<(), String> {
        let few = self.approvers_within(fleet);
        let wanted = usize::from(self.approvals.max(fleet.approvals));
        let is_open = fleet.approve_by.is_empty() && self.approve_by.is_empty();
        if is_open || few.iter().collect::<BTreeSet<_>>().len() >= wanted {
            return Ok(());
        }
        let few = if few.is_empty() { "nobody".to_owned() } else { few.join(", ") };
        Err(if fleet.approve_by.is_empty() {
            format!(
                "limits.people: {wanted} people must approve; name more than {few} in limits.people.approve_by"
            )
        } else {
            format!(
                "limits.people: in this fleet {} may approve, and {wanted} of them must; of those, the goal leaves {few}. Ask \
                 without limits.people.approve_by, or name enough of them",
                fleet.approve_by.join(", "),
            )
        })
    }

    fn approvers_within(&self, fleet: &Self) -> Vec<String> {
        let both = |name: &&String| self.may_approve(name) && fleet.may_approve(name);
        let names = if fleet.approve_by.is_empty() { &self.approve_by } else { &fleet.approve_by };
        names.iter().filter(both).cloned().collect()
    }
}

/// Whether a person looks at the plan before it is carried out (R1).
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReviewPolicy {
    /// It is carried out at once.
    #[default]
    Auto,
    /// It waits for a person.
    Ask,
    /// It waits for a person when something in it is risky.
    AskIfRisky,
}

impl ReviewPolicy {
    /// The one of both by which more plans wait.
    #[must_use]
    pub const fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Ask, _) | (_, Self::Ask) => Self::Ask,
            (Self::AskIfRisky, _) | (_, Self::AskIfRisky) => Self::AskIfRisky,
            (Self::Auto, Self::Auto) => Self::Auto,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people(approve_by: &[&str], approvals: u8, review: ReviewPolicy) -> People {
        let approve_by = approve_by.iter().map(|&name| name.to_owned()).collect();
        People { approve_by, approvals, review, ..People::default() }
    }

    #[test]
    fn a_goal_takes_nothing_of_a_fleets_policy_away() {
        use ReviewPolicy::{Ask, AskIfRisky, Auto};
        // What the fleet says, what the goal wishes, and what holds; nothing where nobody could approve.
        type Case<'a> = (
            (&'a [&'a str], u8, ReviewPolicy),
            (&'a [&'a str], u8, ReviewPolicy),
            Option<(&'a [&'a str], u8, ReviewPolicy)>,
        );
        let cases: &[Case<'_>] = &[
            ((&["ann"], 1, Ask), (&[], 1, Auto), Some((&["ann"], 1, Ask))),
            ((&["ann"], 1, Ask), (&["cy"], 1, Auto), None),
            (
                (&["ann", "ben"], 2, AskIfRisky),
                (&["ben", "ann", "cy"], 1, Ask),
                Some((&["ann", "ben"], 2, Ask)),
            ),
            ((&["ann", "ben"], 2, Auto), (&["ann"], 1, Auto), None),
            ((&["ann", "ben"], 1, AskIfRisky), (&["ben"], 1, Auto), Some((&["ben"], 1, AskIfRisky))),
            ((&[], 2, Ask), (&["cy", "ann"], 1, Auto), Some((&["cy", "ann"], 2, Ask))),
            // Without a policy of the fleet it is the goal's.
            ((&[], 1, Ask), (&["cy"], 1, Auto), Some((&["cy"], 1, Auto))),
            ((&[], 1, Ask), (&["cy", "cy"], 2, Ask), None),
        ];
        for (fleet, wish, held) in cases {
            let of =
                |(names, approvals, review): (&[&str], u8, ReviewPolicy)| people(names, approvals, review);
            let (fleet, wish) = (of(*fleet), of(*wish));
            assert_eq!(wish.check_within(&fleet).is_ok(), held.is_some(), "{fleet:?} {wish:?}");
            match held {
                Some(held) => assert_eq!(wish.within(&fleet), of(*held)),
                None => {
                    let why = wish.check_within(&fleet).unwrap_err();
                    assert!(why.contains("limits.people.approve_by"), "{why}");
                    assert!(wish.within(&fleet).approve_by.iter().all(|name| fleet.may_approve(name)));
                }
            }
        }
    }

    #[test]
    fn what_a_fleet_with_a_policy_asks_about_is_asked_about() {
        let fleet = People { pause_at: vec!["1-2".to_owned()], ..people(&["ann"], 1, ReviewPolicy::Auto) };
        let wish = People { pause_at: vec!["2".to_owned()], ..People::default() };
        let held = wish.within(&fleet);
        assert_eq!(held.pause_at, ["1-2", "2"]);
        assert_eq!(fleet.within(&fleet), fleet);
    }
}
