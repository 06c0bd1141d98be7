//! What people are asked, and what becomes of that.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::flow::{About, OnTimeout, Question, Reply};
use crate::ids::QuestionId;
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::questions::{QuestionEnd, QuestionState};
use crate::run::state::RunState;
use crate::time::Millis;

/// Somebody is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct QuestionAsked {
    /// The question's number in this run.
    pub id: QuestionId,
    /// What its answer is for.
    pub about: About,
    /// The question.
    pub question: Question,
    /// When the time for the answer is up.
    pub expires: Millis,
    /// What follows then.
    pub on_timeout: OnTimeout,
}

impl Payload for QuestionAsked {
    fn text(&self, words: Words<'_>) -> String {
        format!("question {} about {}: {}", self.id, self.about, words.brief(&self.question.text))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let wanted = run.questions.last_key_value().map_or(QuestionId(0), |(id, _)| *id).next();
        if self.id != wanted {
            return Err(ApplyError::WrongQuestion { run: run.id, id: self.id });
        }
        let asked = QuestionState {
            about: self.about.clone(),
            question: self.question.clone(),
            asked_at: now,
            asked_of: self.question.to.clone(),
            passed_on: 0,
            expires: self.expires,
            on_timeout: self.on_timeout,
            approvals: Vec::new(),
            feedback: Vec::new(),
            end: None,
        };
        run.questions.insert(self.id, asked);
        Ok(())
    }
}

/// A question was answered, or its time is up and its default is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct QuestionAnswered {
    /// The answer.
    pub reply: Reply,
}

impl Payload for QuestionAnswered {
    fn text(&self, words: Words<'_>) -> String {
        let id = self.reply.question;
        let text = self.reply.text.as_deref().map(|text| words.brief(text));
        match (&self.reply.by, text) {
            (Some(by), text) => {
                format!("question {id} answered by {}: {}", words.name(by), text.unwrap_or_default())
            }
            (None, Some(text)) => {
                format!("question {id} was not answered in time; its default is taken: {text}")
            }
            (None, None) => format!("question {id} was not answered in time"),
        }
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        end(run, self.reply.question, QuestionEnd::Answered(self.reply.clone()))
    }
}

/// Somebody approved what is asked about, and others have to as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ApprovalGiven {
    /// The question.
    pub id: QuestionId,
    /// Who approved.
    pub by: String,
    /// How many more have to.
    pub more: u8,
}

impl Payload for ApprovalGiven {
    fn text(&self, words: Words<'_>) -> String {
        format!(
            "question {} approved by {}; approvals that are missing: {}",
            self.id,
            words.name(&self.by),
            self.more
        )
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let asked = run.questions.get_mut(&self.id).filter(|asked| asked.is_open());
        let asked = asked.ok_or(ApplyError::WrongQuestion { run: run.id, id: self.id })?;
        asked.approvals.push(self.by.clone());
        Ok(())
    }
}

/// A person answered an approval with feedback instead of a choice. The question stays open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FeedbackGiven {
    /// Question.
    pub id: QuestionId,
    /// Author.
    pub by: String,
    /// Feedback. A later rejection uses it as the reason.
    pub text: String,
}

impl Payload for FeedbackGiven {
    fn text(&self, words: Words<'_>) -> String {
        let (by, text) = (words.name(&self.by), words.brief(&self.text));
        format!("feedback of {by} on question {}, which stays open: {text}", self.id)
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        open(run, self.id)?.feedback.push(self.text.clone());
        Ok(())
    }
}

/// Nobody answered in time: somebody else is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct QuestionPassedOn {
    /// The question.
    pub id: QuestionId,
    /// Who is asked now.
    pub to: String,
    /// When the time for the answer is up.
    pub expires: Millis,
}

impl Payload for QuestionPassedOn {
    fn text(&self, _: Words<'_>) -> String {
        format!("question {} goes to {}: nobody answered", self.id, self.to)
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let open = open(run, self.id)?;
        open.asked_of = Some(self.to.clone());
        open.passed_on = open.passed_on.saturating_add(1);
        open.expires = self.expires;
        Ok(())
    }
}

/// Nobody needs the answer any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct QuestionWithdrawn {
    /// The question.
    pub id: QuestionId,
    /// Why.
    pub reason: String,
}

impl Payload for QuestionWithdrawn {
    fn text(&self, words: Words<'_>) -> String {
        format!("question {} is withdrawn: {}", self.id, words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        end(run, self.id, QuestionEnd::Withdrawn(self.reason.clone()))
    }
}

/// Time during which the whole run waited for an answer is not counted against its phase.
fn end(run: &mut RunState, id: QuestionId, end: QuestionEnd) -> ApplyResult {
    open(run, id)?.end = Some(end);
    Ok(())
}

fn open(run: &mut RunState, id: QuestionId) -> ApplyResult<&mut QuestionState> {
    let of = run.id;
    let found = run.questions.get_mut(&id).filter(|question| question.is_open());
    found.ok_or(ApplyError::WrongQuestion { run: of, id })
}
