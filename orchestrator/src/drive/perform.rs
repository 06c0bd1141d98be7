//! Carries effects out. All are hints to others that the record backs: one that fails is logged, not retried.

use std::sync::Arc;

use muster_bus::{BusError, ControlTarget, DeadLetter};
use muster_shared::flow::CallForProposals;
use muster_shared::ids::{Generation, RunId, Seq};
use muster_shared::run::{Evidence, Input};
use muster_shared::wire::{ContextUpdate, ControlMessage, Encoding};

use super::office::Office;
use super::run_actor::Mail;
use crate::decide::Effect;

/// Carries out what a decision that stands in the record asks for, in order, while the lease of that name is held.
pub(super) async fn perform(office: &Arc<Office>, run: RunId, epoch: Seq, effects: Vec<Effect>) {
    for effect in effects {
        if !office.ownership.holds(epoch) {
            tracing::warn!(%run, "the lease was lost; effects are left to whoever takes the run over");
            return;
        }
        if let Err(error) = carry_out(office, run, &effect).await {
            tracing::warn!(%run, ?effect, %error, "an effect could not be carried out");
        }
    }
}

/// What is kept of a quarantined task beside its record.
fn evidence_of(generation: Generation, evidence: &Evidence) -> serde_json::Value {
    let Evidence { agents, last_step, reason } = evidence;
    serde_json::json!({ "generation": generation, "agents": agents, "last_step": last_step, "reason": reason })
}

async fn carry_out(office: &Arc<Office>, run: RunId, effect: &Effect) -> Result<(), BusError> {
    match effect {
        Effect::SetTimer { at } => office.bus.timers().set(run, *at).await,
        Effect::ClearTimer => office.bus.timers().clear(run).await,
        Effect::CancelTask { task, generation, agent, reason } => {
            let to = agent.clone().map_or(ControlTarget::All, ControlTarget::Agent);
            let (task, generation, reason) = (task.clone(), *generation, reason.clone());
            let message = ControlMessage::CancelTask { run, task, generation, reason };
            office.bus.control().send(&to, &message).await
        }
        Effect::ParkTask { task, generation, agent, reason } => {
            let to = agent.clone().map_or(ControlTarget::All, ControlTarget::Agent);
            let (task, generation, reason) = (task.clone(), *generation, reason.clone());
            let message = ControlMessage::ParkTask { run, task, generation, reason };
            office.bus.control().send(&to, &message).await
        }
        Effect::Inform { task, generation, agent, information, progress } => {
            let (task, generation, information) = (task.clone(), *generation, information.clone());
            let progress = progress.clone();
            let message = ControlMessage::Inform { run, task, generation, information, progress };
            office.bus.control().send(&ControlTarget::Agent(agent.clone()), &message).await
        }
        Effect::ShowContext { key, value, version, by } => {
            let (key, value, by) = (key.clone(), value.clone(), Some(by.clone()));
            office.bus.context().show(ContextUpdate { run, key, value, version: *version, by }).await
        }
        Effect::ParkRun { reason } => {
            let message = ControlMessage::ParkRun { run, reason: reason.clone() };
            office.bus.control().send(&ControlTarget::All, &message).await
        }
        Effect::CancelRun { reason } => {
            let message = ControlMessage::CancelRun { run, reason: reason.clone() };
            office.bus.control().send(&ControlTarget::All, &message).await
        }
        Effect::KeepLessons { lessons } => {
            // At hand here at once, wherever they are kept.
            office.lessons.learn((**lessons).clone());
            office.bus.lessons().keep((**lessons).clone()).await
        }
        Effect::KeepStanding { standing } => {
            let standing = office.capacity.named((**standing).clone());
            office.standing.learn(standing.clone());
            office.judge();
            office.bus.standing().keep(standing).await
        }
        Effect::HandOn { ack, .. } => office.bus.tasks().hand_on(ack).await,
        Effect::Withdraw { ack, .. } => office.bus.tasks().withdraw(ack).await,
        Effect::CallForProposals { call, most } => {
            let expected = office.capacity.agents_of(&call.role);
            let (office, call, most) = (Arc::clone(office), call.clone(), usize::from(*most));
            office.clone().in_hand.spawn(async move { take_bids(&office, &call, most, expected).await });
            Ok(())
        }
        Effect::Command { command } => {
            office.bus.commands().send(command, Encoding::default()).await.map(|_| ())
        }
        Effect::BuryEntry { seq, reason } => office.bus.dead().put_entry(*seq, reason).await,
        Effect::Bury { task, generation, queue, evidence } => {
            let letter =
                DeadLetter::of_task(queue, run, task, &evidence.reason, &evidence_of(*generation, evidence));
            office.bus.dead().put(letter).await
        }
    }
}

/// Asks for bids, and hands those that came to the run.
async fn take_bids(office: &Office, call: &CallForProposals, most: usize, expected: usize) {
    let bids = office.bus.auctions().call(call, most, expected).await.unwrap_or_else(|error| {
        tracing::warn!(run = %call.run, task = %call.task, %error, "no bids could be asked for");
        Vec::new()
    });
    let Some(task) = call.task.leaf().cloned() else { return };
    let who = bids.iter().map(|bid| (&bid.agent, office.capacity.identity(&bid.agent)));
    let standings = office.standing.of_agents(who);
    let input = Input::Bids { task, number: call.number, bids, standings };
    office.registry.tell(call.run, Mail::Wake(input));
}
