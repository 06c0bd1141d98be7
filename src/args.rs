//! The command line.

mod about;
#[cfg(feature = "bench")]
mod bench;
mod blueprint;
mod dead;
mod fleet;
mod look;
mod orders;
mod people;
mod prompt;
mod read;
mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

pub(crate) use about::{ConfigArgs, JsonArgs, SchemaArgs, SchemaForm};
#[cfg(feature = "bench")]
pub(crate) use bench::{Bench, BenchArgs, Servers as BenchServers};
pub(crate) use blueprint::{
    BlueprintAction, BlueprintArgs, BlueprintListArgs, BlueprintNameArgs, BlueprintSaveArgs,
};
pub(crate) use dead::{DeadAction, DeadArgs, DeadLetterArgs, DeadListArgs};
pub(crate) use fleet::{AgentArgs, AgentKind, ConformArgs, DownArgs, UpArgs};
pub(crate) use look::{
    ArtifactsArgs, GraphArgs, GraphForm, ReplayArgs, RunsArgs, ShowArgs, TapArgs, TraceArgs,
};
pub(crate) use orders::{EditArgs, OrderArgs, ResumeArgs, TaskArgs};
pub(crate) use people::{AnswerArgs, ApproveArgs, ContextArgs, QuestionsArgs, RejectArgs};
pub(crate) use prompt::PromptArgs;
use read::parse_assignment;
pub(crate) use run::{DraftReviewChoice, ForkArgs, PlanningChoice, RunArgs};

const EXIT_CODES: &str = "\
Exit codes:
  0  completed
  1  the run failed, or what was asked could not be done
  2  wrong usage, settings or input
  3  the bus cannot be reached or used
  4  the run was stopped (cancelled, its deadline passed, or its budget was used up)
  5  refused: there is too much to do now; ask again later
  6  completed in part: a task failed, was left out or was done in part; the report says which";

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
    /// A team file: who the fleet is made of, and the settings that hold for it.
    #[arg(long, global = true, value_name = "FILE", env = "MUSTER_FLEET", value_hint = ValueHint::FilePath)]
    pub(crate) fleet: Option<PathBuf>,
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
    /// List the files that a run's tasks made, or copy them here.
    Artifacts(ArtifactsArgs),
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
    /// Show what the tasks of a run know in common, or write a value of it.
    Context(ContextArgs),
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
