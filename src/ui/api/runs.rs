//! Lists of runs; and runs that are begun.

use std::path::{Path, PathBuf};

use axum::extract::State;
use clap::Parser;
use muster_shared::ids::RunId;
use serde::Deserialize;
use serde_json::json;

use super::super::briefs::Search;
use super::super::reply::{Problem, Reply, json};
use super::super::session::{KnownBy, Person};
use super::super::state::Ui;
use super::{After, By, Named, Said, Shared, apart, run_of};
use crate::args::{Cli, Command, ForkArgs, RunArgs};
use crate::commands::{fork as forking, run as running};

/// How many runs, newest first, are searched. Each one is read for it; some hundred take a second.
const SEARCH_RUNS: usize = 500;

/// How many runs are listed where nothing is said.
const USUAL: usize = 50;
/// Most runs that are listed at once.
const MOST: usize = 500;

/// Which runs are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    q: String,
    status: String,
    model: String,
    limit: Option<usize>,
    before: Option<String>,
}

/// The newest runs.
pub(crate) async fn list(State(ui): Shared, After(wanted): After<Wanted>) -> Reply {
    let limit = wanted.limit.unwrap_or(USUAL).min(MOST);
    let before = match wanted.before.as_deref().filter(|named| !named.is_empty()) {
        Some(named) => Some(run_of(&ui, named).await?),
        None => None,
    };
    let search = Search { text: wanted.q, status: wanted.status, model: wanted.model };
    let is_all = search.is_all() && before.is_none();
    let looked_at = if is_all { limit } else { SEARCH_RUNS.max(limit) };
    let bus = ui.bus()?;
    let all = ui.briefs.newest(&bus, looked_at).await?;
    let older = before.map_or(0, |before| {
        let place = all.iter().position(|brief| brief["run"] == json!(before));
        place.map_or(all.len(), |place| place + 1)
    });
    let shown: Vec<_> = all.iter().skip(older).filter(|brief| search.shows(brief)).take(limit).collect();
    json(&shown)
}

/// A goal that somebody has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goal {
    goal: String,
    #[serde(default)]
    documents: Vec<PathBuf>,
    #[serde(default, rename = "continue")]
    follow: Option<String>,
    model: Option<String>,
    review: Option<String>,
}

/// Begins a run, as `muster run` does, and does not wait for its end.
pub(crate) async fn begin(State(ui): Shared, By(person): By, Said(asked): Said<Goal>) -> Reply {
    let documents =
        asked.documents.iter().map(|path| allowed(&ui, &person, path)).collect::<Result<Vec<_>, _>>()?;
    let mut args = arguments(&asked)?;
    args.docs = documents;
    let bus = ui.bus_for(&person)?;
    let app = ui.app.clone();
    let name = person.author();
    // What reads documents tells a screen of it, which stays on one thread.
    let runtime = tokio::runtime::Handle::current();
    let run = apart(move || runtime.block_on(Box::pin(running::begin(&app, &bus, &args, name)))).await?;
    asked_for(run)
}

fn asked_for(run: RunId) -> Reply {
    json(&json!({ "run": run, "status": "asked" }))
}

/// What is asked, as the command line would have it: read and refused by the same rules.
fn arguments(asked: &Goal) -> Result<RunArgs, Problem> {
    if asked.goal.trim().is_empty() {
        return Err(Problem::bad("there is no goal").help("say what is to be done"));
    }
    if asked.goal.contains('\0') {
        return Err(Problem::bad("a goal is text, and has no zero bytes"));
    }
    // To the command line this means standard input, which is not ours to read.
    if asked.goal.trim() == "-" {
        return Err(Problem::bad("a dash is no goal").help("say what is to be done"));
    }
    let mut words = vec!["muster".to_owned(), "run".to_owned(), "--json".to_owned()];
    let with = [("continue", &asked.follow), ("model", &asked.model), ("review", &asked.review)];
    words.extend(with.into_iter().filter_map(|(flag, value)| Some(format!("--{flag}={}", value.as_ref()?))));
    // The goal itself is put in afterwards: whatever it begins with, it is no flag.
    words.extend(["--".to_owned(), "goal".to_owned()]);
    let cli = Cli::try_parse_from(words).map_err(|error| Problem::bad(said(&error)))?;
    match cli.command {
        Command::Run(args) => Ok(RunArgs { goal: Some(asked.goal.clone()), ..*args }),
        _ => Err(Problem::bad("this is no goal")),
    }
}

/// What the command line says of something wrong, on one line.
fn said(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    first.trim_start_matches("error:").trim().to_owned()
}

/// The documents that somebody may give: whoever started the dashboard, those of his project; others, those of the folders that
/// settings name. Links are followed before it is looked where they lead.
fn allowed(ui: &Ui, person: &Person, path: &Path) -> Result<PathBuf, Problem> {
    let own = matches!(person.by, KnownBy::Link).then(|| ui.app.beside_fleet(Path::new(".")));
    let named = ui.settings.documents.iter().map(|folder| ui.app.beside_fleet(folder));
    let folders: Vec<PathBuf> = own.into_iter().chain(named).collect();
    // A path starts in a folder of the list or, as in the list, at the project.
    within(&folders, path).or_else(|| within(&folders, &ui.app.beside_fleet(path))).ok_or_else(|| {
        Problem::forbidden(format!("documents cannot be given from {}", path.display()))
            .help("name a folder within those of ui.documents; whoever starts the dashboard may give any of his project")
    })
}

/// A path within one of the folders, whatever leads there; nothing where it is in none.
fn within(folders: &[PathBuf], path: &Path) -> Option<PathBuf> {
    folders.iter().find_map(|folder| {
        let folder = folder.canonicalize().ok()?;
        let found = folder.join(path).canonicalize().ok()?;
        found.starts_with(&folder).then_some(found)
    })
}

/// From where a run is begun.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fork {
    at: u64,
    model: Option<String>,
}

/// Begins a run from an earlier state of another one, as `muster fork` does.
pub(crate) async fn fork(
    State(ui): Shared,
    By(person): By,
    Named(run): Named<String>,
    Said(asked): Said<Fork>,
) -> Reply {
    let run = run_of(&ui, &run).await?;
    if let Some(model) = &asked.model {
        crate::commands::models::check(&ui.app, model)?;
    }
    let args = ForkArgs {
        run: run.to_string(),
        at: asked.at,
        model: asked.model,
        docs: Vec::new(),
        output: None,
        detach: true,
        json: true,
        quiet: true,
    };
    asked_for(forking::begin(&ui.bus_for(&person)?, &args, None).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(goal: &str) -> Goal {
        Goal { goal: goal.to_owned(), documents: Vec::new(), follow: None, model: None, review: None }
    }

    #[test]
    fn a_goal_is_text_whatever_it_looks_like() {
        for text in ["--help", "-o /etc/passwd", "--docs=/", "<b>x</b>", "a\nb", "$(reboot)"] {
            let args = arguments(&goal(text)).unwrap();
            assert_eq!(args.goal.as_deref(), Some(text));
            assert!(args.docs.is_empty() && args.output.is_none());
        }
        for text in ["", "  ", "a\0b", "-"] {
            assert!(arguments(&goal(text)).is_err(), "{text:?}");
        }
        let asked = Goal { review: Some("ask".to_owned()), ..goal("g") };
        let args = arguments(&asked).unwrap();
        assert!(args.review.is_some());
        {
            let wrong = Goal { review: Some("never".to_owned()), ..goal("g") };
            let problem = arguments(&wrong).unwrap_err();
            assert!(problem.status == 400 && !problem.error.contains('\n'), "{problem:?}");
        }
    }

    #[test]
    fn documents_are_those_within_the_folders_wherever_links_lead() {
        let place = tempfile::tempdir().unwrap();
        let docs = place.path().join("docs");
        std::fs::create_dir_all(docs.join("a")).unwrap();
        std::fs::create_dir(place.path().join("docs-secret")).unwrap();
        std::os::unix::fs::symlink(place.path(), docs.join("up")).unwrap();
        let folders = [docs.clone()];
        assert_eq!(within(&folders, Path::new("a")), Some(docs.join("a").canonicalize().unwrap()));
        assert!(within(&folders, &docs.join("a")).is_some(), "named in full");
        for path in ["..", "../docs-secret", "up", "up/docs-secret", "/etc", "a/../../..", "nowhere"] {
            assert_eq!(within(&folders, Path::new(path)), None, "{path}");
        }
        assert_eq!(within(&[], Path::new(".")), None);
    }
}
