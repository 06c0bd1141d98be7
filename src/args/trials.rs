//! Arguments of `muster trials` and `muster compare`.

use clap::{Args, Subcommand};

/// Options of `muster trials`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster trials\n  muster trials withdraw cheaper --reason \"it invents sources\""
)]
pub(crate) struct TrialsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<TrialsAction>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is done with a trial.
#[derive(Debug, Subcommand)]
pub(crate) enum TrialsAction {
    /// Withdraw a trial: nothing more goes to what it tries.
    Withdraw(TrialArgs),
    /// Have a trial go on that was withdrawn, and count it anew. Holds for runs that begin from now on.
    Resume(TrialArgs),
}

/// The trial that is meant.
#[derive(Debug, Args)]
pub(crate) struct TrialArgs {
    /// Name of the trial.
    pub(crate) name: String,
    /// Why.
    #[arg(long, default_value = "")]
    pub(crate) reason: String,
}

/// Options of `muster compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster compare cheaper                # a trial: the usual, and what is tried\n  muster compare last 4f2a              # the tasks of two runs\n  muster compare model=openai/a model=openai/b   # runs by filter: model=, goal= or by="
)]
pub(crate) struct CompareArgs {
    /// A trial; or two runs, or two filters of runs.
    #[arg(required = true, num_args = 1..=2, value_name = "TRIAL|RUN|FILTER")]
    pub(crate) what: Vec<String>,
    /// How many of the newest runs are looked at.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
