//! The files of a run that are brought to whoever asked: which of them, where to, and what became of each.

use std::path::{Path, PathBuf};

use muster_agents::tools::workspace::WorkspacePath;
use muster_bus::Bus;
use muster_shared::flow::Artifact;
use muster_shared::ids::RunId;
use muster_shared::run::RunState;
use serde_json::{Value, json};

use super::deliver::Wanted;
use crate::app::App;
use crate::commands::artifacts;
use crate::delivered_file::ConfigurationPaths;
use crate::exit::{Failure, usage};
use crate::render::figures;
use crate::{delivered_file, output};

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Brought {
    /// It lies there now.
    Copied,
    /// It lay there already, the same.
    Same,
    /// It was not copied: why.
    Kept(String),
    /// It would be read as configuration, and the person did not name it.
    Withheld,
}

/// A file, where it was to go, and what became of it.
#[derive(Debug, Clone)]
pub(super) struct BroughtFile {
    file: Artifact,
    to: PathBuf,
    what: Brought,
}

impl BroughtFile {
    /// Returns true if the file is not in effect: under its own name it would be read as configuration.
    fn is_untrusted(&self) -> bool {
        delivered_file::is_renamed(&self.to, &self.file.path)
    }
}

/// The files of a run as they were brought; those that would be read as configuration come first.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    brought: Vec<BroughtFile>,
    /// Files that nobody asked for by name.
    left: usize,
}

impl Files {
    /// Whether a file that was to be copied was not.
    pub(super) fn is_kept(&self) -> bool {
        self.brought.iter().any(|one| matches!(one.what, Brought::Kept(_)))
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let one = |one: &BroughtFile| {
            let mut value = json!({
                "path": one.file.path, "bytes": one.file.bytes, "to": one.to, "untrusted": one.is_untrusted(),
            });
            match &one.what {
                Brought::Kept(why) => value["not_copied"] = json!(why),
                Brought::Withheld => {
                    value["not_copied"] = json!("only a task named it, and it would be read as configuration")
                }
                Brought::Copied | Brought::Same => {}
            }
            value
        };
        self.brought.iter().map(one).collect()
    }

    /// Names the files that would be read as configuration. They come before all else that is reported of a run.
    pub(super) fn warn(&self, run: RunId) {
        for one in self.brought.iter().filter(|one| one.is_untrusted()) {
            let size = figures::bytes(one.file.bytes);
            let path = figures::harmless(&one.file.path);
            output::note(&match &one.what {
                Brought::Copied | Brought::Same => format!(
                    "configuration from the run, not in effect: {} ({size}); {}",
                    one.to.display(),
                    delivered_file::REMEDY
                ),
                Brought::Kept(why) => {
                    format!("configuration from the run, not copied: {path} ({size}): {why}")
                }
                Brought::Withheld => format!(
                    "configuration from the run, not copied: {path} ({size}); `muster artifacts {} {} --get` copies it",
                    run.short(),
                    figures::quoted(&path)
                ),
            });
        }
    }

    /// Names the other files, with path and size.
    pub(super) fn tell(&self, run: RunId) {
        for BroughtFile { file, to, what } in self.brought.iter().filter(|one| !one.is_untrusted()) {
            let size = figures::bytes(file.bytes);
            output::note(&match what {
                Brought::Copied => format!("file: {} ({size})", to.display()),
                Brought::Same => format!("file: {} ({size}, as it was there already)", to.display()),
                Brought::Kept(why) => {
                    format!("file not copied: {} ({size}): {why}", figures::harmless(&file.path))
                }
                Brought::Withheld => continue,
            });
        }
        if self.left > 0 {
            let files = figures::plural(self.left as u64, "more file");
            output::note!("{files} of its tasks: `muster artifacts {}` lists them", run.short());
        }
    }

    /// The report with links that lead to these files.
    pub(super) fn relink(&self, body: &str, report: &Path) -> String {
        let base = report.parent().unwrap_or(Path::new(""));
        let place = |path: &str| {
            let one =
                self.brought.iter().find(|one| one.file.path == path && one.what != Brought::Withheld)?;
            let to = one.to.strip_prefix(base).ok()?.to_str()?;
            Some(to.replace(' ', "%20"))
        };
        delivered_file::relinked(body, place)
    }
}

/// Which files of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// All that its tasks wrote.
    All,
    /// Those that the goal, the plan or the report names.
    Named,
    /// Those that the person named: nobody gave a folder for them.
    AskedFor,
}

/// Where the files of a run go; nowhere where programs read the answer and no folder was given.
fn place(wanted: &Wanted, run: RunId) -> Option<(PathBuf, Which)> {
    match (&wanted.out, &wanted.output) {
        (Some(folder), _) => Some((folder.clone(), Which::All)),
        (None, Some(report)) => Some((delivered_file::folder_of_report(report), Which::Named)),
        (None, None) if wanted.json => None,
        (None, None) => Some((delivered_file::folder_of_run(run), Which::AskedFor)),
    }
}

/// Whether a file of a run is meant.
fn is_chosen(state: &RunState, file: &Artifact, which: Which, is_untrusted: bool) -> bool {
    match which {
        Which::All => true,
        Which::AskedFor => is_named(&file.path, &state.goal.text),
        Which::Named => {
            let plan = state.plan.iter().flat_map(|plan| plan.tasks.values());
            let texts = plan.map(|task| task.expected_output.as_str());
            let mut told = texts.chain(state.report.as_ref().map(|report| report.body.as_str()));
            // Text of a model brings no file that would be read as configuration.
            is_named(&file.path, &state.goal.text)
                || !is_untrusted && told.any(|text| is_named(&file.path, text))
        }
    }
}

/// Whether a text names a file by its path or its name, and not as a part of another name.
fn is_named(path: &str, text: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let within = |c: char| c.is_alphanumeric() || "_-".contains(c);
    [path, name].iter().any(|name| {
        text.match_indices(name).any(|(at, found)| {
            let before = text[..at].chars().next_back();
            let mut after = text[at + found.len()..].chars();
            let next = after.next();
            let goes_on = next == Some('.') && after.next().is_some_and(within);
            !before.is_some_and(|c| within(c) || c == '.') && !next.is_some_and(within) && !goes_on
        })
    })
}

/// The files of a run that are meant, with their places; nothing is copied yet.
pub(super) async fn choose(app: &App, bus: &Bus, wanted: &Wanted, state: &RunState) -> Files {
    let Some((folder, which)) = place(wanted, state.id) else { return Files::default() };
    let (configuration, mut files) = (ConfigurationPaths::of(app), Files::default());
    for file in made(bus, state).await {
        let to = configuration.target(&folder, &file.path);
        let is_untrusted = delivered_file::is_renamed(&to, &file.path);
        let what = match (is_chosen(state, &file, which, is_untrusted), is_untrusted) {
            (true, _) => Brought::Same,
            (false, true) => Brought::Withheld,
            (false, false) => {
                files.left += 1;
                continue;
            }
        };
        files.brought.push(BroughtFile { file, to, what });
    }
    files.brought.sort_by_key(|one| !one.is_untrusted());
    files
}

/// Copies the chosen files of a run. Never over another file, unless that was asked for.
pub(super) async fn bring(bus: &Bus, wanted: &Wanted, run: RunId, files: &mut Files) {
    let Some((folder, which)) = place(wanted, run) else { return };
    for one in files.brought.iter_mut().filter(|one| one.what != Brought::Withheld) {
        one.what = match text_of(bus, run, &one.file).await {
            // Nobody named the folder: a link there came with the project.
            Ok(_) if which != Which::All && folder.is_symlink() => {
                Brought::Kept(format!("{} is a link; --out DIR puts it elsewhere", folder.display()))
            }
            Ok(bytes) => put(&folder, &one.to, &bytes, wanted.force),
            Err(why) => Brought::Kept(why),
        };
    }
}

/// The files of a run: those that its report names, else those that its tasks wrote. A report that is put together by rule
/// names none.
async fn made(bus: &Bus, state: &RunState) -> Vec<Artifact> {
    let named = state.report.as_ref().map(|report| report.artifacts.clone()).unwrap_or_default();
    if !named.is_empty() {
        return named;
    }
    match bus.files().list(state.id).await {
        Ok(listed) => listed.files,
        Err(error) => {
            tracing::warn!(%error, "the files of the run cannot be listed");
            Vec::new()
        }
    }
}

/// What stands in a file. Its path is data from the bus: only what is a path of a workspace is made a path of this disk.
async fn text_of(bus: &Bus, run: RunId, file: &Artifact) -> Result<Vec<u8>, String> {
    let path = WorkspacePath::parse(&file.path).map_err(|error| error.to_string())?;
    match bus.files().read(run, path.as_str()).await {
        Ok(Some(bytes)) => Ok(bytes.to_vec()),
        Ok(None) => Err("it was removed in the meantime".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn put(folder: &Path, to: &Path, bytes: &[u8], force: bool) -> Brought {
    if !force && std::fs::symlink_metadata(to).is_ok() {
        return match std::fs::read(to) {
            Ok(there) if there == bytes => Brought::Same,
            _ => Brought::Kept(format!(
                "{} is there already, and is another; --force replaces it, --out DIR puts it elsewhere",
                to.display()
            )),
        };
    }
    match artifacts::write(folder, to, bytes, force) {
        Ok(()) => Brought::Copied,
        Err(failure) => Brought::Kept(failure.to_string()),
    }
}

/// Checks that files can be put there before work is done for it.
pub(super) fn check(app: &App, folder: Option<&Path>) -> Result<(), Failure> {
    match folder {
        Some(folder) if folder.exists() && !folder.is_dir() => {
            Err(usage!("{} is no folder", folder.display()).help("give --out a folder"))
        }
        Some(folder) => delivered_file::check(app, folder),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_whole_name() {
        for (text, wanted) in [
            ("Write `shares.csv` and more.", true),
            ("Write out/shares.csv.", true),
            ("shares.csv", true),
            ("Write myshares.csv", false),
            ("Write shares.csv2 or shares.csv.bak", false),
            ("Write old.shares.csv", false),
        ] {
            assert_eq!(is_named("out/shares.csv", text), wanted, "{text}");
        }
    }

    #[test]
    fn what_lies_there_is_not_written_over_unless_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("a.csv");
        assert_eq!(put(folder.path(), &to, b"one", false), Brought::Copied);
        assert_eq!(put(folder.path(), &to, b"one", false), Brought::Same);
        assert!(
            matches!(put(folder.path(), &to, b"two", false), Brought::Kept(why) if why.contains("--force"))
        );
        assert_eq!(std::fs::read(&to).unwrap(), b"one");
        assert_eq!(put(folder.path(), &to, b"two", true), Brought::Copied);
        assert_eq!(std::fs::read(&to).unwrap(), b"two");
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("up")).unwrap();
        assert!(matches!(put(folder.path(), &folder.path().join("up/b.csv"), b"x", true), Brought::Kept(_)));
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_go_where_the_report_goes() {
        let wanted = |out: Option<&str>, output: Option<&str>, json| Wanted {
            output: output.map(PathBuf::from),
            out: out.map(PathBuf::from),
            json,
            ..Wanted::default()
        };
        let run = RunId::from_uuid(uuid::Uuid::from_u128(1));
        let of = |wanted: &Wanted| place(wanted, run);
        assert_eq!(of(&wanted(Some("o"), Some("r/a.md"), true)), Some(("o".into(), Which::All)));
        assert_eq!(of(&wanted(None, Some("r/a.md"), true)), Some(("r/a.files".into(), Which::Named)));
        let of_run = delivered_file::folder_of_run(run);
        assert_eq!(of(&wanted(None, None, false)), Some((of_run, Which::AskedFor)));
        assert_eq!(of(&wanted(None, None, true)), None);
    }
}
