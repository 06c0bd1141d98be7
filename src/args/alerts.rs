//! What `muster alerts` takes.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::about::JsonArgs;
use super::read::parse_span;

/// List alert rules, what fires and since when; test destinations; silence a rule.
///
/// Rules and destinations stand in the settings ([alerts], docs/alerts.md). `muster up` starts a process that looks after them
/// where anybody is told.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster alerts
  muster alerts test ops
  muster alerts silence tool_failures 2h --because \"the search service is down\"
  muster alerts silence tool_failures --lift")]
pub(crate) struct AlertsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<AlertsAction>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum AlertsAction {
    /// List the rules, what fires, and since when.
    List(JsonArgs),
    /// Send a test notice, and say what came back.
    Test(AlertsTestArgs),
    /// Have nothing told about a rule for a while, or again.
    Silence(AlertsSilenceArgs),
    /// Look after alerts until told to stop.
    Watch,
}

/// Send a test notice, and say what came back.
///
/// Needs no fleet. Exits with code 1 if a destination did not take it.
#[derive(Debug, Clone, Args)]
pub(crate) struct AlertsTestArgs {
    /// Destination; default: all that rules name.
    pub(crate) name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Have nothing told about a rule for a while, or again.
///
/// What fires meanwhile, and still does when the time is up, is told then. That something is over which was told before is told
/// all the same.
#[derive(Debug, Clone, Args)]
pub(crate) struct AlertsSilenceArgs {
    /// Rule, as `muster alerts` lists it.
    pub(crate) rule: String,
    /// For how long, such as 30m or 2h; 30 days at most.
    #[arg(value_name = "TIME", value_parser = parse_span, required_unless_present = "lift")]
    pub(crate) time: Option<Duration>,
    /// Why; others are shown it.
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with = "lift")]
    pub(crate) because: String,
    /// End the silence.
    #[arg(long, conflicts_with = "time")]
    pub(crate) lift: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
