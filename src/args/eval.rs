//! Arguments of `muster eval`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::eval::suite::Setting;

/// Run a suite of goals and check what comes of them.
///
/// A suite is a TOML file with goals and checks: what the report holds, whether its citations are true, which files are
/// made, how many model calls, tokens and dollars it takes. Every goal is an ordinary run (`muster runs` lists them). The
/// results are kept as JSON Lines in `.muster/eval`. Ends with exit code 7 when a check does not pass.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster eval                                   # lists the suites that come with Muster
  muster eval offline
  muster eval basics --model openai/gpt-4.1-mini --repeat 3
  muster eval basics --compare one=planning=never many=planning=always
  muster eval my-suite.toml --last --json")]
pub(crate) struct EvalArgs {
    /// Suite: a TOML file, or the name of one that comes with Muster; lists these when absent.
    #[arg(value_name = "SUITE", value_hint = ValueHint::FilePath)]
    pub(crate) suite: Option<String>,
    /// Model for all goals, instead of the suite's.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only goals whose name has this part; repeatable.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// How often each goal is run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) repeat: u32,
    /// Setting to compare: a name and settings, or model, effort, planning, deadline, draft-review; give two or more.
    #[arg(long, value_name = "NAME=KEY=VALUE,…", num_args = 1.., value_parser = Setting::read)]
    pub(crate) compare: Vec<Setting>,
    /// Compare with earlier results in this file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) against: Option<PathBuf>,
    /// Compare with the last results of this suite.
    #[arg(long, conflicts_with = "against")]
    pub(crate) last: bool,
    /// File for the results; default: a new one in .muster/eval.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Hide progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
