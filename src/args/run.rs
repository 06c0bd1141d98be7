//! What the commands that begin a run take.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use muster_shared::flow::ReviewPolicy;

use super::EXIT_CODES;
use super::people::parse_review;
use super::read::{parse_assignment, parse_span, parse_wait};
use crate::settings::Dollars;

/// What each effort means and costs.
const EFFORTS: &str = "\
Effort, with the model calls that most goals take:
  quick     one agent, whose result is the report; no plan, no reflection, no check by a model (1 to 5)
  standard  starts as one agent; planned if the goal lists items or the agent requests it; reflects after failures
            and surprises only (1 to 15)
  thorough  plans, reflects on every task, refines, verifies critical tasks, has a writer write (about three
            times standard)
Each gives values to settings that nobody set (limits.planning, limits.reflection, …): `muster config limits`.";

/// Run a goal and wait for the report.
///
/// Uses the running fleet (the URL in the settings, or the local fleet of this folder); without one, starts a fleet for
/// this run and stops it afterwards. Prints progress to standard error and the report to standard output or a file.
///
/// Ctrl-C cancels the run; a second Ctrl-C leaves it running and prints how to follow it.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  muster run \"What limits delegation loops?\" --docs . -o report.md
  muster run \"Compare the two proposals\" --docs a --docs b --model openai/gpt-4.1-mini
  muster run \"…\" --deadline 10m --json | jq -r .report.body
  echo \"a long goal\" | muster run -
  muster run --blueprint research_report --param topic=\"tides\" --docs notes

{EFFORTS}

{EXIT_CODES}"))]
pub(crate) struct RunArgs {
    /// Goal: a question or an assignment; `-` reads it from standard input.
    #[arg(value_name = "GOAL", required_unless_present = "blueprint", conflicts_with = "blueprint")]
    pub(crate) goal: Option<String>,
    /// Blueprint to use as the plan: name or file.
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) blueprint: Option<String>,
    /// Parameter of the blueprint; repeatable. Write a list as `a, b, c` or as JSON.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_assignment, requires = "blueprint")]
    pub(crate) param: Vec<(String, String)>,
    /// File with blueprint parameters: a JSON object, or TOML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "blueprint")]
    pub(crate) params: Option<PathBuf>,
    /// Folder or file with documents to use, or where they lie: https://…, git+https://…[@REVISION][#PATH]; repeatable.
    #[arg(long, value_name = "DIR|URL", value_hint = ValueHint::AnyPath)]
    pub(crate) docs: Vec<PathBuf>,
    /// File for the report; default: standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Folder for all files that the tasks wrote; default: the requested files, in REPORT.files or run-ID.files.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Replace files that exist when files of the run are copied.
    #[arg(long)]
    pub(crate) force: bool,
    /// Model for all roles of this run, such as openai/gpt-4.1-mini, ollama/llama3.2 or offline.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How much is done for the goal: quick, standard (default) or thorough. See below.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub(crate) effort: Option<EffortChoice>,
    /// Time limit of the run, such as 90s, 10m or 1h30m.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub(crate) deadline: Option<Duration>,
    /// Whether the plan needs approval before it runs: auto, ask or ask-if-risky. Answer with `muster approve` or `muster
    /// reject`.
    #[arg(long, value_name = "POLICY", num_args = 0..=1, require_equals = true, default_missing_value = "ask", value_parser = parse_review)]
    pub(crate) review: Option<ReviewPolicy>,
    /// Whether a reviewer checks the draft of the report and can have it revised: on (default when given without a value)
    /// or off.
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, require_equals = true, default_missing_value = "on", value_enum)]
    pub(crate) draft_review: Option<DraftReviewChoice>,
    /// Maximum cost of the run in US dollars, such as 1.50.
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_cost: Option<Dollars>,
    /// Maximum number of tokens, input and output together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Maximum number of model calls, including failed ones.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_calls: Option<u64>,
    /// What tasks may use.
    #[command(flatten)]
    pub(crate) rights: Box<RightsArgs>,
    /// Continue an earlier run: its goal, its report and your instructions to it become context; its documents and model
    /// are used unless you give others.
    #[arg(long = "continue", value_name = "RUN")]
    pub(crate) follow: Option<String>,
    /// File with the plan to run, instead of calling a planner: .json, .toml, .yaml or .yml.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "planning")]
    pub(crate) plan: Option<PathBuf>,
    /// Persona of the agents, such as "tax adviser".
    #[arg(long, value_name = "NAME")]
    pub(crate) role_name: Option<String>,
    /// Priority from -100 to 100; tasks of higher priority run first. Default: 0.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub(crate) priority: Option<i8>,
    /// Domain whose orchestrators handle the run (`orchestrator.domains`); default: any.
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// When to call a planner: auto (for goals that list items, or when the agent requests it), always or never.
    #[arg(long, value_name = "WHEN", value_enum)]
    pub(crate) planning: Option<PlanningChoice>,
    /// Print one JSON object at the end: run, status, report, usage, times.
    #[arg(long)]
    pub(crate) json: bool,
    /// Hide progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Time that tasks wait for a role without an agent before they fail, such as 2m; 0s refuses a plan that needs one.
    #[arg(long, value_name = "TIME", value_parser = parse_wait)]
    pub(crate) wait_for_role: Option<Duration>,
    /// Run id, a UUID that you generate, for safe retries: a second call with the same id and goal follows the run instead
    /// of starting another. With another goal it is refused.
    #[arg(long, value_name = "UUID")]
    pub(crate) run_id: Option<uuid::Uuid>,
}

/// What tasks of a run may use.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RightsArgs {
    /// Tools that tasks may call, and no others: `calculator,corpus.*`.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) allow_tools: Vec<String>,
    /// Tools that tasks may not call.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) deny_tools: Vec<String>,
    /// Documents that tasks may read, and no others: paths or folders.
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    pub(crate) allow_docs: Vec<String>,
    /// Documents that tasks may not read.
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    pub(crate) deny_docs: Vec<String>,
}

/// Whether a planner is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanningChoice {
    /// For goals that list items, or when the agent requests it.
    Auto,
    /// For every goal.
    Always,
    /// Never.
    Never,
}

/// How much is done for a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EffortChoice {
    /// One agent.
    Quick,
    /// One agent, and more where it is needed.
    Standard,
    /// The full sequence.
    Thorough,
}

impl EffortChoice {
    /// The word for it in settings.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Thorough => "thorough",
        }
    }
}

/// Whether a reviewer reads the draft of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DraftReviewChoice {
    /// No review.
    Off,
    /// Review the draft first.
    On,
}

/// Start a run from an earlier state of another run.
///
/// The new run starts with the plan, results and lessons of the other run at that log entry; tasks that were running start
/// over. The other run does not change. Waits for the end like `muster run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster trace last                       # the first column shows entry numbers
  muster fork last --at 42 --model openai/gpt-4.1
  muster fork 0193c2 --at 42 --detach")]
pub(crate) struct ForkArgs {
    /// Run id, the last digits of it, or `last`.
    pub(crate) run: String,
    /// Last log entry to include, by its number in `muster trace`.
    #[arg(long, value_name = "N")]
    pub(crate) at: u64,
    /// Model for all roles of the new run, such as openai/gpt-4.1-mini.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Directory or file with the documents of the run, if they are no longer stored; repeatable.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) docs: Vec<PathBuf>,
    /// File for the report; default: standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Print the id of the new run and do not wait for it.
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) detach: bool,
    /// Print one JSON object at the end.
    #[arg(long)]
    pub(crate) json: bool,
    /// Hide progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
