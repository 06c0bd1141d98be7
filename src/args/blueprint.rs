//! Arguments of `muster blueprint`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Look after blueprints: plans written beforehand, with parameters.
///
/// A blueprint is a TOML file `NAME.toml` in one of the folders of `agent.blueprints` (`blueprints` beside the fleet
/// when nothing is set), or one that comes with Muster.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster blueprint list
  muster blueprint show ticket_triage > blueprints/my_triage.toml
  muster blueprint check blueprints/my_triage.toml
  muster run --blueprint my_triage --param tickets=\"T1 login fails, T2 typo\"
  muster blueprint save last weekly_report")]
pub(crate) struct BlueprintArgs {
    #[command(subcommand)]
    pub(crate) action: BlueprintAction,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum BlueprintAction {
    /// List the blueprints that can be called by name.
    List(BlueprintListArgs),
    /// Say what is wrong with a blueprint, with line and column.
    Check(BlueprintNameArgs),
    /// Print a blueprint.
    Show(BlueprintNameArgs),
    /// Make a blueprint of the plan of a run that completed.
    Save(BlueprintSaveArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct BlueprintListArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct BlueprintNameArgs {
    /// The name of a blueprint, or a file.
    #[arg(value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) blueprint: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct BlueprintSaveArgs {
    /// The run: its id, the end of it that is shown, or `last`.
    pub(crate) run: String,
    /// What the blueprint is to be called.
    pub(crate) name: String,
    /// The file to write; NAME.toml in the first folder of `agent.blueprints` when absent.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
