//! Answers requests: a goal that is submitted by NATS request is put into the queue of commands as any other, and whoever
//! asked is told what became of it.

use std::sync::Arc;

use futures::StreamExt;
use muster_bus::{Asked, BusError, NewRun, RecordFilter};
use muster_shared::flow::Goal;
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::event::{RunAborted, RunFailed};
use muster_shared::run::{Entry, RunEvent, StopReason};
use muster_shared::wire::ask::{Accepted, Ask, Refused};
use muster_shared::wire::{Body, Command, Encoding};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::context::OrchestratorContext;

/// Requests that are in hand at once; more wait with the server.
const AT_ONCE: usize = 32;

/// Answers requests for as long as it is polled.
///
/// # Errors
/// When requests cannot be served, or cannot be served any more.
pub(super) async fn answer_all(context: Arc<OrchestratorContext>) -> Result<(), BusError> {
    let mut requests = context.bus.asks().serve().await?;
    let hands = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(asked) = requests.next().await {
        let Ok(hand) = Arc::clone(&hands).acquire_owned().await else { return Ok(()) };
        let context = Arc::clone(&context);
        context.clone().in_hand.spawn(async move {
            let (body, run) = see_to(&context, &asked).await;
            if let Err(error) = asked.answer(body, run).await {
                tracing::warn!(%error, "a request could not be answered");
            }
            drop(hand);
        });
    }
    Err(BusError::Other { what: "serving requests".into(), reason: "the bus gave no more of them".into() })
}

/// What is answered, and the run that it is about.
async fn see_to(context: &OrchestratorContext, asked: &Asked) -> (Body, Option<RunId>) {
    let Ask::Submit { goal, id, run } = match &asked.what {
        Ok(ask) => ask,
        Err(reason) => return (Body::Error(refusal(reason.clone())), None),
    };
    let by_message = asked.message_id().filter(|_| run.is_none());
    match submit(context, asked, goal, (id.as_deref().or(by_message.as_deref()), *run)).await {
        Ok(Ok(accepted)) => (Body::Accepted(accepted.clone()), Some(accepted.run)),
        Ok(Err(refusal)) => (Body::Error(refusal.clone()), refusal.run),
        Err(error) => {
            let reason =
                format!("{error}. Ask again with the same id or run: what was taken is not taken twice");
            (Body::Error(Refused { later: true, ..refusal(reason) }), None)
        }
    }
}

/// Puts the goal into the queue of commands, and waits for the first that is decided upon it.
async fn submit(
    context: &OrchestratorContext,
    asked: &Asked,
    goal: &Goal,
    (id, run): (Option<&str>, Option<RunId>),
) -> Result<Result<Accepted, Refused>, BusError> {
    if let Err(wrong) = goal.check() {
        return Ok(Err(refusal(format!("field body.content.goal: {wrong}"))));
    }
    let run = match (run, id) {
        (Some(run), _) if run.as_uuid().get_version_num() != 7 => {
            let reason = format!("field body.content.run: {run} is not a UUID of version 7");
            return Ok(Err(refusal(reason)));
        }
        (Some(run), _) => run,
        (None, None) => new_run(),
        (None, Some(id)) => {
            let what = serde_json::to_vec(goal)?;
            let new = NewRun { run: new_run(), what: &what };
            match context.bus.asks().run_of(&asked.asker(), id, new).await? {
                Ok(run) => run,
                Err(reason) => return Ok(Err(refusal(format!("field body.content.id: {reason}")))),
            }
        }
    };
    let command = Command::Submit { run, goal: Box::new(goal.clone()) };
    context.bus.commands().send_for(&command, Encoding::default(), asked.signed.as_ref()).await?;
    let first = context.bus.record().first(&RecordFilter::Decisions(run), Seq(0)).await?;
    let known = first.as_ref().and_then(|entry| entry.event.goal());
    if known.is_some_and(|known| !known.is_same(goal)) {
        let reason =
            format!("field body.content.run: run {run} has another goal: use a new id for a new goal");
        return Ok(Err(Refused { run: Some(run), ..refusal(reason) }));
    }
    Ok(match first.as_ref().and_then(refusal_in) {
        Some((why, later)) => Err(Refused { run: Some(run), later, ..refusal(why) }),
        None => Ok(Accepted { run, queued: first.is_none() }),
    })
}

fn new_run() -> RunId {
    RunId::from_uuid(Uuid::now_v7())
}

/// Why a run was not taken up at all, if it was not, and whether that may be otherwise later.
fn refusal_in(entry: &Entry) -> Option<(String, bool)> {
    entry.event.events().iter().find_map(|event| {
        if let RunEvent::RunFailed(RunFailed { reason }) = event {
            return Some((reason.clone(), false));
        }
        let RunEvent::RunAborted(RunAborted { why: StopReason::Refused, reason, .. }) = event else {
            return None;
        };
        Some((reason.clone(), true))
    })
}

fn refusal(reason: String) -> Refused {
    Refused { reason, run: None, later: false }
}
