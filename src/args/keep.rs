//! Arguments of `muster runs` and of what it does to runs, and of `muster gc`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

const EXAMPLES: &str = "\
Examples:
  muster runs
  muster runs export last -o run.muster      # to be imported into another fleet
  muster runs import run.muster
  muster runs keep 0193c2                    # nothing of it is removed by age
  muster runs archive 0193c2 ~/archive       # export, then delete";

/// List runs, newest first; keep, export, import, archive or delete one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    /// Maximum number of runs.
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Option<RunsAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsAction {
    /// Write a run that has ended to a file: its record, its files, and what it needs of the object store.
    Export(ExportArgs),
    /// Read a run from such a file. It can be shown, traced, replayed, audited and forked as where it was made.
    Import(ImportArgs),
    /// Mark a run: nothing of it is removed by age.
    Keep(KeepArgs),
    /// Remove all of a run that has ended.
    Delete(DeleteArgs),
    /// Write a run to a file in a folder, and remove it once that file was read again.
    Archive(ArchiveArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The documents that the run was given are not in the file; their manifest is named in it. Runs within it are runs of their
own: export them as well.

Examples:
  muster runs export last -o run.muster
  muster runs export 0193c2 -o run.muster --json")]
pub(crate) struct ExportArgs {
    /// Run id, the last digits of it, or `last`.
    pub(crate) run: String,
    /// File to write; one that exists is replaced.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster runs import run.muster\n  muster audit 0193c2       # whether it is as it was written"
)]
pub(crate) struct ImportArgs {
    /// File that `muster runs export` wrote.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  muster runs keep last\n  muster runs keep last --off")]
pub(crate) struct KeepArgs {
    /// Run id, the last digits of it, or `last`.
    pub(crate) run: String,
    /// Take the mark away.
    #[arg(long)]
    pub(crate) off: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  muster runs delete 0193c2\n  muster runs delete 0193c2 --yes --json")]
pub(crate) struct DeleteArgs {
    /// Run id or the last digits of it.
    pub(crate) run: String,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster runs archive 0193c2 ~/archive --yes\n  muster runs import ~/archive/0193c2….muster"
)]
pub(crate) struct ArchiveArgs {
    /// Run id or the last digits of it.
    pub(crate) run: String,
    /// Folder for the file, which is called after the run.
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove what is over its time: runs that ended shrink to a summary.
///
/// How long what is kept is said by the settings `keep.*`; by default everything is, and only removals that were cut short are
/// finished.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster gc --dry-run
  muster gc --set keep.completed=30d --yes
  17 4 * * *  cd /srv/fleet && muster gc --yes    # a line of crontab

Exit codes:
  0  done, or there is nothing to do
  1  some of it could not be removed; run it again
  2  not done: nobody said yes")]
pub(crate) struct GcArgs {
    /// Only say what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
