//! Questions of a call to a person. The call is cancelled, the task waits, and the call is repeated with the answer. The
//! repeated call asks its earlier questions under the same ids and receives the same answers.

use muster_shared::flow::{CallForm, Question, RolePermission, Use, Wait};
use muster_shared::wire::tool_question::{CallAnswer, OpenQuestion, PersonQuestion, QuestionAnswer};

use super::RemoteTool;
use crate::tools::ToolContext;

/// Most bytes of answers that go with a call that is made again.
const MOST_REMEMBERED: usize = 64 * 1024;

/// What a call has asked so far, and on whose behalf it is made.
pub(super) struct Asking<'a> {
    ctx: &'a ToolContext,
    /// What was answered, for when the call is made again.
    answered: Vec<QuestionAnswer>,
}

/// What becomes of a question.
pub(super) enum Asked {
    /// Its answer.
    Answered(QuestionAnswer),
    /// A person is to answer it.
    Waits(Box<Wait>),
}

/// What people answered to the call when it was made before.
pub(super) fn known(ctx: &ToolContext) -> Vec<QuestionAnswer> {
    ctx.people.as_deref().map(<[_]>::to_vec).unwrap_or_default()
}

/// By which the call is known: one that is made again with more answers is another one.
pub(super) fn key_of(key: String, ctx: &ToolContext) -> String {
    match known(ctx).len() {
        0 => key,
        answers => format!("{key}/answered-{answers}"),
    }
}

/// Whether the task of the call may ask a person.
fn may_ask_people(ctx: &ToolContext) -> bool {
    ctx.people.is_some()
        && ctx.permissions.is_open(RolePermission::People)
        && ctx.rights.allows(&Use::Person).is_ok()
}

impl<'a> Asking<'a> {
    pub(super) fn of(ctx: &'a ToolContext) -> Self {
        Self { ctx, answered: known(ctx) }
    }

    /// What was answered so far.
    pub(super) fn answered(&self) -> &[QuestionAnswer] {
        &self.answered
    }

    /// Remembers an answer, as far as a call has room for it.
    fn remember(&mut self, answered: &QuestionAnswer) {
        let bytes: usize = self.answered.iter().map(length).sum();
        if bytes + length(answered) <= MOST_REMEMBERED {
            self.answered.push(answered.clone());
        }
    }
}

fn length(one: &QuestionAnswer) -> usize {
    match &one.answer {
        CallAnswer::Given { values } => values.to_string().len(),
        CallAnswer::Decline { why } | CallAnswer::Cancel { why } => why.len(),
    }
}

impl RemoteTool {
    /// Returns true if a call with this context may ask a person.
    pub(super) fn may_ask(&self, ctx: &ToolContext) -> bool {
        may_ask_people(ctx) && self.rules.as_ref().is_some_and(|rules| rules.may_ask(&self.server))
    }

    /// Suspends the task until a person answers, or declines the question.
    pub(super) fn answer(&self, asked: OpenQuestion, asking: &mut Asking<'_>) -> Asked {
        let OpenQuestion { id, question } = asked;
        let count = u32::try_from(known(asking.ctx).len()).unwrap_or(u32::MAX);
        let rules = self.rules.as_ref().filter(|_| self.may_ask(asking.ctx));
        let admitted = rules
            .map_or_else(|| Err("nobody answers here".to_owned()), |rules| rules.admit(&question, count));
        match admitted {
            Ok(()) => Asked::Waits(Box::new(self.wait(id, question))),
            Err(why) => {
                let answered = QuestionAnswer { id, answer: CallAnswer::declined(why) };
                asking.remember(&answered);
                Asked::Answered(answered)
            }
        }
    }

    /// What the task waits for.
    fn wait(&self, id: String, PersonQuestion { text, form }: PersonQuestion) -> Wait {
        let reason = format!(
            "a call of `{}` asks this, in the words of its server",
            self.tool.full_name(&self.server)
        );
        Wait::Answer(Question { reason, form: Some(Box::new(CallForm { id, form })), ..Question::new(text) })
    }
}
