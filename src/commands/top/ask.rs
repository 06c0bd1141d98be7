//! Asks something of a run, on a connection of its own: one who may not is told so there, and looks on.

use std::time::Duration;

use muster_shared::run::{Request, RequestAction};
use muster_shared::wire::{Command, Encoding};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::super::refused::{Given, refused};
use crate::app::{App, user};
use crate::exit::{Failure, failed};
use crate::render::figures;
use crate::top::{Event, Order};

/// How long it is waited for a decision.
const LIMIT: Duration = Duration::from_secs(10);

/// Sends it, and tells what went wrong. What is decided upon it stands in the record.
pub(super) async fn ask(app: App, order: Order, id: Uuid, tell: mpsc::Sender<Event>) {
    if let Err(failure) = send(&app, order, id).await {
        // Nobody who listens is nobody who wants to know.
        let _ = tell.send(Event::Unheard { id, why: figures::one_line(&failure.to_string(), 300) }).await;
    }
}

async fn send(app: &App, order: Order, id: Uuid) -> Result<(), Failure> {
    let Order { run, action, reason, .. } = order;
    let bus = app.connect("cli").await?;
    let action = match action {
        RequestAction::Answer { question, text } => {
            RequestAction::Answer { question, text: app.redactor.redact(&text).into_owned() }
        }
        action => action,
    };
    let request = Request { by: user(), ..Request::new(run, action) };
    let request = request.because(app.redactor.redact(&reason).into_owned()).with_id(id);
    let sending = bus.commands();
    let command = Command::Request(request);
    tokio::select! {
        sent = sending.send(&command, Encoding::default()) => drop(sent?),
        error = bus.failed() => return Err(error.into()),
    }
    tokio::select! {
        error = bus.failed() => return Err(error.into()),
        () = tokio::time::sleep(LIMIT) => {}
    }
    Err(refused(&bus, Given::Request(run, id))
        .await
        .unwrap_or_else(|| failed!("no orchestrator took it up so far; it stays queued")))
}
