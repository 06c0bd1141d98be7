//! Documents that lie elsewhere: pages and documents of the web, and repositories. They are fetched here, before the run
//! begins, and are then documents like any others.

mod git;
mod keep;
mod place;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muster_shared::flow::FetchedDocuments;
use muster_shared::text::one_line;
use muster_web::{Downloader, SystemResolver};

use self::git::{Git, GitLimits};
use self::keep::{Kept, joined};
use self::place::{Given, Repository, page_path};
use super::screen::Screen;
use crate::app::App;
use crate::exit::{Failure, failed, usage};
use crate::render::figures;

/// Longest time to fetch a repository from `--docs`: some hundred MiB over a slow line.
const FETCH_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(300);

/// Most bytes of a repository from `--docs`; `tool.web.max_bytes` limits a page. Larger repositories contain more
/// than documents.
const MAX_FETCH_BYTES: u64 = 512 * 1024 * 1024;

/// Longest address that is shown, in characters.
const MOST_SHOWN: usize = 200;

/// Files and folders of this machine, and where those are from that were fetched.
pub(super) struct Brought {
    pub(super) folders: Vec<PathBuf>,
    pub(super) fetched: Vec<FetchedDocuments>,
}

/// The files and folders here among what is given; of what lies elsewhere, whether it can be meant.
///
/// # Errors
/// What is wrong, and what to write.
pub(super) fn here(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = Vec::new();
    for one in read(given)? {
        match one {
            Given::Here(folder) => folders.push(folder),
            Given::Page(_) | Given::Repository(_) => {}
        }
    }
    Ok(folders)
}

fn read(given: &[PathBuf]) -> Result<Vec<Given>, Failure> {
    let read = |one: &PathBuf| {
        Given::read(one).map_err(|why| {
            let shown = one.to_string_lossy();
            // What may be a password is not shown.
            let shown = if shown.contains('@') { "what is given".into() } else { shown };
            usage!("--docs: {} is not fetched: {why}", one_line(&shown, MOST_SHOWN))
                .help("`--docs` takes folders, files, https://… and git+https://…[@REVISION][#PATH] (docs/running.md)")
        })
    };
    given.iter().map(read).collect()
}

/// Fetches what lies elsewhere, and says where all of it is here.
///
/// # Errors
/// What was not fetched, why, and what to do.
pub(super) async fn bring(app: &App, given: &[PathBuf], screen: &Screen) -> Result<Brought, Failure> {
    let given = read(given)?;
    let cache = app.cache_dir();
    let web = app.settings().tool.web.clone();
    let fetcher = Fetcher {
        app,
        screen,
        kept: Kept::of(&cache),
        downloader: Downloader::new(web, &cache, Arc::new(SystemResolver)),
    };
    let (mut folders, mut kept, mut fetched) = (Vec::new(), Vec::new(), Vec::new());
    for one in given {
        let (folder, from) = match one {
            Given::Here(folder) => {
                folders.push(folder);
                continue;
            }
            Given::Page(url) => fetcher.page(&url).await.map_err(|why| not_fetched(&url, &why))?,
            Given::Repository(repository) => {
                let got = fetcher.repository(&repository).await;
                got.map_err(|why| not_fetched(&repository.given, &why))?
            }
        };
        screen.say(&format!("fetched {}", from.in_words()));
        kept.push(folder);
        fetched.push(from);
    }
    if kept.is_empty() {
        return Ok(Brought { folders, fetched });
    }
    let disk = |error: io::Error| failed!("what was fetched cannot be kept: {error}");
    let whole = joined(&fetcher.kept, &kept).map_err(disk)?;
    fetcher.kept.prune();
    if folders.is_empty() {
        // Of one folder, paths begin within it: with the host.
        folders.push(whole);
    } else {
        // Of several, with the name of each.
        for entry in fs::read_dir(&whole).map_err(disk)? {
            folders.push(entry.map_err(disk)?.path());
        }
    }
    Ok(Brought { folders, fetched })
}

fn not_fetched(from: &str, why: &str) -> Failure {
    failed!("{} was not fetched: {why}", one_line(from, MOST_SHOWN)).help(
        "no run was started. Hosts at private addresses, and other ports, are reached where tool.web.allow_hosts names them; else get \
         it by yourself, and give the folder",
    )
}

struct Fetcher<'a> {
    app: &'a App,
    screen: &'a Screen,
    kept: Kept,
    downloader: Downloader,
}

impl Fetcher<'_> {
    async fn page(&self, url: &str) -> Result<(PathBuf, FetchedDocuments), String> {
        self.screen.stage(&format!("fetching {url}"));
        let got = self.downloader.get(url).await?;
        if got.bytes.is_empty() {
            return Err("there is nothing in it".to_owned());
        }
        let path = page_path(&got.url, got.media_type.as_deref());
        let name = Kept::name(&[path.as_bytes(), &got.bytes]);
        let folder = self.keep(&path, &name, |file| fs::write(file, &got.bytes))?;
        let from = FetchedDocuments {
            path,
            from: got.url,
            revision: None,
            changed: got.modified,
            at: moment(got.came_ms),
        };
        if got.is_stand_in {
            self.screen.warn(&format!("{url} does not answer now; what is kept of {} is used", from.at));
        }
        Ok((folder, from))
    }

    /// The folder of this name, in which `fill` writes to the path unless it is kept already.
    fn keep(
        &self,
        path: &str,
        name: &str,
        fill: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, String> {
        if let Some(folder) = self.kept.find(name) {
            return Ok(folder);
        }
        let put = || {
            let folder = self.kept.begin()?;
            let target = folder.path().join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            fill(&target)?;
            self.kept.put(folder, name)
        };
        put().map_err(|error: io::Error| error.to_string())
    }

    async fn repository(&self, repository: &Repository) -> Result<(PathBuf, FetchedDocuments), String> {
        let host =
            if repository.is_here() { None } else { Some(self.downloader.judged(&repository.url).await?) };
        let limits = GitLimits { time: FETCH_TIMEOUT, bytes: MAX_FETCH_BYTES };
        let git = Git { limits, web: &self.app.settings().tool.web, host: host.as_ref() };
        let work = self.kept.begin().map_err(|error| error.to_string())?;
        let tell =
            |bytes| self.screen.stage(&format!("fetching {}  {}", repository.given, figures::bytes(bytes)));
        tell(0);
        let got = git.check_out(repository, work.path(), tell).await?;
        let path = match &repository.path {
            Some(path) => format!("{}/{path}", repository.name),
            None => repository.name.clone(),
        };
        let name = Kept::name(&[path.as_bytes(), got.commit.as_bytes(), repository.url.as_bytes()]);
        // Without what git knows of it.
        let folder = self.keep(&path, &name, |target| {
            fs::remove_dir_all(work.path().join(".git"))?;
            fs::rename(&got.place, target)
        })?;
        let from = FetchedDocuments {
            path,
            from: repository.given.clone(),
            revision: Some(got.commit),
            changed: Some(got.made),
            at: moment(crate::app::now().0),
        };
        Ok((folder, from))
    }
}

/// A moment as text.
fn moment(millis: u64) -> String {
    let at = i64::try_from(millis).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    at.map_or_else(|| "at an unknown time".to_owned(), |at| format!("{at:.0}"))
}
