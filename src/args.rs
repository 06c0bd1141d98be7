//! The command line.

mod about;
#[cfg(feature = "bench")]
mod bench;
mod blueprint;
mod dead;
mod eval;
mod fleet;
mod guard;
mod keep;
mod keys;
mod look;
mod machines;
mod mcp;
mod models;
mod orders;
mod people;
mod prompt;
mod read;
mod run;
mod tools;
mod trials;
mod trust;
mod ui;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

pub(crate) use about::{ConfigArgs, JsonArgs, SchemaArgs, SchemaForm};
#[cfg(feature = "bench")]
pub(crate) use bench::{Bench, BenchArgs, Servers as BenchServers};
pub(crate) use blueprint::{
    BlueprintAction, BlueprintArgs, BlueprintListArgs, BlueprintNameArgs, BlueprintSaveArgs,
};
pub(crate) use dead::{DeadAction, DeadArgs, DeadLetterArgs, DeadListArgs, DeadRetryArgs};
pub(crate) use eval::EvalArgs;
pub(crate) use fleet::{AgentArgs, AgentKind, CheckAgentArgs, DownArgs, MetricsArgs, UpArgs};
pub(crate) use guard::{GuardArgs, GuardChoice};
pub(crate) use keep::{
    ArchiveArgs, DeleteArgs, ExportArgs, GcArgs, ImportArgs, KeepArgs, RunsAction, RunsArgs,
};
pub(crate) use keys::{
    CertificateArgs, ContextArgs as KeysContextArgs, IssueArgs, KeysArgs, KeysCommand, RotateArgs, TokenArgs,
};
pub(crate) use look::{
    ArtifactsArgs, AuditArgs, ExplainArgs, GraphArgs, GraphForm, ReplayArgs, ShowArgs, TapArgs, TopArgs,
    TraceArgs,
};
pub(crate) use machines::{InviteArgs, JoinArgs};
pub(crate) use mcp::{McpAction, McpArgs};
pub(crate) use models::{ModelArgs, ModelsAction, ModelsArgs};
pub(crate) use orders::{EditArgs, OrderArgs, ResumeArgs, SteerCommand, TaskArgs};
pub(crate) use people::{AnswerArgs, ApproveArgs, ContextArgs, QuestionsArgs, RejectArgs};
pub(crate) use prompt::PromptArgs;
use read::parse_assignment;
pub(crate) use run::{DraftReviewChoice, ForkArgs, PlanningChoice, RightsArgs, RunArgs};
pub(crate) use tools::{
    ToolsAcceptArgs, ToolsAction, ToolsArgs, ToolsCallArgs, ToolsNameArgs, ToolsRevokeArgs, ToolsStatsArgs,
    ToolsTestArgs,
};
pub(crate) use trials::{CompareArgs, TrialArgs, TrialsAction, TrialsArgs};
pub(crate) use trust::TrustArgs;
pub(crate) use ui::{ScaleArgs, UiArgs};

const EXIT_CODES: &str = "\
Exit codes:
  0  completed
  1  the run or the command failed
  2  invalid arguments, settings or input, or files that are not trusted
  3  the bus cannot be reached or used, or the fleet is gone
  4  the run was stopped (cancelled, deadline passed, or budget exhausted)
  5  refused: the fleet is overloaded; try again later
  6  completed in part: a task failed or was done in part; a rule or a new plan left a task out; a part of the
     report is missing; no part of the goal was answered; or a guard gave no verdict. The report lists them.
     A task that a person skipped does not change the exit code
  7  done, but a check of an eval did not pass, an audit found something, or a file was not copied over one that exists";

const EXAMPLES: &str = "\
Examples:
  muster run \"What does this project promise its users?\" --docs docs
  muster up --scale worker=4          # in one terminal
  muster run \"…\"; muster trace last   # in another
  muster doctor                       # when something does not work";

/// Run fleets of LLM agents as processes on a NATS bus.
///
/// Give it a goal: one agent does it, or a planner splits it into tasks, workers and researchers do them, a reflector
/// evaluates results, a refiner changes the plan, a writer writes the report. Every agent is a process of its own. Every step is in the
/// event log of the run and can be replayed.
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
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Settings file; default: the nearest muster.toml, upward from the current folder.
    #[arg(long, global = true, value_name = "FILE", env = "MUSTER_CONFIG", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Team file: the members of the fleet and its settings.
    #[arg(long, global = true, value_name = "FILE", env = "MUSTER_FLEET", value_hint = ValueHint::FilePath)]
    pub(crate) fleet: Option<PathBuf>,
    /// NATS server; default: the one in the settings, or the local fleet's.
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: Option<String>,
    /// Override a setting, such as limits.max_steps=20; repeatable. `muster config` lists all settings.
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = parse_assignment)]
    pub(crate) set: Vec<(String, String)>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a goal and wait for the report.
    Run(Box<RunArgs>),
    /// Start a local fleet and supervise it.
    Up(UpArgs),
    /// Stop the local fleet.
    Down(DownArgs),
    /// Change the number of processes of the running fleet.
    Scale(ScaleArgs),
    /// Show the fleet and its runs in a browser.
    Ui(UiArgs),
    /// List the processes of the fleet.
    Ps(JsonArgs),
    /// Print or serve the figures of the fleet for Prometheus.
    Metrics(MetricsArgs),
    /// List runs, newest first; keep, export, import, archive or delete one.
    Runs(RunsArgs),
    /// Remove what is over its time: runs that ended shrink to a summary.
    Gc(GcArgs),
    /// Print the plan of a run as a graph, coloured by task state.
    Graph(GraphArgs),
    /// Show a run: its plan, results, reflections, refinements, usage and report.
    Show(ShowArgs),
    /// List or copy the files that the tasks of a run wrote.
    Artifacts(ArtifactsArgs),
    /// Show the event log of a run.
    Trace(TraceArgs),
    /// Explain a run: why this result, what went wrong, where time and money went.
    Explain(ExplainArgs),
    /// Show the exact prompt of a step.
    Prompt(PromptArgs),
    /// Replay the decisions of a run from its log and compare them.
    Replay(ReplayArgs),
    /// Verify that the record of a run is as it was written.
    Audit(AuditArgs),
    /// Start a run from an earlier state of another run.
    Fork(ForkArgs),
    /// Watch the decoded messages of the fleet.
    Tap(TapArgs),
    /// Watch the fleet, its runs and what passes, in the terminal.
    Top(TopArgs),
    /// List the questions that wait for a person.
    Questions(QuestionsArgs),
    /// Show the shared context of a run, or write a value to it.
    Context(ContextArgs),
    #[command(flatten)]
    Steer(SteerCommand),
    /// Manage dead letters: unreadable messages and quarantined tasks.
    Dead(DeadArgs),
    /// Manage blueprints: plan templates with parameters.
    Blueprint(BlueprintArgs),
    /// Run a suite of goals and check what comes of them.
    Eval(EvalArgs),
    /// List the trials of the fleet; withdraw one, or have it go on.
    Trials(TrialsArgs),
    /// Compare what a trial tries with the usual, two runs, or two kinds of runs.
    Compare(CompareArgs),
    /// Run an agent.
    Agent(AgentArgs),
    /// Run a guard: asked whether a run may go on so.
    Guard(GuardArgs),
    /// Test a program against the task gateway.
    CheckAgent(CheckAgentArgs),
    /// Run an orchestrator.
    Orchestrator,
    /// Print the schemas of all messages on the bus.
    Schema(SchemaArgs),
    /// Run chaos tests and benchmarks on a private fleet.
    #[cfg(feature = "bench")]
    Bench(BenchArgs),
    /// Show what models can do, or test one.
    Models(ModelsArgs),
    /// List tools, call one by hand, and see how their calls went.
    Tools(ToolsArgs),
    /// List MCP servers, and authorize Muster at them.
    Mcp(McpArgs),
    /// Check the installation and explain how to fix problems.
    Doctor(JsonArgs),
    /// Show the effective settings and the source of each.
    Config(ConfigArgs),
    /// Make and hand out the keys by which processes and people are let in to a fleet.
    Keys(KeysArgs),
    /// Invite another machine to join the fleet.
    Invite(InviteArgs),
    /// Join a fleet from another machine, and start agents for it here.
    Join(JoinArgs),
    /// Trust the project of this folder: what would run programs, name who is sent keys, or point at a bus.
    Trust(TrustArgs),
    /// Print a shell completion script.
    #[command(
        after_help = "Example:\n  muster completions bash > ~/.local/share/bash-completion/completions/muster"
    )]
    Completions {
        /// Shell.
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Words of a command line up to a semicolon, a pipe, a redirection or a comment.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for letter in line.chars() {
            match (quote, letter) {
                (Some(open), _) if letter == open => quote = None,
                (None, '"' | '\'') => quote = Some(letter),
                (None, ';') => break,
                (None, ' ') => words.push(String::new()),
                (None, '|' | '>' | '<' | '&' | '#') if words.last().is_some_and(String::is_empty) => break,
                (_, _) => words.last_mut().unwrap().push(letter),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    fn examples(command: &clap::Command, all: &mut Vec<(String, String)>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        all.extend(help.lines().map(|line| (command.get_name().to_owned(), line.trim().to_owned())));
        command.get_subcommands().for_each(|command| examples(command, all));
    }

    #[test]
    fn documented_command_is_accepted() {
        let mut all = Vec::new();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        for path in docs
            .chain([root.join("README.md")])
            .filter(|path| path.extension().is_some_and(|end| end == "md"))
        {
            let text = std::fs::read_to_string(&path).unwrap().replace("\\\n", " ");
            let blocks = text.split("\n```").skip(1).step_by(2).filter(|block| block.starts_with("sh\n"));
            all.extend(blocks.flat_map(str::lines).map(|line| (path.display().to_string(), line.to_owned())));
        }
        examples(&Cli::command(), &mut all);
        let mut count = 0;
        for (place, line) in all {
            let words = words(&line);
            let start = words.iter().position(|word| !word.contains('=')).unwrap_or_default();
            let words = &words[start.min(words.len())..];
            let is_absent = !cfg!(feature = "bench") && words.get(1).is_some_and(|word| word == "bench");
            if words.first().is_none_or(|word| word != "muster") || is_absent {
                continue;
            }
            count += 1;
            if let Err(error) = Cli::try_parse_from(words) {
                assert!(!error.use_stderr(), "{place}: {line}\n{error}");
            }
        }
        assert!(count > 200, "{count} commands were found");
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
