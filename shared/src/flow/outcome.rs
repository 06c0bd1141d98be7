//! How a task ended, and what it gave.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::draft_review::DraftReview;
use super::plan::PlanDraft;
use super::refinement::RefineOperation;
use super::reflection::Reflection;
use super::report::Report;
use super::specialist::ContractViolation;
use super::step::{Action, ObservationStatus, Step};
use super::usage::Usage;

/// The end of one generation of a task. Terminal: the fence lets only the first through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<Product>,
    /// The last step: the answer that ended the task is journaled with its outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_step: Option<Box<Step>>,
    /// What all its steps did, in brief, for whoever reflects on it.
    #[serde(default)]
    pub steps: Vec<StepDigest>,
    /// What the whole generation used.
    #[serde(default)]
    pub usage: Usage,
    /// The contract that was not held, when that is why it ended so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_violation: Option<ContractViolation>,
}

impl Outcome {
    /// What an entry counts as that was to end a task and cannot be read. The decision that names it says why: what a
    /// reader makes of it may differ from build to build, the state may not.
    #[must_use]
    pub fn of_fault() -> Self {
        Self {
            ending: Ending::AgentFailed,
            reason: "its agent wrote what cannot be read".to_owned(),
            product: None,
            last_step: None,
            steps: Vec::new(),
            usage: Usage::default(),
            contract_violation: None,
        }
    }

    /// Whether its product counts: it ended well, or what it was allowed to use did not suffice and it says how far
    /// it came.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.ending.is_success() || (matches!(self.ending, Ending::BudgetExhausted) && self.product.is_some())
    }

    /// The tool that was called last, if that did not go well.
    #[must_use]
    pub fn failed_tool(&self) -> Option<&str> {
        let last = self.steps.iter().rev().find(|step| step.status.is_some())?;
        let name = last.action.split_whitespace().next()?;
        (last.status != Some(ObservationStatus::Success) && name != Action::SUBMIT).then_some(name)
    }

    /// The result that it gave, if it gave one.
    #[must_use]
    pub fn result(&self) -> Option<&TaskResult> {
        if let Product::Result(result) = self.product.as_ref()? { Some(result) } else { None }
    }

    /// The report that it wrote, if it wrote one.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        if let Product::Report(report) = self.product.as_ref()? { Some(report) } else { None }
    }
}

/// How a task ended (W6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It was done.
    Done,
    /// Part of it was done; the product says what.
    DonePartial,
    /// A person must decide something first.
    Escalate,
    /// Another agent should do it.
    Delegate,
    /// It cannot go on.
    Blocked,
    /// The model said it gives up, or the limit of steps was reached with nothing to show.
    GaveUp,
    /// The model could not be reached or would not answer; trying again later may help.
    ModelFailed,
    /// The agent itself failed (a fault of ours), with the reason.
    AgentFailed,
    /// The deadline passed.
    DeadlinePassed,
    /// It was cancelled.
    Cancelled,
    /// What it was allowed to use did not suffice; the product, if there is one, says how far it came.
    BudgetExhausted,
}

impl Ending {
    /// Whether the product counts.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Done | Self::DonePartial)
    }
}

/// What a task gave, by its kind of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Product {
    /// Of planning.
    Plan(PlanDraft),
    /// Of executing a leaf.
    Result(TaskResult),
    /// Of reflecting.
    Reflection(Reflection),
    /// Of refining: operations, to be checked one by one.
    Refinement(Vec<RefineOperation>),
    /// Of writing.
    Report(Report),
    /// Of reviewing the draft of the report.
    DraftReview(DraftReview),
}

/// What a leaf found or made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct TaskResult {
    /// The answer in a few sentences; what `{{1-2.result}}` stands for.
    pub conclusion: String,
    /// The document that was asked for, as Markdown: a table, a text, a report. Empty where the conclusion says all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// Single statements with where they come from.
    pub findings: Vec<Finding>,
    /// Milestones that were reached.
    pub milestones: Vec<String>,
    /// What was asked and could not be answered.
    pub unanswered: Vec<String>,
    /// What it claims, in a form that can be compared with what others claim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// What the agent says of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// The result as data, for programs: what `contract.output` of a specialist describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<serde_json::Value>>,
}

impl TaskResult {
    /// Most bytes of `data`, written as JSON.
    pub const MAX_DATA_BYTES: usize = 64 * 1024;
    /// Most bytes of `conclusion`.
    pub const MAX_CONCLUSION_BYTES: usize = 64 * 1024;
    /// Most bytes of `body`.
    pub const MAX_BODY_BYTES: usize = 256 * 1024;
    /// How the conclusion begins of whoever asks for a plan before anything was found.
    pub const NOTHING_YET: &str = "Nothing is known yet";

    /// The data as a report shows it. What is longer than 4 KiB is only named: `muster show` has it.
    #[must_use]
    pub fn shown_data(&self) -> Option<String> {
        let whole = format!("{:#}", self.data.as_ref()?);
        Some(match whole.len() {
            ..=4_096 => whole.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n"),
            bytes => format!("{bytes} bytes: see the task's result."),
        })
    }

    /// Whether it names a milestone as reached, in about the words in which that was set.
    #[must_use]
    pub fn names_milestone(&self, set: &str) -> bool {
        let plain = |text: &str| -> String {
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
        };
        let set = plain(set);
        let mut told = self.milestones.iter().map(|told| plain(told));
        !set.is_empty() && told.any(|told| told.contains(&set) || (!told.is_empty() && set.contains(&told)))
    }

    /// Whether it gives nothing but the wish that the goal be planned.
    #[must_use]
    pub fn is_only_a_wish(&self) -> bool {
        self.asks_for_plan() && self.conclusion.starts_with(Self::NOTHING_YET) && self.has_only_a_conclusion()
    }

    /// Whether its agent asks for a plan of the rest of the goal.
    #[must_use]
    pub fn asks_for_plan(&self) -> bool {
        self.advice.as_ref().is_some_and(|advice| advice.plan.is_some())
    }

    /// Whether it leaves a question open and has no finding, claim, document or data.
    #[must_use]
    pub fn is_left_open(&self) -> bool {
        !self.unanswered.is_empty() && self.has_only_a_conclusion()
    }

    /// Whether it has no finding, claim, document or data.
    #[must_use]
    pub fn has_only_a_conclusion(&self) -> bool {
        self.findings.is_empty() && self.body.is_empty() && self.claims.is_empty() && self.data.is_none()
    }
}

/// A statement and where it comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Finding {
    /// The statement.
    pub text: String,
    /// Where it stands.
    pub citations: Vec<Citation>,
    /// Which subquestion of the goal it answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subquestion: String,
    /// How sure, in percent.
    pub confidence: u8,
    /// Whether somebody other than the finder looked the citation up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verified: bool,
    /// Whether all its citations were looked up by rule, and stand.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub looked_up: bool,
}

impl Finding {
    /// Places of its citations, for Markdown: ` (`notes.md:3`)`. Empty without citations.
    #[must_use]
    pub fn places(&self) -> String {
        let places: Vec<String> = self.citations.iter().map(|place| format!("`{place}`")).collect();
        if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) }
    }
}

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Citation {
    /// Path relative to the folder given with `--docs`.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// The words there, as they stand.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
}

/// `notes.md:12`.
impl std::fmt::Display for Citation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

impl Citation {
    /// Places of citations in brackets: ` [notes.md:3]`. Empty without citations.
    #[must_use]
    pub fn places(citations: &[Self]) -> String {
        let places: Vec<String> = citations.iter().map(ToString::to_string).collect();
        if places.is_empty() { String::new() } else { format!(" [{}]", places.join(", ")) }
    }
}

/// What an agent says of the plan when it submits (W6).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Advice {
    /// Whether the plan should be refined.
    pub refine: bool,
    /// Why.
    pub reason: String,
    /// For later tasks.
    pub suggestions: Vec<String>,
    /// Why what is left of the goal should be planned, where one agent began with the whole of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// One step in brief.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct StepDigest {
    /// The step's number.
    pub number: u32,
    /// What was done: the tool and its main argument, cut short.
    pub action: String,
    /// How it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ObservationStatus>,
    /// Time of what was done, in milliseconds; of a step that did nothing, its own.
    pub millis: u64,
    /// The calls that were made besides, in the same step. They are counted, and nothing is decided by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<CallDigest>,
}

/// One more call of a step in brief.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CallDigest {
    /// The tool.
    pub tool: String,
    /// How it went.
    pub status: ObservationStatus,
    /// How long it took, in milliseconds.
    pub millis: u64,
}
