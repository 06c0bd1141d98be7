//! Carries effects out. All are hints to others that the record backs: one that fails is logged, not retried.

use muster_bus::{BusError, ControlTarget, DeadLetter};
use muster_shared::ids::{Generation, RunId, Seq};
use muster_shared::run::Evidence;
use muster_shared::wire::{ControlMessage, Encoding};

use super::office::Office;
use crate::decide::Effect;

/// Carries out what a decision that stands in the record asks for, in order, while the lease of that name is held.
pub(super) async fn perform(office: &Office, run: RunId, epoch: Seq, effects: Vec<Effect>) {
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

async fn carry_out(office: &Office, run: RunId, effect: &Effect) -> Result<(), BusError> {
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
        Effect::Inform { task, generation, agent, information } => {
            let (task, generation, information) = (task.clone(), *generation, information.clone());
            let message = ControlMessage::Inform { run, task, generation, information };
            office.bus.control().send(&ControlTarget::Agent(agent.clone()), &message).await
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
        Effect::Command { command } => {
            office.bus.commands().send(command, Encoding::default()).await.map(|_| ())
        }
        Effect::Bury { task, generation, queue, evidence } => {
            let letter =
                DeadLetter::of_task(queue, run, task, &evidence.reason, &evidence_of(*generation, evidence));
            office.bus.dead().put(letter).await
        }
    }
}
