//! What a person asks.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::blueprints::{BlueprintBrief, MAX_TOLD_BYTES, MOST_TOLD};
use super::budget::Budget;
use super::child::Parent;
use super::conversation::Turn;
use super::draft_review::DraftReviewPolicy;
use super::limits::RunLimits;
use super::people::ReviewPolicy;
use super::plan::PlanDraft;
use super::trial::ShadowOf;
use crate::blueprint::Filled;
use crate::ids::RunId;
use crate::wire::{Encoding, TraceContext};

/// Longest goal that is accepted, in bytes.
pub const MAX_GOAL_BYTES: usize = 16 * 1024;

/// What a person asks, with what belongs to the asking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Goal {
    /// The person's own words.
    pub text: String,
    /// The documents given with the goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corpus: Option<CorpusRef>,
    /// Time allowed for the whole run, in milliseconds; the fleet's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Model for every role of this run (`provider/model`), instead of what the fleet's settings say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who asks: a user name or the id of a program.
    #[serde(default)]
    pub asked_by: String,
    /// How the events of this run are encoded, so that a JSON-only client can read what it asked for.
    #[serde(default)]
    pub encoding: Encoding,
    /// Limits of this run instead of the fleet's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<RunLimits>,
    /// Single limits of this run, by the names that they have in [`RunLimits`]; where nothing is named, the limits hold
    /// that the run would have without.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set_limits: Map<String, Value>,
    /// The most that this run may use; where it says nothing, the limits' own budget holds.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// Whether a person looks at the plan first; as the limits have it when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewPolicy>,
    /// The blueprint that it is worked on by, with its values (R7); a planner makes the plan when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<Box<Filled>>,
    /// Documents that were given and could not be read, with the reason; empty when all were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unread: String,
    /// Documents that were fetched from elsewhere when the goal was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetched: Vec<FetchedDocuments>,
    /// Whether somebody watches the run and can be asked, whatever its limits say of people.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attended: bool,
    /// The task of another run that it was begun for (R6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<Parent>>,
    /// Whether a planner is asked, instead of what the limits say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning: Option<Planning>,
    /// A plan that the person brings: no planner is asked (R13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<PlanDraft>>,
    /// The role to play, in the person's words; every agent is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role_name: String,
    /// The earlier runs that this goal follows, oldest first (R11).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<Turn>,
    /// What this run wants is done before what runs of lower priority want; 0 is usual (R14).
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub priority: i8,
    /// Whether the report's draft is reviewed; as the limits have it when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft_review: Option<DraftReviewPolicy>,
    /// How long tasks wait for a role that nobody has, in milliseconds; as the limits have it when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_role_ms: Option<u64>,
    /// The domain whose orchestrators see to it (O11); any orchestrator when absent, or where none is of the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The blueprints that tasks of the plan may be done by (R7).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blueprints: Vec<BlueprintBrief>,
    /// The span of whoever asks, below which the run's spans stand (W3C `traceparent`); the run has a trace of its own when
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The task of another run that it does once more, beside it (B6). Nothing of it counts there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Box<ShadowOf>>,
}

/// Longest trace context that a goal brings, in bytes: later versions of the form may say more than the 55 of today.
pub const MAX_TRACE_BYTES: usize = 256;

/// Longest name of a domain, in bytes.
pub const MAX_DOMAIN_BYTES: usize = 40;

/// Whether this can be the name of a domain: lower case letters, digits, `_` and `-`.
#[must_use]
pub fn is_domain(name: &str) -> bool {
    crate::text::is_short_name(name, MAX_DOMAIN_BYTES)
}

/// Longest name of a role to play, in bytes.
pub const MAX_ROLE_NAME_BYTES: usize = 200;

/// Whether a goal is given to a planner (R10).
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
#[serde(rename_all = "snake_case")]
pub enum Planning {
    /// For a goal that lists several items. Any other goal starts as one task, whose agent may request a plan.
    Auto,
    /// In any case.
    #[default]
    Always,
    /// Never: one task does the whole.
    Never,
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
    /// What names the span of whoever asks is longer than one is.
    #[error("the goal's trace context is {bytes} bytes long, {MAX_TRACE_BYTES} is the most")]
    TraceTooLong {
        /// Its length in bytes.
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
        Self { text: text.into(), ..Self::default() }
    }

    /// The parent run, or the run of which it shadows a task.
    #[must_use]
    pub fn outer_run(&self) -> Option<RunId> {
        let parent = self.parent.as_ref().map(|parent| parent.run);
        parent.or_else(|| self.shadow.as_ref().map(|shadow| shadow.run))
    }

    /// Whether another goal asks for the same: the text, the documents, the plan and the blueprint. Deadline, limits, model and
    /// author of a retry may differ.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let documents = |goal: &Self| goal.corpus.as_ref().map(|corpus| corpus.id.clone());
        self.text.trim() == other.text.trim()
            && documents(self) == documents(other)
            && self.plan == other.plan
            && self.blueprint == other.blueprint
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
        if let Some(bytes) =
            self.trace.as_ref().map(|trace| trace.0.len()).filter(|len| *len > MAX_TRACE_BYTES)
        {
            return Err(GoalError::TraceTooLong { bytes });
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

/// Documents that were fetched from elsewhere when a goal was asked: from where, and as of when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FetchedDocuments {
    /// What their paths begin with, as they are cited: `example.org/guide.html`, `example.org/owner/repo`.
    pub path: String,
    /// From where, as it was given.
    pub from: String,
    /// The revision, of what has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// When it was changed last, as its source says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
    /// When it was fetched, by the clock of whoever asked: `2026-11-22T10:00:00Z`.
    pub at: String,
}

impl FetchedDocuments {
    /// In a line: ``example.org/guide.html` from https://example.org/guide, fetched 2026-11-22T10:00:00Z``.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { path, from, revision, changed, at } = self;
        let revision = revision.as_ref().map(|of| format!(" at revision {of}")).unwrap_or_default();
        let changed = changed.as_ref().map(|said| format!(", changed {said}")).unwrap_or_default();
        format!("`{path}` from {from}{revision}{changed}, fetched {at}")
    }
}

/// The documents of a run: a manifest in the object store, by content hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CorpusRef {
    /// Content hash that names the corpus.
    pub id: String,
    /// Number of files.
    pub files: u64,
    /// Bytes of text.
    pub bytes: u64,
    /// What documents there are, a line each: path, length, headings, as far as there is room.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outline: String,
}
