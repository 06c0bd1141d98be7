//! What rules about language made of texts. Word lists, stems and thresholds change from version to version; a decision
//! that was made by them stands, and a replay is told what they said then.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim::ClaimValue;

/// What a rule about language made of a text, where that is not what it makes of most. Stands in the decision that used it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Reading {
    /// The rule.
    pub rule: ReadingRule,
    /// A digest of what was read, or of the names of whoever said it: the texts themselves stand elsewhere in the record.
    pub of: u32,
    /// From which time on that this was asked in the decision, from 0: what is asked again after something changed may come to
    /// something else.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub nth: u32,
    /// What it came to.
    pub says: Said,
}

/// A rule about language that decisions go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReadingRule {
    /// Whether a goal is small enough to be done without a plan: its number of words.
    SmallGoal,
    /// The parts of a goal that no task of a plan speaks of.
    Uncovered,
    /// The parts of a goal that a report does not answer.
    Unanswered,
    /// The first of several parts of a goal.
    FirstPart,
    /// What of the expected output a result does not hold.
    Unmet,
    /// Which claims contradict each other.
    Contradictions,
    /// Which claims may speak of the same in other words.
    Near,
    /// Whether two texts name one subject.
    SameSubject,
    /// Whether a claim agrees with a value.
    SameValue,
    /// Whether a claim contradicts a value.
    OtherValue,
    /// What a text claims: a number, a day, yes or no, a kind.
    Value,
    /// Which members of a group are of one mind, where not all are.
    Camps,
    /// Whether a word is spoken with "an".
    Article,
    /// Which tool is meant by a name that is none.
    Tool,
    /// How many telling words results share with what is asked.
    SharedWords,
    /// Why a goal is planned at once instead of being begun as one task.
    Separable,
}

/// What a rule came to. Places are counted from 0 in what the rule was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// What it says of most texts, after it had said something else.
    Nothing,
    /// It is so.
    Yes,
    /// A number, or a place.
    Number(u32),
    /// Numbers, or places.
    Numbers(Vec<u32>),
    /// One word of a few, or a name.
    Word(String),
    /// Sentences.
    Texts(Vec<String>),
    /// Parts of a text.
    Parts(Vec<TextPart>),
    /// Places, in groups.
    Groups(Vec<Vec<u32>>),
    /// A value.
    Value(ClaimValue),
    /// Contradictions.
    Contradictions(Vec<Contradiction>),
}

/// A part of a text that is on one line, with its words one space apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TextPart {
    /// Where it begins, in bytes.
    pub at: u32,
    /// How long it is, in bytes.
    pub len: u32,
}

impl TextPart {
    /// Where a part stands in a text; nothing when it does not.
    #[must_use]
    pub fn of(text: &str, part: &str) -> Option<Self> {
        let at = u32::try_from(text.find(part)?).ok()?;
        Some(Self { at, len: u32::try_from(part.len()).ok()? })
    }

    /// The part of this text; nothing when the text is another one.
    #[must_use]
    pub fn within(self, text: &str) -> Option<&str> {
        let at = usize::try_from(self.at).ok()?;
        text.get(at..at.checked_add(usize::try_from(self.len).ok()?)?)
    }
}

/// Claims about one subject that contradict each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Contradiction {
    /// The places of the claims.
    pub sides: Vec<u32>,
    /// The place of the claim that names the subject.
    pub named: u32,
    /// The conflicts about the same subject that were found before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<u32>,
}
