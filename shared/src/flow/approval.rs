//! A person's approval of a single call of a tool (T8): what is asked, and what came of it.
//!
//! The task is put down meanwhile ([`Wait::Approval`](super::Wait)). The verdict comes with its next offer, and stands in the
//! record as a note of the step: whoever goes on with the step asks nobody again.

use std::fmt;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call that is not made before a person approves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CallToApprove {
    /// Which call of the step, from 0.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub at: u32,
    /// The tool.
    pub tool: String,
    /// What it is to be called with.
    #[serde(default)]
    pub arguments: Value,
    /// Why it needs approval, and what was wrong with what a person gave before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl CallToApprove {
    /// What a person is asked.
    #[must_use]
    pub fn question(&self) -> String {
        format!("May `{}` be called with {}?", self.tool, self.arguments)
    }
}

/// What a person said of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CallVerdict {
    /// Which call of the step, from 0.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub at: u32,
    /// What becomes of it.
    pub ruling: CallRuling,
    /// Who said so; nobody when the time for it was up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What they said of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What becomes of a call that a person was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallRuling {
    /// It is made.
    Approved,
    /// It is made with these arguments.
    Changed(Value),
    /// It is not made.
    Refused,
}

impl CallVerdict {
    /// Nobody said anything in time: silence approves nothing.
    #[must_use]
    pub const fn unanswered(at: u32) -> Self {
        Self { at, ruling: CallRuling::Refused, by: None, reason: String::new() }
    }

    /// The arguments that the call is made with in place of those of the model.
    #[must_use]
    pub const fn arguments(&self) -> Option<&Value> {
        if let CallRuling::Changed(arguments) = &self.ruling { Some(arguments) } else { None }
    }
}

/// `not approved by ann: the wrong address`, in a line.
impl fmt::Display for CallVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.ruling, &self.by) {
            (CallRuling::Approved, by) => write!(f, "approved by {}", by.as_deref().unwrap_or("nobody"))?,
            (CallRuling::Changed(_), by) => {
                write!(f, "approved with other arguments by {}", by.as_deref().unwrap_or("nobody"))?;
            }
            (CallRuling::Refused, Some(by)) => write!(f, "not approved by {by}")?,
            (CallRuling::Refused, None) => f.write_str("not approved: nobody answered in time")?,
        }
        match self.reason.as_str() {
            "" => Ok(()),
            reason => write!(f, ": {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_verdict_is_said_in_a_line_and_read_as_it_was_written() {
        let of = |ruling, by: Option<&str>, reason: &str| CallVerdict {
            at: 1,
            ruling,
            by: by.map(str::to_owned),
            reason: reason.to_owned(),
        };
        let table = [
            (of(CallRuling::Approved, Some("ann"), ""), "approved by ann"),
            (
                of(CallRuling::Changed(json!({"to": "b"})), Some("ann"), ""),
                "approved with other arguments by ann",
            ),
            (of(CallRuling::Refused, Some("ann"), "not him"), "not approved by ann: not him"),
            (CallVerdict::unanswered(1), "not approved: nobody answered in time"),
        ];
        for (verdict, said) in table {
            assert_eq!(verdict.to_string(), said);
            let written = serde_json::to_string(&verdict).unwrap();
            assert_eq!(serde_json::from_str::<CallVerdict>(&written).unwrap(), verdict);
        }
    }
}
