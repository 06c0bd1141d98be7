//! Arguments of `muster blueprint`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Manage blueprints: plan templates with parameters.
///
/// A blueprint is a TOML file `NAME.toml` in a folder of `agent.blueprints` (default: `blueprints` beside the fleet), or
/// one that is built in.
#[derive(Debug, Args)]
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

#[derive(Debug, Subcommand)]
pub(crate) enum BlueprintAction {
    /// List blueprints.
    List(BlueprintListArgs),
    /// Check a blueprint; errors name line and column.
    Check(BlueprintNameArgs),
    /// Print a blueprint.
    Show(BlueprintNameArgs),
    /// Save the plan of a completed run as a blueprint.
    Save(BlueprintSaveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BlueprintListArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BlueprintNameArgs {
    /// Blueprint name or file.
    #[arg(value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) blueprint: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BlueprintSaveArgs {
    /// Run id, the last digits of it, or `last`.
    pub(crate) run: String,
    /// Name of the new blueprint.
    pub(crate) name: String,
    /// File to write; default: NAME.toml in the first folder of `agent.blueprints`.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
