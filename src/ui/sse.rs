//! `GET /api/events`: what happens, as it happens.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use futures::Stream;
use serde::Deserialize;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::api::run_of;
use super::reply::{Problem, Reply};
use super::session::Session;
use super::state::Ui;
use super::watcher::{MOST_WAITING, TapFilter, Told, Watcher};

/// After how long a browser tries again that was cut off.
const AGAIN: Duration = Duration::from_millis(500);
/// Longest filter, in bytes.
const LONGEST: usize = 500;

/// What a page wants to be told.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    run: String,
    tap: String,
    role: String,
    kind: String,
    text: String,
    correlation: String,
}

/// Keeps a page up to date until it leaves.
pub(crate) async fn events(
    State(ui): State<Arc<Ui>>,
    Extension(session): Extension<Session>,
    Query(wanted): Query<Wanted>,
) -> Reply {
    let place = ui.streams.take(&session.person)?;
    let run = match wanted.run.as_str() {
        "" => None,
        // A page that comes back while the fleet is away names its run in full.
        named => match named.parse() {
            Ok(run) => Some(run),
            Err(_) => Some(run_of(&ui, named).await?),
        },
    };
    let is_tapped = matches!(wanted.tap.as_str(), "1" | "true");
    let tap = if is_tapped { Some(filter(&wanted, run)?) } else { None };
    let (tells, told) = mpsc::channel(MOST_WAITING);
    if !ui.hub.watch(Watcher { run, tap, tells }).await {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the dashboard ends"));
    }
    let stream = Events { told, _place: place, begun: false };
    Ok(Sse::new(stream).into_response())
}

fn filter(wanted: &Wanted, run: Option<muster_shared::ids::RunId>) -> Result<TapFilter, Problem> {
    let Wanted { role, kind, text, correlation, .. } = wanted;
    if [role, kind, text].iter().any(|one| one.len() > LONGEST) {
        return Err(Problem::bad(format!("a filter has at most {LONGEST} bytes")));
    }
    let correlation = match correlation.as_str() {
        "" => None,
        id => Some(id.parse::<Uuid>().map_err(|_| Problem::bad("a correlation is the id of a message"))?),
    };
    Ok(TapFilter { run, role: role.clone(), kind: kind.clone(), text: text.clone(), correlation })
}

/// What a page is told, until it leaves or does not keep up.
struct Events {
    told: mpsc::Receiver<Told>,
    _place: Arc<()>,
    begun: bool,
}

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.begun {
            self.begun = true;
            return Poll::Ready(Some(Ok(Event::default().retry(AGAIN))));
        }
        self.told.poll_recv(cx).map(|told| told.map(|told| Ok(told.event())))
    }
}
