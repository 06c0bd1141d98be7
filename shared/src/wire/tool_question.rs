//! Questions of a tool server to a person during a call, and the answers. The id of a question is derived from its content,
//! so that a repeated call asks the same question under the same id.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::flow::Form;
use crate::flow::question::MAX_QUESTION_BYTES;

/// A question to a person, by whoever looks after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PersonQuestion {
    /// The question itself.
    pub text: String,
    /// What is asked for.
    pub form: Form,
}

impl PersonQuestion {
    /// Tells one question from another: the beginning of the SHA-256 of its JSON, in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut digest = hex::encode(Sha256::digest(serde_json::to_vec(self).unwrap_or_default()));
        digest.truncate(32);
        digest
    }

    /// Why nobody answers it, in words; nothing when it is sound.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let bytes = self.text.len();
        if bytes > MAX_QUESTION_BYTES {
            return Some(format!("the question has {bytes} bytes, {MAX_QUESTION_BYTES} is the most"));
        }
        self.form.fault()
    }
}

/// What a tool is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum CallAnswer {
    /// What a person gave.
    Given {
        /// The values; an empty object where none were asked for.
        values: Value,
    },
    /// No.
    Decline {
        /// Why, in a sentence for the server.
        why: String,
    },
    /// Nobody answers any more.
    Cancel {
        /// Why, in a sentence for the server.
        why: String,
    },
}

impl CallAnswer {
    /// No, for this reason.
    #[must_use]
    pub fn declined(why: impl Into<String>) -> Self {
        Self::Decline { why: why.into() }
    }

    /// Nobody answers any more, for this reason.
    #[must_use]
    pub fn cancelled(why: impl Into<String>) -> Self {
        Self::Cancel { why: why.into() }
    }
}

/// A question that is open in a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct OpenQuestion {
    /// Names it within its call: the same each time the call is made.
    pub id: String,
    /// What is asked.
    pub question: PersonQuestion,
}

/// The answer to a question of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct QuestionAnswer {
    /// The question.
    pub id: String,
    /// What is answered.
    pub answer: CallAnswer,
}

/// An answer on its way to the process that asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolAnswer {
    /// The ticket of the call.
    pub ticket: String,
    /// The answer.
    #[serde(flatten)]
    pub answered: QuestionAnswer,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn person(text: &str, form: Form) -> PersonQuestion {
        PersonQuestion { text: text.to_owned(), form }
    }

    #[test]
    fn what_nobody_answers_is_told() {
        let visit = |url: &str| Form::Visit(url.to_owned());
        for (question, wanted) in [
            (person("Who?", Form::Values(json!({ "type": "object" }))), None),
            (person("Who?", Form::Values(json!({ "type": "string" }))), Some("object")),
            (person("Pay.", visit("ftp://x")), Some("https://")),
            (person(&"x".repeat(20_000), visit("https://x")), Some("bytes")),
        ] {
            let found = question.fault();
            assert_eq!(found.is_some(), wanted.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(wanted.unwrap_or_default()));
        }
    }

    #[test]
    fn a_question_is_named_by_what_it_says_and_an_answer_travels_flat() {
        let of = |text: &str| person(text, Form::Visit("https://x".to_owned()));
        let (one, other) = (of("a"), of("b"));
        assert_ne!(one.digest(), other.digest());
        let read = serde_json::to_string(&one).and_then(|text| serde_json::from_str::<PersonQuestion>(&text));
        assert_eq!(read.ok().map(|read| read.digest()), Some(one.digest()));
        let answered = QuestionAnswer { id: "q".to_owned(), answer: CallAnswer::declined("no") };
        let told = ToolAnswer { ticket: "t".to_owned(), answered };
        let json = serde_json::to_value(&told).unwrap_or_default();
        assert_eq!(json, json!({ "ticket": "t", "id": "q", "answer": { "answer": "decline", "why": "no" } }));
        assert_eq!(serde_json::from_value::<ToolAnswer>(json).ok(), Some(told));
    }
}
