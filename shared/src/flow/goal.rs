//! What a person asks.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::auction::AuctionRules;
use super::blueprints::{BlueprintBrief, MAX_TOLD_BYTES, MOST_TOLD};
use super::budget::Budget;
use super::child::Parent;
use super::conflicts::Conflicts;
use super::context::ContextLimits;
use super::conversation::Turn;
use super::draft_review::DraftReviewPolicy;
use super::group::Committees;
use super::pattern::Pattern;
use super::peer::Peers;
use super::people::{People, ReviewPolicy};
use super::plan::{PlanDraft, PlanTask};
use super::reflection::ReflectionLevel;
use super::response::Responses;
use crate::blueprint::Filled;
use crate::wire::Encoding;

/// Longest goal that is accepted, in bytes.
pub const MAX_GOAL_BYTES: usize = 16 * 1024;

/// What a person asks, with what belongs to the asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Goal {
    /// The person's own words.
    pub text: String,
    /// The documents given with the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<CorpusRef>,
    /// Time allowed for the whole run, in milliseconds; the fleet's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Model for every role of this run (`provider/model`), instead of what the fleet's settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who asks: a user name or the id of a program.
    #[serde(default)]
    pub asked_by: String,
    /// How the events of this run are encoded, so that a JSON-only client can read what it asked for.
    #[serde(default)]
    pub encoding: Encoding,
    /// Limits of this run instead of the fleet's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RunLimits>,
    /// Single limits of this run, by the names that they have in [`RunLimits`]; where nothing is named, the limits hold
    /// that the run would have without.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set_limits: Map<String, Value>,
    /// The most that this run may use; where it says nothing, the limits' own budget holds.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// Whether a person looks at the plan first; as the limits have it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewPolicy>,
    /// The blueprint that it is worked on by, with its values (R7); a planner makes the plan when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<Box<Filled>>,
    /// Documents that were given and could not be read, with the reason; empty when all were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unread: String,
    /// Whether somebody watches the run and can be asked, whatever its limits say of people.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attended: bool,
    /// The task of another run that it was begun for (R6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<Parent>>,
    /// Whether a planner is asked, instead of what the limits say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<Planning>,
    /// A plan that the person brings: no planner is asked (R13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<PlanDraft>>,
    /// The role to play, in the person's words; every agent is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role_name: String,
    /// The earlier runs that this goal follows, oldest first (R11).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<Turn>,
    /// What this run wants is done before what runs of lower priority want; 0 is usual (R14).
    #[serde(default, skip_serializing_if = "super::plan::is_usual_priority")]
    pub priority: i8,
    /// Whether the report's draft is reviewed; as the limits have it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_review: Option<DraftReviewPolicy>,
    /// How long tasks wait for a role that nobody has, in milliseconds; as the limits have it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_role_ms: Option<u64>,
    /// The domain whose orchestrators see to it (O11); any orchestrator when absent, or where none is of the domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The blueprints that tasks of the plan may be done by (R7).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blueprints: Vec<BlueprintBrief>,
}

/// Longest name of a domain, in bytes.
pub const MAX_DOMAIN_BYTES: usize = 40;

/// Whether this can be the name of a domain: lower case letters, digits, `_` and `-`.
#[must_use]
pub fn is_domain(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_DOMAIN_BYTES && name.bytes().all(fits)
}

/// Longest name of a role to play, in bytes.
pub const MAX_ROLE_NAME_BYTES: usize = 200;

/// Whether a goal is given to a planner (R10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Planning {
    /// Unless the goal is small.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Never: one task does the whole.
    Never,
}

impl Planning {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Why a goal is refused before any work starts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// Nothing was asked.
    #[error("the goal is empty: say in a sentence or two what you want to know or have done")]
    Empty,
    /// More was written than a goal may hold.
    #[error(
        "the goal has {bytes} bytes, {MAX_GOAL_BYTES} is the most: put long material in a file and give its folder with --docs"
    )]
    TooLong {
        /// The goal's length in bytes.
        bytes: usize,
    },
    /// The role to play is no name.
    #[error("the role to play has {bytes} bytes, {MAX_ROLE_NAME_BYTES} is the most: name it in a few words")]
    RoleNameTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The domain has no proper name.
    #[error(
        "{name:?} is no domain: it is written in lower case letters, digits, _ and -, {MAX_DOMAIN_BYTES} bytes at most"
    )]
    NoDomain {
        /// What was named.
        name: String,
    },
    /// More is told of blueprints than planners are told.
    #[error(
        "the goal brings {count} blueprints with {bytes} bytes of words, {MOST_TOLD} and {MAX_TOLD_BYTES} are the most"
    )]
    TooManyBlueprints {
        /// How many it brings.
        count: usize,
        /// How much is said of them, in bytes.
        bytes: usize,
    },
    /// A limit that is set is none, or its value is no value of it.
    #[error("the limits that the goal sets cannot be read: {reason}")]
    NoLimits {
        /// What is wrong.
        reason: String,
    },
    /// More of a conversation was sent than is kept.
    #[error("the goal brings {bytes} bytes of earlier runs, {} is the most", super::conversation::MAX_BYTES)]
    ConversationTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
}

impl Goal {
    /// A goal with nothing but its words.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            corpus: None,
            deadline_ms: None,
            model: None,
            asked_by: String::new(),
            encoding: Encoding::default(),
            limits: None,
            set_limits: Map::new(),
            budget: Budget::UNLIMITED,
            review: None,
            blueprint: None,
            planning: None,
            plan: None,
            role_name: String::new(),
            conversation: Vec::new(),
            priority: 0,
            draft_review: None,
            wait_for_role_ms: None,
            blueprints: Vec::new(),
            domain: None,
            unread: String::new(),
            attended: false,
            parent: None,
        }
    }

    /// Checks what can be checked before work starts.
    ///
    /// # Errors
    /// When the goal is empty, or something of it is longer than it may be.
    pub fn check(&self) -> Result<(), GoalError> {
        if self.text.trim().is_empty() {
            return Err(GoalError::Empty);
        }
        if self.text.len() > MAX_GOAL_BYTES {
            return Err(GoalError::TooLong { bytes: self.text.len() });
        }
        if self.role_name.len() > MAX_ROLE_NAME_BYTES {
            return Err(GoalError::RoleNameTooLong { bytes: self.role_name.len() });
        }
        if let Some(name) = self.domain.as_ref().filter(|name| !is_domain(name)) {
            return Err(GoalError::NoDomain { name: name.chars().take(MAX_DOMAIN_BYTES).collect() });
        }
        if let Err(reason) = RunLimits::default().with(&self.set_limits) {
            return Err(GoalError::NoLimits { reason });
        }
        let (count, bytes) = (self.blueprints.len(), self.blueprints.iter().map(BlueprintBrief::bytes).sum());
        if count > MOST_TOLD || bytes > MAX_TOLD_BYTES {
            return Err(GoalError::TooManyBlueprints { count, bytes });
        }
        let bytes = self.conversation.iter().map(Turn::bytes).sum();
        if bytes > super::conversation::MAX_BYTES {
            return Err(GoalError::ConversationTooLong { bytes });
        }
        Ok(())
    }
}

/// The documents of a run: a manifest in the object store, by content hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CorpusRef {
    /// Content hash that names the corpus.
    pub id: String,
    /// Number of files.
    pub files: u64,
    /// Bytes of text.
    pub bytes: u64,
}

/// How many agents may die of one task unless a run says otherwise.
const MAX_DEATHS: u32 = 3;

/// Records of before there was this limit are read and written as they were.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_deaths(deaths: &u32) -> bool {
    *deaths == MAX_DEATHS
}

/// How long an offer may lie before it goes to another, unless a run says otherwise.
const START_WITHIN_MS: u64 = 5_000;
/// How long whoever has a task may write nothing about it, unless a run says otherwise.
const SILENCE_MS: u64 = 60_000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_start(millis: &u64) -> bool {
    *millis == START_WITHIN_MS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_silence(millis: &u64) -> bool {
    *millis == SILENCE_MS
}

/// Model calls of a run unless it says otherwise.
const MAX_CALLS: u64 = 5_000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_calls(calls: &u64) -> bool {
    *calls == MAX_CALLS
}

/// How deep runs may stand within runs unless a run says otherwise.
const MAX_NESTING: u32 = 3;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_nesting(nesting: &u32) -> bool {
    *nesting == MAX_NESTING
}

/// Limits of one run. Fixed when the run is created, so that a replay decides alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    /// Most children of one task (P3).
    pub max_width: u16,
    /// Most levels of the plan (P3).
    pub max_depth: u16,
    /// Most tasks in the plan; more counts as over-decomposed (P3).
    pub max_tasks: u16,
    /// Most steps of one task (W5).
    pub max_steps: u32,
    /// Offers of one task before it counts as failed.
    pub max_generations: u32,
    /// Agents that may die one after the other of one task, without a step between them, before it is given to nobody
    /// any more; 0 for any number.
    #[serde(skip_serializing_if = "is_usual_deaths")]
    pub max_deaths: u32,
    /// How long an offer may lie where it could be started before it goes to another agent, in milliseconds. Doubles with
    /// each offer of a task that goes to whoever is free.
    #[serde(skip_serializing_if = "is_usual_start")]
    pub start_within_ms: u64,
    /// How long whoever has a task may write nothing about it before it goes to another agent, in milliseconds; 0 for as
    /// long as its time lasts. Doubles with each try. An agent may ask for more (`quiet_ms` of its profile).
    #[serde(skip_serializing_if = "is_usual_silence")]
    pub silence_ms: u64,
    /// Most refinements of the plan (P5).
    pub max_refinements: u32,
    /// Most operations in one refinement (P4).
    pub max_refine_operations: u32,
    /// Whether only a failed leaf may be split, instead of a current or future one as well (P4).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub split_failed_only: bool,
    /// Whether a refinement ends with the first operation that is carried out (P4).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refine_once: bool,
    /// Which leaves are reflected on, and how thoroughly (M2).
    #[serde(skip_serializing_if = "ReflectionLevel::is_full")]
    pub reflection: ReflectionLevel,
    /// What becomes of results that were made from a result that has changed since (R12).
    #[serde(skip_serializing_if = "WhenStale::is_redo")]
    pub when_stale: WhenStale,
    /// Time for one task, in milliseconds.
    pub task_deadline_ms: u64,
    /// Time for the run when the goal names none, in milliseconds.
    pub run_deadline_ms: u64,
    /// Time for making the plan, in milliseconds; none of its own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning_deadline_ms: Option<u64>,
    /// Time for carrying the plan out, in milliseconds; none of its own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executing_deadline_ms: Option<u64>,
    /// Time for writing the report, in milliseconds; none of its own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writing_deadline_ms: Option<u64>,
    /// The part of the run's time that is kept for writing, in percent. Nothing is kept in runs that do not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub writing_reserve_percent: u8,
    /// The most that the whole run may use.
    #[serde(skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// The most that one task may use.
    #[serde(skip_serializing_if = "Budget::is_unlimited")]
    pub task_budget: Budget,
    /// Model calls of the run, answered or not, after which nothing more is begun and the report is written from what
    /// there is; 0 for any number. More than any run needs in which all is well.
    #[serde(skip_serializing_if = "is_usual_calls")]
    pub max_calls: u64,
    /// How deep runs may stand within runs (R6); 0 for none.
    #[serde(skip_serializing_if = "is_usual_nesting")]
    pub max_nesting: u32,
    /// What people have a say in.
    #[serde(skip_serializing_if = "People::is_usual")]
    pub people: People,
    /// How much tasks may ask of each other.
    #[serde(skip_serializing_if = "Peers::is_usual")]
    pub peers: Peers,
    /// How auctions are held.
    #[serde(skip_serializing_if = "AuctionRules::is_usual")]
    pub auction: AuctionRules,
    /// How much tasks may know in common.
    #[serde(skip_serializing_if = "ContextLimits::is_usual")]
    pub context: ContextLimits,
    /// What is done when something goes wrong (O8, O10, O12).
    #[serde(skip_serializing_if = "Responses::is_usual")]
    pub responses: Responses,
    /// Whether a planner is asked.
    #[serde(skip_serializing_if = "Planning::is_auto")]
    pub planning: Planning,
    /// Whether a plan is improved from lessons of earlier runs before it is carried out (P6).
    #[serde(skip_serializing_if = "is_true")]
    pub iterate_plans: bool,
    /// Most times that what is left is planned anew (P5).
    #[serde(skip_serializing_if = "is_usual_replans")]
    pub max_replans: u32,
    /// Tasks that may fail one after the other before what is left is planned anew; 0 for any number.
    #[serde(skip_serializing_if = "is_usual_failures")]
    pub replan_after_failures: u32,
    /// Tries of one task that may fail before what is left is planned anew; 0 for any number.
    #[serde(skip_serializing_if = "is_usual_tries")]
    pub replan_after_tries: u32,
    /// What is left is planned anew when a task is less sure of what it found than this, in percent; 0 for never.
    #[serde(skip_serializing_if = "is_usual_confidence")]
    pub replan_below_confidence: u8,
    /// Most milestones of one leaf; one with more counts as too large and is split (P3).
    #[serde(skip_serializing_if = "is_usual_milestones")]
    pub max_milestones: u16,
    /// How large the tasks of a plan are to be (P3).
    #[serde(skip_serializing_if = "Granularity::is_normal")]
    pub granularity: Granularity,
    /// How tasks are given out that say nothing of it (O1).
    #[serde(skip_serializing_if = "Pattern::is_hierarchical")]
    pub pattern: Pattern,
    /// The same for critical tasks; as for all others when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_critical: Option<Pattern>,
    /// What holds of committees.
    #[serde(skip_serializing_if = "Committees::is_usual")]
    pub committee: Committees,
    /// What is done about results that contradict each other (O3).
    #[serde(skip_serializing_if = "Conflicts::is_usual")]
    pub conflicts: Conflicts,
    /// Whether a reviewer reads the draft of the report before it is delivered (O10).
    #[serde(skip_serializing_if = "DraftReviewPolicy::is_off")]
    pub draft_review: DraftReviewPolicy,
    /// Most times that the report is written again upon what a reviewer says.
    #[serde(skip_serializing_if = "is_usual_rounds")]
    pub draft_rounds: u8,
    /// How long tasks wait for a role that a user defined and that nobody has, in milliseconds.
    #[serde(skip_serializing_if = "is_usual_wait")]
    pub wait_for_role_ms: u64,
}

/// How large the tasks of a plan are to be (P3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// A few large ones.
    Coarse,
    /// As the limits say.
    #[default]
    Normal,
    /// Many small ones.
    Fine,
}

impl Granularity {
    /// Most tasks of a coarse plan as planners make it; refinements may add to it.
    const MOST_COARSE: u16 = 5;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    const fn is_normal(&self) -> bool {
        matches!(self, Self::Normal)
    }
}

/// What is left is planned anew this often at most, unless a run says otherwise.
const MAX_REPLANS: u32 = 3;
/// See [`RunLimits::replan_after_failures`].
const REPLAN_AFTER_FAILURES: u32 = 2;
/// See [`RunLimits::replan_after_tries`].
const REPLAN_AFTER_TRIES: u32 = 3;
/// See [`RunLimits::replan_below_confidence`].
const REPLAN_BELOW_CONFIDENCE: u8 = 20;
/// See [`RunLimits::max_milestones`].
const MAX_MILESTONES: u16 = 8;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_true(flag: &bool) -> bool {
    *flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_replans(replans: &u32) -> bool {
    *replans == MAX_REPLANS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_failures(failures: &u32) -> bool {
    *failures == REPLAN_AFTER_FAILURES
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_tries(tries: &u32) -> bool {
    *tries == REPLAN_AFTER_TRIES
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_confidence(percent: &u8) -> bool {
    *percent == REPLAN_BELOW_CONFIDENCE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_rounds(rounds: &u8) -> bool {
    *rounds == DraftReviewPolicy::USUAL_ROUNDS
}

/// See [`RunLimits::wait_for_role_ms`]: longer than a process takes to be started anew.
const WAIT_FOR_ROLE_MS: u64 = 30_000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_wait(wait: &u64) -> bool {
    *wait == WAIT_FOR_ROLE_MS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_usual_milestones(milestones: &u16) -> bool {
    *milestones == MAX_MILESTONES
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_width: 5,
            max_depth: 3,
            max_tasks: 20,
            max_steps: 10,
            max_generations: 3,
            max_deaths: MAX_DEATHS,
            start_within_ms: START_WITHIN_MS,
            silence_ms: SILENCE_MS,
            max_refinements: 3,
            max_refine_operations: 4,
            split_failed_only: false,
            refine_once: false,
            reflection: ReflectionLevel::Full,
            when_stale: WhenStale::Redo,
            task_deadline_ms: 10 * 60 * 1000,
            run_deadline_ms: 60 * 60 * 1000,
            planning_deadline_ms: None,
            executing_deadline_ms: None,
            writing_deadline_ms: None,
            writing_reserve_percent: 10,
            budget: Budget::UNLIMITED,
            task_budget: Budget::UNLIMITED,
            max_calls: MAX_CALLS,
            max_nesting: MAX_NESTING,
            people: People::default(),
            peers: Peers::USUAL,
            auction: AuctionRules::USUAL,
            context: ContextLimits::USUAL,
            responses: Responses::USUAL,
            planning: Planning::Auto,
            iterate_plans: true,
            max_replans: MAX_REPLANS,
            replan_after_failures: REPLAN_AFTER_FAILURES,
            replan_after_tries: REPLAN_AFTER_TRIES,
            replan_below_confidence: REPLAN_BELOW_CONFIDENCE,
            max_milestones: MAX_MILESTONES,
            granularity: Granularity::Normal,
            pattern: Pattern::Hierarchical,
            pattern_critical: None,
            committee: Committees::default(),
            conflicts: Conflicts::default(),
            draft_review: DraftReviewPolicy::Off,
            draft_rounds: DraftReviewPolicy::USUAL_ROUNDS,
            wait_for_role_ms: WAIT_FOR_ROLE_MS,
        }
    }
}

/// What becomes of results that were made from a result that has changed since (R12).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenStale {
    /// They are made again.
    #[default]
    Redo,
    /// They stay, and the report says what they were made from.
    Mark,
}

impl WhenStale {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    const fn is_redo(&self) -> bool {
        matches!(self, Self::Redo)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(percent: &u8) -> bool {
    *percent == 0
}

/// Puts values into an object, one by one where they are objects themselves.
fn put(all: &mut Value, changes: &Map<String, Value>) {
    if !all.is_object() {
        *all = Value::Object(Map::new());
    }
    for (name, value) in changes {
        match (value, &mut all[name]) {
            (Value::Object(inner), within) => put(within, inner),
            (plain, within) => *within = plain.clone(),
        }
    }
}

impl RunLimits {
    /// These limits with single ones set to something else, by their names.
    ///
    /// # Errors
    /// When there is no limit of a name, or a value is none that it can have.
    pub fn with(&self, changes: &Map<String, Value>) -> Result<Self, String> {
        if changes.is_empty() {
            return Ok(self.clone());
        }
        let mut all = serde_json::to_value(self).map_err(|error| error.to_string())?;
        put(&mut all, changes);
        serde_json::from_value(all).map_err(|error| error.to_string())
    }

    /// These limits as they hold for plans that planners make, with tasks as large as they are to be.
    #[must_use]
    pub fn for_planners(&self) -> Self {
        let (tasks, milestones) = (self.max_tasks, self.max_milestones);
        let (max_tasks, max_milestones) = match self.granularity {
            Granularity::Coarse => (tasks.min(Granularity::MOST_COARSE), milestones.saturating_mul(2)),
            Granularity::Normal => (tasks, milestones),
            Granularity::Fine => (tasks, (milestones / 2).max(2).min(milestones)),
        };
        Self { max_tasks, max_milestones, ..self.clone() }
    }

    /// These limits as they hold for plans that people bring: how large a task is, they say themselves.
    #[must_use]
    pub fn for_people(&self) -> Self {
        Self { max_milestones: u16::MAX, ..self.clone() }
    }

    /// How a task of the plan is given out: as it says itself, else as these limits say.
    #[must_use]
    pub fn pattern_of(&self, task: &PlanTask) -> Pattern {
        let usual = self.pattern_critical.filter(|_| task.critical).unwrap_or(self.pattern);
        task.pattern.unwrap_or(usual)
    }

    /// Time for one task.
    #[must_use]
    pub const fn task_deadline(&self) -> Duration {
        Duration::from_millis(self.task_deadline_ms)
    }
}
