//! What a tool of a server asks in the middle of a call, and what it is answered: by the model of whoever calls, or by a
//! person. A question is named by what it says, so that the same call, made again, asks the same question under the same name.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::flow::Form;
use crate::flow::question::MAX_QUESTION_BYTES;

/// Longest conversation that a model is asked to go on with, in bytes.
pub const MOST_CONVERSATION: usize = 256 * 1024;
/// Most turns of it.
pub const MOST_TURNS: usize = 200;
/// Most pictures of a conversation.
pub const MOST_PICTURES: usize = 4;
/// Longest picture of it, in characters of base64: of 16 MiB.
pub const MOST_PICTURE: usize = 16 * 1024 * 1024 / 3 * 4 + 8;
/// The kinds of pictures that models are shown, by media type.
pub const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Most texts at which an answer ends.
pub const MOST_STOPS: usize = 8;

/// Whom a question is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// The model of whoever calls.
    Model,
    /// A person. The call is given up, and made again when they have answered.
    Person,
}

/// What a tool asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallQuestion {
    /// A model.
    Model(ModelQuestion),
    /// A person.
    Person(PersonQuestion),
}

/// A question to a person, by whoever looks after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PersonQuestion {
    /// The question itself.
    pub text: String,
    /// What is asked for.
    pub form: Form,
}

/// A question to the model of whoever calls. The model sees nothing but this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ModelQuestion {
    /// What the model is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation, the oldest turn first.
    pub turns: Vec<QuestionTurn>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// How varied the answer is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Texts at which the answer ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct QuestionTurn {
    /// Whether the model said it.
    #[serde(default)]
    pub by_model: bool,
    /// What was said.
    pub text: String,
    /// Pictures that are shown with it, to a model that can see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<QuestionPicture>,
}

/// A picture of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct QuestionPicture {
    /// Its media type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// Its bytes in base64.
    pub data: String,
}

impl CallQuestion {
    /// Whom it is for.
    #[must_use]
    pub const fn kind(&self) -> QuestionKind {
        match self {
            Self::Model(_) => QuestionKind::Model,
            Self::Person(_) => QuestionKind::Person,
        }
    }

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
        match self {
            Self::Model(question) => question.fault(),
            Self::Person(question) => question.fault(),
        }
    }
}

impl PersonQuestion {
    fn fault(&self) -> Option<String> {
        let bytes = self.text.len();
        if bytes > MAX_QUESTION_BYTES {
            return Some(format!("the question has {bytes} bytes, {MAX_QUESTION_BYTES} is the most"));
        }
        self.form.fault()
    }
}

impl ModelQuestion {
    fn fault(&self) -> Option<String> {
        let texts = self.turns.iter().map(|turn| turn.text.len()).chain(self.stop.iter().map(String::len));
        let bytes = texts.sum::<usize>() + self.system.as_ref().map_or(0, String::len);
        if self.turns.is_empty() || self.turns.len() > MOST_TURNS {
            return Some(format!("a conversation has 1 to {MOST_TURNS} turns"));
        }
        if bytes > MOST_CONVERSATION {
            return Some(format!("the conversation has {bytes} bytes, {MOST_CONVERSATION} are the most"));
        }
        if self.stop.len() > MOST_STOPS {
            return Some(format!("an answer ends at {MOST_STOPS} texts at most"));
        }
        if let Some(fault) = self.fault_of_pictures() {
            return Some(fault);
        }
        // What no provider takes is not sent to one.
        let is_odd = |number: f64| !(0.0..=2.0).contains(&number);
        self.temperature.is_some_and(is_odd).then(|| "a temperature is from 0 to 2".to_owned())
    }
}

impl ModelQuestion {
    /// Whether a picture is shown with it.
    #[must_use]
    pub fn shows_pictures(&self) -> bool {
        self.turns.iter().any(|turn| !turn.pictures.is_empty())
    }

    fn fault_of_pictures(&self) -> Option<String> {
        let pictures = || self.turns.iter().flat_map(|turn| &turn.pictures);
        if self.turns.iter().any(|turn| turn.by_model && !turn.pictures.is_empty()) {
            return Some("pictures are shown to the model, and not said by it".to_owned());
        }
        if pictures().count() > MOST_PICTURES {
            return Some(format!("a conversation has {MOST_PICTURES} pictures at most"));
        }
        if let Some(odd) = pictures().find(|picture| !PICTURES.contains(&picture.media_type.as_str())) {
            let shown: String = odd.media_type.chars().filter(|c| !c.is_control()).take(60).collect();
            return Some(format!("`{shown}` is no picture that is shown: {}", PICTURES.join(", ")));
        }
        let is_too_long = pictures().any(|picture| picture.data.len() > MOST_PICTURE);
        is_too_long.then(|| "a picture has 16 MiB at most".to_owned())
    }
}

/// What a tool is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum CallAnswer {
    /// What a model said.
    Said {
        /// The text.
        text: String,
        /// Which model.
        model: String,
        /// Whether the answer was cut at its limit.
        #[serde(default)]
        cut: bool,
    },
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
    pub question: CallQuestion,
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

    fn model(turns: usize, text: &str) -> ModelQuestion {
        let turn = QuestionTurn { by_model: false, text: text.to_owned(), pictures: Vec::new() };
        let turns = vec![turn; turns];
        ModelQuestion { system: None, turns, max_tokens: 100, temperature: None, stop: Vec::new() }
    }

    fn showing(by_model: bool, media_type: &str, pictures: usize) -> ModelQuestion {
        let picture = QuestionPicture { media_type: media_type.to_owned(), data: "AAAA".to_owned() };
        let turn = QuestionTurn { by_model, text: "See.".to_owned(), pictures: vec![picture; pictures] };
        ModelQuestion { turns: vec![turn], ..model(1, "") }
    }

    #[test]
    fn what_nobody_answers_is_told() {
        let long = "x".repeat(MOST_CONVERSATION);
        let table = [
            (CallQuestion::Model(model(1, "Hello.")), None),
            (CallQuestion::Model(model(0, "")), Some("1 to 200")),
            (CallQuestion::Model(model(201, "")), Some("1 to 200")),
            (CallQuestion::Model(model(2, &long)), Some("bytes")),
            (
                CallQuestion::Model(ModelQuestion { temperature: Some(f64::NAN), ..model(1, "x") }),
                Some("temperature"),
            ),
            (
                CallQuestion::Model(ModelQuestion { stop: vec![String::new(); 9], ..model(1, "x") }),
                Some("ends at"),
            ),
            (CallQuestion::Model(showing(false, "image/png", 4)), None),
            (CallQuestion::Model(showing(false, "image/png", 5)), Some("4 pictures at most")),
            (CallQuestion::Model(showing(false, "image/tiff", 1)), Some("`image/tiff` is no picture")),
            (CallQuestion::Model(showing(true, "image/png", 1)), Some("not said by it")),
        ];
        let person = |text: &str, form| CallQuestion::Person(PersonQuestion { text: text.to_owned(), form });
        let visit = |url: &str| Form::Visit(url.to_owned());
        let table = table.into_iter().chain([
            (person("Who?", Form::Values(json!({ "type": "object" }))), None),
            (person("Who?", Form::Values(json!({ "type": "string" }))), Some("object")),
            (person("Pay.", visit("ftp://x")), Some("https://")),
            (person(&"x".repeat(20_000), visit("https://x")), Some("bytes")),
        ]);
        for (question, wanted) in table {
            let found = question.fault();
            assert_eq!(found.is_some(), wanted.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(wanted.unwrap_or_default()));
        }
    }

    #[test]
    fn a_question_is_named_by_what_it_says_and_an_answer_travels_flat() {
        let (one, other) = (CallQuestion::Model(model(1, "a")), CallQuestion::Model(model(1, "b")));
        assert_ne!(one.digest(), other.digest());
        let plain = serde_json::to_value(&one).unwrap_or_default();
        assert_eq!(plain["turns"], json!([{ "by_model": false, "text": "a" }]), "as it was before pictures");
        let seen = CallQuestion::Model(showing(false, "image/png", 1));
        assert_ne!(seen.digest(), CallQuestion::Model(showing(false, "image/gif", 1)).digest());
        let read = serde_json::to_string(&one).and_then(|text| serde_json::from_str::<CallQuestion>(&text));
        assert_eq!(read.ok().map(|read| read.digest()), Some(one.digest()));
        let answered = QuestionAnswer { id: "q".to_owned(), answer: CallAnswer::declined("no") };
        let told = ToolAnswer { ticket: "t".to_owned(), answered };
        let json = serde_json::to_value(&told).unwrap_or_default();
        assert_eq!(json, json!({ "ticket": "t", "id": "q", "answer": { "answer": "decline", "why": "no" } }));
        assert_eq!(serde_json::from_value::<ToolAnswer>(json).ok(), Some(told));
    }
}
