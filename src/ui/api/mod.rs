//! What the page asks for. Wherever a command prints the same with `--json`, this is made by the same function.

mod dead;
mod files;
mod fleet;
mod people;
mod playground;
mod report;
mod run;
mod runs;
mod session;
mod steer;
mod steps;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{get, post};
use muster_shared::ids::RunId;
use serde::de::DeserializeOwned;

use super::records::KeptRecord;
use super::reply::{Problem, Reply};
use super::session::{Person, Session};
use super::state::Ui;
use super::{assets, sse};
use crate::args::SteerCommand;
use crate::commands::{keep, select};
use crate::exit::Failure;

/// Longest name of a run in an address.
const LONGEST_NAME: usize = 200;

/// All that can be asked for.
pub(crate) fn router() -> Router<Arc<Ui>> {
    Router::new()
        .route("/api/login", post(session::login))
        .route("/api/logout", post(session::logout))
        .route("/api/me", get(session::me))
        .route("/api/events", get(sse::events))
        .route("/api/fleet", get(fleet::show))
        .route("/api/fleet/start", post(fleet::start))
        .route("/api/fleet/stop", post(fleet::stop))
        .route("/api/runs", get(runs::list).post(runs::begin))
        .route("/api/runs/{run}", get(run::show))
        .route("/api/runs/{run}/entries", get(run::entries))
        .route("/api/runs/{run}/timeline", get(run::timeline))
        .route("/api/runs/{run}/graph", get(run::graph))
        .route("/api/runs/{run}/explain", get(run::explain))
        .route("/api/runs/{run}/compare/{other}", get(run::compare))
        .route("/api/runs/{run}/steps/{task}/{generation}/{step}", get(steps::show))
        .route("/api/runs/{run}/report", get(report::show))
        .route("/api/runs/{run}/source", get(report::source))
        .route("/api/runs/{run}/files", get(files::list))
        .route("/api/runs/{run}/files/{*path}", get(files::bytes))
        .route("/api/runs/{run}/plan", get(people::plan).post(steer::edit))
        .route("/api/runs/{run}/plan/check", post(people::check))
        .route("/api/runs/{run}/approve", post(people::approve))
        .route("/api/runs/{run}/reject", post(people::reject))
        .route("/api/runs/{run}/questions/{question}/answer", post(people::answer))
        .route("/api/questions/{question}/answer", post(people::answer_named))
        .route("/api/questions", get(people::questions))
        .route("/api/runs/{run}/pause", steer::of_run(SteerCommand::Pause))
        .route("/api/runs/{run}/resume", steer::of_run(steer::resumed))
        .route("/api/runs/{run}/cancel", steer::of_run(SteerCommand::Cancel))
        .route("/api/runs/{run}/tasks/{task}/skip", steer::of_task(SteerCommand::Skip))
        .route("/api/runs/{run}/tasks/{task}/redo", steer::of_task(SteerCommand::Redo))
        .route("/api/runs/{run}/fork", post(runs::fork))
        .route("/api/runs/{run}/replay", post(run::replay))
        .route("/api/playground", post(playground::ask))
        .route("/api/tools", get(tools::stats))
        .route("/api/lessons", get(tools::lessons))
        .route("/api/lessons/{run}/forget", post(tools::forget))
        .route("/api/dead", get(dead::list))
        .route("/api/dead/{seq}/retry", post(dead::retry))
        .route("/api/dead/{seq}/drop", post(dead::discard))
        .fallback(page)
}

/// A file of the page, or nothing.
async fn page(uri: Uri, headers: HeaderMap) -> Reply {
    match uri.path() {
        path if path.starts_with("/api/") => {
            Err(Problem::not_found("there is no such thing to be asked for"))
        }
        path => assets::serve(path, &headers),
    }
}

/// The run that an address names: an id, digits of one, or `last`.
///
/// # Errors
/// When there is none, or its record was removed.
pub(crate) async fn run_of(ui: &Ui, named: &str) -> Result<RunId, Problem> {
    if named.len() > LONGEST_NAME {
        return Err(Problem::bad("this is too long to name a run"));
    }
    let bus = ui.bus()?;
    select::run(&bus, named).await.map_err(|failure| Problem::from(failure).or_not_found())
}

/// A run and its record.
///
/// # Errors
/// When there is none, or it cannot be read.
async fn record_of(ui: &Ui, named: &str) -> Result<(RunId, Arc<KeptRecord>), Problem> {
    let bus = ui.bus()?;
    // A run named in full, as the page does, needs no list of all there are.
    if let Ok(run) = named.parse::<RunId>() {
        let record = ui.records.of(&bus, run).await?;
        if !record.entries.is_empty() {
            return Ok((run, record));
        }
        if let Some(gone) = keep::removed(&bus, run).await? {
            let told = keep::tell_removed(run, &gone.removed);
            return Err(Problem { status: StatusCode::GONE, ..Problem::from(told) });
        }
    }
    let run = run_of(ui, named).await?;
    Ok((run, ui.records.of(&bus, run).await?))
}

/// Work that takes the processor for a while, elsewhere than where requests are answered.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => {
            tracing::error!(%error, "a request could not be answered");
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this could not be worked out")
                .help("the log of `muster ui` says why"))
        }
    }
}

/// Whoever asks.
pub(crate) struct By(pub(crate) Arc<Person>);

impl FromRequestParts<Arc<Ui>> for By {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Ui>) -> Result<Self, Problem> {
        let session = parts.extensions.get::<Session>();
        let session =
            session.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "nobody is logged in here"))?;
        Ok(Self(Arc::clone(&session.person)))
    }
}

/// What a request says, read as JSON.
pub(crate) struct Said<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Ui>> for Said<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Ui>) -> Result<Self, Problem> {
        let most = crate::settings::MAX_REQUEST as usize;
        let bytes = body(request.into_body(), most).await?;
        // Nothing said is nothing wanted.
        let bytes: &[u8] = if bytes.iter().all(u8::is_ascii_whitespace) { b"{}" } else { &bytes };
        let said = serde_json::from_slice(bytes).map_err(|error| {
            Problem::bad(format!("the request cannot be read: {error}"))
                .help("docs/dashboard.md says what each request takes")
        })?;
        Ok(Self(said))
    }
}

async fn body(body: Body, most: usize) -> Result<Vec<u8>, Problem> {
    to_bytes(body, most).await.map(Vec::from).map_err(|_| {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a request has at most {most} bytes"))
            .help("send less at once")
    })
}

/// What stands after the `?`.
pub(crate) struct After<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Ui>> for After<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, ui: &Arc<Ui>) -> Result<Self, Problem> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, ui).await;
        let axum::extract::Query(after) =
            query.map_err(|error: QueryRejection| Problem::bad(error.body_text()))?;
        Ok(Self(after))
    }
}

/// The parts of an address, which have to be text.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Ui>> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, ui: &Arc<Ui>) -> Result<Self, Problem> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, ui).await;
        let axum::extract::Path(named) = path.map_err(|error| Problem::bad(error.body_text()))?;
        Ok(Self(named))
    }
}

/// What is shared by all requests.
pub(crate) type Shared = State<Arc<Ui>>;
