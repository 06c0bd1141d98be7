//! Carries effects out. All are hints to others that the record backs: one that fails is logged, not retried.

use std::sync::Arc;

use muster_bus::{BusError, ControlTarget, DeadLetter, GuardedThing};
use muster_shared::flow::{CallForProposals, GuardRule, Hook, Product};
use muster_shared::ids::{AgentId, Generation, Queue, RunId, Seq};
use muster_shared::run::{Evidence, Input};
use muster_shared::wire::{ControlMessage, Encoding};

use serde_json::Value;

use super::context::OrchestratorContext;
use super::run_actor::RunMessage;
use super::trials;
use crate::decide::{Effect, asked_about, changed};

/// Carries out something that a decision in the record asks for.
pub(super) async fn perform(context: &Arc<OrchestratorContext>, run: RunId, effect: &Effect) {
    if let Err(error) = carry_out(context, run, effect).await {
        tracing::warn!(%run, ?effect, %error, "an effect could not be carried out");
    }
}

/// What is kept of a quarantined task beside its record.
fn evidence_of(generation: Generation, evidence: &Evidence) -> serde_json::Value {
    let Evidence { agents, last_step, reason } = evidence;
    serde_json::json!({ "generation": generation, "agents": agents, "last_step": last_step, "reason": reason })
}

async fn carry_out(context: &Arc<OrchestratorContext>, run: RunId, effect: &Effect) -> Result<(), BusError> {
    match effect {
        Effect::CancelTask { task, generation, agent, reason } => {
            let (task, generation, reason) = (task.clone(), *generation, reason.clone());
            order(context, agent.as_ref(), ControlMessage::CancelTask { run, task, generation, reason }).await
        }
        Effect::ParkTask { task, generation, agent, reason } => {
            let (task, generation, reason) = (task.clone(), *generation, reason.clone());
            order(context, agent.as_ref(), ControlMessage::ParkTask { run, task, generation, reason }).await
        }
        Effect::Inform { task, generation, agent, information, progress } => {
            let (task, generation, information) = (task.clone(), *generation, information.clone());
            let progress = progress.clone();
            let message = ControlMessage::Inform { run, task, generation, information, progress };
            order(context, Some(agent), message).await
        }
        Effect::ParkRun { reason } => {
            order(context, None, ControlMessage::ParkRun { run, reason: reason.clone() }).await
        }
        Effect::CancelRun { reason } => {
            order(context, None, ControlMessage::CancelRun { run, reason: reason.clone() }).await
        }
        Effect::KeepLessons { lessons } => {
            // At hand here at once, wherever they are kept.
            context.lessons.learn((**lessons).clone());
            context.bus.lessons().keep((**lessons).clone()).await
        }
        Effect::KeepTrackRecord { track_record } => {
            let track_record = context.capacity.named((**track_record).clone());
            context.track_record.learn(track_record.clone());
            context.judge();
            context.bus.track_record().keep(track_record).await
        }
        Effect::HandOn { queue, ack, .. } => context.bus.tasks().hand_on(of_queue(queue, ack)?).await,
        Effect::HandOnUnstarted { task, queue } => {
            context.bus.tasks().hand_on_unstarted(queue, run, task).await.map(drop)
        }
        Effect::Withdraw { queue, ack, .. } => context.bus.tasks().withdraw(of_queue(queue, ack)?).await,
        Effect::WithdrawOffers => context.bus.tasks().withdraw_all(run).await,
        Effect::CallForProposals { call, most } => {
            let expected = context.capacity.agents_of(&call.role);
            let (context, call, most) = (Arc::clone(context), call.clone(), usize::from(*most));
            context.clone().in_hand.spawn(async move { take_bids(&context, &call, most, expected).await });
            Ok(())
        }
        Effect::AskGuards { number, hook, role, outcome, product, rules } => {
            let (number, hook, outcome) = (*number, *hook, *outcome);
            let (role, product, rules) = (role.clone(), product.clone(), rules.clone());
            let asking = Asking { number, hook, role, outcome, product, rules };
            let context = Arc::clone(context);
            context.clone().in_hand.spawn(async move { ask_guards(&context, run, asking).await });
            Ok(())
        }
        Effect::AskShadow { rule, command } => trials::begin_shadow(context, rule, command).await,
        Effect::SettleShadow { trial, used } => trials::settle(context, run, trial, *used).await,
        Effect::CountTrials { counts } => trials::count(context, run, counts).await,
        Effect::WithdrawTrial { rule, reason } => trials::withdraw(context, run, rule, reason).await,
        Effect::Command { command } => {
            context.bus.commands().send(command, Encoding::default()).await.map(|_| ())
        }
        Effect::BuryEntry { seq, reason } => context.bus.dead().put_entry(run, *seq, reason).await,
        Effect::Bury { task, generation, queue, evidence } => {
            let letter =
                DeadLetter::of_task(queue, run, task, &evidence.reason, &evidence_of(*generation, evidence));
            context.bus.dead().put(letter).await
        }
    }
}

/// Where an acknowledgement goes, if that is in the task's own queue: an agent wrote it, and what is sent there is sent with
/// the rights of an orchestrator.
fn of_queue<'a>(queue: &Queue, ack: &'a str) -> Result<&'a str, BusError> {
    if queue.is_acknowledged_by(ack) {
        return Ok(ack);
    }
    let name = ack.chars().take(80).collect();
    Err(BusError::BadName { name, rule: "it must acknowledge what was taken from the queue of the task" })
}

/// Sends an order to an agent, or to all where nobody is named.
async fn order(
    context: &OrchestratorContext,
    to: Option<&AgentId>,
    message: ControlMessage,
) -> Result<(), BusError> {
    let to = to.cloned().map_or(ControlTarget::All, ControlTarget::Agent);
    context.bus.control().send(&to, &message).await
}

/// A question to guards.
struct Asking {
    number: u32,
    hook: Hook,
    role: String,
    outcome: Option<Seq>,
    product: Box<Product>,
    rules: Vec<GuardRule>,
}

/// Asks guards, and hands what they said to the run.
async fn ask_guards(
    context: &OrchestratorContext,
    run: RunId,
    Asking { number, hook, role, outcome, product, rules }: Asking,
) {
    let Some((_, payload)) = asked_about(&product) else { return };
    let thing = GuardedThing { hook, run, task: None, role, payload };
    let fits = |wanted: &Value| changed(&product, wanted).map(drop);
    let said = context.bus.guards().ask_all(&rules, thing, &fits).await;
    context.registry.tell(run, RunMessage::Wake(Input::GuardsSaid { number, outcome, said }));
}

/// Asks for bids, and hands those that came to the run.
async fn take_bids(context: &OrchestratorContext, call: &CallForProposals, most: usize, expected: usize) {
    let bids = context.bus.auctions().call(call, most, expected).await.unwrap_or_else(|error| {
        tracing::warn!(run = %call.run, task = %call.task, %error, "no bids could be asked for");
        Vec::new()
    });
    let Some(task) = call.task.leaf().cloned() else { return };
    let who = bids.iter().map(|bid| (&bid.agent, context.capacity.identity(&bid.agent)));
    let track_records = context.track_record.of_agents(who);
    let input = Input::Bids { task, number: call.number, bids, track_records };
    context.registry.tell(call.run, RunMessage::Wake(input));
}
