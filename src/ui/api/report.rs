//! The report of a run, and the places in documents that it cites.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use muster_agents::host::BusBlobs;
use muster_agents::react::lookup::cited_in;
use muster_corpus::{Corpus, CorpusError, CorpusId};
use muster_shared::run::RunState;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::reply::{Problem, Reply, json};
use super::super::state::Ui;
use super::{After, Named, Shared, apart, record_of};
use crate::commands::select;
use crate::render::safe;

/// Most lines around a place.
const MOST_AROUND: u64 = 200;
/// Most places that are told.
const MOST_CITED: usize = 1_000;

async fn state_of(ui: &Ui, run: &str) -> Result<RunState, Problem> {
    let (run, record) = record_of(ui, run).await?;
    let record = record.followed()?;
    apart(move || select::fold(run, &record.entries)).await
}

/// The documents of a run; nothing where it has none.
async fn documents(ui: &Ui, state: &RunState) -> Result<Option<Corpus>, Problem> {
    let Some(wanted) = &state.goal.corpus else { return Ok(None) };
    let id = CorpusId::parse(&wanted.id).map_err(cannot)?;
    let cache = ui.app.cache_dir();
    let store = BusBlobs(ui.bus()?.store());
    Corpus::open_or_fetch(&cache, &id, &store, None).await.map(Some).map_err(cannot)
}

fn cannot(error: CorpusError) -> Problem {
    match error {
        error @ (CorpusError::UnknownPath { .. } | CorpusError::BadRange { .. }) => {
            Problem::not_found(error.to_string())
        }
        error => Problem::new(StatusCode::CONFLICT, format!("the documents cannot be opened: {error}")),
    }
}

/// The report, and what it cites, each place with the document as it is called there.
pub(crate) async fn show(State(ui): Shared, Named(run): Named<String>) -> Reply {
    let state = state_of(&ui, &run).await?;
    let report = state.report.as_ref().ok_or_else(|| {
        Problem::not_found(format!("run {} has no report", state.id.short()))
            .help("it comes with the run's end")
    })?;
    let body = safe::report(&report.body);
    let digests = match documents(&ui, &state).await {
        Ok(Some(corpus)) => {
            let manifest = corpus.manifest().await.map_err(cannot)?;
            manifest.files.into_iter().map(|file| (file.path, file.hash)).collect()
        }
        // The report is worth showing all the same.
        Ok(None) | Err(_) => BTreeMap::new(),
    };
    let citations = citations(&body, &digests);
    json(&json!({
        "markdown": body, "title": report.title, "partial": report.partial, "offline": report.offline,
        "unanswered": report.unanswered, "citations": citations,
    }))
}

/// The places that a text cites. Pure.
fn citations(body: &str, digests: &BTreeMap<String, String>) -> Vec<Value> {
    let told = |place: muster_corpus::CitedPlace| {
        let document = meant(&place.path, digests.keys().map(String::as_str));
        let digest = document.and_then(|path| digests.get(path));
        json!({
            "cite": format!("{}:{}", place.path, place.line), "document": document.unwrap_or(&place.path),
            "line": place.line, "digest": digest,
        })
    };
    cited_in(body).into_iter().take(MOST_CITED).map(told).collect()
}

/// The document that is meant: the one of that path, else the only one whose path ends with it.
fn meant<'a>(path: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut ending = Vec::new();
    for known in all {
        if known == path {
            return Some(known);
        }
        if known.strip_suffix(path).is_some_and(|before| before.ends_with('/')) {
            ending.push(known);
        }
    }
    match ending.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

/// A place in a document.
#[derive(Debug, Deserialize)]
pub(crate) struct Place {
    document: String,
    line: Option<u64>,
    around: Option<u64>,
}

/// The lines around a place that is cited.
pub(crate) async fn source(
    State(ui): Shared,
    Named(run): Named<String>,
    After(place): After<Place>,
) -> Reply {
    let state = state_of(&ui, &run).await?;
    let corpus = documents(&ui, &state)
        .await?
        .ok_or_else(|| Problem::not_found(format!("run {} has no documents", state.id.short())))?;
    let (line, around) = (place.line.unwrap_or(1).max(1), place.around.unwrap_or(20).min(MOST_AROUND));
    let (from, to) = (line.saturating_sub(around).max(1), line.saturating_add(around));
    let read = match corpus.read(&place.document, from, to).await {
        Err(CorpusError::UnknownPath { .. }) => {
            let manifest = corpus.manifest().await.map_err(cannot)?;
            let known = meant(&place.document, manifest.files.iter().map(|file| file.path.as_str()));
            let known = known.ok_or_else(|| Problem::not_found("there is no such document"))?;
            corpus.read(known, from, to).await
        }
        read => read,
    };
    let lines = read.map_err(cannot)?;
    json(&json!({
        "document": lines.path, "first": lines.from, "lines": lines.lines, "line": line, "total": lines.total,
        "numbers": lines.numbers,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_with_the_document_that_is_meant() {
        let digests: BTreeMap<String, String> = [("docs/a.md", "1"), ("docs/b.md", "2"), ("other/b.md", "3")]
            .map(|(a, b)| (a.into(), b.into()))
            .into();
        let told = citations("It is so (`a.md:3`), and so (`docs/b.md:4`), and b.md:5; x.md:1.", &digests);
        let shown: Vec<(&str, Option<&str>)> = told
            .iter()
            .map(|one| (one["document"].as_str().unwrap_or_default(), one["digest"].as_str()))
            .collect();
        assert_eq!(shown[0], ("docs/a.md", Some("1")));
        assert_eq!(shown[1], ("docs/b.md", Some("2")));
        assert_eq!(shown[2], ("b.md", None), "two have this name");
        assert_eq!(shown[3], ("x.md", None));
        assert_eq!(told[0]["cite"], "a.md:3");
    }
}
