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
/// Those of the runs within a run are listed with its own. Each says what is taken for the answer when nobody gives one, and when that will be.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  muster questions\n  muster questions last --all")]
pub(crate) struct QuestionsArgs {
    /// Of one run only: its id, the end of it that is shown, or `last`.
    pub(crate) run: Option<String>,
    /// Also those that were answered.
    #[arg(long)]
    pub(crate) all: bool,
    /// Look at so many of the newest runs.
    #[arg(short = 'n', long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Answer a question of a run.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster answer last 1 \"The figures of 2025\"\n  muster answer 0193c2 2 --choice 1"
)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// The question, by its number in the run; `muster questions` lists them. 1-2/1 is question 1 of the run that task
    /// 1-2 has of its own.
    pub(crate) question: Place<QuestionId>,
    /// The answer.
    #[arg(required_unless_present = "choice", conflicts_with = "choice")]
    pub(crate) text: Option<String>,
    /// One of the choices, by its number.
    #[arg(long, value_name = "N")]
    pub(crate) choice: Option<usize>,
}

/// Show what the tasks of a run know in common, or write a value of it.
///
/// Each value has a version. Whoever writes one names the version that they saw (0 for a new one); a write that comes too
/// late is refused with what there is.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster context last
  muster context last limit --json
  muster context last --write limit=20          # a new value
  muster context last --write limit=25 --seen 1 # a value that has version 1")]
pub(crate) struct ContextArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Only this key; all that begin with it when it ends with `*`.
    #[arg(conflicts_with = "write")]
    pub(crate) key: Option<String>,
    /// Write this value: JSON, else a text.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_value)]
    pub(crate) write: Option<(String, Value)>,
    /// The version that you saw.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "write")]
    pub(crate) seen: u32,
}

/// Reads a key and its value: JSON where it is that, else a text.
pub(crate) fn parse_value(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as limit=20")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((key.trim().to_owned(), value))
}

/// Approve what a run asks about: its plan, or whether to go on.
///
/// A plan may be edited first, as TOML: in an editor, or given in a file. One that cannot be carried out is refused with
/// the reasons, and the run waits on.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster approve last\n  muster approve last --edit\n  muster approve last --show > plan.toml; muster approve last --plan plan.toml"
)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Change the plan in $VISUAL or $EDITOR first.
    #[arg(long, conflicts_with_all = ["plan", "show"])]
    pub(crate) edit: bool,
    /// The plan as it is to be: a file of TOML, as --show prints it, or of JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "show")]
    pub(crate) plan: Option<PathBuf>,
    /// Print the plan as TOML and approve nothing.
    #[arg(long)]
    pub(crate) show: bool,
}

/// Reject what a run asks about, and say what is to be different.
///
/// The plan is changed by that, and asked about again. `muster cancel` stops the run instead.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  muster reject last \"Leave out the history, and compare prices\"")]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// What is to be different.
    pub(crate) feedback: String,
}

/// Reads a policy of review.
pub(crate) fn parse_review(text: &str) -> Result<ReviewPolicy, String> {
    match text {
        "auto" => Ok(ReviewPolicy::Auto),
        "ask" => Ok(ReviewPolicy::Ask),
        "ask-if-risky" => Ok(ReviewPolicy::AskIfRisky),
        other => Err(format!("{other:?} is no policy of review: use auto, ask or ask-if-risky")),
    }
}
