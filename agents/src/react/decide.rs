//! What comes next in a task: `(history, answer, case) -> next step`. Pure.

use muster_shared::flow::{
    Action, Ending, Observation, ObservationStatus, Product, TaskOffered, TaskResult, Thought, Work,
};
use serde::{Deserialize, Serialize};

use super::history::History;
use super::parse::{ParseFailure, ParsedAnswer};
use super::submit::{Answer, ask_again};
use super::toolset::{Toolset, take_thought};
use crate::roles::{RoleRules, Submission};

/// Stands for the thought of a model that gave none, also when asked.
pub const NO_THOUGHT: &str = "(no thought was given)";

/// Limits of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepLimits {
    /// Most steps. The run's own limit holds where it is lower.
    pub max_steps: u32,
    /// How often a model is asked within one step before its failure counts.
    pub max_asks: u32,
    /// With how many steps left the model is told to conclude.
    pub conclude_within: u32,
    /// Whether the task's budget is what limits its steps. Not a setting.
    #[serde(skip)]
    pub by_budget: bool,
}

impl Default for StepLimits {
    fn default() -> Self {
        Self { max_steps: 50, max_asks: 3, conclude_within: 2, by_budget: false }
    }
}

impl StepLimits {
    /// The limits of this task: what the agent's settings, the run, the role and the budget allow together. Every
    /// step of a task that `asks` a model takes a call.
    #[must_use]
    pub fn of_task(self, offer: &TaskOffered, rules: &RoleRules, asks: bool) -> Self {
        let role = rules.max_steps.unwrap_or(u32::MAX);
        let usual = self.max_steps.min(offer.limits.max_steps).min(role).max(1);
        let calls = offer.budget.model_calls.filter(|_| asks);
        let budget = offer.budget.steps.into_iter().chain(calls).min();
        let budget = budget.map_or(u32::MAX, |most| u32::try_from(most).unwrap_or(u32::MAX));
        Self {
            max_steps: usual.min(budget).max(1),
            max_asks: self.max_asks.max(1),
            by_budget: budget < usual,
            ..self
        }
    }
}

/// What stays the same over all steps of a task.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The task.
    pub offer: &'a TaskOffered,
    /// The rules of its role.
    pub rules: &'static RoleRules,
    /// What the model may do.
    pub toolset: &'a Toolset,
    /// The limits.
    pub limits: StepLimits,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep {
    /// Run a tool; what it gives is the observation.
    CallTool {
        /// What the model thought and chose.
        chosen: Chosen,
        /// Whether the tool changes nothing.
        pure: bool,
    },
    /// Do not do it; this is the observation.
    Refuse {
        /// What the model thought and chose.
        chosen: Chosen,
        /// What it is told.
        observation: Observation,
    },
    /// Ask the model again within the same step.
    AskAgain {
        /// What it is told.
        reason: String,
    },
    /// The task ends as the model says.
    Submit {
        /// What the model thought and chose.
        chosen: Chosen,
        /// How the task ends.
        submission: Submission,
    },
    /// The task ends because a limit was reached.
    Conclude {
        /// How the task ends.
        submission: Submission,
    },
}

/// What a model thought, and the action it chose.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The thought.
    pub thought: Thought,
    /// The action, under the tool's own name.
    pub action: Action,
    /// Further actions in the same answer, which are not done: one action a step.
    pub left_out: usize,
}

/// Decides upon the `asked`th answer (from 1) to the question for the next step.
#[must_use]
pub fn decide(history: &History, answer: &Answer, asked: u32, case: &Case<'_>) -> NextStep {
    match &answer.parsed {
        Err(failure) => decide_on_failure(answer, failure, asked, case),
        Ok(parsed) => decide_on_action(history, answer, parsed, asked, case),
    }
}

/// How the task ends without another question, if its steps are used up already.
#[must_use]
pub fn exhausted(history: &History, case: &Case<'_>) -> Option<Submission> {
    (history.next_step() > case.limits.max_steps).then(|| best_partial(history, case))
}

fn decide_on_action(
    history: &History,
    answer: &Answer,
    parsed: &ParsedAnswer,
    asked: u32,
    case: &Case<'_>,
) -> NextStep {
    let chosen = choose(answer, parsed, case.toolset);
    if chosen.action.name == Action::SUBMIT {
        return decide_on_submission(chosen, asked, case);
    }
    if history.next_step() >= case.limits.max_steps {
        return at_the_limit(history, asked, case);
    }
    if chosen.thought.text == NO_THOUGHT && asked == 1 && case.limits.max_asks > 1 {
        let reason = "an action needs a thought before it: say what you know, what is missing, and why this \
                      action is the next";
        return NextStep::AskAgain { reason: ask_again(&[reason.to_owned()], None) };
    }
    match case.toolset.find(&chosen.action.name) {
        None => {
            let observation = unknown_tool(&chosen.action.name, case.toolset);
            NextStep::Refuse { chosen, observation }
        }
        Some(ability) => match history.same_action(&chosen.action) {
            Some(earlier) => {
                let observation = repetition(&chosen.action, earlier.number);
                NextStep::Refuse { chosen, observation }
            }
            None => NextStep::CallTool { chosen, pure: ability.pure },
        },
    }
}

fn choose(answer: &Answer, parsed: &ParsedAnswer, toolset: &Toolset) -> Chosen {
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
    Chosen { thought, action: Action { name, arguments }, left_out: parsed.more.len() }
}

/// A submission without a thought is taken: writing a whole result anew for want of a remark is waste.
fn decide_on_submission(chosen: Chosen, asked: u32, case: &Case<'_>) -> NextStep {
    match case.rules.submission(case.offer, &chosen.action.arguments) {
        Ok(submission) => NextStep::Submit { chosen, submission },
        Err(faults) if asked < case.limits.max_asks => {
            NextStep::AskAgain { reason: ask_again(&faults, Some(case.toolset.submit_schema())) }
        }
        Err(faults) => NextStep::Conclude { submission: unusable(asked, &faults.join("; ")) },
    }
}

fn at_the_limit(history: &History, asked: u32, case: &Case<'_>) -> NextStep {
    if asked < case.limits.max_asks {
        let reason = "no step is left, so no tool is run any more: submit now with the best result there is";
        let schema = Some(case.toolset.submit_schema());
        return NextStep::AskAgain { reason: ask_again(&[reason.to_owned()], schema) };
    }
    NextStep::Conclude { submission: best_partial(history, case) }
}

fn decide_on_failure(answer: &Answer, failure: &ParseFailure, asked: u32, case: &Case<'_>) -> NextStep {
    if asked < case.limits.max_asks {
        let schema = Some(case.toolset.submit_schema());
        return NextStep::AskAgain { reason: ask_again(&[failure.to_string()], schema) };
    }
    NextStep::Conclude { submission: given_up_asking(answer, failure, asked, case) }
}

fn given_up_asking(answer: &Answer, failure: &ParseFailure, asked: u32, case: &Case<'_>) -> Submission {
    let prose = answer.said.trim();
    match failure {
        ParseFailure::Refusal { said } => {
            Submission::without_product(Ending::GaveUp, format!("the model declined the task: {said}"))
        }
        ParseFailure::NoAction => match case.rules.from_prose {
            Some(from_prose) if !prose.is_empty() => Submission {
                ending: Ending::DonePartial,
                reason: format!(
                    "the model wrote plain text {asked} times instead of submitting; it was taken as it is"
                ),
                product: Some(from_prose(case.offer, prose)),
            },
            Some(_) | None => unusable(asked, &failure.to_string()),
        },
        ParseFailure::Empty
        | ParseFailure::TooLarge { .. }
        | ParseFailure::TooDeep { .. }
        | ParseFailure::CutOff
        | ParseFailure::Unreadable { .. }
        | ParseFailure::NoActionName
        | ParseFailure::DoesNotFit { .. } => unusable(asked, &failure.to_string()),
    }
}

fn unusable(asked: u32, why: &str) -> Submission {
    let times = if asked == 1 { "once".to_owned() } else { format!("{asked} times") };
    let reason = format!(
        "the model was asked {times} and no answer could be used: {why}. A model that follows a schema better \
         helps: choose one with --model or in the settings"
    );
    Submission::without_product(Ending::ModelFailed, reason)
}

/// The best there is when the steps are used up.
fn best_partial(history: &History, case: &Case<'_>) -> Submission {
    let most = case.limits.max_steps;
    if case.limits.by_budget {
        let reason = format!("all {most} steps that it may take were taken before a result was submitted");
        return best_so_far(history, case.offer, reason).ending(Ending::BudgetExhausted);
    }
    let reason = format!("the limit of {most} steps was reached before a result was submitted");
    best_so_far(history, case.offer, reason)
}

/// What was learnt until the task was cut short, with nothing claimed beyond it.
pub(super) fn best_so_far(history: &History, offer: &TaskOffered, reason: String) -> Submission {
    let succeeded = |seen: &Observation| seen.status == ObservationStatus::Success;
    let learnt = history.steps().iter().any(|step| step.observation.as_ref().is_some_and(succeeded));
    let thought =
        history.steps().iter().rev().map(|step| step.thought.text.as_str()).find(|text| *text != NO_THOUGHT);
    match (&offer.work, thought) {
        (Work::Execute { task, .. }, Some(thought)) if learnt => Submission {
            ending: Ending::DonePartial,
            product: Some(Product::Result(TaskResult {
                conclusion: format!("Unfinished: {reason}. The last thought was: {thought}"),
                unanswered: vec![task.goal.clone()],
                ..TaskResult::default()
            })),
            reason,
        },
        (
            Work::Execute { .. }
            | Work::Plan { .. }
            | Work::Reflect { .. }
            | Work::Refine { .. }
            | Work::Write { .. },
            _,
        ) => Submission::without_product(Ending::GaveUp, reason),
    }
}

fn unknown_tool(name: &str, toolset: &Toolset) -> Observation {
    let shown: String = name.chars().take(64).collect();
    let nearest = toolset.nearest(name).map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
    refused(format!("There is no action `{shown}`.{nearest} Available: {}.", toolset.names().join(", ")))
}

fn repetition(action: &Action, earlier: u32) -> Observation {
    refused(format!(
        "You did exactly this in step {earlier}, and nothing has changed since: `{}` was not run again. Use \
         what step {earlier} showed, change the arguments, try another action, or submit.",
        action.name
    ))
}

const fn refused(content: String) -> Observation {
    Observation { status: ObservationStatus::Refused, content, millis: 0, truncated: false }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
