//! The files of a run that are brought to whoever asked: which of them, where to, and what became of each.

use std::path::{Path, PathBuf};

use muster_agents::tools::workspace::WorkspacePath;
use muster_bus::Bus;
use muster_shared::flow::Artifact;
use muster_shared::ids::RunId;
use muster_shared::run::RunState;
use serde_json::{Value, json};

use super::deliver::Wanted;
use crate::commands::artifacts;
use crate::exit::Failure;
use crate::output;
use crate::render::figures;

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Brought {
    /// It lies there now.
    Copied,
    /// It lay there already, the same.
    Same,
    /// It was not copied: why.
    Kept(String),
}

/// A file, where it was to go, and what became of it.
#[derive(Debug, Clone)]
pub(super) struct BroughtFile {
    file: Artifact,
    to: PathBuf,
    what: Brought,
}

/// The files of a run as they were brought.
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
            let mut value = json!({ "path": one.file.path, "bytes": one.file.bytes, "to": one.to });
            if let Brought::Kept(why) = &one.what {
                value["not_copied"] = json!(why);
            }
            value
        };
        self.brought.iter().map(one).collect()
    }

    /// Names them, with path and size.
    pub(super) fn tell(&self, run: RunId) {
        for BroughtFile { file, to, what } in &self.brought {
            let size = figures::bytes(file.bytes);
            output::note(&match what {
                Brought::Copied => format!("file: {} ({size})", to.display()),
                Brought::Same => format!("file: {} ({size}, as it was there already)", to.display()),
                Brought::Kept(why) => {
                    format!("file not copied: {} ({size}): {why}", figures::harmless(&file.path))
                }
            });
        }
        if self.left > 0 {
            let files = figures::plural(self.left as u64, "more file");
            output::note(&format!("{files} of its tasks: `muster artifacts {}` lists them", run.short()));
        }
    }
}

/// Where files go, and which of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place<'a> {
    folder: &'a Path,
    which: Which,
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
fn place(wanted: &Wanted) -> Option<Place<'_>> {
    match (&wanted.out, &wanted.output) {
        (Some(folder), _) => Some(Place { folder, which: Which::All }),
        (None, Some(report)) => {
            let folder = report.parent().unwrap_or(Path::new(""));
            Some(Place { folder, which: Which::Named })
        }
        (None, None) if wanted.json => None,
        (None, None) => Some(Place { folder: Path::new(""), which: Which::AskedFor }),
    }
}

/// The files of a run that are meant, and how many are left.
fn chosen<'a>(state: &RunState, all: &'a [Artifact], which: Which) -> (Vec<&'a Artifact>, usize) {
    let names = |file: &&Artifact| match which {
        Which::All => true,
        Which::AskedFor => is_named(&file.path, &state.goal.text),
        Which::Named => {
            let plan = state.plan.iter().flat_map(|plan| plan.tasks.values());
            let texts = plan.map(|task| task.expected_output.as_str());
            let mut told = texts.chain(state.report.as_ref().map(|report| report.body.as_str()));
            // What models say names no file by which a fleet would go from then on.
            is_named(&file.path, &state.goal.text)
                || !gives_orders(&file.path) && told.any(|text| is_named(&file.path, text))
        }
    };
    let chosen: Vec<&Artifact> = all.iter().filter(names).collect();
    let left = all.len() - chosen.len();
    (chosen, left)
}

/// Whether a fleet that is brought up where this file lies would go by it: settings, agents and blueprints.
fn gives_orders(path: &str) -> bool {
    let path = path.to_lowercase();
    let is_blueprint = path.ends_with(".toml") && path.split('/').any(|part| part == "blueprints");
    path.rsplit('/').next() == Some("muster.toml") || path.ends_with(".agent.md") || is_blueprint
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

/// Copies the files of a run that are meant to where they belong. Never over another file, unless that was asked for.
pub(super) async fn bring(bus: &Bus, wanted: &Wanted, state: &RunState) -> Files {
    let Some(Place { folder, which }) = place(wanted) else { return Files::default() };
    let all = made(bus, state).await;
    let (chosen, left) = chosen(state, &all, which);
    let mut files = Files { brought: Vec::new(), left };
    for file in chosen {
        let to = folder.join(&file.path);
        let what = match text_of(bus, state.id, file).await {
            Ok(bytes) => put(folder, &to, &bytes, wanted.force),
            Err(why) => Brought::Kept(why),
        };
        files.brought.push(BroughtFile { file: file.clone(), to, what });
    }
    files
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
pub(super) fn check(folder: Option<&Path>) -> Result<(), Failure> {
    match folder {
        Some(folder) if folder.exists() && !folder.is_dir() => {
            Err(Failure::usage(format!("{} is no folder", folder.display())).help("give --out a folder"))
        }
        _ => Ok(()),
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
    fn files_that_a_fleet_goes_by_are_told_from_others() {
        for (path, wanted) in [
            ("muster.toml", true),
            ("deep/Muster.toml", true),
            ("agents/evil.agent.md", true),
            ("blueprints/evil.toml", true),
            ("blueprints.toml", false),
            ("agents/report.md", false),
            ("shares.csv", false),
        ] {
            assert_eq!(gives_orders(path), wanted, "{path}");
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
        let of = |wanted: &Wanted| place(wanted).map(|place| (place.folder.to_owned(), place.which));
        assert_eq!(of(&wanted(Some("o"), Some("r/a.md"), true)), Some(("o".into(), Which::All)));
        assert_eq!(of(&wanted(None, Some("r/a.md"), true)), Some(("r".into(), Which::Named)));
        assert_eq!(of(&wanted(None, None, false)), Some(("".into(), Which::AskedFor)));
        assert_eq!(of(&wanted(None, None, true)), None);
    }
}
