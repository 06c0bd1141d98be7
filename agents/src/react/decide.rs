//! What comes next in a task: `(history, answer, case) -> next step`. Pure.

use muster_corpus::CitedPlace;
use muster_shared::flow::{
    Action, FurtherAction, Note, Observation, ObservationStatus, Refusal, RolePermission, RolePermissions,
    TaskOffered, Thought, Use,
};
use muster_shared::plan::tools::is_same;
use serde_json::Value;

use super::consult::{ConsultQuestion, reasons_alike};
use super::failure::{decide_on_failure, decide_on_refusal, unusable};
pub(super) use super::failure::{in_prose, taken_as_it_is};
use super::further::{FIND_TOOL, used_tool};
use super::history::History;
pub use super::limits::StepLimits;
use super::loop_detection::{refused, spinning};
use super::mend;
use super::parse::{ParseFailure, ParsedAction, ParsedAnswer};
use super::partial::best_partial;
use super::several::with_more;
use super::submit::{ModelAnswer, ask_again};
use super::toolset::{Toolset, take_thought};
use super::verify::{edit, verified};
use crate::roles::{RoleRules, Submission};
use crate::tools::actions;
use crate::tools::look::LOOK;

/// Stands for the thought of a model that gave none, also when asked.
pub const NO_THOUGHT: &str = "(no thought was given)";

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

pub(super) const fn again(reason: String) -> NextStep {
    NextStep::AskAgain { reason, notes: Vec::new() }
}

pub(super) const fn conclude(submission: Submission) -> NextStep {
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
    match case.toolset.find(&chosen.action.name) {
        None => {
            let observation = unknown_tool(&chosen.action.name, case.toolset);
            NextStep::Refuse { chosen, observation }
        }
        Some(ability) if !case.permissions.is_open(ability.permission) => {
            closed(chosen, ability.permission, case)
        }
        Some(_) if has_no_right(&chosen.action, case).is_some() => denied(chosen, case),
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
/// The argument with the author's answers to doubts about the submission before.
const ANSWERS: &str = "answers";

/// Completes a submission that gives only what it changes.
fn amend(history: &History, action: &mut Action) {
    let Some(changed) = action.arguments.as_object_mut().filter(|_| action.name == Action::SUBMIT) else {
        return;
    };
    let answers = changed.remove(ANSWERS);
    if changed.remove(AMENDS) != Some(Value::Bool(true)) && answers.is_none() {
        return;
    }
    let before = history.steps().iter().rev().find(|step| step.action.name == Action::SUBMIT);
    let Some(before) = before else { return };
    for (name, value) in before.action.arguments.as_object().into_iter().flatten() {
        changed.entry(name.as_str()).or_insert_with(|| value.clone());
    }
    edit(changed, &answers.unwrap_or_default(), &before.notes);
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
        Ok(submission) => match mend::told(history, &mut chosen, &submission, case) {
            Some(observation) => NextStep::Refuse { chosen, observation },
            None => verified(history, chosen, submission, case),
        },
        Err(faults) if asked < case.limits.max_asks => again(ask_again(&faults)),
        Err(faults) => conclude(unusable(asked, &faults.join("; "))),
    }
}

fn at_the_limit(history: &History, asked: u32, case: &StepContext<'_>) -> NextStep {
    if asked < case.limits.max_asks {
        let reason = "no step is left, so no tool is run any more: submit now with the best result there is";
        return again(ask_again(&[reason.to_owned()]));
    }
    conclude(best_partial(history, case))
}

/// An action that the role may not do is not done, and the model is told so.
fn closed(mut chosen: ChosenAction, permission: RolePermission, case: &StepContext<'_>) -> NextStep {
    let observation = told_closed(&chosen.action, permission, case);
    chosen.notes.push(Note::Closed { permission });
    NextStep::Refuse { chosen, observation }
}

/// The right that an action needs and the task has not.
fn has_no_right(action: &Action, case: &StepContext<'_>) -> Option<Refusal> {
    let rights = &case.offer.rights;
    let is_pure = case.toolset.find(&action.name).is_none_or(|ability| ability.pure);
    let effect = (!is_pure).then_some(Use::Effect(&action.name));
    let mut uses = Use::of_call(&action.name, &action.arguments);
    uses.extend(effect);
    rights.allow_all(&uses).err()
}

/// An action that the task has no right to is not done, and the model is told who took it away.
fn denied(mut chosen: ChosenAction, case: &StepContext<'_>) -> NextStep {
    let refusal = has_no_right(&chosen.action, case);
    let why = refusal.as_ref().map(Refusal::to_string).unwrap_or_default();
    chosen.notes.extend(refusal.map(|refusal| Note::Denied { at: 0, refusal }));
    let observation = refused(format!(
        "Not done: {why}. Go on without it; where nothing else leads on, submit what there is and say what is missing."
    ));
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
    Observation { status: ObservationStatus::Success, content, millis: 0, truncated: false, cached: None }
}

/// What the model is told of an action that there is not.
pub(super) fn unknown_tool(name: &str, toolset: &Toolset) -> Observation {
    let shown: String = name.chars().take(64).collect();
    if is_same(name, LOOK) {
        return refused(format!(
            "There is no action `{shown}` in this task: none of its documents is a picture, or its model is not known to see \
             pictures. Go on without it. Available: {}.",
            toolset.names().join(", ")
        ));
    }
    let nearest = toolset.nearest(name).map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
    refused(format!("There is no action `{shown}`.{nearest} Available: {}.", toolset.names().join(", ")))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
