//! The table: what is done about which failure, in order, until nothing of it is left. Pure.

use std::collections::BTreeMap;

use muster_shared::flow::{Ending, FailureKind, Response, RunLimits};

/// What was tried for a task, and what could be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tried {
    /// How often each response was given to earlier failures of the task.
    pub given: BTreeMap<Response, u32>,
    /// How many more tries it may have.
    pub tries_left: u32,
    /// Whether there is another model to try it with.
    pub other_model: bool,
    /// Whether a person can be asked about it.
    pub can_ask: bool,
    /// Whether its end would have what is left planned anew.
    pub can_replan: bool,
    /// Whether the run can go on without it.
    pub can_do_without: bool,
}

/// As often as the limits of the run allow.
const ANY: u32 = u32::MAX;

/// What is done about a failure: the first response of its row that is possible and not used up.
#[must_use]
pub fn respond(failure: FailureKind, tried: &Tried) -> Response {
    let last = if tried.can_do_without { Response::Degrade } else { Response::Stop };
    let possible = |(response, most): &&(Response, u32)| {
        tried.given.get(response).copied().unwrap_or(0) < *most && is_possible(*response, tried)
    };
    row(failure).iter().find(possible).map_or(last, |(response, _)| *response)
}

const fn is_possible(response: Response, tried: &Tried) -> bool {
    match response {
        Response::Retry | Response::OtherAgent | Response::OtherTool => tried.tries_left > 0,
        Response::OtherModel => tried.tries_left > 0 && tried.other_model,
        Response::Person => tried.can_ask,
        Response::Replan => tried.can_replan,
        Response::Degrade => tried.can_do_without,
        Response::Stop => !tried.can_do_without,
    }
}

/// The row of a failure: what is done about it, and how often at most for one task.
const fn row(failure: FailureKind) -> &'static [(Response, u32)] {
    use Response::{OtherAgent, OtherModel, OtherTool, Person, Replan, Retry};
    match failure {
        // The agent has already waited and gone through its own models: once more, then others.
        FailureKind::ModelUnavailable | FailureKind::AnswersUnusable | FailureKind::WrongProduct => {
            &[(Retry, 1), (OtherModel, ANY), (Retry, ANY), (Replan, ANY)]
        }
        // The planner is told what is wrong with its plan.
        FailureKind::PlanRefused => &[(Retry, 1), (OtherModel, ANY), (Retry, ANY)],
        // The same model would decline again, or turn in the same circle.
        FailureKind::ModelDeclined | FailureKind::LoopDetected => {
            &[(OtherModel, ANY), (Person, ANY), (Replan, ANY)]
        }
        // A larger window, else smaller parts.
        FailureKind::QuestionTooLong => &[(OtherModel, ANY), (Replan, ANY), (Retry, 1)],
        // More than one try with each model is wasted on what is too large.
        FailureKind::OutOfSteps | FailureKind::GaveUp => &[(Retry, 1), (OtherModel, ANY), (Replan, ANY)],
        FailureKind::ToolFailed | FailureKind::ToolTimedOut => {
            &[(OtherTool, 1), (OtherModel, 1), (Replan, ANY)]
        }
        FailureKind::ToolRefused => &[(OtherTool, 1), (Person, ANY), (Replan, ANY)],
        // Another try could do it a second time.
        FailureKind::EffectUnknown | FailureKind::NeedsPerson => &[(Person, ANY), (Replan, ANY)],
        FailureKind::Blocked | FailureKind::InputUnfit => &[(Retry, 1), (Replan, ANY)],
        FailureKind::HandedBack | FailureKind::NobodyTookIt => &[(OtherAgent, 1), (Replan, ANY)],
        FailureKind::TimeUp => &[(OtherAgent, 1), (Replan, ANY)],
        FailureKind::AgentFault | FailureKind::FellSilent => &[(OtherAgent, ANY), (Replan, ANY)],
        // Within its generation it went to others as long as it may.
        FailureKind::AgentsDied => &[(Replan, ANY)],
        // It was waited for already.
        FailureKind::NobodyThere => &[(Replan, ANY)],
        FailureKind::ContractBroken | FailureKind::NotAccepted => {
            &[(Retry, 1), (OtherModel, 1), (Replan, ANY)]
        }
        // What was used is gone: another try would begin anew with less.
        FailureKind::BudgetUsedUp => &[],
        FailureKind::Cancelled => &[(Retry, ANY)],
    }
}

/// What is done about a failure where no row is looked up: members of a group are tried as its pattern has it.
pub(in crate::decide) const fn respond_by_count(ending: Ending, is_another_left: bool) -> Response {
    match ending {
        _ if is_another_left => Response::Retry,
        Ending::Escalate => Response::Person,
        Ending::Done
        | Ending::DonePartial
        | Ending::ModelFailed
        | Ending::AgentFailed
        | Ending::GaveUp
        | Ending::Delegate
        | Ending::Blocked
        | Ending::Cancelled
        | Ending::DeadlinePassed
        | Ending::BudgetExhausted => Response::Stop,
    }
}

/// How often a member of a committee may be tried when it ends like this. What may be different next
/// time is tried up to the limit; what the agent itself judged hopeless once more, told how it failed; what a person must
/// decide not again.
pub(in crate::decide) fn tries(ending: Ending, limits: &RunLimits) -> u32 {
    let most = limits.max_generations.max(1);
    match ending {
        Ending::ModelFailed
        | Ending::AgentFailed
        | Ending::Cancelled
        | Ending::Done
        | Ending::DonePartial => most,
        Ending::GaveUp | Ending::Delegate | Ending::Blocked | Ending::DeadlinePassed => most.min(2),
        // What was used is gone: another try would begin anew with less.
        Ending::Escalate | Ending::BudgetExhausted => 1,
    }
}
