//! What comes next in a task: `(history, answer, case) -> next step`. Pure.

use muster_corpus::CitedPlace;
use muster_shared::flow::response::{DECLINED, NO_ANSWER_USABLE};
use muster_shared::flow::{
    Action, Ending, Note, Observation, Product, RolePermission, RolePermissions, TaskOffered, Thought,
};
use muster_shared::text::first_line;
use serde_json::Value;

use super::consult::{ConsultQuestion, reasons_alike};
use super::history::History;
pub use super::limits::StepLimits;
use super::lookup;
use super::loop_detection::{refused, spinning};
use super::parse::{ParseFailure, ParsedAnswer, is_refusal};
use super::partial::{best_partial, escalated};
use super::submit::{ModelAnswer, ask_again};
use super::toolset::{Toolset, take_thought};
use super::verify::verified;
use crate::roles::{RoleRules, Submission};
use crate::tools::actions;

/// Stands for the thought of a model that gave none, also when asked.
pub const NO_THOUGHT: &str = "(no thought was given)";
/// The request in other words, for a model that declined it.
const REPHRASED: &str = "you declined. Put otherwise: nothing is asked of you but one next step of ordinary work on the \
                         task above, with the actions you were given; people answer for what is done with it. Take the \
                         step that you can take";
/// A smaller request, for a model that declined twice.
const SMALLER: &str = "you declined again. Do only the part of the task that you can do: submit it with `done_partial`, \
                       and name in `unanswered` what you leave out and in `reason` why. If there is no such part, submit \
                       with `escalate` and say in `reason` what a person has to decide";

/// Prose longer than this is taken for a result without a look whether it declines, in characters.
const MAY_DECLINE: usize = 600;
/// Longest refusal that is told, in characters.
const SAID: usize = 300;

/// What stays the same over all steps of a task.
#[derive(Debug, Clone, Copy)]
pub struct StepContext<'a> {
    /// The task.
    pub offer: &'a TaskOffered,
    /// The rules of its role.
    pub rules: &'a RoleRules,
    /// What the model may do.
    pub toolset: &'a Toolset,
    /// What the role may do at all.
    pub permissions: RolePermissions,
    /// Whether there is a language model that can be asked.
    pub has_model: bool,
    /// The limits.
    pub limits: StepLimits,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep {
    /// Run a tool; what it gives is the observation.
    CallTool {
        /// What the model thought and chose.
        chosen: ChosenAction,
        /// Whether the tool changes nothing.
        pure: bool,
    },
    /// Do not do it; this is the observation.
    Refuse {
        /// What the model thought and chose.
        chosen: ChosenAction,
        /// What it is told.
        observation: Observation,
    },
    /// Ask the model something apart from the conversation; what it says decides what becomes of the step.
    Consult {
        /// What the model thought and chose.
        chosen: ChosenAction,
        /// What it is asked.
        question: ConsultQuestion,
    },
    /// Look up what the result cites; what is found decides what becomes of the step.
    LookUp {
        /// What the model thought and chose.
        chosen: ChosenAction,
        /// The places.
        asked: Vec<CitedPlace>,
        /// Whether the lines there are to be shown to whoever is asked about the result.
        shows: bool,
    },
    /// It was done in thought; this is what came of it.
    Observe {
        /// What the model thought and chose.
        chosen: ChosenAction,
        /// What it is told.
        observation: Observation,
    },
    /// Ask the model again within the same step.
    AskAgain {
        /// What it is told.
        reason: String,
        /// What is remarked on the step.
        notes: Vec<Note>,
    },
    /// The task ends as the model says.
    Submit {
        /// What the model thought and chose.
        chosen: ChosenAction,
        /// How the task ends.
        submission: Submission,
    },
    /// The task ends without the model's word: a limit was reached.
    Conclude {
        /// How the task ends.
        submission: Submission,
        /// What is remarked on the last step.
        notes: Vec<Note>,
    },
}

/// What a model thought, and the action it chose.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenAction {
    /// The thought.
    pub thought: Thought,
    /// The action, under the tool's own name.
    pub action: Action,
    /// Further actions in the same answer, which are not done: one action a step.
    pub left_out: usize,
    /// What the loop remarks on it.
    pub notes: Vec<Note>,
}

/// Decides upon the `asked`th answer (from 1) to the question for the next step.
#[must_use]
pub fn decide(history: &History, answer: &ModelAnswer, asked: u32, case: &StepContext<'_>) -> NextStep {
    match &answer.parsed {
        Err(ParseFailure::Refusal { said }) => decide_on_refusal(history, said, asked, case),
        Err(failure) => decide_on_failure(history, answer, failure, asked, case),
        Ok(parsed) => decide_on_action(history, answer, parsed, asked, case),
    }
}

/// How the task ends without another question, if its steps are used up already.
#[must_use]
pub fn exhausted(history: &History, case: &StepContext<'_>) -> Option<Submission> {
    (history.next_step() > case.limits.max_steps).then(|| best_partial(history, case))
}

/// Does what was chosen: an action that is thought rather than done is put to the model.
pub(super) fn tool_call(chosen: ChosenAction, case: &StepContext<'_>) -> NextStep {
    if case.has_model && actions::thinking(&chosen.action).is_some() {
        return NextStep::Consult { chosen, question: ConsultQuestion::Act };
    }
    let pure = case.toolset.find(&chosen.action.name).is_some_and(|ability| ability.pure);
    NextStep::CallTool { chosen, pure }
}

const fn again(reason: String) -> NextStep {
    NextStep::AskAgain { reason, notes: Vec::new() }
}

const fn conclude(submission: Submission) -> NextStep {
    NextStep::Conclude { submission, notes: Vec::new() }
}

fn decide_on_action(
    history: &History,
    answer: &ModelAnswer,
    parsed: &ParsedAnswer,
    asked: u32,
    case: &StepContext<'_>,
) -> NextStep {
    decide_on_chosen(history, choose(answer, parsed, case.toolset), asked, case)
}

/// Decides anew upon an action that was chosen before whoever chose it was stopped, with nothing of it done.
#[must_use]
pub fn resumed(history: &History, chosen: ChosenAction, case: &StepContext<'_>) -> NextStep {
    if chosen.action.name == Action::SUBMIT && chosen.action.arguments.is_null() {
        return NextStep::Consult { chosen, question: ConsultQuestion::Declined };
    }
    decide_on_chosen(history, chosen, case.limits.max_asks, case)
}

fn decide_on_chosen(history: &History, chosen: ChosenAction, asked: u32, case: &StepContext<'_>) -> NextStep {
    if chosen.action.name == Action::SUBMIT {
        return decide_on_submission(history, chosen, asked, case);
    }
    if history.next_step() >= case.limits.max_steps {
        return at_the_limit(history, asked, case);
    }
    if chosen.thought.text == NO_THOUGHT && asked == 1 && case.limits.max_asks > 1 {
        let reason = "an action needs a thought before it: say what you know, what is missing, and why this \
                      action is the next";
        return again(ask_again(&[reason.to_owned()], None));
    }
    match case.toolset.find(&chosen.action.name) {
        None => {
            let observation = unknown_tool(&chosen.action.name, case.toolset);
            NextStep::Refuse { chosen, observation }
        }
        Some(ability) if !case.permissions.is_open(ability.permission) => {
            closed(chosen, ability.permission, case)
        }
        Some(_) => match spinning(history, &chosen, case) {
            Some(next) => next,
            None if reasons_alike(history, &chosen, case) => {
                NextStep::Consult { chosen, question: ConsultQuestion::Reasoning }
            }
            None => tool_call(chosen, case),
        },
    }
}

fn choose(answer: &ModelAnswer, parsed: &ParsedAnswer, toolset: &Toolset) -> ChosenAction {
    let ability = toolset.find(&parsed.action.name);
    let (arguments, declared) = take_thought(&parsed.action.arguments);
    let name = ability.map_or_else(|| parsed.action.name.trim().to_owned(), |ability| ability.name.clone());
    let own = |text: &Option<String>| text.as_deref().map(str::trim).unwrap_or_default().to_owned();
    let thoughts = [own(&parsed.thought), own(&declared), own(&parsed.reasoning), own(&answer.reasoning)];
    let text = thoughts.into_iter().find(|text| !text.is_empty());
    let thought = Thought {
        text: text.unwrap_or_else(|| NO_THOUGHT.to_owned()),
        reasoning: own(&parsed.reasoning),
        plan: own(&parsed.plan),
        criticism: own(&parsed.criticism),
    };
    ChosenAction {
        thought,
        action: Action { name, arguments },
        left_out: parsed.more.len(),
        notes: Vec::new(),
    }
}

/// A submission without a thought is taken: writing a whole result anew for want of a remark is waste.
fn decide_on_submission(
    history: &History,
    chosen: ChosenAction,
    asked: u32,
    case: &StepContext<'_>,
) -> NextStep {
    match case.rules.submission(case.offer, &chosen.action.arguments) {
        Ok(submission) if case.has_model && sounds_declined(&submission) => {
            NextStep::Consult { chosen, question: ConsultQuestion::Declined }
        }
        Ok(submission) => verified(history, chosen, submission, case),
        Err(faults) if asked < case.limits.max_asks => {
            again(ask_again(&faults, Some(case.toolset.submit_schema())))
        }
        Err(faults) => conclude(unusable(asked, &faults.join("; "))),
    }
}

/// Whether a result that is said to be one reads like a refusal. A text that was asked for may, so that words alone do not
/// decide it.
fn sounds_declined(submission: &Submission) -> bool {
    match &submission.product {
        Some(Product::Result(result)) => {
            submission.ending.is_success() && result.findings.is_empty() && is_refusal(&result.conclusion)
        }
        Some(
            Product::Plan(_)
            | Product::Reflection(_)
            | Product::Refinement(_)
            | Product::Report(_)
            | Product::DraftReview(_),
        )
        | None => false,
    }
}

/// What follows once it is known whether a submission declines the task.
pub(super) fn submitted(
    history: &History,
    chosen: ChosenAction,
    declined: bool,
    case: &StepContext<'_>,
) -> NextStep {
    match case.rules.submission(case.offer, &chosen.action.arguments) {
        Ok(_) if declined => {
            let said = chosen.action.arguments["conclusion"].as_str().unwrap_or_default();
            declines(history, said, 1, case)
        }
        Ok(submission) => verified(history, chosen, submission, case),
        Err(faults) => conclude(unusable(1, &faults.join("; "))),
    }
}

/// The task was declined: a person has to look.
fn declines(history: &History, said: &str, times: u32, case: &StepContext<'_>) -> NextStep {
    let reason = format!("{DECLINED}: {}", first_line(said, SAID));
    let notes = vec![Note::Declined { times }];
    NextStep::Conclude { submission: escalated(history, case, reason), notes }
}

fn at_the_limit(history: &History, asked: u32, case: &StepContext<'_>) -> NextStep {
    if asked < case.limits.max_asks {
        let reason = "no step is left, so no tool is run any more: submit now with the best result there is";
        let schema = Some(case.toolset.submit_schema());
        return again(ask_again(&[reason.to_owned()], schema));
    }
    conclude(best_partial(history, case))
}

fn decide_on_failure(
    history: &History,
    answer: &ModelAnswer,
    failure: &ParseFailure,
    asked: u32,
    case: &StepContext<'_>,
) -> NextStep {
    if asked < case.limits.max_asks {
        let schema = Some(case.toolset.submit_schema());
        return again(ask_again(&[failure.to_string()], schema));
    }
    match given_up_asking(answer, failure, asked, case) {
        GivenUp::Concluded(submission) => lookup::of_prose(history, answer.said.trim(), submission, case),
        GivenUp::InDoubt(chosen) => NextStep::Consult { chosen, question: ConsultQuestion::Declined },
    }
}

/// A model that declines is asked in other words, then for a smaller part; then a person has to look. The same request
/// is never repeated: it would be declined again.
fn decide_on_refusal(history: &History, said: &str, asked: u32, case: &StepContext<'_>) -> NextStep {
    let note = Note::Declined { times: asked };
    if asked < case.limits.max_asks {
        let reason = if asked == 1 { REPHRASED } else { SMALLER };
        let schema = Some(case.toolset.submit_schema());
        return NextStep::AskAgain { reason: ask_again(&[reason.to_owned()], schema), notes: vec![note] };
    }
    let reason = format!("{DECLINED}, also in other words and for a smaller part: {said}");
    NextStep::Conclude { submission: escalated(history, case, reason), notes: vec![note] }
}

/// What becomes of a step that no answer led to.
enum GivenUp {
    Concluded(Submission),
    /// A few words would be taken for the result, and may be a refusal that no rule knows.
    InDoubt(ChosenAction),
}

fn given_up_asking(
    answer: &ModelAnswer,
    failure: &ParseFailure,
    asked: u32,
    case: &StepContext<'_>,
) -> GivenUp {
    let prose = answer.said.trim();
    let concluded = match failure {
        ParseFailure::NoAction if prose.is_empty() => unusable(asked, &failure.to_string()),
        ParseFailure::NoAction => match taken_as_it_is(prose, asked, case) {
            Some(_) if case.has_model && prose.chars().nth(MAY_DECLINE).is_none() => {
                let thought = Thought { text: prose.to_owned(), ..Thought::default() };
                let action = Action { name: Action::SUBMIT.to_owned(), arguments: Value::Null };
                return GivenUp::InDoubt(ChosenAction { thought, action, left_out: 0, notes: Vec::new() });
            }
            Some(submission) => submission,
            None => unusable(asked, &failure.to_string()),
        },
        ParseFailure::Refusal { .. }
        | ParseFailure::Empty
        | ParseFailure::CutOff
        | ParseFailure::TooLarge { .. }
        | ParseFailure::TooDeep { .. }
        | ParseFailure::Unreadable { .. }
        | ParseFailure::NoActionName
        | ParseFailure::DoesNotFit { .. } => unusable(asked, &failure.to_string()),
    };
    GivenUp::Concluded(concluded)
}

/// Prose as the result, in a role that takes it.
pub(super) fn taken_as_it_is(prose: &str, asked: u32, case: &StepContext<'_>) -> Option<Submission> {
    let product = (case.rules.from_prose?)(case.offer, prose);
    let reason =
        format!("the model wrote plain text {asked} times instead of submitting; it was taken as it is");
    Some(Submission { ending: Ending::DonePartial, reason, product: Some(product) })
}

/// How the task ends with a few words of prose, once it is known whether they decline it.
pub(super) fn in_prose(history: &History, prose: &str, declined: bool, case: &StepContext<'_>) -> NextStep {
    let asked = case.limits.max_asks;
    if declined {
        return declines(history, prose, asked, case);
    }
    let taken = taken_as_it_is(prose, asked, case);
    match taken {
        Some(submission) => lookup::of_prose(history, prose, submission, case),
        None => conclude(unusable(asked, &ParseFailure::NoAction.to_string())),
    }
}

fn unusable(asked: u32, why: &str) -> Submission {
    let times = if asked == 1 { "once".to_owned() } else { format!("{asked} times") };
    let reason = format!(
        "the model was asked {times} and {NO_ANSWER_USABLE}: {why}. A model that follows a schema better, or may \
         answer at more length, helps: choose one with --model or in the settings"
    );
    Submission::without_product(Ending::ModelFailed, reason)
}

/// An action that the role may not do is not done, and the model is told so.
fn closed(mut chosen: ChosenAction, permission: RolePermission, case: &StepContext<'_>) -> NextStep {
    let role = case.rules.name;
    let observation = refused(format!(
        "`{}` was not done: a {role} may not {}. Go on without it; where nothing else leads on, submit with `escalate` or \
         `blocked` and say what is missing.",
        chosen.action.name,
        permission.as_words()
    ));
    chosen.notes.push(Note::Closed { permission });
    NextStep::Refuse { chosen, observation }
}

fn unknown_tool(name: &str, toolset: &Toolset) -> Observation {
    let shown: String = name.chars().take(64).collect();
    let nearest = toolset.nearest(name).map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
    refused(format!("There is no action `{shown}`.{nearest} Available: {}.", toolset.names().join(", ")))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
