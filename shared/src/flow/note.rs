//! What the loop itself remarks on a step, beside what the model thought and did. It stands in the record, so that
//! whoever goes on with the task goes on by it.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approval::CallVerdict;
use super::doubt::Doubt;
use super::form::FormReply;
use super::guard::{Guarded, Hook};
use super::looked_up::{LookedUp, counted_up};
use super::permissions::RolePermission;
use super::rights::Refusal;

/// A remark of the loop on one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The model goes in circles (W4).
    Spin {
        /// How that was noticed.
        level: SpinLevel,
        /// How often it was told so, without anything new since.
        times: u32,
    },
    /// Whether the same reasoning was behind the last steps was asked of the model, and it was not.
    Reconsidered,
    /// The action is closed to this role (W7).
    Closed {
        /// What the role may not do.
        permission: RolePermission,
    },
    /// A call of the step was not done: the task has no right to what it uses.
    Denied {
        /// Which call of the step, from 0.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        at: u32,
        /// The right that is missing, and who took it away.
        refusal: Refusal,
    },
    /// The model declined within this step (W12).
    Declined {
        /// How often.
        times: u32,
    },
    /// The result was verified before it counted (W8).
    Verified {
        /// Who looked.
        by: Verifier,
        /// What did not hold; nothing when all did.
        faults: Vec<Fault>,
    },
    /// The look-up of the cited places in the documents. Decisions are repeated from this note.
    LookedUp {
        /// The places.
        places: Vec<LookedUp>,
        /// Why they could not be looked up; empty when they were.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        failed: String,
    },
    /// A model compared the cited statements with their lines: the doubts, which the author answers once.
    Doubted {
        /// The doubts, in the order of the statements; empty if there are none.
        doubts: Vec<Doubt>,
    },
    /// The author kept doubted statements: they are delivered as written.
    Disputed {
        /// Number of them.
        statements: u32,
    },
    /// The model was asked twice to verify a result and gave no readable verdict.
    NotChecked {
        /// Why there is no verdict.
        why: String,
    },
    /// Guards were asked. What they said holds for whoever goes on with the step: nobody is asked again.
    Guarded {
        /// At which hook.
        hook: Hook,
        /// About which call of the step, from 0, where it is about one.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        at: u32,
        /// What they said.
        said: Guarded,
        /// Messages that a model was sent in other words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reworded: Vec<Reworded>,
    },
    /// A person was asked about a call of the step (T8).
    Approval {
        /// What they said.
        verdict: CallVerdict,
    },
    /// A person was asked for something by the first call of the step, which was made again with what they gave.
    Form {
        /// What came of it.
        reply: FormReply,
    },
}

/// A message that a model was sent in other words than the task has for it: a guard changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Reworded {
    /// SHA-256 of its own text, in hexadecimal.
    pub of: String,
    /// What was sent.
    pub to: String,
}

impl Note {
    /// What guards said at a hook about one call of the step: what they said last, since a person may change a call that is
    /// to be approved after they were asked about it.
    #[must_use]
    pub fn guarded(notes: &[Self], asked: Hook, about: usize) -> Option<&Guarded> {
        notes.iter().rev().find_map(|note| note.as_guarded(asked, about))
    }

    /// What a person said of one call of the step.
    #[must_use]
    pub fn approval(notes: &[Self], about: usize) -> Option<&CallVerdict> {
        notes.iter().rev().find_map(|note| note.as_approval(about))
    }

    /// Whether guards have to be asked about one call of the step: they were not yet, or a person changed it since.
    #[must_use]
    pub fn is_to_guard(notes: &[Self], asked: Hook, about: usize) -> bool {
        let changes =
            |note: &Self| note.as_approval(about).is_some_and(|verdict| verdict.arguments().is_some());
        let newest = notes.iter().rev().find(|note| note.as_guarded(asked, about).is_some() || changes(note));
        newest.is_none_or(changes)
    }

    /// What people gave who were asked for something by the first call of the step.
    pub fn forms(notes: &[Self]) -> impl Iterator<Item = &FormReply> {
        notes.iter().filter_map(|note| if let Self::Form { reply } = note { Some(reply) } else { None })
    }

    fn as_guarded(&self, asked: Hook, about: usize) -> Option<&Guarded> {
        if let Self::Guarded { hook, at, said, .. } = self {
            (*hook == asked && usize::try_from(*at) == Ok(about)).then_some(said)
        } else {
            None
        }
    }

    fn as_approval(&self, about: usize) -> Option<&CallVerdict> {
        if let Self::Approval { verdict } = self {
            (usize::try_from(verdict.at) == Ok(about)).then_some(verdict)
        } else {
            None
        }
    }

    /// The uses that were refused, each with the call of the step that it is of.
    pub fn denied(notes: &[Self]) -> impl Iterator<Item = (usize, &Refusal)> {
        notes.iter().filter_map(|note| {
            if let Self::Denied { at, refusal } = note {
                Some((usize::try_from(*at).unwrap_or(usize::MAX), refusal))
            } else {
                None
            }
        })
    }

    /// The messages that a model was sent in other words.
    pub fn reworded(notes: &[Self]) -> impl Iterator<Item = &Reworded> {
        notes.iter().flat_map(|note| {
            if let Self::Guarded { reworded, .. } = note { reworded.as_slice() } else { &[] }
        })
    }
}

/// How going in circles was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SpinLevel {
    /// The very same action.
    SameAction,
    /// The same kind of action again and again, with nothing new learnt.
    SameKind,
    /// The same reasoning behind different actions.
    SameReasoning,
}

/// Who verified a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verifier {
    /// Rules.
    Rules,
    /// The model, asked apart from the conversation.
    Model,
}

/// A link of the chain of verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Everything that was asked is answered, or named as unanswered.
    Completeness,
    /// No part contradicts another.
    Consistency,
    /// What is claimed was seen.
    Correctness,
    /// What the task demands of its result is kept.
    Constraints,
}

impl Check {
    /// All of them, in the order of the chain.
    pub const ALL: [Self; 4] = [Self::Completeness, Self::Consistency, Self::Correctness, Self::Constraints];

    /// The name used in settings and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completeness => "completeness",
            Self::Consistency => "consistency",
            Self::Correctness => "correctness",
            Self::Constraints => "constraints",
        }
    }
}

/// What did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Fault {
    /// Which check.
    pub check: Check,
    /// Why, in a sentence.
    pub why: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.check.as_str(), self.why)
    }
}

/// `goes in circles (same kind of action), told 2 times`: the note in a line, for people.
impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Spin { level, times } => {
                let level = match level {
                    SpinLevel::SameAction => "same action",
                    SpinLevel::SameKind => "same kind of action",
                    SpinLevel::SameReasoning => "same reasoning",
                };
                match times {
                    1 => write!(f, "spin: {level}, noticed once"),
                    times => write!(f, "spin: {level}, {times} times in a row"),
                }
            }
            Self::Reconsidered => f.write_str("not a spin: the reasoning is another"),
            Self::Closed { permission } => write!(f, "gate: this role may not {}", permission.as_words()),
            Self::Denied { refusal, .. } => write!(f, "refused: {refusal}"),
            Self::Declined { times } => write!(f, "refusal: the model declined {}", counted(*times)),
            Self::Verified { by, faults } => {
                let (by, good) = match by {
                    // What a rule cannot tell, it does not vouch for.
                    Verifier::Rules => ("by rule", "all that a rule can check holds"),
                    Verifier::Model => ("by the model", "all checks hold"),
                };
                if faults.is_empty() {
                    return write!(f, "verified {by}: {good}");
                }
                let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
                write!(f, "verified {by}: {}", faults.join("; "))
            }
            Self::LookedUp { places, failed } if failed.is_empty() => f.write_str(&counted_up(places)),
            Self::LookedUp { failed, .. } => write!(f, "cited places not looked up: {failed}"),
            Self::Doubted { doubts } if doubts.is_empty() => {
                f.write_str("cited statements compared with their lines: no doubts")
            }
            Self::Doubted { doubts } => {
                let doubts: Vec<String> = doubts.iter().map(Doubt::to_string).collect();
                write!(f, "cited statements compared with their lines: {}", doubts.join("; "))
            }
            Self::Disputed { statements: 1 } => f.write_str("disputed: 1 statement"),
            Self::Disputed { statements } => write!(f, "disputed: {statements} statements"),
            Self::NotChecked { why } => {
                write!(f, "not checked by the model whether the result holds: {why}")
            }
            Self::Guarded { hook, said, .. } => write!(f, "{}: {said}", hook.as_str()),
            Self::Approval { verdict } => write!(f, "{verdict}"),
            Self::Form { reply } => write!(f, "asked for something by its call: {reply}"),
        }
    }
}

fn counted(times: u32) -> String {
    if times == 1 { "once".to_owned() } else { format!("{times} times") }
}

#[cfg(test)]
mod tests {
    use super::super::approval::CallRuling;
    use super::*;

    #[test]
    fn a_note_is_said_in_a_line() {
        let faults = vec![Fault { check: Check::Completeness, why: "half is missing".into() }];
        let table = [
            (
                Note::Spin { level: SpinLevel::SameKind, times: 2 },
                "spin: same kind of action, 2 times in a row",
            ),
            (Note::Spin { level: SpinLevel::SameAction, times: 1 }, "spin: same action, noticed once"),
            (Note::Closed { permission: RolePermission::People }, "gate: this role may not ask people"),
            (Note::Declined { times: 1 }, "refusal: the model declined once"),
            (
                Note::Verified { by: Verifier::Rules, faults: Vec::new() },
                "verified by rule: all that a rule can check holds",
            ),
            (
                Note::Verified { by: Verifier::Model, faults },
                "verified by the model: completeness: half is missing",
            ),
        ];
        for (note, said) in table {
            assert_eq!(note.to_string(), said);
        }
    }

    #[test]
    fn guards_are_asked_again_about_a_call_that_a_person_changed() {
        let guarded =
            |at| Note::Guarded { hook: Hook::BeforeTool, at, said: Guarded::default(), reworded: Vec::new() };
        let approval = |at, ruling| Note::Approval {
            verdict: CallVerdict { at, ruling, by: Some("ann".into()), reason: String::new() },
        };
        let changed = || approval(0, CallRuling::Changed(serde_json::json!({})));
        let table: [(Vec<Note>, bool); 6] = [
            (vec![], true),
            (vec![guarded(1)], true),
            (vec![guarded(0)], false),
            (vec![guarded(0), approval(0, CallRuling::Approved)], false),
            (vec![guarded(0), changed(), guarded(1)], true),
            (vec![guarded(0), changed(), guarded(0)], false),
        ];
        for (notes, is_to_guard) in table {
            assert_eq!(Note::is_to_guard(&notes, Hook::BeforeTool, 0), is_to_guard, "{notes:?}");
        }
    }
}
