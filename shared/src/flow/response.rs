//! How failures are answered (O8), what a result has to be before it counts (O10), and how long a task waits for
//! another (O12).

use std::fmt;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::{Ending, Outcome};
use super::specialist::ContractSide;
use super::step::ObservationStatus;
use crate::settings;

/// Said by an agent of a model whose answers it could not read.
pub const NO_ANSWER_USABLE: &str = "no answer could be used";
/// What the reason of a result says that a model was to verify and gave no verdict on.
pub const NOT_CHECKED: &str = "whether it holds was not checked";
/// What the reason of a result says whose cited places could not be looked up.
pub const NOT_LOOKED_UP: &str = "what it cites was not looked up";
/// Said by an agent of a question that is longer than the model's window.
pub const TOO_LONG: &str = "longer than the model's window";
/// Said by an agent of a model that declines.
pub const DECLINED: &str = "the model declined the task";
/// Said by an agent of a model that repeats itself.
pub const LOOP_DETECTED: &str = "the model went in circles";
/// Said by an agent of a tool that may or may not have taken effect.
pub const EFFECT_UNKNOWN: &str = "it must not be done twice";
/// Said by an agent that has taken all its steps.
pub const BEFORE_A_RESULT: &str = "before a result was submitted";

/// What kind of failure a try of a task ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::VariantArray)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No model answered: rate limits, outages, a wrong key.
    ModelUnavailable,
    /// The model declined, in other words and for a smaller part, too.
    ModelDeclined,
    /// What the model wrote could not be read.
    AnswersUnusable,
    /// The question was longer than the model's window.
    QuestionTooLong,
    /// The model repeated itself and did not change its course.
    LoopDetected,
    /// All steps were taken.
    OutOfSteps,
    /// The model gave up.
    GaveUp,
    /// The last thing that was tried was a tool, and it failed.
    ToolFailed,
    /// The same, and it took too long.
    ToolTimedOut,
    /// The same, and it was not allowed or asked in a wrong way.
    ToolRefused,
    /// Whether a tool took effect is not known, and it must not be called twice.
    EffectUnknown,
    /// Something is missing that the task needs.
    Blocked,
    /// What was asked does not fit what the role takes on.
    InputUnfit,
    /// The agent says that another should do it.
    HandedBack,
    /// The agent itself failed.
    AgentFault,
    /// Agents died of it, one after the other.
    AgentsDied,
    /// Its time was up.
    TimeUp,
    /// Whoever had it wrote nothing about it for too long.
    FellSilent,
    /// Nobody took it.
    NobodyTookIt,
    /// Nobody of its role was there, for as long as that is waited for.
    NobodyThere,
    /// The result breaks the contract of its role.
    ContractBroken,
    /// The result is not what was asked for.
    NotAccepted,
    /// What came is not what this kind of work gives.
    WrongProduct,
    /// The plan cannot be carried out as it is.
    PlanRefused,
    /// A person has to decide something first.
    NeedsPerson,
    /// What it was allowed to use did not suffice.
    BudgetUsedUp,
    /// It was cancelled from outside.
    Cancelled,
}

impl FailureKind {
    /// All of them.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The kind of failure that an outcome tells of.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        let said = |words: &str| outcome.reason.contains(words);
        let contract_violation =
            outcome.contract_violation.as_ref().map(|contract_violation| contract_violation.side);
        match outcome.ending {
            Ending::ModelFailed if said(NO_ANSWER_USABLE) => Self::AnswersUnusable,
            Ending::ModelFailed if said(TOO_LONG) => Self::QuestionTooLong,
            Ending::ModelFailed => Self::ModelUnavailable,
            Ending::Escalate if said(DECLINED) => Self::ModelDeclined,
            Ending::Escalate if said(LOOP_DETECTED) => Self::LoopDetected,
            Ending::Escalate if said(EFFECT_UNKNOWN) => Self::EffectUnknown,
            Ending::Escalate => Self::NeedsPerson,
            Ending::GaveUp if contract_violation == Some(ContractSide::Output) => Self::ContractBroken,
            Ending::GaveUp if said(BEFORE_A_RESULT) => Self::OutOfSteps,
            Ending::GaveUp => of_last_tool(outcome).unwrap_or(Self::GaveUp),
            Ending::Blocked if contract_violation == Some(ContractSide::Input) => Self::InputUnfit,
            Ending::Blocked => of_last_tool(outcome).unwrap_or(Self::Blocked),
            Ending::Delegate => Self::HandedBack,
            Ending::AgentFailed => Self::AgentFault,
            Ending::DeadlinePassed => Self::TimeUp,
            Ending::Cancelled => Self::Cancelled,
            Ending::BudgetExhausted => Self::BudgetUsedUp,
            Ending::Done | Ending::DonePartial => Self::WrongProduct,
        }
    }

    /// Whether no model gave an answer that could be used: what fails so will fail again, whatever the task.
    #[must_use]
    pub const fn is_of_the_model(self) -> bool {
        matches!(self, Self::ModelUnavailable | Self::AnswersUnusable)
    }

    /// Whether the agent is to blame, or its model: another agent may do the task.
    #[must_use]
    pub const fn is_of_the_agent(self) -> bool {
        self.is_of_the_model() || matches!(self, Self::AgentFault | Self::WrongProduct | Self::ContractBroken)
    }

    /// In words, as part of a sentence.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::ModelUnavailable => "no model answered",
            Self::ModelDeclined => "the model declined",
            Self::AnswersUnusable => "the model's answers could not be used",
            Self::QuestionTooLong => "the question was too long for the model",
            Self::LoopDetected => "the model went in circles",
            Self::OutOfSteps => "all steps were taken",
            Self::GaveUp => "it was given up",
            Self::ToolFailed => "a tool failed",
            Self::ToolTimedOut => "a tool took too long",
            Self::ToolRefused => "a tool was refused",
            Self::EffectUnknown => "whether a tool took effect is not known",
            Self::Blocked => "something is missing",
            Self::InputUnfit => "its role does not take it on",
            Self::HandedBack => "another should do it",
            Self::AgentFault => "the agent failed",
            Self::AgentsDied => "agents died of it",
            Self::TimeUp => "its time was up",
            Self::FellSilent => "its agent fell silent",
            Self::NobodyTookIt => "nobody took it",
            Self::NobodyThere => "nobody of its role is there",
            Self::ContractBroken => "the result broke its contract",
            Self::NotAccepted => "the result was not accepted",
            Self::WrongProduct => "the wrong thing was sent",
            Self::PlanRefused => "the plan was refused",
            Self::NeedsPerson => "a person has to decide",
            Self::BudgetUsedUp => "its budget was used up",
            Self::Cancelled => "it was cancelled",
        }
    }
}

/// What a tool that was called last did wrong, if it did.
fn of_last_tool(outcome: &Outcome) -> Option<FailureKind> {
    let last = outcome.steps.iter().rev().find_map(|step| step.status)?;
    match last {
        ObservationStatus::Success => None,
        ObservationStatus::Error => Some(FailureKind::ToolFailed),
        ObservationStatus::Timeout => Some(FailureKind::ToolTimedOut),
        ObservationStatus::Refused => Some(FailureKind::ToolRefused),
    }
}

/// What is done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// It is tried once more, told how it failed.
    Retry,
    /// Another agent tries it, if there is one.
    OtherAgent,
    /// It is tried without the tool that failed.
    OtherTool,
    /// A more capable model, or one with a larger window, tries it.
    OtherModel,
    /// A person is asked how it is to be done.
    Person,
    /// What is left is planned anew.
    Replan,
    /// The run goes on with less: with the part that there is, or without the task. The report says so.
    Degrade,
    /// The run cannot go on without it.
    Stop,
}

impl Response {
    /// Whether the task is offered again at once.
    #[must_use]
    pub const fn tries_again(self) -> bool {
        matches!(self, Self::Retry | Self::OtherAgent | Self::OtherTool | Self::OtherModel)
    }

    /// In words, as what happens next.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Retry => "tried once more",
            Self::OtherAgent => "another agent tries it",
            Self::OtherTool => "tried without that tool",
            Self::OtherModel => "another model tries it",
            Self::Person => "a person is asked",
            Self::Replan => "what is left is planned anew",
            Self::Degrade => "the run goes on with less",
            Self::Stop => "the run cannot go on without it",
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.in_words())
    }
}

/// How results are checked before they count.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Acceptance {
    /// By rule: what was asked for is there, and the milestones were reached.
    #[default]
    Rules,
    /// Not at all.
    Off,
}

/// See [`Responses::model_failures`].
const MODEL_FAILURES: u32 = 8;

settings! {
    /// What is done when something goes wrong. Part of a run's limits.
    #[derive(PartialEq, Eq)]
    #[cfg_attr(test, derive(JsonSchema))]
    pub const struct Responses {
        /// Models that try what others failed, one after the other: more capable, or with a larger window.
        pub stronger_models: Vec<String> = Vec::new() => list().at_most(Responses::MOST_MODELS).example("[\"openai/gpt-large\"]"); Project Trust,
        /// Failures of all kinds that a run may have before it goes on with what it has, or asks a person; 0 for any
        /// number.
        pub error_budget: u32 = 50 => whole(0, 10_000); Project Harmless,
        /// Tries that may fail one after the other because no model gives an answer that can be used, before a run goes
        /// on with what it has, or asks a person; 0 for any number.
        #[serde(skip_serializing_if = "crate::is_usual::<_, { MODEL_FAILURES as u64 }>")]
        pub model_failures: u32 = MODEL_FAILURES => bounded(0, 10_000),
        /// How results are checked before they count: rules, or off.
        pub acceptance: Acceptance = Acceptance::Rules => words::<Acceptance>(); Project Harmless,
    }
}

impl Responses {
    /// Most models that are tried one after the other.
    pub const MOST_MODELS: usize = 8;
}
