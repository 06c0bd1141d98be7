//! Groups: several members that do one task, as a committee or so that the first good result counts (O1).

use std::fmt;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::pattern::Pattern;
use crate::ids::TaskIndex;
use crate::settings;

settings! {
    /// What holds of committees. Part of a run's limits.
    #[derive(PartialEq, Eq)]
    #[cfg_attr(test, derive(JsonSchema))]
    pub const struct Committees {
        // As many as a committee has members.
        /// Models that the members use, one after the other and from the beginning again; the run's when empty.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub models: Vec<String> = Vec::new()
            => list().at_most(Pattern::MOST_MEMBERS as usize).example("[\"openai/gpt-5\", \"anthropic/claude-sonnet-4-5\"]"); Project Trust,
    }
}

/// How a member goes about its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Temperament {
    /// Says only what it has made sure of.
    Careful,
    /// Goes beyond what is obvious.
    Bold,
    /// Doubts what it reads.
    Sceptical,
}

impl Temperament {
    /// That of the nth member, from 0.
    #[must_use]
    pub const fn of(member: usize) -> Self {
        match member % 3 {
            0 => Self::Careful,
            1 => Self::Bold,
            _ => Self::Sceptical,
        }
    }
}

/// What a member is told of the group that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Membership {
    /// How many members there are.
    pub members: u8,
    /// How to go about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperament: Option<Temperament>,
    /// Which round of discussion it is, from 1; 0 when it works by itself.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub round: u8,
    /// What members found before, its own view among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<View>,
}

/// What a member found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct View {
    /// The member.
    pub member: TaskIndex,
    /// Its conclusion, cut short.
    pub conclusion: String,
    /// What it claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// How sure it is, in percent; 0 when it does not say.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub confidence: u8,
}

impl View {
    /// Longest conclusion, in characters.
    pub const MAX_CONCLUSION: usize = 2_000;
    /// Most claims.
    pub const MOST_CLAIMS: usize = 16;
}

/// How the result of a group was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GroupVerdict {
    /// The member whose result is that of the task.
    pub counts: TaskIndex,
    /// What decided.
    pub by: DecidedBy,
    /// The members that agree with it, that member among them.
    pub agree: Vec<TaskIndex>,
    /// The members that gave another result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dissent: Vec<Dissent>,
}

/// What decided which result counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// It was the first good one.
    First,
    /// All agree.
    Unanimity,
    /// More than half of those that gave a result agree.
    Majority,
    /// Those who agree are surer of it than any others are of theirs.
    Confidence,
    /// Nothing else decided: the first of the equal ones by letter.
    Order,
}

impl DecidedBy {
    /// In a few words.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::First => "the first good result",
            Self::Unanimity => "all agree",
            Self::Majority => "by majority",
            Self::Confidence => "by confidence",
            Self::Order => "equally many, equally sure: the first of them",
        }
    }
}

/// A result that the verdict is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Dissent {
    /// Whose it is.
    pub member: TaskIndex,
    /// What it says, cut short.
    pub says: String,
    /// How sure it is, in percent; 0 when it does not say.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub confidence: u8,
}

impl GroupVerdict {
    /// The answers of the other members, in a sentence. Absent: all gave the same.
    #[must_use]
    pub fn dissent_in_words(&self) -> Option<String> {
        let others: Vec<String> = self.dissent.iter().map(ToString::to_string).collect();
        let (agree, all) = (self.agree.len(), self.agree.len() + others.len());
        (!others.is_empty()).then(|| {
            format!(
                "{agree} of {all} members gave the same answer (decided {}). Otherwise: {}",
                self.by.in_words(),
                others.join("; ")
            )
        })
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        told(f, &self.member, self.confidence, &self.conclusion)
    }
}

impl fmt::Display for Dissent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        told(f, &self.member, self.confidence, &self.says)
    }
}

fn told(f: &mut fmt::Formatter<'_>, member: &TaskIndex, confidence: u8, says: &str) -> fmt::Result {
    match confidence {
        0 => write!(f, "{member}: {says}"),
        sure => write!(f, "{member}, {sure} % sure: {says}"),
    }
}
