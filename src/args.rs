//! The command line.

#[cfg(feature = "bench")]
mod bench;
mod blueprint;
mod dead;
mod orders;
mod people;
mod prompt;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use muster_shared::flow::ReviewPolicy;
use muster_shared::ids::{AgentId, Role, TaskId, TaskIndex};

#[cfg(feature = "bench")]
pub(crate) use bench::{Bench, BenchArgs, Servers as BenchServers};
pub(crate) use blueprint::{
    BlueprintAction, BlueprintArgs, BlueprintListArgs, BlueprintNameArgs, BlueprintSaveArgs,
};
pub(crate) use dead::{DeadAction, DeadArgs, DeadLetterArgs, DeadListArgs};
pub(crate) use orders::{EditArgs, OrderArgs, ResumeArgs, TaskArgs};
pub(crate) use people::{AnswerArgs, ApproveArgs, QuestionsArgs, RejectArgs};
pub(crate) use prompt::PromptArgs;

use crate::settings::Dollars;

const EXIT_CODES: &str = "\
Exit codes:
  0  completed
  1  the run failed, or what was asked could not be done
  2  wrong usage, settings or input
  3  the bus cannot be reached or used
  4  the run was stopped (cancelled, its deadline passed, or its budget was used up)
  5  refused: there is too much to do now; ask again later";

const EXAMPLES: &str = "\
Examples:
  muster run \"What does this project promise its users?\" --docs docs
  muster up --scale worker=4          # in one terminal
  muster run \"…\"; muster trace last   # in another
  muster doctor                       # when something does not work";

/// Fleets of LLM agents as ordinary processes on a NATS bus.
///
/// Give it a goal: a planner splits it into tasks, workers and researchers do them wherever they run, a
/// reflector draws lessons, a refiner changes the plan, a writer delivers the answer. Every role is a process of
/// its own; everything they do is in the record and can be read back.
#[derive(Debug, Parser)]
#[command(name = "muster", version, after_help = EXIT_CODES, after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(arg_required_else_help = true, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Settings file, instead of the nearest muster.toml upward from here.
    #[arg(long, global = true, value_name = "FILE", env = "MUSTER_CONFIG", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// The NATS server to use, instead of the one in the settings or a local fleet's own.
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: Option<String>,
    /// Sets one setting, such as limits.max_steps=20. May be repeated; see `muster config`.
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = parse_assignment)]
    pub(crate) set: Vec<(String, String)>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask a goal and wait for the report.
    Run(RunArgs),
    /// Bring up a local fleet and watch over it.
    Up(UpArgs),
    /// Stop the local fleet.
    Down(DownArgs),
    /// List the processes of the fleet.
    Ps(JsonArgs),
    /// List runs, newest first.
    Runs(RunsArgs),
    /// Draw the plan of a run as a graph, coloured by state.
    Graph(GraphArgs),
    /// Show a run: its plan, results, reflections, refinements, usage and report.
    Show(ShowArgs),
    /// Show everything that happened in a run, in order.
    Trace(TraceArgs),
    /// Show exactly what a model was sent for a step.
    Prompt(PromptArgs),
    /// Make every decision of a run again from its record, and compare.
    Replay(ReplayArgs),
    /// Begin a run from where another one stood.
    Fork(ForkArgs),
    /// Watch the traffic of the fleet, decoded.
    Tap(TapArgs),
    /// Stop a run.
    Cancel(OrderArgs),
    /// Have a run put down what it does, until it is resumed.
    Pause(OrderArgs),
    /// Let a run that is paused go on.
    Resume(ResumeArgs),
    /// Leave a task out, with all below it; what depends on it goes on without it.
    Skip(TaskArgs),
    /// Have a task done again, and whatever used its result.
    Redo(TaskArgs),
    /// Change the goal of a run or of a task.
    Edit(EditArgs),
    /// List the questions that wait for a person.
    Questions(QuestionsArgs),
    /// Answer a question of a run.
    Answer(AnswerArgs),
    /// Approve what a run asks about: its plan, perhaps edited, or whether to go on.
    Approve(ApproveArgs),
    /// Reject what a run asks about; its plan is changed by what you say.
    Reject(RejectArgs),
    /// Look after what could not be processed: messages nobody understood, tasks that agents kept dying of.
    Dead(DeadArgs),
    /// Look after blueprints: plans written beforehand, with parameters.
    Blueprint(BlueprintArgs),
    /// Be an agent of a role, until told to stop.
    Agent(AgentArgs),
    /// Check an agent of any language against the protocol, and say what it does wrong.
    Conform(ConformArgs),
    /// Be an orchestrator, until told to stop.
    Orchestrator,
    /// Print the schemas of everything that travels on the bus.
    Schema(SchemaArgs),
    /// Torment a fleet of its own and measure what comes of it.
    #[cfg(feature = "bench")]
    Bench(BenchArgs),
    /// Check the installation and say how to mend what is wrong.
    Doctor(JsonArgs),
    /// Show the settings in force and where each comes from.
    Config(ConfigArgs),
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  muster completions bash > ~/.local/share/bash-completion/completions/muster"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page (roff), for one command or for the whole.
    #[command(after_help = "Example:\n  muster man | man -l -")]
    Man {
        /// A command, such as `run`.
        command: Option<String>,
    },
}

impl Command {
    /// Whether the command runs actors, which need a system of their own.
    pub(crate) const fn has_actors(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Orchestrator)
    }
}

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
    #[arg(long, value_name = "POLICY", num_args = 0..=1, require_equals = true, default_missing_value = "ask", value_parser = people::parse_review)]
    pub(crate) review: Option<ReviewPolicy>,
    /// Most that the run may cost, in US dollars, such as 1.50.
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_cost: Option<Dollars>,
    /// Most tokens that the run may use, sent and answered together.
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Most model calls that the run may make, answered or not.
    #[arg(long, value_name = "N")]
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
}

/// Bring up a local fleet and watch over it.
///
/// Starts a NATS server when no URL is set (its store is kept under .muster/nats), an orchestrator, and a
/// process for each role. What dies is started again, later each time; what dies too often is given up, and
/// that is said. Logs of each process are in .muster/log.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster up
  muster up --scale worker=4 --scale researcher=2
  muster up --detach; muster run \"…\"; muster down")]
pub(crate) struct UpArgs {
    /// Processes of a role (0 for none), such as worker=4. May be repeated.
    #[arg(long, value_name = "ROLE=N", value_parser = parse_scale)]
    pub(crate) scale: Vec<(String, u16)>,
    /// Go on in the background once the fleet is up.
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// Print changes only as JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Set for the process that goes on in the background.
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DownArgs {
    /// Print what was stopped as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunsArgs {
    /// How many at most.
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
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

/// Draw the plan of a run as a graph, coloured by state.
///
/// Arrows lead from what a task needs to the task. Tasks that others are part of are boxes around them.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster graph last                                  # Mermaid, for Markdown
  muster graph last --format dot | dot -Tsvg > plan.svg
  muster graph 0193c2 -o plan.mmd")]
pub(crate) struct GraphArgs {
    /// The run: its id, the unique beginning of one, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Which language.
    #[arg(long, value_enum, default_value_t = GraphForm::Mermaid)]
    pub(crate) format: GraphForm,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// In which language a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphForm {
    /// Mermaid, which Markdown viewers draw.
    Mermaid,
    /// DOT, which Graphviz draws.
    Dot,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster show last
  muster show last 1-2
  muster show last 1-2 --reflection
  muster show last --refinements")]
pub(crate) struct ShowArgs {
    /// The run: its id, the unique beginning of one, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Only this task, by its index, such as 1-2.
    pub(crate) task: Option<TaskIndex>,
    /// Only what was learnt, from the whole run or from that task.
    #[arg(long, conflicts_with = "refinements")]
    pub(crate) reflection: bool,
    /// Only the changes of plan, with what was refused and why.
    #[arg(long, conflicts_with = "task")]
    pub(crate) refinements: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster trace last\n  muster trace 0193c2 1-2\n  muster trace last plan --json"
)]
pub(crate) struct TraceArgs {
    /// The run: its id, the unique beginning of one, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Only this task: an index such as 1-2, or plan, reflect-1-2, refine-1, write.
    pub(crate) task: Option<TaskId>,
    /// Show thoughts, arguments and observations in full.
    #[arg(long)]
    pub(crate) full: bool,
    /// Go on until the run ends; goes on by itself after the bus was away.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make every decision of a run again from its record, and compare.
///
/// Recorded inputs, times, and model and tool answers are fed back: no model is asked and no tool runs. The first
/// difference is named, with what the record holds and what came now; the exit code is then 1.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayArgs {
    /// The run: its id, the unique beginning of one, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Render every prompt anew as well, by the templates at hand, and compare it with what was sent.
    #[arg(long)]
    pub(crate) rerender: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
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
    /// The other run: its id, the unique beginning of one, or `last`.
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

#[derive(Debug, Clone, Args)]
pub(crate) struct TapArgs {
    /// Only the traffic of this run.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Print whole messages as JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Be an agent of a role, until told to stop.
///
/// Joins the fleet of the settings' URL, or the local fleet of this folder, and takes tasks at once.
/// SIGTERM and Ctrl-C end it in good order: what it holds is handed over.
///
/// A file NAME.agent.md defines a specialist: a role of your own, with instructions, tools, limits and a contract.
/// Planners learn of it as soon as it has joined.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster agent worker\n  muster --url nats://10.0.0.5:4222 agent researcher\n  muster agent deploy/examples/fact-checker.agent.md\n  muster agent --check mine.agent.md"
)]
pub(crate) struct AgentArgs {
    /// planner, researcher, worker, reflector, refiner or writer; or a file that defines a specialist.
    #[arg(value_name = "ROLE|FILE", value_parser = parse_kind, value_hint = ValueHint::FilePath)]
    pub(crate) kind: AgentKind,
    /// Only check the file: say what it defines, or what is wrong and where.
    #[arg(long)]
    pub(crate) check: bool,
    /// With --check: print JSON.
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
}

/// What kind of agent is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// One that comes with Muster.
    BuiltIn(Role),
    /// One that a file defines.
    File(PathBuf),
}

/// A file's name has a dot or a slash in it, a role's has neither.
fn parse_kind(text: &str) -> Result<AgentKind, String> {
    if text.contains(['/', '.']) {
        return Ok(AgentKind::File(PathBuf::from(text)));
    }
    let unknown = |wrong| format!("{wrong}; a specialist is named by its file, NAME.agent.md");
    parse_role(text).map(AgentKind::BuiltIn).map_err(unknown)
}

/// Check an agent of any language against the protocol, and say what it does wrong.
///
/// The agent is given four tasks: one like any other, one that somebody else began, one that is closed already, and one
/// that is cancelled. What it writes is watched. With a command after `--`, a bus of its own is brought up and the command
/// started, with its address in NATS_URL; else the agent is looked for in the fleet, and the tasks stay in its record.
/// docs/agents.md has the protocol.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster conform -- python3 deploy/examples/specialist.py\n  muster conform --role word_counter\n  muster conform word_counter-5f3a9c21 --json"
)]
pub(crate) struct ConformArgs {
    /// The agent, by its id; any that is there when left out.
    pub(crate) agent: Option<AgentId>,
    /// An agent of this role.
    #[arg(long, value_name = "ROLE", conflicts_with = "agent")]
    pub(crate) role: Option<String>,
    /// Time for each of the tasks.
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "30s")]
    pub(crate) limit: Duration,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The command that starts the agent.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SchemaArgs {
    /// Which form.
    #[arg(long, value_enum, default_value_t = SchemaForm::JsonSchema)]
    pub(crate) form: SchemaForm,
    /// Same as --form asyncapi.
    #[arg(long, conflicts_with_all = ["form", "json_schema"])]
    pub(crate) asyncapi: bool,
    /// Same as --form json-schema.
    #[arg(long, conflicts_with = "form")]
    pub(crate) json_schema: bool,
}

/// In which form schemas are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaForm {
    /// JSON Schema of the envelope.
    JsonSchema,
    /// AsyncAPI: subjects and what travels on them.
    Asyncapi,
}

impl SchemaArgs {
    /// The form asked for, by whichever flag.
    pub(crate) const fn chosen(&self) -> SchemaForm {
        if self.asyncapi { SchemaForm::Asyncapi } else { self.form }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ConfigArgs {
    /// Only settings whose name begins so, such as `limits`.
    pub(crate) prefix: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: write 90s, 10m or 1h30m");
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(span).ok().filter(|span| !span.is_zero()).ok_or_else(wrong)
}

fn parse_scale(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text:?} is not ROLE=N, such as worker=4");
    let (role, count) = text.split_once('=').ok_or_else(wrong)?;
    let count: u16 = count.trim().parse().map_err(|_| wrong())?;
    let role = role.trim();
    if role != "orchestrator" {
        parse_role(role)?;
    }
    Ok((role.to_owned(), count))
}

fn parse_role(text: &str) -> Result<Role, String> {
    let role: Role = text.parse().map_err(|_| unknown_role(text))?;
    if Role::BUILT_IN.contains(&role) { Ok(role) } else { Err(unknown_role(text)) }
}

fn unknown_role(text: &str) -> String {
    let names: Vec<String> = Role::BUILT_IN.iter().map(Role::to_string).collect();
    format!("{text:?} is not a role: {}", names.join(", "))
}

fn parse_assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not KEY=VALUE"))?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let good = [("90s", 90), ("10m", 600), ("1h30m", 5400), ("1h 30m", 5400)];
        for (text, seconds) in good {
            assert_eq!(parse_span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "10", "-5m", "0s", "ten minutes"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_scale_names_a_role_and_a_number() {
        assert_eq!(parse_scale("worker=4"), Ok(("worker".into(), 4)));
        assert_eq!(parse_scale("orchestrator=2"), Ok(("orchestrator".into(), 2)));
        for text in ["worker", "worker=", "worker=-1", "worker=70000", "wroker=1"] {
            assert!(parse_scale(text).is_err(), "{text}");
        }
    }

    #[test]
    fn schema_forms_have_short_flags() {
        let form = |args: &[&str]| match Cli::try_parse_from(args).unwrap().command {
            Command::Schema(args) => args.chosen(),
            other => unreachable!("{other:?}"),
        };
        assert_eq!(form(&["muster", "schema"]), SchemaForm::JsonSchema);
        assert_eq!(form(&["muster", "schema", "--asyncapi"]), SchemaForm::Asyncapi);
        assert_eq!(form(&["muster", "schema", "--json-schema"]), SchemaForm::JsonSchema);
    }
}
