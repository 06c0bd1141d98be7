//! What the commands take by which people have their say.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use muster_shared::flow::ReviewPolicy;
use muster_shared::ids::QuestionId;
use serde_json::Value;

use super::OrderArgs;
use crate::place::Place;

/// List the questions that wait for a person.
///
/// Includes the questions of child runs. Each shows the default answer and when it takes effect.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  muster questions\n  muster questions last --all")]
pub(crate) struct QuestionsArgs {
    /// Only of this run: run id, the last digits of it, or `last`.
    pub(crate) run: Option<String>,
    /// Include answered questions.
    #[arg(long)]
    pub(crate) all: bool,
    /// Number of newest runs to search.
    #[arg(short = 'n', long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Answer a question of a run.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster answer last 1 \"The figures of 2025\"\n  muster answer 0193c2 2 --choice 1"
)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Question number; `muster questions` lists them. 1-2/1 is question 1 of the child run of task 1-2.
    pub(crate) question: Place<QuestionId>,
    /// Answer; one of the choices if the question has some. To an approval: approve, reject or edit, or the number of one.
    /// Any other text is feedback, and the question stays open.
    #[arg(required_unless_present = "choice", conflicts_with = "choice")]
    pub(crate) text: Option<String>,
    /// Number of the choice to answer with.
    #[arg(long, value_name = "N")]
    pub(crate) choice: Option<usize>,
    /// Whether the choice `edit` opens an editor here.
    #[arg(skip = true)]
    pub(crate) is_at_terminal: bool,
}

/// Show the shared context of a run, or write a value to it.
///
/// Each value has a version. A write names the version it replaces (0 for a new key) and is refused when the value has
/// changed since.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster context last
  muster context last limit --json
  muster context last --write limit=20          # create a value
  muster context last --write limit=25 --seen 1 # replace version 1")]
pub(crate) struct ContextArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Only this key; a trailing `*` matches a prefix.
    #[arg(conflicts_with = "write")]
    pub(crate) key: Option<String>,
    /// Value to write: JSON, else plain text.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_value)]
    pub(crate) write: Option<(String, Value)>,
    /// Version that the write replaces.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "write")]
    pub(crate) seen: u32,
}

/// Reads a key and its value: JSON where it is that, else a text.
pub(crate) fn parse_value(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as limit=20")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((key.trim().to_owned(), value))
}

/// Approve the plan of a run, that it continues, or a call of a tool.
///
/// The plan can be edited first, as TOML: in an editor or from a file. So can the arguments of a call, as JSON. What is
/// invalid is refused with the reasons, and the run keeps waiting.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster approve last\n  muster approve last --edit\n  muster approve last --show > plan.toml; muster approve last --plan plan.toml\n  muster approve last --question 3 --arguments '{\"to\": \"ann\"}'"
)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Question number, where several wait; `muster questions` lists them.
    #[arg(long, value_name = "N")]
    pub(crate) question: Option<Place<QuestionId>>,
    /// Edit the plan, or the arguments of the call, in $VISUAL or $EDITOR first.
    #[arg(long, conflicts_with_all = ["plan", "show", "arguments"])]
    pub(crate) edit: bool,
    /// File with the edited plan: TOML, as --show prints it, or JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "show")]
    pub(crate) plan: Option<PathBuf>,
    /// Arguments of the call in place of those that the model gave: JSON, or @FILE.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["plan", "show"])]
    pub(crate) arguments: Option<String>,
    /// Print the plan as TOML, or the arguments of the call as JSON, without approving it.
    #[arg(long)]
    pub(crate) show: bool,
}

/// Reject the plan of a run and say what to change, or a call of a tool and say why.
///
/// The plan is changed accordingly and waits for approval again. A rejected call is not made; its agent is told why.
/// `muster cancel` stops the run instead.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  muster reject last \"Leave out the history, and compare prices\"")]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// What to change.
    pub(crate) feedback: String,
    /// Question number, where several wait; `muster questions` lists them.
    #[arg(long, value_name = "N")]
    pub(crate) question: Option<Place<QuestionId>>,
}

/// Reads a policy of review.
pub(crate) fn parse_review(text: &str) -> Result<ReviewPolicy, String> {
    match text {
        "auto" => Ok(ReviewPolicy::Auto),
        "ask" => Ok(ReviewPolicy::Ask),
        "ask-if-risky" => Ok(ReviewPolicy::AskIfRisky),
        other => Err(format!("{other:?} is not a review policy: use auto, ask or ask-if-risky")),
    }
}
