//! What each role brings to the common loop: its template, the schema by which its tasks end, its tools,
//! and how what the model submits becomes a [`Product`].
//!
//! The kind of work decides, not the name of the process: whoever takes a plan task plans. Leaves are done
//! by researchers or, for every other role, in the manner of a worker.

use muster_shared::flow::{Ending, Product, TaskOffered, Work};
use muster_shared::ids::{Role, TaskId};
use serde_json::{Value, json};

mod claims;
mod document;
mod draft_reviewer;
mod held;
pub mod patch;
mod planner;
mod refiner;
mod reflector;
mod researcher;
mod specialist;
mod worker;
mod writer;

use std::ops::Deref;
use std::sync::Arc;

pub use document::{Document, Faults};
pub(crate) use held::problems;
pub use specialist::{SPECIALIST, data_by_rule, promising, refusal, rules_of};
pub(crate) use worker::{FEW_TOOLS, TRIGGERS};

use crate::definition::{Contract, Definition};

/// What a role brings to the common loop.
#[derive(Debug, Clone)]
pub struct RoleRules {
    /// Name of the role and of its template.
    pub name: &'static str,
    /// The template that comes with Muster.
    pub template: &'static str,
    /// Which tools it may use unless settings say otherwise: names, or `prefix.*`; `*` is all.
    pub tools: &'static [&'static str],
    /// Most steps, where fewer than the run allows make sense.
    pub max_steps: Option<u32>,
    /// The schema of what is submitted.
    pub schema: fn(&TaskOffered) -> Value,
    /// What was submitted, checked.
    pub read: fn(&TaskOffered, &Document<'_>, &mut Faults) -> Submission,
    /// What stands for a submission when the model has only written prose, if prose can stand for one.
    pub from_prose: Option<fn(&TaskOffered, &str) -> Product>,
    /// What the role takes on and promises, when a user defined it.
    pub contract: Option<Contract>,
    /// The definition behind the rules, when a user defined the role.
    pub specialist: Option<Arc<Definition>>,
}

impl RoleRules {
    /// A role that comes with Muster, without tools, whose answer is one document.
    const fn single_answer(
        name: &'static str,
        template: &'static str,
        schema: fn(&TaskOffered) -> Value,
        read: fn(&TaskOffered, &Document<'_>, &mut Faults) -> Submission,
        from_prose: Option<fn(&TaskOffered, &str) -> Product>,
    ) -> Self {
        Self {
            name,
            template,
            tools: &[],
            max_steps: Some(SINGLE_ANSWER_STEPS),
            schema,
            read,
            from_prose,
            contract: None,
            specialist: None,
        }
    }
}

/// The part of a schema that answers doubts about cited statements.
fn answers_to_doubts() -> Value {
    json!({
        "type": "array",
        "description": "only if doubts were listed: `keep`, or the corrected statement, per item",
        "items": {
            "type": "object",
            "properties": {"item": {"type": "integer"}, "answer": {"type": "string"}},
            "required": ["item", "answer"]
        }
    })
}

/// Rules of a role: those that come with Muster, or a user's own.
#[derive(Debug, Clone)]
pub enum Rules {
    /// They come with Muster.
    BuiltIn(&'static RoleRules),
    /// A user defined them.
    Own(Arc<RoleRules>),
}

impl Deref for Rules {
    type Target = RoleRules;

    fn deref(&self) -> &RoleRules {
        match self {
            Self::BuiltIn(rules) => rules,
            Self::Own(rules) => rules,
        }
    }
}

/// How a task ends when the model says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// How it ends.
    pub ending: Ending,
    /// Why, in a sentence.
    pub reason: String,
    /// What it gives.
    pub product: Option<Product>,
}

impl Submission {
    /// The task is done.
    #[must_use]
    pub const fn done(product: Product) -> Self {
        Self { ending: Ending::Done, reason: String::new(), product: Some(product) }
    }

    /// The same with another ending.
    #[must_use]
    pub fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    /// The task ends with nothing to show.
    #[must_use]
    pub fn without_product(ending: Ending, reason: impl Into<String>) -> Self {
        Self { ending, reason: reason.into(), product: None }
    }
}

/// Answers of roles without tools are one document; a second and third step are for mending only.
const SINGLE_ANSWER_STEPS: u32 = 3;

/// The rules for this kind of work.
#[must_use]
pub fn rules_for(work: &Work) -> &'static RoleRules {
    match work {
        Work::Plan { .. } => &planner::RULES,
        Work::Execute { task, .. } if task.role == Role::Researcher => &researcher::RULES,
        Work::Execute { .. } => &worker::RULES,
        Work::Reflect { .. } => &reflector::RULES,
        Work::Refine { .. } => &refiner::RULES,
        Work::Write { .. } => &writer::RULES,
        Work::DraftReview { .. } => &draft_reviewer::RULES,
    }
}

/// Whether a task is asked for claims that others can be held against: it is done by several, settles a conflict, belongs to
/// a specialist, or its plan asks for them.
#[must_use]
pub fn wants_claims(offer: &TaskOffered) -> bool {
    let Work::Execute { task, member, .. } = &offer.work else { return false };
    let is_asked = [&task.expected_output, &task.goal].into_iter().chain(&task.milestones);
    let is_asked = is_asked.into_iter().any(|text| text.to_lowercase().contains("claim"));
    let settles = matches!(offer.task, TaskId::Settle(_));
    member.is_some() || settles || is_asked || matches!(task.role, Role::Specialist(_))
}

/// The tools that a role is told of from the start where neither settings nor the plan name any; it finds the others by
/// asking. Nothing for roles that are told of all.
#[must_use]
pub fn base_tools(role: &str) -> Option<&'static [&'static str]> {
    (role == worker::RULES.name).then_some(&worker::BASE_TOOLS)
}

/// The rules of every role that comes with Muster.
#[must_use]
pub fn all() -> [&'static RoleRules; 8] {
    [
        &planner::RULES,
        &worker::RULES,
        &researcher::RULES,
        &reflector::RULES,
        &refiner::RULES,
        &writer::RULES,
        &draft_reviewer::RULES,
        &specialist::RULES,
    ]
}

impl RoleRules {
    /// Checks what was submitted.
    ///
    /// # Errors
    /// What is wrong with it, one line each, worded for the model.
    pub fn submission(&self, offer: &TaskOffered, arguments: &Value) -> Result<Submission, Vec<String>> {
        let mut faults = Faults::default();
        let Some(document) = Document::of(arguments) else {
            return Err(vec!["the arguments of submit must be one JSON object".to_owned()]);
        };
        let submission = (self.read)(offer, &document, &mut faults);
        specialist::check(self, &submission, &mut faults);
        faults.into_result(submission)
    }

    /// The schema of what is submitted, with the data that the role promises.
    #[must_use]
    pub fn submit_schema(&self, offer: &TaskOffered) -> Value {
        specialist::with_data(self, (self.schema)(offer))
    }

    /// The tools that it may use unless settings say otherwise.
    pub fn tool_patterns(&self) -> impl Iterator<Item = &str> {
        let own = self.specialist.as_ref().and_then(|definition| definition.tools.as_deref());
        let usual = if own.is_some() { &[] } else { self.tools };
        own.into_iter().flatten().map(String::as_str).chain(usual.iter().copied())
    }

    /// Whether a tool is among those the role has by default, or among `allowed` where settings name some.
    #[must_use]
    pub fn may_use(&self, tool: &str, allowed: Option<&[String]>) -> bool {
        let fits = |pattern: &str| muster_tools::patterns::means(pattern, tool);
        match allowed {
            Some(patterns) => patterns.iter().any(|pattern| fits(pattern)),
            None => self.tool_patterns().any(fits),
        }
    }
}

#[cfg(test)]
mod tests;
