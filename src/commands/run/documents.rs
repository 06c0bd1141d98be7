//! Documents given with a goal: read, sent where agents can get them, and indexed.

use std::path::PathBuf;
use std::sync::Arc;

use muster_agents::host::BusBlobs;
use muster_agents::tools::edges::document_extractor;
use muster_bus::Bus;
use muster_corpus::{Corpus, CorpusError, CorpusOptions, Opened, Phase, Progress, in_words};
use muster_shared::flow::{CorpusRef, FetchedDocuments};

use super::fetched::{self, Brought};
use super::screen::Screen;
use crate::absent::check_document;
use crate::app::App;
use crate::exit::{Failure, usage};
use crate::output;
use crate::render::figures;
use crate::trust::real;

/// Largest picture; larger ones are left out. Providers accept 5 MiB at most.
const MAX_PICTURE_BYTES: u64 = 4 * 1024 * 1024;

/// Most pictures of a run; further ones are left out. Each is an object of the run.
const MAX_PICTURES: u64 = 200;

/// Most documents that prompts list.
const MOST_OUTLINED: usize = 200;
/// Most bytes of the list of documents in prompts.
const MAX_OUTLINE: usize = 2_000;

/// Checks what can be checked before a fleet is started for it.
pub(super) fn check(given: &[PathBuf]) -> Result<(), Failure> {
    for folder in &fetched::here(given)? {
        check_document(folder)?;
        if let Some(link) = folder.ancestors().find(|above| above.is_symlink()) {
            let target = real(folder);
            output::note!("{} is a link: these documents are read from {}", link.display(), target.display());
        }
        let readable = if folder.is_dir() {
            std::fs::read_dir(folder).map(|_| ())
        } else {
            muster_agents::input::open(folder).map(|_| ())
        };
        readable.map_err(|error| {
            usage!("the documents in {} cannot be read: {error}", folder.display())
                .help("give a folder (or file) that exists and that you may read")
        })?;
    }
    Ok(())
}

/// Documents that were sent.
pub(in crate::commands) struct Sent {
    pub(in crate::commands) corpus: CorpusRef,
    /// Which of them could not be read.
    pub(super) unread: String,
    /// Where those are from that were fetched.
    pub(super) fetched: Vec<FetchedDocuments>,
}

/// How documents are read: with the readers, limits and redaction of a run.
pub(in crate::commands) fn options(app: &App, folders: Vec<PathBuf>) -> CorpusOptions {
    let redactor = Arc::clone(&app.redactor);
    let mut options = CorpusOptions::new(app.cache_dir(), folders);
    options.extractor = document_extractor(&app.settings().documents);
    options.limits.max_picture = MAX_PICTURE_BYTES;
    options.limits.max_pictures = MAX_PICTURES as usize;
    options.redact = Some(Arc::new(move |text| redactor.redact(text)));
    options
}

/// Fetches what lies elsewhere, and reads, sends and indexes the documents.
pub(in crate::commands) async fn send(
    app: &App,
    bus: &Bus,
    given: &[PathBuf],
    screen: &Screen,
) -> Result<Sent, Failure> {
    let Brought { folders, fetched } = fetched::bring(app, given, screen).await?;
    let (teller, mut told) = tokio::sync::watch::channel(None);
    let mut options = options(app, folders);
    options.progress = Some(Arc::new(move |progress| {
        let _ = teller.send(Some(progress));
    }));
    let store = BusBlobs(bus.store());
    let building = Corpus::open_or_build(options, &store);
    tokio::pin!(building);
    let opened = loop {
        tokio::select! {
            opened = &mut building => break opened.map_err(|error| failure(&error))?,
            Ok(()) = told.changed() => {
                if let Some(progress) = *told.borrow_and_update() {
                    screen.stage(&stage(&progress));
                }
            }
        }
    };
    screen.say(&summary(&opened));
    let corpus = CorpusRef {
        id: opened.corpus.id().as_str().to_owned(),
        files: opened.documents,
        bytes: opened.bytes,
        outline: outline(app, &opened.corpus).await,
    };
    let missed = opened.skipped.missed();
    let unread = if missed.total() == 0 { String::new() } else { missed.to_string() };
    Ok(Sent { corpus, unread: app.redactor.redact(&unread).into_owned(), fetched })
}

/// What documents there are, for whoever plans and works. Without it they search as well.
async fn outline(app: &App, corpus: &Corpus) -> String {
    match corpus.outlines(MOST_OUTLINED).await {
        Ok(outlines) => app.redactor.redact(&in_words(&outlines, MAX_OUTLINE)).into_owned(),
        Err(error) => {
            tracing::warn!(%error, "the documents are not listed");
            String::new()
        }
    }
}

pub(in crate::commands) fn failure(error: &CorpusError) -> Failure {
    match error {
        CorpusError::NoFolder
        | CorpusError::FolderMissing(_)
        | CorpusError::FolderUnreadable { .. }
        | CorpusError::NothingUsable { .. } => Failure::usage(error),
        other => Failure::failed(other).help("`muster doctor` checks the store and the disk"),
    }
}

fn stage(progress: &Progress) -> String {
    let what = match progress.phase {
        Phase::Reading => "reading documents",
        Phase::Sending => "sending documents",
        Phase::Fetching => "fetching documents",
        Phase::Indexing => "indexing documents",
    };
    const CELLS: u64 = 30;
    let filled = (progress.done * CELLS).checked_div(progress.total).unwrap_or(0).min(CELLS);
    let bar: String = (0..CELLS).map(|cell| if cell < filled { '█' } else { '░' }).collect();
    format!("{what} {bar} {}/{}  {}", progress.done, progress.total, figures::bytes(progress.bytes))
}

fn summary(opened: &Opened) -> String {
    let mut text =
        format!("documents: {}, {}", figures::plural(opened.documents, "file"), figures::bytes(opened.bytes));
    if opened.skipped.total() > 0 {
        text += &format!("; {}", opened.skipped);
    }
    text
}
