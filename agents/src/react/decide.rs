//! What comes next in a task: `(history, answer, case) -> next step`. Pure.

use muster_corpus::CitedPlace;
use muster_shared::flow::response::{DECLINED, NO_ANSWER_USABLE};
use muster_shared::flow::{
    Action, Ending, FurtherAction, Note, Observation, ObservationStatus, Product, RolePermission,
    RolePermissions, TaskOffered, Thought,
};
use muster_shared::text::first_line;
use serde_json::Value;

use super::consult::{ConsultQuestion, reasons_alike};
use super::further::{FIND_TOOL, used_tool};
use super::history::History;
pub use super::limits::StepLimits;
use super::lookup;
use super::loop_detection::{refused, spinning};
use super::mend;
use super::parse::{ParseFailure, ParsedAction, ParsedAnswer, is_refusal};
use super::partial::{best_partial, escalated};
use super::prose::{is_long, taken_as_text};
use super::several::with_more;
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

impl StepContext<'_> {
    /// The schema that a refusal repeats: the request holds it already, and old records repeat it.
    fn repeated_schema(&self) -> Option<&Value> {
        self.limits.takes_one_call().then(|| self.toolset.submit_schema())
    }
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, made and taken apart once a step")]
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
    /// Further actions of the same answer. Those that are not to be done have what the model is told of them.
    pub more: Vec<FurtherAction>,
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
    let to_do = chosen.more.iter().filter(|more| more.observation.is_none()).map(|more| &more.action);
    let pure = std::iter::once(&chosen.action)
        .chain(to_do)
        .all(|action| case.toolset.find(&action.name).is_some_and(|ability| ability.pure));
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
    let mut chosen = choose(answer, parsed, case.toolset);
    amend(history, &mut chosen.action);
    let more = parsed.more.iter().map(|more| action_of(more, case.toolset).0).collect();
    decide_on_chosen(history, with_more(history, chosen, more, case), asked, case)
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
    let wants_a_thought = case.limits.takes_one_call() && asked == 1 && case.limits.max_asks > 1;
    if chosen.thought.text == NO_THOUGHT && wants_a_thought {
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
        Some(ability) if ability.name == FIND_TOOL => {
            let words = chosen.action.arguments["what"].as_str().unwrap_or_default();
            let observation = told(case.toolset.told_of(words));
            NextStep::Observe { chosen, observation }
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

/// The argument that says that a submission changes some fields of the one before, which did not hold.
const AMENDS: &str = "amends";

/// Completes a submission that gives only what it changes.
fn amend(history: &History, action: &mut Action) {
    let Some(changed) = action.arguments.as_object_mut().filter(|_| action.name == Action::SUBMIT) else {
        return;
    };
    if changed.remove(AMENDS) != Some(Value::Bool(true)) {
        return;
    }
    let before = history.steps().iter().rev().find(|step| step.action.name == Action::SUBMIT);
    for (name, value) in before.and_then(|step| step.action.arguments.as_object()).into_iter().flatten() {
        changed.entry(name.as_str()).or_insert_with(|| value.clone());
    }
}

fn choose(answer: &ModelAnswer, parsed: &ParsedAnswer, toolset: &Toolset) -> ChosenAction {
    let (action, declared) = action_of(&parsed.action, toolset);
    let own = |text: &Option<String>| text.as_deref().map(str::trim).unwrap_or_default().to_owned();
    let thoughts = [own(&parsed.thought), own(&declared), own(&parsed.reasoning), own(&answer.reasoning)];
    let text = thoughts.into_iter().find(|text| !text.is_empty());
    let thought = Thought {
        text: text.unwrap_or_else(|| NO_THOUGHT.to_owned()),
        reasoning: own(&parsed.reasoning),
        plan: own(&parsed.plan),
        criticism: own(&parsed.criticism),
    };
    ChosenAction { thought, action, more: Vec::new(), notes: Vec::new() }
}

/// The action under the tool's own name, and the thought among its arguments.
fn action_of(parsed: &ParsedAction, toolset: &Toolset) -> (Action, Option<String>) {
    let (arguments, thought) = take_thought(&parsed.arguments);
    let by_way = used_tool(&parsed.name, &arguments);
    let (called, arguments) = by_way.unwrap_or_else(|| (parsed.name.clone(), arguments));
    let ability = toolset.find(&called);
    let name = ability.map_or_else(|| called.trim().to_owned(), |ability| ability.name.clone());
    (Action { name, arguments }, thought)
}

/// A submission without a thought is taken: writing a whole result anew for want of a remark is waste.
fn decide_on_submission(
    history: &History,
    mut chosen: ChosenAction,
    asked: u32,
    case: &StepContext<'_>,
) -> NextStep {
    let read = mend::whole(history, &chosen.action.arguments, case).and_then(|whole| {
        if let Some(whole) = whole {
            chosen.action.arguments = whole;
        }
        case.rules.submission(case.offer, &chosen.action.arguments)
    });
    match read {
        Ok(submission) if case.has_model && sounds_declined(&submission) => {
            NextStep::Consult { chosen, question: ConsultQuestion::Declined }
        }
        Ok(submission) => match mend::told(history, &mut chosen, &submission, case) {
            Some(observation) => NextStep::Refuse { chosen, observation },
            None => verified(history, chosen, submission, case),
        },
        Err(faults) if asked < case.limits.max_asks => again(ask_again(&faults, case.repeated_schema())),
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
        let schema = case.repeated_schema();
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
    if *failure == ParseFailure::NoAction
        && let Some(next) = taken_as_text(history, &answer.said, case)
    {
        return next;
    }
    if asked < case.limits.max_asks {
        let schema = case.repeated_schema();
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
        let schema = case.repeated_schema();
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
            Some(_) if case.has_model && !is_long(prose) => {
                let thought = Thought { text: prose.to_owned(), ..Thought::default() };
                let action = Action { name: Action::SUBMIT.to_owned(), arguments: Value::Null };
                return GivenUp::InDoubt(ChosenAction {
                    thought,
                    action,
                    more: Vec::new(),
                    notes: Vec::new(),
                });
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
    let observation = told_closed(&chosen.action, permission, case);
    chosen.notes.push(Note::Closed { permission });
    NextStep::Refuse { chosen, observation }
}

/// What the model is told of an action that its role may not do.
pub(super) fn told_closed(
    action: &Action,
    permission: RolePermission,
    case: &StepContext<'_>,
) -> Observation {
    refused(format!(
        "`{}` was not done: a {} may not {}. Go on without it; where nothing else leads on, submit with `escalate` or \
         `blocked` and say what is missing.",
        action.name,
        case.rules.name,
        permission.as_words()
    ))
}

/// What the model is told where nothing has to be done for it.
const fn told(content: String) -> Observation {
    Observation { status: ObservationStatus::Success, content, millis: 0, truncated: false }
}

/// What the model is told of an action that there is not.
pub(super) fn unknown_tool(name: &str, toolset: &Toolset) -> Observation {
    let shown: String = name.chars().take(64).collect();
    let nearest = toolset.nearest(name).map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
    refused(format!("There is no action `{shown}`.{nearest} Available: {}.", toolset.names().join(", ")))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
