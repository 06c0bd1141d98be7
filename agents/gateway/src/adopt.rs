//! Going on with a task that another gateway had at hand, from the record alone.

use std::sync::Arc;

use muster_agents::definition::Contract;
use muster_agents::react::progress::ProgressStream;
use muster_shared::wire::gateway::{GatewayRefusal, Moved};

use crate::desk::Desk;
use crate::open::{OpenTask, Opened};
use crate::orders;
use crate::past::{self, Attempt, TaskKey};
use crate::programs::Program;
use crate::refusal::{Closed, bad_token, failed};
use crate::route::{Found, shown};
use crate::token::Token;

/// Takes a task in hand that a token names, if it is still its program's. One that has ended is given as it is, so that a
/// message that is in the record already finds its answer.
pub(crate) async fn adopt(desk: &Arc<Desk>, token: &Token) -> Result<Found, GatewayRefusal> {
    let (run, task) = (token.run, token.task.clone());
    let offer = desk.bus.record().offer_of(run, &task).await.map_err(failed)?.ok_or_else(bad_token)?;
    if offer.generation != token.generation {
        return Err(Closed::OfferedAnew(offer.generation).refusal());
    }
    let bus = desk.bus.as_agent(&token.agent);
    let key = TaskKey::of(&offer);
    let attempt = Attempt { key: &key, agent: &token.agent, role: &token.role, started: token.started };
    let past = past::read(&bus, &offer, &attempt).await.map_err(failed)?.ok_or_else(bad_token)?;
    let is_closed = past.closed.is_some();
    let (model, contract) = if is_closed {
        (String::new(), Contract::default())
    } else {
        let listen = |program: &Arc<Program>| orders::listen(desk, program);
        let program = desk.programs.adopt(&token.agent, &token.role, listen).await?;
        (program.model.clone(), program.contract.clone())
    };
    let secret = desk.secret_of(run).await.map_err(failed)?;
    let progress =
        ProgressStream::new(bus.live(), Arc::clone(desk.shared.redactor()), token.role.clone(), &offer);
    let opened = Opened {
        role: token.role.clone(),
        agent: token.agent.clone(),
        started: token.started,
        token: Token { home: desk.bus.who().clone(), ..token.clone() }.signed(&secret),
        take_id: None,
        model,
        contract,
        progress,
        patience: desk.shared.patience(),
        bus,
        offer,
        past,
    };
    let task = Arc::new(OpenTask::new(opened));
    if is_closed {
        return Ok(Found::Open(task));
    }
    tracing::info!(task = shown(token), agent = %token.agent, before = %token.home, "a task of another gateway goes on here");
    desk.put(Arc::clone(&task));
    let TaskKey { run, task: id, generation } = key;
    let moved = Moved { run, task: id, generation, started: token.started, to: desk.bus.who().clone() };
    if let Err(error) = desk.bus.gateway().tell_moved(&moved).await {
        tracing::debug!(%error, "other gateways do not know yet where a task goes on");
    }
    if let Err(error) = desk.bus.tasks().progress_of(&task.ack).await {
        tracing::debug!(%error, "the queue could not be told of progress");
    }
    Ok(Found::Open(task))
}
