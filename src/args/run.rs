//! What the commands that begin a run take.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use muster_shared::flow::ReviewPolicy;

use super::EXIT_CODES;
use super::people::parse_review;
use super::read::{parse_assignment, parse_span, parse_wait};
use crate::settings::Dollars;

/// Ask a goal and wait for the report.
///
/// Uses the fleet that is up (the URL in the settings, or the local fleet of this folder); when there is none,
/// brings one up for this run and takes it down afterwards. Progress goes to standard error, the report to
/// standard output or to a file.
///
/// Ctrl-C asks the run to stop; a second Ctrl-C leaves it running and says how to follow it.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  muster run \"What limits delegation loops?\" --docs . -o report.md
  muster run \"Compare the two proposals\" --docs a --docs b --model openai/gpt-4.1-mini
  muster run \"…\" --deadline 10m --json | jq -r .report.body
  echo \"a long goal\" | muster run -
  muster run --blueprint research_report --param topic=\"tides\" --docs notes

{EXIT_CODES}"))]
pub(crate) struct RunArgs {
    /// What you want to know or have done; `-` reads it from standard input.
    #[arg(value_name = "GOAL", required_unless_present = "blueprint", conflicts_with = "blueprint")]
    pub(crate) goal: Option<String>,
    /// Work by a blueprint instead of having a plan made: its name, or a file.
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) blueprint: Option<String>,
    /// A value for a parameter of the blueprint. May be repeated; a list is written `a, b, c` or as JSON.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_assignment, requires = "blueprint")]
    pub(crate) param: Vec<(String, String)>,
    /// A file with values for parameters of the blueprint: a JSON object, or TOML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "blueprint")]
    pub(crate) params: Option<PathBuf>,
    /// A folder (or file) of documents to work on. May be repeated.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) docs: Vec<PathBuf>,
    /// Write the report to this file instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Model for every role of this run, such as openai/gpt-4.1-mini, ollama/llama3.2 or offline.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Time for the whole run, such as 90s, 10m or 1h30m.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub(crate) deadline: Option<Duration>,
    /// Whether you look at the plan before it is carried out: auto, ask, or ask-if-risky. `muster approve` or `muster
    /// reject` answers, from any terminal.
    #[arg(long, value_name = "POLICY", num_args = 0..=1, require_equals = true, default_missing_value = "ask", value_parser = parse_review)]
    pub(crate) review: Option<ReviewPolicy>,
    /// Whether a reviewer reads the draft of the report before it is delivered, and has it written again where it has
    /// to be: on (the same as no value) or off.
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, require_equals = true, default_missing_value = "on", value_enum)]
    pub(crate) draft_review: Option<DraftReviewChoice>,
    /// Most that the run may cost, in US dollars, such as 1.50.
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_cost: Option<Dollars>,
    /// Most tokens that the run may use, sent and answered together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Most model calls that the run may make, answered or not.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_calls: Option<u64>,
    /// Follow an earlier run: its question, its answer and what you wished then are known to this one, and its
    /// documents and model are used unless others are given.
    #[arg(long = "continue", value_name = "RUN")]
    pub(crate) follow: Option<String>,
    /// Carry out this plan instead of asking a planner: a file ending in .json, .toml, .yaml or .yml.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["planning", "no_plan"])]
    pub(crate) plan: Option<PathBuf>,
    /// The role that the agents are to play, such as "tax adviser".
    #[arg(long, value_name = "NAME")]
    pub(crate) role_name: Option<String>,
    /// What this run wants is done before what others of lower priority want; from -100 to 100, 0 is usual.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub(crate) priority: Option<i8>,
    /// The domain whose orchestrators see to it (`orchestrator.domains`); any where there are none.
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// Whether a planner is asked: auto (unless the goal is small), always or never.
    #[arg(long, value_name = "WHEN", value_enum)]
    pub(crate) planning: Option<PlanningChoice>,
    /// Ask no planner: one task does the whole. Same as --planning never.
    #[arg(long, conflicts_with = "planning")]
    pub(crate) no_plan: bool,
    /// Print one JSON object at the end: run, status, report, usage, times.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// How long tasks wait for a specialist that nobody is, before they fail, such as 2m; 0s refuses a plan that names one.
    #[arg(long, value_name = "TIME", value_parser = parse_wait)]
    pub(crate) wait_for_role: Option<Duration>,
    /// The id of the run, a UUID of your own making: asked again with the same one, after you lost the answer, the run
    /// that is there already is followed, and no second one begins.
    #[arg(long, value_name = "UUID")]
    pub(crate) run_id: Option<uuid::Uuid>,
}

/// Whether a planner is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanningChoice {
    /// Unless the goal is small.
    Auto,
    /// In any case.
    Always,
    /// Never.
    Never,
}

/// Whether a reviewer reads the draft of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DraftReviewChoice {
    /// The report is delivered as it was written.
    Off,
    /// A reviewer reads it first.
    On,
}

/// Begin a run from where another one stood.
///
/// The new run has the plan, results and lessons that the other one had at that entry; what was in work is done from
/// its beginning. The other run is left as it is. Waits for the end as `muster run` does.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster trace last                       # the first column has the numbers of entries
  muster fork last --at 42 --model openai/gpt-4.1
  muster fork 0193c2 --at 42 --detach")]
pub(crate) struct ForkArgs {
    /// The other run: its id, the end of it that is shown, or `last`.
    pub(crate) run: String,
    /// The last entry of it that counts, by its number in `muster trace`.
    #[arg(long, value_name = "N")]
    pub(crate) at: u64,
    /// Model for every role of the new run, such as openai/gpt-4.1-mini.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Write the report to this file instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Do not wait: print the new run's id.
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) detach: bool,
    /// Print one JSON object at the end.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
